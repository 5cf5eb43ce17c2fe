//! plan: one slice, as asked for.

use crate::message::Arrivals;

/// One slice, as asked for.
#[derive(Debug, Clone)]
pub struct Plan {
    pub length_ns: u64,
    pub discard_ns: u64,
    pub seed: u64,
    /// Nanoseconds between requests that are due; None: closed loop.
    pub interval_ns: Option<f64>,
    pub arrivals: Arrivals,
    pub operations: Option<u64>,
    /// Polled connections of which nothing is heard for so long, while operations are in flight, are lost. So are
    /// operations that have not ended so long after the slice's end, however much the server sends.
    pub silence_ns: u64,
}

impl Plan {
    /// Whether requests come by the clock, and not when the connection is free for the next.
    pub fn is_open(&self) -> bool {
        self.interval_ns.is_some()
    }
}
