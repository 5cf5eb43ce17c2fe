//! Runs statements in PostgreSQL's extended protocol, one send and one receive per statement.

mod inbox;
mod login;
mod outbox;
pub mod sql;

use super::network::link::Link;
use super::network::protocol::{Protocol, Ready};
use super::network::wire::Wire;
use crate::connection::{Outcome, QUERY_LIMIT_BYTES, Rows, escape};
use crate::envelope::Vault;
use crate::failure::{Failure, Result};
use crate::message::Server;
use crate::program::{Operation, Script, Statement};
use inbox::{Fields, Inbox, Message, error_of};
use login::Login;
use outbox::Outbox;

#[derive(Default)]
pub struct Postgres {
    statements: Vec<Prepared>,
    /// Whether the rows of the running statement are opened.
    opening: bool,
    /// Formats of an unprepared statement's values. Reused.
    formats: Vec<u8>,
}

/// A statement that the server has prepared.
struct Prepared {
    name: Vec<u8>,
    /// The formats of its values and of its rows' columns, encoded for `Bind`.
    formats: Vec<u8>,
    results: Vec<u8>,
}

/// All values travel as text.
const ALL_TEXT: [u8; 2] = [0, 0];
const BYTEA: i32 = 17;

impl Wire for Postgres {
    type Asked = Server;
    type Inbox = Inbox;
    type Login = Login;
    const APPLICATION: Option<&'static str> = Some("postgresql");
    const GOODBYE: &'static [u8] = b"X\0\0\0\x04";
}

impl Protocol for Postgres {
    fn check(&self, _: &Script) -> Result<()> {
        Ok(())
    }

    fn prepare(&mut self, link: &mut Link<Postgres>, script: &Script) -> Result<()> {
        let mut outbox = Outbox(&mut link.outbox);
        for old in self.statements.drain(..) {
            outbox.close_statement(&String::from_utf8_lossy(&old.name));
        }
        for (number, statement) in script.statements.iter().enumerate() {
            let name = format!("s{number}");
            outbox.parse(&name, &statement.sql);
            if statement.open {
                outbox.describe_statement(&name);
            }
            let mut formats = Vec::new();
            put_formats(script, statement, &mut formats);
            self.statements.push(Prepared { name: name.into_bytes(), formats, results: ALL_TEXT.into() });
        }
        outbox.sync();
        let described = script.statements.iter().enumerate().filter(|(_, statement)| statement.open);
        let (mut described, statements) = (described.map(|(number, _)| number), &mut self.statements);
        dialogue(link, |tag, body| {
            // Columns of a statement's rows, or that it has none.
            if tag == b'T' || tag == b'n' {
                let number = described.next();
                if let Some(prepared) = number.and_then(|number| statements.get_mut(number)).filter(|_| tag == b'T') {
                    prepared.results = binary_bytes(body);
                }
            }
        })
    }

    #[inline]
    fn run(&mut self, link: &mut Link<Postgres>, script: &Script, number: usize, operation: &Operation) {
        let (prepared, statement) = (&self.statements[number], &script.statements[number]);
        self.opening = statement.open;
        let mut outbox = Outbox(&mut link.outbox);
        outbox.run(&prepared.name, &prepared.formats, &prepared.results, statement, operation);
    }

    /// Unnamed, parsed in the same flight.
    fn run_unprepared(&mut self, link: &mut Link<Postgres>, script: &Script, number: usize, operation: &Operation) {
        let statement = &script.statements[number];
        self.opening = statement.open;
        put_formats(script, statement, &mut self.formats);
        let mut outbox = Outbox(&mut link.outbox);
        outbox.parse("", &statement.sql);
        outbox.run(b"", &self.formats, &ALL_TEXT, statement, operation);
    }

    fn say(&mut self, link: &mut Link<Postgres>, sql: &str) {
        self.opening = false;
        Outbox(&mut link.outbox).query(sql);
    }

    #[inline]
    fn hear(&mut self, link: &mut Link<Postgres>, outcome: &mut Outcome) -> Result<Option<Ready>> {
        while let Some(message) = link.inbox.next(!self.opening)? {
            match message {
                Message::Row(hash) => outcome.row(hash),
                Message::Other { tag: b'Z', body } => {
                    return Ok(Some(Ready { to_roll_back: body.first() != Some(&b'I') }));
                }
                Message::Other { tag: b'D', body } => outcome.opened_row(|vault, row| open_row(body, vault, row)),
                Message::Other { tag: b'E', body } => {
                    let failure = error_of(body);
                    outcome.fail(&failure);
                    link.last_error = Some(failure);
                }
                Message::Other { tag: b'G', .. } => {
                    let mut outbox = Outbox(&mut link.outbox);
                    outbox.copy_fail();
                    outbox.sync();
                    link.flush()?;
                }
                Message::TooLong if self.opening => outcome.fail(&Failure::statement("a row is too long to be opened")),
                Message::Other { .. } | Message::TooLong => {}
            }
        }
        Ok(None)
    }

    fn statements<'a>(link: &Link<Postgres>, sql: &'a str) -> Vec<&'a str> {
        sql::statements(sql, link.login.backslash_escapes)
    }

    fn query(&mut self, link: &mut Link<Postgres>, sql: &str) -> Result<Rows> {
        Outbox(&mut link.outbox).query(sql);
        let mut rows = Rows::default();
        let mut too_long = false;
        dialogue(link, |tag, body| match tag {
            b'T' => rows = Rows { columns: columns(body), ..Rows::default() },
            b'D' if body.is_empty() || rows.text.len() + body.len() > QUERY_LIMIT_BYTES => too_long = true,
            b'D' => add_row(body, &mut rows),
            _ => {}
        })?;
        if too_long {
            return Err(Failure::statement("the answer is longer than 16 MiB"));
        }
        Ok(rows)
    }
}

/// Format of each of a statement's values: binary for sealed ones, text for all others.
fn put_formats(script: &Script, statement: &Statement, into: &mut Vec<u8>) {
    into.clear();
    if !statement.parameters.iter().any(|variable| script.is_sealed(*variable)) {
        return into.extend_from_slice(&ALL_TEXT);
    }
    into.extend_from_slice(&(statement.parameters.len() as u16).to_be_bytes());
    for &variable in &statement.parameters {
        into.extend_from_slice(&[0, u8::from(script.is_sealed(variable))]);
    }
}

/// From a RowDescription: requests bytea columns in binary format.
fn binary_bytes(body: &[u8]) -> Vec<u8> {
    let mut fields = Fields(body);
    let count = fields.i16();
    let mut results = count.to_be_bytes().to_vec();
    for _ in 0..count {
        fields.string();
        fields.bytes(6);
        results.extend_from_slice(&[0, u8::from(fields.i32() == BYTEA)]);
        fields.bytes(8);
    }
    results
}

/// Rewrites a DataRow with its sealed values opened, as the row that would hold their texts.
fn open_row(body: &[u8], vault: &mut Vault, row: &mut Vec<u8>) -> Result<()> {
    let mut fields = Fields(body);
    let count = fields.i16();
    row.extend_from_slice(&count.to_be_bytes());
    for _ in 0..count {
        let length = fields.i32();
        let at = row.len();
        row.extend_from_slice(&length.to_be_bytes());
        if let Ok(length) = usize::try_from(length) {
            vault.put_text(fields.bytes(length), row)?;
            let length = (row.len() - at - 4) as u32;
            row[at..at + 4].copy_from_slice(&length.to_be_bytes());
        }
    }
    Ok(())
}

/// Sends pending messages and reads the response to its end, outside the load loop; `see` gets every message.
fn dialogue(link: &mut Link<Postgres>, mut see: impl FnMut(u8, &[u8])) -> Result<()> {
    link.flush()?;
    let mut refusal = None;
    loop {
        while let Some(message) = link.inbox.next(false)? {
            match message {
                Message::Other { tag: b'Z', .. } => {
                    link.last_error = None;
                    return refusal.map_or(Ok(()), Err);
                }
                Message::Other { tag: b'E', body } => {
                    refusal = refusal.or(Some(error_of(body)));
                    link.last_error.clone_from(&refusal);
                }
                Message::Other { tag: b'G', .. } => {
                    Outbox(&mut link.outbox).copy_fail();
                    link.flush()?;
                }
                Message::Other { tag, body } => see(tag, body),
                Message::TooLong => see(b'D', &[]),
                Message::Row(_) => {}
            }
        }
        link.await_more()?;
    }
}

/// The column names of a RowDescription, separated by tabs.
fn columns(body: &[u8]) -> String {
    let mut fields = Fields(body);
    let mut names = String::new();
    for number in 0..fields.i16() {
        if number > 0 {
            names.push('\t');
        }
        escape(&fields.string(), &mut names);
        fields.bytes(18);
    }
    names
}

fn add_row(body: &[u8], rows: &mut Rows) {
    if rows.rows > 0 {
        rows.text.push('\n');
    }
    rows.rows += 1;
    let mut fields = Fields(body);
    for number in 0..fields.i16() {
        if number > 0 {
            rows.text.push('\t');
        }
        match usize::try_from(fields.i32()) {
            Err(_) => rows.text.push_str("\\N"),
            Ok(length) => escape(&String::from_utf8_lossy(fields.bytes(length)), &mut rows.text),
        }
    }
}

#[cfg(test)]
mod tests;
