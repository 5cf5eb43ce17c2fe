//! A prepared statement, and the packets that run it.

use super::format::{Description, Format, PREPARE_ITEMS};
use super::sql::{self, Verb};
use super::xdr::Put;
use crate::failure::Result;
use crate::program::{Captured, Parameter, Script, Statement};

const OP_TRANSACTION: i32 = 29;
const OP_COMMIT: i32 = 30;
const OP_ROLLBACK: i32 = 31;
const OP_OPEN_BLOB: i32 = 35;
const OP_GET_SEGMENT: i32 = 36;
const OP_CLOSE_BLOB: i32 = 39;
const OP_INFO_DATABASE: i32 = 40;
const OP_ALLOCATE: i32 = 62;
const OP_EXECUTE: i32 = 63;
const OP_FETCH: i32 = 65;
const OP_FREE: i32 = 67;
const OP_PREPARE: i32 = 68;
const OP_EXECUTE2: i32 = 76;
const OP_DROP_DATABASE: i32 = 81;
/// Refers to the object created last, in packets that are sent before its handle is known.
const LAST_MADE: i32 = 0xffff;
const INFO_BYTES: i32 = 0xfff0;
const SEGMENT_BYTES: i32 = 0xfff0;
/// Version 3, read/write, wait, read committed with record versions: the usual driver default.
const READ_ONLY: [u8; 5] = [3, 8, 6, 15, 17];
const READ_WRITE: [u8; 5] = [3, 9, 6, 15, 17];
/// Kinds of statements.
const SELECT: i32 = 1;
const SELECT_FOR_UPDATE: i32 = 12;

/// A statement known to the server, or one that the driver runs itself.
#[derive(Debug, Default)]
pub struct Prepared {
    /// None: not sent to the server yet.
    pub verb: Option<Verb>,
    /// Whether it only reads. Its transaction is then read-only, so that the server writes nothing when it ends.
    pub reads: bool,
    /// Sealed values of its rows are opened.
    pub open: bool,
    pub handle: i32,
    /// Whether it returns its rows through a cursor.
    pub cursor: bool,
    pub columns: Format,
    pub parameters: Format,
    /// The number of `$1`, `$2` … for each parameter.
    pub order: Vec<usize>,
    /// Where the values of its rows go, which then travel as text.
    pub captured: Option<Captured>,
}

impl Prepared {
    /// `text`: return columns as text for people.
    pub fn new(handle: i32, order: Vec<usize>, description: &Description, text: bool) -> Prepared {
        let columns = &description.columns;
        Prepared {
            verb: Some(Verb::Other),
            reads: false,
            open: false,
            handle,
            cursor: matches!(description.kind, SELECT | SELECT_FOR_UPDATE),
            columns: if text { Format::text(columns) } else { Format::native(columns) },
            parameters: Format::parameters(&description.parameters),
            order,
            captured: None,
        }
    }

    /// The same for a statement of a script.
    pub fn of_script(
        handle: i32,
        order: Vec<usize>,
        description: &Description,
        script: &Script,
        statement: &Statement,
    ) -> Prepared {
        let captured = statement.into.as_ref().map(|_| {
            let mut captured = Captured::default();
            description.columns.iter().for_each(|column| captured.column(script, statement, &column.name));
            captured
        });
        Prepared { captured, ..Prepared::new(handle, order, description, statement.into.is_some()) }
    }

    /// A statement that the server doesn't know yet.
    pub fn of(statement: &Statement) -> Prepared {
        match sql::verb(&statement.sql) {
            Verb::Other => Prepared { reads: sql::reads(&statement.sql), open: statement.open, ..Prepared::default() },
            verb => Prepared::own(verb),
        }
    }

    pub fn own(verb: Verb) -> Prepared {
        Prepared { verb: Some(verb), ..Prepared::default() }
    }

    /// Runs it. With a cursor, the same flight fetches the first rows, as the server's own library does.
    #[inline]
    pub fn run<'a>(
        &self,
        outbox: &mut Vec<u8>,
        transaction: i32,
        protocol: i32,
        values: impl Iterator<Item = Parameter<'a>>,
    ) -> Result<()> {
        let single = !self.cursor && !self.columns.is_empty();
        outbox.int(if single { OP_EXECUTE2 } else { OP_EXECUTE });
        outbox.int(self.handle);
        outbox.int(transaction);
        outbox.bytes(&self.parameters.blr);
        outbox.int(0);
        outbox.int(i32::from(!self.parameters.is_empty()));
        if !self.parameters.is_empty() {
            self.parameters.write(outbox, values)?;
        }
        if single {
            outbox.bytes(&self.columns.blr);
            outbox.int(0);
        }
        if protocol >= 16 {
            outbox.int(0); // no time limit
        }
        if self.cursor {
            self.fetch(outbox, true);
        }
        Ok(())
    }

    /// Requests a batch of rows; the first request includes their format.
    #[inline]
    pub fn fetch(&self, outbox: &mut Vec<u8>, first: bool) {
        outbox.int(OP_FETCH);
        outbox.int(self.handle);
        outbox.bytes(if first { &self.columns.blr } else { &[] });
        outbox.int(0);
        outbox.int(self.columns.batch());
    }

    /// Closes its cursor. Sent with the next message.
    #[inline]
    pub fn close(&self, outbox: &mut Vec<u8>) {
        free(outbox, self.handle, 1);
    }

    /// Frees it on the server.
    pub fn drop(&self, outbox: &mut Vec<u8>) {
        free(outbox, self.handle, 2);
    }
}

fn free(outbox: &mut Vec<u8>, handle: i32, how: i32) {
    outbox.int(OP_FREE);
    outbox.int(handle);
    outbox.int(how);
}

/// Allocates and prepares a statement in one flight. Returns the order of its parameters.
pub fn prepare(outbox: &mut Vec<u8>, database: i32, transaction: i32, sql: &str) -> Vec<usize> {
    let (text, order) = sql::translate(sql);
    outbox.int(OP_ALLOCATE);
    outbox.int(database);
    outbox.int(OP_PREPARE);
    outbox.int(transaction);
    outbox.int(LAST_MADE);
    outbox.int(3); // SQL dialect
    outbox.bytes(text.as_bytes());
    outbox.bytes(&PREPARE_ITEMS);
    outbox.int(INFO_BYTES);
    order
}

#[inline]
pub fn begin(outbox: &mut Vec<u8>, database: i32, read_only: bool) {
    outbox.int(OP_TRANSACTION);
    outbox.int(database);
    outbox.bytes(if read_only { &READ_ONLY } else { &READ_WRITE });
}

#[inline]
pub fn end(outbox: &mut Vec<u8>, transaction: i32, commit: bool) {
    outbox.int(if commit { OP_COMMIT } else { OP_ROLLBACK });
    outbox.int(transaction);
}

pub fn open_blob(outbox: &mut Vec<u8>, transaction: i32, id: i64) {
    outbox.int(OP_OPEN_BLOB);
    outbox.int(transaction);
    outbox.long(id);
}

pub fn get_segment(outbox: &mut Vec<u8>, blob: i32) {
    outbox.int(OP_GET_SEGMENT);
    outbox.int(blob);
    outbox.int(SEGMENT_BYTES);
    outbox.bytes(&[]);
}

pub fn close_blob(outbox: &mut Vec<u8>, blob: i32) {
    outbox.int(OP_CLOSE_BLOB);
    outbox.int(blob);
}

pub fn drop_database(outbox: &mut Vec<u8>, database: i32) {
    outbox.int(OP_DROP_DATABASE);
    outbox.int(database);
}

/// Requests the server's version: the item, and the end marker.
pub fn ask_version(outbox: &mut Vec<u8>, database: i32) {
    outbox.int(OP_INFO_DATABASE);
    outbox.int(database);
    outbox.int(0);
    outbox.bytes(&[103, 1]);
    outbox.int(1024);
}

/// "4.0.5" of "LI-V4.0.5.3140 Firebird 4.0", from the answer to `ask_version`.
pub fn version(info: &[u8]) -> String {
    let text = String::from_utf8_lossy(info);
    let numbers = text.split("-V").nth(1).or(text.split("-T").nth(1)).unwrap_or_default();
    numbers
        .split(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .next()
        .unwrap_or_default()
        .split('.')
        .take(3)
        .collect::<Vec<_>>()
        .join(".")
}

/// The pieces of a BLOB in the response to `get_segment`, each preceded by its length.
pub fn segments(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = data;
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk::<2>()?;
        let length = usize::from(u16::from_le_bytes(*length)).min(after.len());
        let (segment, after) = after.split_at(length);
        rest = after;
        Some(segment)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_three_numbers() {
        assert_eq!(version(b"\x67\x1d\0\x01\x1bLI-V4.0.5.3140 Firebird 4.0\x01"), "4.0.5");
        assert_eq!(version(b"LI-T6.0.0.1 Firebird 6.0 Initial"), "6.0.0");
        assert_eq!(version(b""), "");
    }

    #[test]
    fn the_segments_of_a_blob_are_its_content() {
        let content: Vec<u8> = segments(b"\x03\0abc\x00\0\x02\0de").flatten().copied().collect();
        assert_eq!(content, b"abcde");
        assert_eq!(segments(b"\x09\0ab").next(), Some(&b"ab"[..]));
    }
}
