//! Runs command lines in memcached's text protocol, one send and one receive per command.

mod command;
mod inbox;
mod login;

use super::network::link::Link;
use super::network::protocol::{Protocol, Ready};
use super::network::wire::Wire;
use super::resp::command::{Command, commands, statements};
use crate::connection::{Outcome, QUERY_LIMIT_BYTES, Rows, escape};
use crate::failure::{Failure, Result};
use crate::message::Server;
use crate::program::{Operation, Script};
use inbox::{Inbox, Part, error_of};
use login::Login;
use xxhash_rust::xxh3::xxh3_64;

#[derive(Default)]
pub struct Memcached {
    /// The script's statements.
    commands: Vec<Command>,
}

impl Wire for Memcached {
    type Asked = Server;
    type Inbox = Inbox;
    type Login = Login;
    /// The server then closes the connection.
    const GOODBYE: &'static [u8] = b"quit\r\n";
}

impl Protocol for Memcached {
    fn check(&self, script: &Script) -> Result<()> {
        read(script).map(drop)
    }

    /// The server prepares nothing: the commands are parsed here.
    fn prepare(&mut self, _: &mut Link<Memcached>, script: &Script) -> Result<()> {
        self.commands = read(script)?;
        Ok(())
    }

    #[inline]
    fn run(&mut self, link: &mut Link<Memcached>, _: &Script, number: usize, operation: &Operation) {
        command::put(&self.commands[number], operation, &mut link.outbox);
    }

    fn run_unprepared(&mut self, link: &mut Link<Memcached>, script: &Script, number: usize, operation: &Operation) {
        if let Ok(found) = Command::read(&script.statements[number]) {
            command::put(&found, operation, &mut link.outbox);
        }
    }

    fn say(&mut self, link: &mut Link<Memcached>, text: &str) {
        let words = commands(text).ok().and_then(|found| found.into_iter().next()).unwrap_or_default();
        let text = if words.is_empty() { vec![text.as_bytes().to_vec()] } else { words };
        command::put(&Command::fixed(text), &Operation::default(), &mut link.outbox);
    }

    /// Each value or status line counts as a row. A miss has none.
    #[inline]
    fn hear(&mut self, link: &mut Link<Memcached>, outcome: &mut Outcome) -> Result<Option<Ready>> {
        while let Some((part, last)) = link.inbox.next()? {
            match part {
                Part::Value(text) => outcome.row(xxh3_64(text)),
                Part::Error(text) => {
                    let failure = error_of(text);
                    outcome.fail(&failure);
                    link.last_error = Some(failure);
                }
                Part::End => {}
            }
            if last {
                return Ok(Some(Ready { to_roll_back: false }));
            }
        }
        Ok(None)
    }

    fn statements<'a>(_: &Link<Memcached>, text: &'a str) -> Vec<&'a str> {
        statements(text)
    }

    /// Runs every command, waiting for each. Returns the last one's reply: a row for each value.
    fn query(&mut self, link: &mut Link<Memcached>, text: &str) -> Result<Rows> {
        let mut rows = Rows::default();
        for words in commands(text)? {
            rows = Rows { columns: "reply".into(), ..Rows::default() };
            command::put(&Command::fixed(words), &Operation::default(), &mut link.outbox);
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

/// Reads one reply to its end, outside the load loop.
fn reply(link: &mut Link<Memcached>, rows: &mut Rows) -> Result<()> {
    let mut refusal = None;
    loop {
        while let Some((part, last)) = link.inbox.next()? {
            match part {
                Part::Value(text) if rows.text.len() + text.len() <= QUERY_LIMIT_BYTES => {
                    if rows.rows > 0 {
                        rows.text.push('\n');
                    }
                    rows.rows += 1;
                    escape(&String::from_utf8_lossy(text), &mut rows.text);
                }
                Part::Value(_) => {
                    refusal = refusal.or_else(|| Some(Failure::statement("the answer is longer than 16 MiB")));
                }
                Part::Error(text) => refusal = refusal.or(Some(error_of(text))),
                // A miss, as from a server that has null.
                Part::End if rows.rows == 0 => {
                    rows.rows = 1;
                    rows.text.push_str("\\N");
                }
                Part::End => {}
            }
            if last {
                return refusal.map_or(Ok(()), Err);
            }
        }
        link.await_more()?;
    }
}
