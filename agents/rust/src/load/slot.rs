//! A connection in a load thread, and the operation that runs on it.

use crate::connection::{Connection, Interest, Step};
use crate::failure::Result;
use crate::program::{Operation, Script};

/// A connection and the operation that runs on it. CPUs fetch lines of 64 bytes in pairs: none holds parts of two slots.
#[repr(align(128))]
pub struct Slot<C> {
    pub connection: C,
    /// The connection's number in its arm.
    own: u64,
    pub operation: Operation,
    /// Closed loop: the number of its next operation.
    pub number: u64,
    /// Start of the operation's latency: when it began, or when it was due.
    pub from_ns: u64,
    /// When the server was heard last, or the operation began; only for polled connections.
    pub heard_ns: u64,
    pub late: bool,
    /// Its operation is in flight.
    pub pending: bool,
    /// It has begun an operation in this slice, and that first one still opens its connection.
    pub begun: bool,
    pub opening: bool,
    pub interest: Option<Interest>,
}

impl<C: Connection> Slot<C> {
    pub fn new(connection: C, own: u64) -> Slot<C> {
        Slot {
            connection,
            own,
            operation: Operation::default(),
            number: own,
            from_ns: 0,
            heard_ns: 0,
            late: false,
            pending: false,
            begun: false,
            opening: false,
            interest: None,
        }
    }

    /// Prepares for a slice with so many connections.
    pub fn reset(&mut self, thinks: bool, connections: u64) {
        self.connection.thinks(thinks);
        self.operation.clear();
        self.operation.clients = connections;
        self.number = self.own;
        (self.late, self.pending, self.begun, self.opening) = (false, false, false, false);
        self.interest = None;
    }

    /// Begins the drawn operation and continues until it is done. The connection waits in its own system calls.
    #[inline]
    pub fn run(&mut self, script: &Script) -> Result<()> {
        let mut step = self.connection.begin(script, &mut self.operation)?;
        while step == Step::Pending {
            step = self.connection.proceed(script, &mut self.operation)?;
        }
        Ok(())
    }
}
