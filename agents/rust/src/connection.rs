//! The interface between the load loop and the drivers: a connection, and the outcome of an operation on it.

use crate::envelope::{self, Vault};
use crate::failure::{Failure, Fault, Result};
use crate::program::{Operation, Room, Script};
use crate::transport::traffic::Segments;
use crate::xxh3::xxh3_64;
use std::os::fd::RawFd;
use std::sync::Arc;

/// Connections that a whole arm opens at the same time, at most: a server's queue for new connections may hold no more (often
/// 128), and what does not fit in waits a second for the next attempt.
pub const OPENING_AT_ONCE: usize = 64;

/// Progress of an operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// It waits for the peer: call `proceed` when the socket is ready (a blocking connection waits inside `proceed`).
    Pending,
    Done,
}

/// Result of an operation.
#[derive(Debug, Default)]
pub struct Outcome {
    pub rows: u64,
    /// Sum modulo 2⁶⁴ of each row's XXH3-64.
    pub checksum: u64,
    /// Number of sealed values in its rows that were opened.
    pub opened: u64,
    /// How often the operation was begun again.
    pub retries: u64,
    /// Whether only those opened rows count whose value is `wanted`.
    keeps: bool,
    wanted: Vec<u8>,
    /// Why it failed, if it did. The connection stays usable.
    pub error: Option<Fault>,
}

impl Outcome {
    #[inline]
    pub fn clear(&mut self) {
        self.rows = 0;
        self.checksum = 0;
        self.opened = 0;
        self.retries = 0;
        if self.error.is_some() {
            self.error = None;
        }
    }

    /// Clears it for an operation.
    #[inline]
    pub fn begin(&mut self, operation: &Operation) {
        self.clear();
        self.keeps = operation.keep.is_some();
        if let Some(variable) = operation.keep {
            self.wanted.clear();
            let wanted = operation.parameter(variable);
            self.wanted.extend_from_slice(wanted.text(&mut Room::default()).unwrap_or_default());
        }
    }

    #[inline]
    pub fn row(&mut self, hash: u64) {
        self.rows += 1;
        self.checksum = self.checksum.wrapping_add(hash);
    }

    /// Counts a row with its sealed values opened. `rewrite` writes that row into an empty buffer.
    #[inline]
    pub fn opened_row(&mut self, rewrite: impl FnOnce(&mut Vault, &mut Vec<u8>) -> Result<()>) {
        envelope::with(|vault, row| {
            vault.opened = 0;
            match rewrite(vault, row) {
                Ok(()) => {
                    self.opened += vault.opened;
                    if !self.keeps || (vault.opened > 0 && row[vault.last.clone()] == self.wanted) {
                        self.row(xxh3_64(row));
                    }
                }
                Err(failure) => self.fail(&failure),
            }
        });
    }

    /// Whether the failed operation, which is rolled back, is begun again: fewer than `tries` were made, and the server could not
    /// serialize it. It is then cleared, and counts as a retry.
    #[cold]
    pub fn begins_again(&mut self, tries: u64) -> bool {
        let retries = self.retries + 1;
        if retries >= tries || !self.error.as_ref().is_some_and(Fault::may_be_retried) {
            return false;
        }
        self.clear();
        self.retries = retries;
        true
    }

    /// Marks the operation as failed; the first failure is kept.
    #[cold]
    pub fn fail(&mut self, failure: &Failure) {
        self.error.get_or_insert_with(|| failure.into());
    }

    /// Marks the operation as failed, replacing any earlier failure.
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

/// What a polled connection waits for. `opened` distinguishes sockets that got the same descriptor one after the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interest {
    pub opened: u64,
    pub fd: RawFd,
    pub events: u32,
}

/// A connection to a database. An `Err` of any method except `query` and `prepare` means that the connection is lost.
pub trait Connection: Send {
    /// Prepares every statement, unless this very script is already prepared.
    fn prepare(&mut self, script: &Arc<Script>) -> Result<()>;
    /// Begins an operation.
    fn begin(&mut self, script: &Script, operation: &mut Operation) -> Result<Step>;
    /// Takes received bytes and continues the operation.
    fn proceed(&mut self, script: &Script, operation: &mut Operation) -> Result<Step>;
    /// Result of the last operation.
    fn outcome(&self) -> &Outcome;
    /// Runs statements separated by `;` and returns the last result.
    fn query(&mut self, sql: &str) -> Result<Rows>;
    /// Reads the kernel's counters, by system calls: before a slice's clock starts, and after its end. Returns the segments so far
    /// of connections that stay open; other traffic counts for the thread (`transport::traffic`).
    fn settle(&mut self) -> Segments {
        Segments::default()
    }
    /// Whether a pending operation still opens its connection.
    fn is_opening(&self) -> bool {
        false
    }
    /// Whether several connections can share a thread, each stating what it waits for.
    fn polled(&self) -> bool {
        false
    }
    /// What a pending operation waits for.
    fn interest(&self) -> Option<Interest> {
        None
    }
    /// When to call `proceed` on a pending operation even if nothing arrived (monotonic clock): a think time ends, or the
    /// peer's time is up. Only called for polled connections; others wait by themselves.
    fn wakes(&self) -> Option<u64> {
        None
    }
    /// Handles bytes that arrived while no operation was pending: read them, or stop watching the socket. Otherwise the
    /// poll loop would report it again at once.
    fn unexpected_input(&mut self, script: &Script, operation: &mut Operation) -> Result<()> {
        self.proceed(script, operation).map(drop)
    }
    /// Called before each slice: whether its operations think (open loop) or skip thinking (closed loop).
    fn thinks(&mut self, _on: bool) {}
    /// Nanoseconds of think time in the last operation, which its latency excludes.
    fn thought_ns(&self) -> u64 {
        0
    }
}

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

/// Maximum text of a `query` result.
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
