//! drivers: the seam between the load loop and the databases. One file a driver.

pub mod firebird;
pub mod http;
pub mod mysql;
pub mod network;
pub mod null;
pub mod postgres;
pub mod resp;
pub mod sqlite;

use crate::deadline;
use crate::envelope::{self, Vault};
use crate::failure::{Failure, Fault, Result};
use crate::load::{self, Plan, Total};
use crate::message::Connected;
use crate::program::{Operation, Script};
use crate::transport::socket::Traffic;
use std::os::fd::RawFd;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// How far an operation has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// It waits for the peer: call `proceed` when the socket is ready (a blocking connection waits in `proceed`).
    Pending,
    Done,
}

/// What an operation brought.
#[derive(Debug, Default)]
pub struct Outcome {
    pub rows: u64,
    /// Sum modulo 2⁶⁴ of each row's XXH3-64.
    pub checksum: u64,
    /// Sealed values of its rows that were opened.
    pub opened: u64,
    /// Why it failed, if it did. The connection can be used again.
    pub error: Option<Fault>,
}

impl Outcome {
    #[inline]
    pub fn clear(&mut self) {
        self.rows = 0;
        self.checksum = 0;
        self.opened = 0;
        if self.error.is_some() {
            self.error = None;
        }
    }

    #[inline]
    pub fn row(&mut self, hash: u64) {
        self.rows += 1;
        self.checksum = self.checksum.wrapping_add(hash);
    }

    /// Counts a row as it is once its sealed values are opened. `rewrite` puts it so into an empty buffer.
    #[inline]
    pub fn opened_row(&mut self, rewrite: impl FnOnce(&mut Vault, &mut Vec<u8>) -> Result<()>) {
        envelope::with(|vault, row| {
            vault.opened = 0;
            match rewrite(vault, row) {
                Ok(()) => {
                    self.opened += vault.opened;
                    self.row(xxh3_64(row));
                }
                Err(failure) => self.fail(&failure),
            }
        });
    }

    /// The operation failed; what it failed by first is kept.
    #[cold]
    pub fn fail(&mut self, failure: &Failure) {
        self.error.get_or_insert_with(|| failure.into());
    }

    /// The operation failed by this, whatever it had failed by before.
    #[cold]
    pub fn fail_over(&mut self, failure: &Failure) {
        self.error = Some(failure.into());
    }
}

/// The rows of a `query`.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Rows {
    pub rows: u64,
    pub columns: String,
    pub text: String,
}

/// What a polled connection waits for. `opened` tells sockets apart that got the same descriptor one after the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interest {
    pub opened: u64,
    pub fd: RawFd,
    pub events: u32,
}

/// A connection to a database. An `Err` of any method but `query` and `prepare` means that the connection is lost.
pub trait Connection: Send {
    /// Prepares every statement, unless this very script is prepared already.
    fn prepare(&mut self, script: &Arc<Script>) -> Result<()>;
    /// Begins an operation.
    fn begin(&mut self, script: &Script, operation: &Operation) -> Result<Step>;
    /// Takes what has come and goes on with the operation.
    fn proceed(&mut self, script: &Script, operation: &Operation) -> Result<Step>;
    /// What the last operation brought.
    fn outcome(&self) -> &Outcome;
    /// Runs statements separated by `;` and gives the last result.
    fn query(&mut self, sql: &str) -> Result<Rows>;
    /// All traffic so far, of connections too that were opened and closed for one operation.
    fn traffic(&mut self) -> Traffic {
        Traffic::default()
    }
    /// Whether several connections can share a thread, each saying what it waits for.
    fn polled(&self) -> bool {
        false
    }
    /// What a pending operation waits for.
    fn interest(&self) -> Option<Interest> {
        None
    }
    /// By the monotonic clock, when `proceed` is to be called on a pending operation even if nothing has come: a thought
    /// is over, or the peer has had its time. Only a polled connection is asked; others wait so long themselves.
    fn wakes(&self) -> Option<u64> {
        None
    }
    /// Something came while no operation was pending. What it is must be taken, or be waited for no longer: the loop
    /// would be told of it again at once.
    fn unasked(&mut self, script: &Script, operation: &Operation) -> Result<()> {
        self.proceed(script, operation).map(drop)
    }
    /// Said before each slice: whether its operations think (in an open loop) or leave that out (in a closed one).
    fn thinks(&mut self, _on: bool) {}
    /// Nanoseconds of the last operation in which nobody waited for the peer: its latency leaves them out.
    fn thought_ns(&self) -> u64 {
        0
    }
}

/// An arm: connections of one driver, dealt out to load threads.
pub trait Arm {
    fn query(&mut self, sql: &str, all: bool) -> Result<Rows>;
    fn slice(&mut self, script: &Arc<Script>, plan: &Plan, counting: &mut dyn FnMut()) -> Result<Total>;
}

pub struct Pool<C> {
    pub connections: Vec<C>,
    pub threads: usize,
}

impl<C: Connection> Arm for Pool<C> {
    fn query(&mut self, sql: &str, all: bool) -> Result<Rows> {
        let mut answer = Rows::default();
        let asked = if all { self.connections.len() } else { 1 };
        for connection in &mut self.connections[..asked] {
            let rows = connection.query(sql)?;
            if answer.rows > 0 && rows.rows > 0 {
                answer.text.push('\n');
            }
            answer.rows += rows.rows;
            answer.columns = rows.columns;
            answer.text.push_str(&rows.text);
        }
        Ok(answer)
    }

    fn slice(&mut self, script: &Arc<Script>, plan: &Plan, counting: &mut dyn FnMut()) -> Result<Total> {
        deadline::within(plan.silence_ns as f64 / 1e9, "prepare the statements", || {
            self.connections.iter_mut().try_for_each(|connection| connection.prepare(script))
        })?;
        load::run(&mut self.connections, self.threads, script, plan, counting)
    }
}

/// What a driver's `connect` gives.
pub type Opened = (Box<dyn Arm>, Connected);

/// Appends a value as `COPY` writes it: backslash, tab, newline and carriage return escaped.
pub fn escape(value: &str, into: &mut String) {
    for letter in value.chars() {
        match letter {
            '\\' => into.push_str("\\\\"),
            '\t' => into.push_str("\\t"),
            '\n' => into.push_str("\\n"),
            '\r' => into.push_str("\\r"),
            other => into.push(other),
        }
    }
}

/// The most text that a `query` answers with.
pub const QUERY_LIMIT_BYTES: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped_as_copy_does() {
        let mut text = String::new();
        escape("a\tb\\c\nd\re", &mut text);
        assert_eq!(text, r"a\tb\\c\nd\re");
    }
}
