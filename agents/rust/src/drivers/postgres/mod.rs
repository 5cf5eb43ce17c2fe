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
use crate::program::{Captured, Operation, Script, Statement};
use crate::query_mode::QueryMode;
use crate::xxh3::xxh3_64;
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
    /// Of a running statement whose rows go into variables; None: they don't.
    captured: Option<Captured>,
    /// The running statement.
    running: usize,
}

/// A statement that the server has prepared.
struct Prepared {
    name: Vec<u8>,
    /// The formats of its values and of its rows' columns, encoded for `Bind`.
    formats: Vec<u8>,
    results: Vec<u8>,
    /// Where the values of its rows go.
    captured: Option<Captured>,
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
    const MODES: &'static [QueryMode] = &[QueryMode::Prepared, QueryMode::Extended, QueryMode::Simple];
    const PIPELINES: bool = true;
    const NAME: &'static str = "postgres";

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
            if statement.open || statement.into.is_some() {
                outbox.describe_statement(&name);
            }
            let mut formats = Vec::new();
            put_formats(script, statement, &mut formats);
            self.statements.push(Prepared {
                name: name.into_bytes(),
                formats,
                results: ALL_TEXT.into(),
                captured: statement.into.as_ref().map(|_| Captured::default()),
            });
        }
        outbox.sync();
        let described =
            script.statements.iter().enumerate().filter(|(_, statement)| statement.open || statement.into.is_some());
        let (mut described, statements) = (described.map(|(number, _)| number), &mut self.statements);
        dialogue(link, |tag, body| {
            // Columns of a statement's rows, or that it has none.
            if tag == b'T' || tag == b'n' {
                let Some(number) = described.next().filter(|_| tag == b'T') else { return };
                let (prepared, statement) = (&mut statements[number], &script.statements[number]);
                if statement.open {
                    prepared.results = binary_bytes(body);
                }
                if let Some(captured) = &mut prepared.captured {
                    note_columns(body, captured, script, statement);
                }
            }
        })
    }

    #[inline]
    fn run(&mut self, link: &mut Link<Postgres>, script: &Script, number: usize, operation: &Operation) {
        let (prepared, statement) = (&self.statements[number], &script.statements[number]);
        self.opening = statement.open || (operation.piped && self.opening);
        self.captured.clone_from(&prepared.captured);
        self.running = number;
        let mut outbox = Outbox(&mut link.outbox);
        outbox.run(&prepared.name, &prepared.formats, &prepared.results, statement, operation);
    }

    /// Unnamed, parsed in the same flight.
    fn run_unprepared(&mut self, link: &mut Link<Postgres>, script: &Script, number: usize, operation: &Operation) {
        let statement = &script.statements[number];
        self.opening = statement.open || (operation.piped && self.opening);
        self.captured = statement.into.as_ref().map(|_| Captured::default());
        self.running = number;
        put_formats(script, statement, &mut self.formats);
        let mut outbox = Outbox(&mut link.outbox);
        outbox.parse("", &statement.sql);
        match self.captured {
            None => outbox.run(b"", &self.formats, &ALL_TEXT, statement, operation),
            Some(_) => outbox.run_described(&self.formats, &ALL_TEXT, statement, operation),
        }
    }

    fn run_simple(&mut self, link: &mut Link<Postgres>, script: &Script, number: usize, operation: &Operation) {
        let statement = &script.statements[number];
        self.opening = statement.open;
        self.captured = statement.into.as_ref().map(|_| Captured::default());
        self.running = number;
        let backslash = link.login.backslash_escapes;
        Outbox(&mut link.outbox).query_with_values(statement, operation, backslash);
    }

    fn continue_pipeline(&mut self, link: &mut Link<Postgres>) {
        Outbox(&mut link.outbox).without_sync();
    }

    fn sync(&mut self, link: &mut Link<Postgres>) {
        Outbox(&mut link.outbox).sync();
    }

    fn say(&mut self, link: &mut Link<Postgres>, sql: &str) {
        self.opening = false;
        self.captured = None;
        Outbox(&mut link.outbox).query(sql);
    }

    #[inline]
    fn hear(
        &mut self,
        link: &mut Link<Postgres>,
        script: &Script,
        operation: &mut Operation,
        outcome: &mut Outcome,
    ) -> Result<Option<Ready>> {
        while let Some(message) = link.inbox.next(!self.opening && self.captured.is_none())? {
            match message {
                Message::Row(hash) => outcome.row(hash),
                Message::Other { tag: b'Z', body } => {
                    let ready = Ready { to_roll_back: body.first() != Some(&b'I') };
                    if let Some(captured) = &self.captured {
                        captured.end(&script.statements[self.running]).unwrap_or_else(|failure| outcome.fail(&failure));
                    }
                    return Ok(Some(ready));
                }
                Message::Other { tag: tag @ (b'T' | b'D'), body } if self.captured.is_some() => {
                    if let Some(captured) = &mut self.captured {
                        if tag == b'T' {
                            captured.forget_columns();
                            note_columns(body, captured, script, &script.statements[self.running]);
                        } else {
                            outcome.row(xxh3_64(body));
                            capture_row(body, captured, operation);
                        }
                    }
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
                Message::TooLong if self.captured.is_some() => {
                    outcome.fail(&Failure::statement("\\gset: a row is too long"));
                }
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

/// From a RowDescription: the names of the columns whose values go into variables.
fn note_columns(body: &[u8], captured: &mut Captured, script: &Script, statement: &Statement) {
    let mut fields = Fields(body);
    for _ in 0..fields.i16() {
        captured.column(script, statement, &fields.string());
        fields.bytes(18);
    }
}

/// Puts the values of a DataRow into variables.
#[cold]
fn capture_row(body: &[u8], captured: &mut Captured, operation: &mut Operation) {
    let mut fields = Fields(body);
    captured.row();
    for column in 0..fields.i16().max(0) as usize {
        let length = usize::try_from(fields.i32()).ok(); // -1: NULL
        captured.value(operation, column, length.map(|length| fields.bytes(length)));
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
