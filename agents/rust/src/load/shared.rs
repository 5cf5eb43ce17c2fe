//! What the threads of a slice share.

use crate::failure::Failure;
use crate::program::Script;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

/// What the threads of a slice share.
pub struct Shared<'a> {
    pub script: &'a Script,
    pub seed: u64,
    /// Connection i of n runs operations i, i + n, …
    pub stride: u64,
    pub start_ns: u64,
    pub count_from_ns: u64,
    pub end_ns: u64,
    pub silence_ns: u64,
    /// The last moment of this slice, whatever is in flight.
    pub until_ns: u64,
    pub limit: u64,
    /// Open loop: the next unclaimed request.
    pub next: AtomicU64,
    /// A connection was lost: the slice is void.
    pub stop: AtomicBool,
    /// Number of running threads.
    pub working: AtomicUsize,
}

/// The server continues too long after the slice's end.
#[cold]
pub fn endless(ns: u64) -> Failure {
    let text = format!("the server did not finish its answers within {} s of the slice's end", ns as f64 / 1e9);
    Failure::new("timeout", text).lost()
}
