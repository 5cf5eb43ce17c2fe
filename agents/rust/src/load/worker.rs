//! One thread's part of a slice: which operation is next, and what counts when it ends.

use super::arrivals::Due;
use super::shared::Shared;
use super::slot::Slot;
use super::tally::Tally;
use crate::clock::{CpuTime, ThreadCpu, now_ns};
use crate::connection::{Connection, Outcome};
use crate::transport::socket::Traffic;
use std::sync::atomic::Ordering::Relaxed;

/// A request is late if it begins this long after it was due.
pub const LATE_NS: u64 = 1_000_000;

/// One thread's part of a slice.
pub struct Worker<'a, C> {
    pub(super) shared: &'a Shared<'a>,
    /// None: closed loop.
    pub(super) due: Option<Due>,
    pub(super) slots: Vec<Slot<'a, C>>,
    pub(super) tally: Tally,
    /// When the next part begins: the counted one, then the rest. u64::MAX after that.
    boundary_ns: u64,
    pub(super) counting: bool,
    cpu: ThreadCpu,
    traffic: Traffic,
}

impl<'a, C: Connection> Worker<'a, C> {
    pub fn new(shared: &'a Shared<'a>, slots: Vec<Slot<'a, C>>, due: Option<Due>) -> Worker<'a, C> {
        Worker {
            shared,
            due,
            slots,
            tally: Tally::default(),
            boundary_ns: shared.count_from_ns,
            counting: false,
            cpu: ThreadCpu::default(),
            traffic: Traffic::default(),
        }
    }

    /// Open loop: the next request and when it is due; None when there are no more.
    pub(super) fn claim(&mut self) -> Option<(u64, u64)> {
        let (number, after_ns) = match self.due.as_mut()? {
            Due::Even(interval_ns) => {
                let number = self.shared.next.fetch_add(1, Relaxed);
                (number, (number as f64 * *interval_ns) as u64)
            }
            Due::Random(process) => process.next(),
        };
        let due_ns = self.shared.start_ns.saturating_add(after_ns);
        let over = due_ns >= self.shared.end_ns || number >= self.shared.limit || self.shared.stop.load(Relaxed);
        (!over && now_ns() < self.shared.end_ns).then_some((number, due_ns))
    }

    /// Counts the operation of slot `at`, which has just ended. Returns the time.
    #[inline(always)]
    pub(super) fn ended(&mut self, at: usize) -> u64 {
        let now = now_ns();
        if now >= self.boundary_ns {
            self.look(now);
        }
        let (slot, shared) = (&self.slots[at], self.shared);
        let inside = now.min(shared.end_ns).saturating_sub(slot.from_ns.max(shared.count_from_ns));
        if inside > 0 && slot.connection.outcome().error.is_none() {
            let whole = now - slot.from_ns;
            self.tally.work += if inside == whole { 1.0 } else { inside as f64 / whole as f64 };
        }
        if self.counting {
            let slot = &self.slots[at];
            let outcome: &Outcome = slot.connection.outcome();
            match &outcome.error {
                None => {
                    self.tally.operations += 1;
                    self.tally.rows += outcome.rows;
                    self.tally.sealed += slot.operation.sealed;
                    self.tally.opened += outcome.opened;
                    self.tally.checksum = self.tally.checksum.wrapping_add(outcome.checksum);
                    self.tally.latencies.record((now - slot.from_ns).saturating_sub(slot.connection.thought_ns()));
                }
                Some(error) => self.tally.fail(error),
            }
            self.tally.late += u64::from(slot.late);
            self.tally.last_end_ns = now;
        } else if self.boundary_ns == u64::MAX {
            if let Some(error) = &self.slots[at].connection.outcome().error {
                // A failed operation that began before the end counts: in every slice, timeouts end long after it.
                self.tally.fail(error);
            }
        }
        now
    }

    /// Moves to the next part of the slice when it is time.
    #[cold]
    pub(super) fn look(&mut self, now: u64) {
        if now >= self.boundary_ns && self.boundary_ns == self.shared.count_from_ns {
            self.counting = true;
            self.boundary_ns = self.shared.end_ns;
            self.traffic = self.traffic_so_far();
            self.cpu = CpuTime::of_this_thread();
        }
        if now >= self.boundary_ns && self.counting {
            self.close();
        }
    }

    /// The counted part is over.
    pub(super) fn close(&mut self) {
        self.tally.cpu = CpuTime::of_this_thread().since(self.cpu);
        self.tally.traffic = self.traffic_so_far().since(self.traffic);
        self.counting = false;
        self.boundary_ns = u64::MAX;
    }

    fn traffic_so_far(&mut self) -> Traffic {
        let mut sum = Traffic::default();
        for slot in &mut self.slots {
            sum.add(slot.connection.traffic());
        }
        sum
    }
}
