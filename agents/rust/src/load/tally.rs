//! What a slice counts, per thread and in total.

use crate::clock::CpuTime;
use crate::failure::Fault;
use crate::histogram::Latencies;
use crate::kinds::Kinds;
use crate::transport::traffic::Traffic;

/// Result of a slice, over all threads.
#[derive(Debug, Default)]
pub struct Total {
    pub seconds: f64,
    pub threads: usize,
    pub tally: Tally,
}

/// Counts of one thread.
#[derive(Debug, Default)]
pub struct Tally {
    pub operations: u64,
    /// Operations weighted by their share in the counted part: one that lies half inside counts a half.
    pub work: f64,
    pub errors: u64,
    pub kinds: Kinds,
    pub rows: u64,
    /// Values that counted operations sealed, and opened.
    pub sealed: u64,
    pub opened: u64,
    /// Operations begun again after the server could not serialize them.
    pub retries: u64,
    pub checksum: u64,
    pub late: u64,
    pub first_error: String,
    pub cpu: CpuTime,
    pub traffic: Traffic,
    pub latencies: Latencies,
    pub(super) last_end_ns: u64,
}

impl Tally {
    #[cold]
    pub(super) fn fail(&mut self, error: &Fault) {
        self.errors += 1;
        self.kinds.count(&error.kind, 1);
        if self.first_error.is_empty() {
            self.first_error.clone_from(&error.text);
        }
    }

    pub(super) fn add(&mut self, other: &Tally) {
        self.operations += other.operations;
        self.work += other.work;
        self.errors += other.errors;
        self.kinds.add(&other.kinds);
        self.rows += other.rows;
        self.sealed += other.sealed;
        self.opened += other.opened;
        self.retries += other.retries;
        self.checksum = self.checksum.wrapping_add(other.checksum);
        self.late += other.late;
        if self.first_error.is_empty() {
            self.first_error.clone_from(&other.first_error);
        }
        self.cpu.add(other.cpu);
        self.traffic.add(other.traffic);
        self.latencies.add(&other.latencies);
        self.last_end_ns = self.last_end_ns.max(other.last_end_ns);
    }
}
