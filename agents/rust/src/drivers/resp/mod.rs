//! Runs command lines in the protocol of Valkey and Redis (RESP2), one send and one receive per command.

pub mod command;
mod inbox;
mod login;

use super::network::link::Link;
use super::network::protocol::{Protocol, Ready};
use super::network::wire::Wire;
use crate::connection::{Outcome, QUERY_LIMIT_BYTES, Rows, escape};
use crate::failure::{Failure, Result};
use crate::message::Server;
use crate::program::{Operation, Script};
use command::Command;
use inbox::{Inbox, Part};
use login::{Login, error_of};

#[derive(Default)]
pub struct Resp {
    /// The script's statements.
    commands: Vec<Command>,
}

impl Wire for Resp {
    type Asked = Server;
    type Inbox = Inbox;
    type Login = Login;
    /// Makes the server close the connection: otherwise it would wait for more, and we for its close.
    const GOODBYE: &'static [u8] = b"*1\r\n$4\r\nQUIT\r\n";
}

impl Protocol for Resp {
    fn check(&self, script: &Script) -> Result<()> {
        read(script).map(drop)
    }

    /// The server prepares nothing: the commands are parsed here.
    fn prepare(&mut self, _: &mut Link<Resp>, script: &Script) -> Result<()> {
        self.commands = read(script)?;
        Ok(())
    }

    #[inline]
    fn run(&mut self, link: &mut Link<Resp>, _: &Script, number: usize, operation: &Operation) {
        self.commands[number].put(operation, &mut link.outbox);
    }

    fn run_unprepared(&mut self, link: &mut Link<Resp>, script: &Script, number: usize, operation: &Operation) {
        if let Ok(command) = Command::read(&script.statements[number]) {
            command.put(operation, &mut link.outbox);
        }
    }

    fn say(&mut self, link: &mut Link<Resp>, sql: &str) {
        match command::commands(sql) {
            Ok(commands) => commands.iter().take(1).for_each(|words| put(words, &mut link.outbox)),
            Err(_) => command::put(&[sql.as_bytes()], &mut link.outbox),
        }
    }

    /// Each value of the reply counts as a row; a null counts as none.
    #[inline]
    fn hear(&mut self, link: &mut Link<Resp>, outcome: &mut Outcome) -> Result<Option<Ready>> {
        while let Some((part, last)) = link.inbox.next(true)? {
            match part {
                Part::Hash(hash) => outcome.row(hash),
                Part::Error(text) => {
                    let failure = error_of(text);
                    outcome.fail(&failure);
                    link.last_error = Some(failure);
                }
                Part::Value(_) | Part::Null | Part::Array(_) | Part::TooLong => {}
            }
            if last {
                return Ok(Some(Ready { to_roll_back: false }));
            }
        }
        Ok(None)
    }

    fn statements<'a>(_: &Link<Resp>, sql: &'a str) -> Vec<&'a str> {
        command::statements(sql)
    }

    /// The last command's reply: a row for each value.
    fn query(&mut self, link: &mut Link<Resp>, sql: &str) -> Result<Rows> {
        let mut rows = Rows::default();
        for words in command::commands(sql)? {
            rows = Rows { columns: "reply".into(), ..Rows::default() };
            put(&words, &mut link.outbox);
            link.flush()?;
            reply(link, &mut rows)?;
        }
        Ok(rows)
    }
}

fn read(script: &Script) -> Result<Vec<Command>> {
    if script.statements.iter().any(|statement| statement.open) {
        return Err(Failure::statement("this driver can't open sealed values"));
    }
    script.statements.iter().map(Command::read).collect()
}

fn put(words: &[Vec<u8>], into: &mut Vec<u8>) {
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    command::put(&words, into);
}

/// Reads one reply to its end, outside the load loop.
fn reply(link: &mut Link<Resp>, rows: &mut Rows) -> Result<()> {
    let mut refusal = None;
    loop {
        while let Some((part, last)) = link.inbox.next(false)? {
            match part {
                Part::Value(text) if rows.text.len() + text.len() <= QUERY_LIMIT_BYTES => add(Some(text), rows),
                Part::Null => add(None, rows),
                Part::Error(text) => refusal = refusal.or(Some(error_of(text))),
                Part::Value(_) | Part::TooLong => {
                    refusal = refusal.or_else(|| Some(Failure::statement("the answer is longer than 16 MiB")));
                }
                Part::Array(_) | Part::Hash(_) => {}
            }
            if last {
                return refusal.map_or(Ok(()), Err);
            }
        }
        link.await_more()?;
    }
}

fn add(value: Option<&[u8]>, rows: &mut Rows) {
    if rows.rows > 0 {
        rows.text.push('\n');
    }
    rows.rows += 1;
    match value {
        Some(text) => escape(&String::from_utf8_lossy(text), &mut rows.text),
        None => rows.text.push_str("\\N"),
    }
}
