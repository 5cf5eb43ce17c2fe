//! The request for one slice.

use crate::message::Arrivals;
use std::sync::Arc;

/// The request for one slice.
#[derive(Debug, Clone)]
pub struct Plan {
    pub length_ns: u64,
    pub discard_ns: u64,
    pub seed: u64,
    /// Nanoseconds between due requests; None: closed loop.
    pub interval_ns: Option<f64>,
    pub arrivals: Arrivals,
    /// When each request of an open loop is due, in microseconds since the start, instead of by `arrivals`.
    pub due_us: Option<Arc<[u64]>>,
    pub operations: Option<u64>,
    /// Polled connections count as lost if nothing arrives for this long while operations are in flight. So do operations
    /// that have not ended this long after the slice's end, however much the server sends.
    pub silence_ns: u64,
}

impl Plan {
    /// Whether requests follow the clock instead of the connection's availability.
    pub fn is_open(&self) -> bool {
        self.interval_ns.is_some()
    }
}
