//! What the threads of a slice share.

use super::gate::Gate;
use crate::failure::Failure;
use crate::program::Script;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

/// What the threads of a slice share. What changes while they run does not lie on the cache lines of what they all read.
pub struct Shared<'a> {
    pub script: &'a Arc<Script>,
    pub seed: u64,
    /// Connection i of n runs operations i, i + n, …
    pub stride: u64,
    pub silence_ns: u64,
    pub limit: u64,
    /// Requests follow the clock.
    pub thinks: bool,
    /// Connections that a thread opens at the same time for their first operations.
    pub opening: usize,
    pub gate: Gate,
    /// Open loop: the next unclaimed request.
    pub next: Apart<AtomicU64>,
    /// A connection was lost: the slice is void.
    pub stop: Apart<AtomicBool>,
    /// Number of running threads.
    pub working: Apart<AtomicUsize>,
}

/// A value with cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
pub struct Apart<T>(pub T);

impl<T> Deref for Apart<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// The server continues too long after the slice's end.
#[cold]
pub fn endless(ns: u64) -> Failure {
    let text = format!("the server did not finish its answers within {} s of the slice's end", ns as f64 / 1e9);
    Failure::new("timeout", text).lost()
}
