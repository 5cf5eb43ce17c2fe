//! postgres: statements -> PostgreSQL's extended protocol, one send and one receive a statement.

mod inbox;
mod login;
mod outbox;

use super::network::link::Link;
use super::network::{Protocol, Ready};
use super::{Outcome, QUERY_LIMIT_BYTES, Rows, escape};
use crate::failure::{Failure, Result};
use crate::program::{Operation, Script};
use inbox::{Fields, Inbox, Message, error_of};
use login::Login;
use outbox::Outbox;

#[derive(Default)]
pub struct Postgres {
    /// The names of the prepared statements.
    names: Vec<Vec<u8>>,
}

impl Protocol for Postgres {
    type Inbox = Inbox;
    type Login = Login;
    const GOODBYE: &'static [u8] = b"X\0\0\0\x04";

    fn check(&self, _: &Script) -> Result<()> {
        Ok(())
    }

    fn prepare(&mut self, link: &mut Link<Postgres>, script: &Script) -> Result<()> {
        let mut outbox = Outbox(&mut link.outbox);
        for name in &self.names {
            outbox.close_statement(&String::from_utf8_lossy(name));
        }
        self.names = (0..script.statements.len()).map(|number| format!("s{number}").into_bytes()).collect();
        for (name, statement) in self.names.iter().zip(&script.statements) {
            outbox.parse(&String::from_utf8_lossy(name), &statement.sql);
        }
        outbox.sync();
        dialogue(link, |_, _| {})
    }

    #[inline]
    fn run(&mut self, link: &mut Link<Postgres>, script: &Script, number: usize, operation: &Operation) {
        Outbox(&mut link.outbox).run(&self.names[number], &script.statements[number], operation);
    }

    /// Unnamed, and parsed in the same flight.
    fn run_unprepared(&mut self, link: &mut Link<Postgres>, script: &Script, number: usize, operation: &Operation) {
        let statement = &script.statements[number];
        let mut outbox = Outbox(&mut link.outbox);
        outbox.parse("", &statement.sql);
        outbox.run(b"", statement, operation);
    }

    fn say(&mut self, link: &mut Link<Postgres>, sql: &str) {
        Outbox(&mut link.outbox).query(sql);
    }

    #[inline]
    fn hear(&mut self, link: &mut Link<Postgres>, outcome: &mut Outcome) -> Result<Option<Ready>> {
        while let Some(message) = link.inbox.next(true)? {
            match message {
                Message::Row(hash) => outcome.row(hash),
                Message::Other { tag: b'Z', body } => {
                    return Ok(Some(Ready { to_roll_back: body.first() == Some(&b'E') }));
                }
                Message::Other { tag: b'E', body } => {
                    let failure = error_of(body);
                    if outcome.error.is_none() {
                        outcome.error = Some(failure.to_string());
                    }
                    link.last_error = Some(failure);
                }
                Message::Other { tag: b'G', .. } => {
                    let mut outbox = Outbox(&mut link.outbox);
                    outbox.copy_fail();
                    outbox.sync();
                    link.flush()?;
                }
                Message::Other { .. } | Message::TooLong => {}
            }
        }
        Ok(None)
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

/// Sends what waits and hears the answer to its end, outside the load loop; `see` gets every message.
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
