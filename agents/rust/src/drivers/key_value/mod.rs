//! What the drivers of key-value stores share: statements are command lines, one send and one receive per command.

pub mod command;
pub mod login;
pub mod replies;

use super::network::link::Link;
use super::network::protocol::{Protocol, Ready};
use super::network::wire::{self, Wire};
use crate::connection::{Outcome, QUERY_LIMIT_BYTES, Rows, escape};
use crate::failure::{Failure, Result};
use crate::message::Server;
use crate::program::{Operation, Script};
use command::{Command, commands, statements};
use replies::{Part, Replies};
use std::marker::PhantomData;

/// The protocol of one key-value store.
pub trait Dialect: Default + Send + 'static {
    type Inbox: Replies;
    type Login: wire::Login<Self::Inbox>;
    /// Makes the server close the connection: otherwise it would wait for more, and we for its close.
    const GOODBYE: &'static [u8];

    /// Appends a command with an operation's values in place.
    fn put(command: &Command, operation: &Operation, into: &mut Vec<u8>);

    /// The failure of an error reply.
    fn error_of(text: &[u8]) -> Failure;
}

#[derive(Default)]
pub struct KeyValue<D> {
    /// The script's statements.
    commands: Vec<Command>,
    dialect: PhantomData<D>,
}

impl<D: Dialect> Wire for KeyValue<D> {
    type Asked = Server;
    type Inbox = D::Inbox;
    type Login = D::Login;
    const GOODBYE: &'static [u8] = D::GOODBYE;
}

impl<D: Dialect> Protocol for KeyValue<D> {
    const NAME: &'static str = "key-value";

    fn check(&self, script: &Script) -> Result<()> {
        script.must_not_decide(Self::NAME)?;
        read(script).map(drop)
    }

    /// The server prepares nothing: the commands are parsed here.
    fn prepare(&mut self, _: &mut Link<Self>, script: &Script) -> Result<()> {
        self.check(script)?;
        self.commands = read(script)?;
        Ok(())
    }

    #[inline]
    fn run(&mut self, link: &mut Link<Self>, _: &Script, number: usize, operation: &Operation) {
        D::put(&self.commands[number], operation, &mut link.outbox);
    }

    fn run_unprepared(&mut self, link: &mut Link<Self>, script: &Script, number: usize, operation: &Operation) {
        if let Ok(found) = Command::read(&script.statements[number]) {
            D::put(&found, operation, &mut link.outbox);
        }
    }

    fn say(&mut self, link: &mut Link<Self>, text: &str) {
        let words = commands(text).ok().and_then(|found| found.into_iter().next()).unwrap_or_default();
        let words = if words.is_empty() { vec![text.as_bytes().to_vec()] } else { words };
        put_fixed::<D>(words, &mut link.outbox);
    }

    /// Each value of the reply counts as a row; a null or a miss counts as none.
    #[inline]
    fn hear(
        &mut self,
        link: &mut Link<Self>,
        _: &Script,
        _: &mut Operation,
        outcome: &mut Outcome,
    ) -> Result<Option<Ready>> {
        while let Some((part, last)) = link.inbox.next(true)? {
            match part {
                Part::Hash(hash) => outcome.row(hash),
                Part::Error(text) => {
                    let failure = D::error_of(text);
                    outcome.fail(&failure);
                    link.last_error = Some(failure);
                }
                Part::Value(_) | Part::Null | Part::Array(_) | Part::End | Part::TooLong => {}
            }
            if last {
                return Ok(Some(Ready { to_roll_back: false }));
            }
        }
        Ok(None)
    }

    fn statements<'a>(_: &Link<Self>, text: &'a str) -> Vec<&'a str> {
        statements(text)
    }

    /// Runs every command, waiting for each. Returns the last one's reply: a row for each value.
    fn query(&mut self, link: &mut Link<Self>, text: &str) -> Result<Rows> {
        let mut rows = Rows::default();
        for words in commands(text)? {
            rows = Rows { columns: "reply".into(), ..Rows::default() };
            put_fixed::<D>(words, &mut link.outbox);
            link.flush()?;
            reply::<D>(link, &mut rows)?;
        }
        Ok(rows)
    }
}

/// Appends a command of fixed words.
pub fn put_fixed<D: Dialect>(words: Vec<Vec<u8>>, into: &mut Vec<u8>) {
    D::put(&Command::fixed(words), &Operation::default(), into);
}

fn read(script: &Script) -> Result<Vec<Command>> {
    if script.statements.iter().any(|statement| statement.open) {
        return Err(Failure::statement("this driver can't open sealed values"));
    }
    script.statements.iter().map(Command::read).collect()
}

/// Reads one reply to its end, outside the load loop.
fn reply<D: Dialect>(link: &mut Link<KeyValue<D>>, rows: &mut Rows) -> Result<()> {
    let mut refusal = None;
    loop {
        while let Some((part, last)) = link.inbox.next(false)? {
            match part {
                Part::Value(text) if rows.text.len() + text.len() <= QUERY_LIMIT_BYTES => add(Some(text), rows),
                Part::Null if rows.text.len() <= QUERY_LIMIT_BYTES => add(None, rows),
                // Values have come to an end, and there was none: a miss.
                Part::End if rows.rows == 0 => add(None, rows),
                Part::Error(text) => refusal = refusal.or(Some(D::error_of(text))),
                Part::Value(_) | Part::Null | Part::TooLong => {
                    refusal = refusal.or_else(|| Some(Failure::statement("the answer is longer than 16 MiB")));
                }
                Part::Array(_) | Part::End | Part::Hash(_) => {}
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::network::connect;
    use crate::drivers::resp::Resp;
    use crate::message::{Connect, Line, Request};
    use crate::transport::scripted::{self, Speech};

    #[test]
    fn a_reply_of_endless_nulls_is_refused() {
        let line = r#"{"type":"connect","driver":"resp","arm":"a","host":"127.0.0.1","port":1,"user":""}"#;
        let Ok(Request::Connect(Connect::Resp(pool, asked))) = Line::read(line.as_bytes()).and_then(Line::request)
        else {
            panic!("{line}")
        };
        let nulls = QUERY_LIMIT_BYTES / 2;
        let said = [format!("*{nulls}\r\n").into_bytes(), b"$-1\r\n".repeat(nulls)].concat();
        scripted::with(Speech { flights: vec![b"+OK\r\n".to_vec(), said], ..Speech::default() }, || {
            let (mut arm, _) = connect::<KeyValue<Resp>>(&pool, &asked).unwrap();
            let refused = arm.query("LRANGE endless 0 -1", false).unwrap_err();
            assert_eq!(refused.text, "the answer is longer than 16 MiB");
        });
    }
}
