//! A connection in a load thread, and the operation that runs on it.

use crate::connection::{Connection, Interest, Step};
use crate::failure::Result;
use crate::program::{Operation, Script};

/// A connection and the operation that runs on it.
pub struct Slot<'a, C> {
    pub connection: &'a mut C,
    pub operation: Operation,
    /// Closed loop: the number of its next operation.
    pub number: u64,
    /// Start of the operation's latency: when it began, or when it was due.
    pub from_ns: u64,
    pub late: bool,
    /// Its operation is in flight.
    pub pending: bool,
    pub interest: Option<Interest>,
}

impl<'a, C: Connection> Slot<'a, C> {
    pub fn new(connection: &'a mut C, number: u64) -> Slot<'a, C> {
        Slot {
            connection,
            operation: Operation::default(),
            number,
            from_ns: 0,
            late: false,
            pending: false,
            interest: None,
        }
    }

    /// Begins the drawn operation and continues until it is done. The connection waits in its own system calls.
    #[inline]
    pub fn run(&mut self, script: &Script) -> Result<()> {
        let mut step = self.connection.begin(script, &self.operation)?;
        while step == Step::Pending {
            step = self.connection.proceed(script, &self.operation)?;
        }
        Ok(())
    }
}
