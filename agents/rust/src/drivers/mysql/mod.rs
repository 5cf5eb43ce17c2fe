//! Runs statements in MySQL's binary protocol, for MySQL and MariaDB; one send and one receive per statement.

mod answers;
mod lexer;
mod login;
mod opened;
pub mod outbox;
mod packets;
pub mod placeholders;
mod scramble;
pub mod sql;

use super::network::link::Link;
use super::network::protocol::{Protocol, Ready};
use super::network::wire::Wire;
use crate::connection::{Outcome, QUERY_LIMIT_BYTES, Rows, escape};
use crate::failure::{Failure, Result};
use crate::message::Server;
use crate::program::{Captured, Operation, Script, Statement};
use crate::query_mode::QueryMode;
use crate::xxh3::xxh3_64;
use answers::{AUTOCOMMIT, Answers, IN_TRANSACTION, NO_BACKSLASH_ESCAPES, Part};
use login::Login;
use outbox::{Outbox, Prepared};
use packets::{ERROR, Fields, Message, error_of, stranger};
use placeholders::with_marks;
use std::borrow::Cow;

/// "This command is not supported in the prepared statement protocol yet".
const CANNOT_BE_PREPARED: &str = "1295 ";

#[derive(Default)]
pub struct Mysql {
    /// The program's statements; None if the server can't prepare one.
    statements: Vec<Option<Prepared>>,
    /// Whether the rows of the running statement are opened.
    opening: bool,
    /// The running statement, if it was prepared: its rows are in the binary protocol.
    running: Option<usize>,
    /// Of a running statement whose rows go into variables: its number, and where they go. It travels as text, and so do its rows.
    captured: Option<(usize, Captured)>,
}

impl Wire for Mysql {
    type Asked = Server;
    type Inbox = Answers;
    type Login = Login;
    const GOODBYE: &'static [u8] = b"\x01\0\0\0\x01";
    const PROVES_CERTIFICATE: bool = true;
}

impl Protocol for Mysql {
    const MODES: &'static [QueryMode] = &[QueryMode::Prepared, QueryMode::Simple];
    const NAME: &'static str = "mysql";

    fn check(&self, script: &Script) -> Result<()> {
        // Which of both the server is becomes known only once a connection is open.
        let fits = |statement| with_marks(statement, true).or_else(|_| with_marks(statement, false));
        script.statements.iter().try_for_each(|statement| fits(statement).map(drop))
    }

    fn prepare(&mut self, link: &mut Link<Mysql>, script: &Script) -> Result<()> {
        for old in self.statements.drain(..).flatten() {
            Outbox(&mut link.outbox).close(old.id);
        }
        for statement in &script.statements {
            let (sql, variables) = with_marks(statement, takes_backslash(link))?;
            let varies = variables.iter().any(|variable| script.is_computed(*variable));
            let prepared = if statement.into.is_some() { None } else { prepare(link, &sql, variables)? };
            let prepared = prepared.map(|prepared| Prepared { varies, ..prepared });
            self.statements.push(prepared);
        }
        Ok(())
    }

    #[inline]
    fn run(&mut self, link: &mut Link<Mysql>, script: &Script, number: usize, operation: &Operation) {
        match &mut self.statements[number] {
            Some(prepared) => {
                self.opening = script.statements[number].open;
                self.running = Some(number);
                self.captured = None;
                let next = Outbox(&mut link.outbox).execute(prepared, operation);
                link.inbox.expect(next);
            }
            None => self.run_unprepared(link, script, number, operation),
        }
    }

    /// Writes the values into the text, as a client does that opens a connection for one statement.
    fn run_unprepared(&mut self, link: &mut Link<Mysql>, script: &Script, number: usize, operation: &Operation) {
        self.opening = script.statements[number].open;
        self.running = None;
        self.captured = script.statements[number].into.as_ref().map(|_| (number, Captured::default()));
        let backslash = takes_backslash(link);
        let next = Outbox(&mut link.outbox).query_with_values(&script.statements[number], operation, backslash);
        link.inbox.expect(next);
    }

    fn say(&mut self, link: &mut Link<Mysql>, sql: &str) {
        self.opening = false;
        self.running = None;
        self.captured = None;
        let next = Outbox(&mut link.outbox).query(sql);
        link.inbox.expect(next);
    }

    #[inline]
    fn hear(
        &mut self,
        link: &mut Link<Mysql>,
        script: &Script,
        operation: &mut Operation,
        outcome: &mut Outcome,
    ) -> Result<Option<Ready>> {
        while let Some(part) = link.inbox.part(!self.opening && self.captured.is_none())? {
            let part = match &mut self.captured {
                Some((number, captured)) => {
                    let statement = &script.statements[*number];
                    match capture(part, captured, script, statement, operation, outcome)? {
                        Some(part) => part,
                        None => continue,
                    }
                }
                None => part,
            };
            match part {
                Part::Row(hash) => outcome.row(hash),
                Part::Result { described: true } if self.opening => {
                    if let Some(types) = self.types() {
                        types.clear();
                    }
                }
                Part::Column(body) if self.opening => {
                    let kind = packets::column_type(body)?;
                    if let Some(types) = self.types() {
                        types.push(kind);
                    }
                }
                Part::KeptRow(body) => match self.types() {
                    Some(types) => outcome.opened_row(|vault, row| opened::binary(body, types, vault, row)),
                    None => outcome.opened_row(|vault, row| opened::text(body, vault, row)),
                },
                Part::LongRow => outcome.fail(&Failure::statement("a row is too long to be opened")),
                Part::End => return Ok(Some(ready(link))),
                Part::Error(failure) if failure.lost => return Err(failure),
                Part::Error(failure) => {
                    outcome.fail(&failure);
                    return Ok(Some(ready(link)));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    fn statements<'a>(link: &Link<Mysql>, sql: &'a str) -> Vec<&'a str> {
        sql::statements(sql, takes_backslash(link))
    }

    /// Allows several statements in one text for the duration of the call, and never under load.
    fn query(&mut self, link: &mut Link<Mysql>, sql: &str) -> Result<Rows> {
        allow_several(link, true)?;
        let answer = ask(link, sql);
        if !answer.as_ref().is_err_and(|failure| failure.lost) {
            allow_several(link, false)?;
        }
        answer
    }
}

/// Puts the values of rows into variables, and checks their number at the end. Returns parts that are nothing else's concern.
#[cold]
fn capture<'a>(
    part: Part<'a>,
    captured: &mut Captured,
    script: &Script,
    statement: &Statement,
    operation: &mut Operation,
    outcome: &mut Outcome,
) -> Result<Option<Part<'a>>> {
    match part {
        Part::Result { .. } => captured.forget_columns(),
        Part::Column(body) => captured.column(script, statement, &column_name(body)?),
        Part::KeptRow(body) => {
            outcome.row(xxh3_64(body));
            captured.row();
            let (mut fields, mut column) = (Fields(body), 0);
            while !fields.0.is_empty() {
                captured.value(operation, column, fields.value()?);
                column += 1;
            }
        }
        Part::LongRow => outcome.fail(&Failure::statement("\\gset: a row is too long")),
        Part::End => {
            captured.end(statement).unwrap_or_else(|failure| outcome.fail(&failure));
            return Ok(Some(Part::End));
        }
        other => return Ok(Some(other)),
    }
    Ok(None)
}

impl Mysql {
    /// Types of the columns of the running statement, as described last; None if it was not prepared.
    fn types(&mut self) -> Option<&mut Vec<u8>> {
        self.statements[self.running?].as_mut().map(|prepared| &mut prepared.types)
    }
}

/// An error carries no status: the last one holds. Without autocommit every statement opens a transaction.
#[inline]
fn ready(link: &Link<Mysql>) -> Ready {
    Ready { to_roll_back: link.inbox.status & (IN_TRANSACTION | AUTOCOMMIT) != AUTOCOMMIT }
}

fn takes_backslash(link: &Link<Mysql>) -> bool {
    link.inbox.status & NO_BACKSLASH_ESCAPES == 0
}

/// Sends pending bytes, a command whose response starts with packet number `next`, and returns what `read` makes of it.
fn exchange<T>(link: &mut Link<Mysql>, next: u8, read: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
    link.inbox.expect(next);
    link.flush()?;
    hear_one(link, read)
}

/// Returns what `read` makes of the next message.
fn hear_one<T>(link: &mut Link<Mysql>, read: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
    loop {
        match link.inbox.packets.next(false)? {
            Some(Message::Other(body)) if body[0] == ERROR => return Err(error_of(body)),
            Some(Message::Other(body)) => return read(body),
            Some(_) => return Err(stranger()),
            None => link.await_more()?,
        }
    }
}

fn prepare(link: &mut Link<Mysql>, sql: &str, variables: Vec<usize>) -> Result<Option<Prepared>> {
    let next = Outbox(&mut link.outbox).prepare(sql);
    let prepared = exchange(link, next, |body| {
        let mut fields = Fields(body);
        fields.u8()?;
        Ok((fields.u32()?, fields.u16()?, fields.u16()?))
    });
    let (id, columns, marks) = match prepared {
        Err(failure) if failure.code.starts_with(CANNOT_BE_PREPARED) => return Ok(None),
        other => other?,
    };
    for _ in 0..marks {
        hear_one(link, |_| Ok(()))?;
    }
    let types = (0..columns).map(|_| hear_one(link, packets::column_type)).collect::<Result<Vec<u8>>>()?;
    if usize::from(marks) != variables.len() {
        Outbox(&mut link.outbox).close(id);
        let given = variables.len();
        return Err(Failure::statement(format!("{sql}: the server sees {marks} parameters, not {given}")));
    }
    Ok(Some(Prepared { id, variables, typed: false, varies: false, types }))
}

fn allow_several(link: &mut Link<Mysql>, allowed: bool) -> Result<()> {
    let next = Outbox(&mut link.outbox).allow_several(allowed);
    exchange(link, next, |_| Ok(()))
}

fn ask(link: &mut Link<Mysql>, sql: &str) -> Result<Rows> {
    let next = Outbox(&mut link.outbox).query(sql);
    link.inbox.expect(next);
    link.flush()?;
    let (mut rows, mut columns, mut too_long) = (Rows::default(), 0, false);
    loop {
        while let Some(part) = link.inbox.part(false)? {
            match part {
                Part::Result { .. } => (rows, columns) = (Rows::default(), 0),
                Part::Column(body) if rows.columns.len() + body.len() > QUERY_LIMIT_BYTES => {
                    too_long = true;
                }
                Part::Column(body) => {
                    if columns > 0 {
                        rows.columns.push('\t');
                    }
                    columns += 1;
                    escape(&column_name(body)?, &mut rows.columns);
                }
                Part::KeptRow(body) if rows.text.len() + body.len() <= QUERY_LIMIT_BYTES => add_row(body, &mut rows)?,
                Part::KeptRow(_) | Part::LongRow => too_long = true,
                Part::Row(_) | Part::ResultEnd => {}
                Part::Error(failure) => return Err(failure),
                Part::End if too_long => return Err(Failure::statement("the answer is longer than 16 MiB")),
                Part::End => return Ok(rows),
            }
        }
        link.await_more()?;
    }
}

/// The column's name follows catalogue, database, table and the table's original name.
fn column_name(body: &[u8]) -> Result<Cow<'_, str>> {
    let mut fields = Fields(body);
    for _ in 0..4 {
        fields.value()?;
    }
    Ok(String::from_utf8_lossy(fields.value()?.unwrap_or_default()))
}

fn add_row(body: &[u8], rows: &mut Rows) -> Result<()> {
    if rows.rows > 0 {
        rows.text.push('\n');
    }
    rows.rows += 1;
    let mut fields = Fields(body);
    loop {
        match fields.value()? {
            None => rows.text.push_str("\\N"),
            Some(value) => escape(&String::from_utf8_lossy(value), &mut rows.text),
        }
        if fields.0.is_empty() {
            return Ok(());
        }
        rows.text.push('\t');
    }
}
