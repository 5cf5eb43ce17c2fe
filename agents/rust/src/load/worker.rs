//! One thread's part of a slice: which operation is next, and what counts when it ends.

use super::arrivals::Due;
use super::gate::Times;
use super::poll::Polling;
use super::shared::Shared;
use super::slot::Slot;
use super::tally::Tally;
use crate::clock::{CpuTime, ThreadCpu, now_ns, wake_on_time};
use crate::connection::{Connection, Outcome};
use crate::deadline;
use crate::envelope;
use crate::failure::Result;
use crate::transport::traffic::{self, Segments, Traffic};
use std::os::fd::RawFd;
use std::sync::atomic::Ordering::Relaxed;

/// A request is late if it begins this long after it was due.
pub const LATE_NS: u64 = 1_000_000;

/// One thread's part of a slice.
pub struct Worker<'a, C> {
    pub(super) shared: &'a Shared<'a>,
    /// None: closed loop.
    pub(super) due: Option<Due>,
    pub(super) slots: &'a mut [Slot<C>],
    pub(super) tally: Tally,
    pub(super) times: Times,
    /// None: its connections wait in their own system calls.
    pub(super) polling: Option<Polling>,
    /// When the next part begins: the counted one, then the rest. u64::MAX after that.
    boundary_ns: u64,
    counting: bool,
    cpu: ThreadCpu,
    /// When the counted part began.
    traffic: Traffic,
    /// Before the slice.
    before: (Traffic, Segments),
}

impl<'a, C: Connection> Worker<'a, C> {
    pub fn new(shared: &'a Shared<'a>, slots: &'a mut [Slot<C>], due: Option<Due>) -> Worker<'a, C> {
        Worker {
            shared,
            due,
            slots,
            tally: Tally::default(),
            times: Times::default(),
            polling: None,
            boundary_ns: u64::MAX,
            counting: false,
            cpu: ThreadCpu::default(),
            traffic: Traffic::default(),
            before: Default::default(),
        }
    }

    /// Does everything that needs no clock. Returns the sockets for which this thread will wait in system calls.
    pub fn get_ready(&mut self) -> Result<Vec<RawFd>> {
        let shared = self.shared;
        wake_on_time();
        deadline::within(shared.silence_ns as f64 / 1e9, "prepare the statements", || {
            let stopped = || shared.stop.load(Relaxed);
            self.slots.iter_mut().try_for_each(
                |slot| {
                    if stopped() { Ok(()) } else { slot.connection.prepare(shared.script) }
                },
            )
        })?;
        envelope::enter(shared.script.cipher.as_ref())?;
        self.slots.iter_mut().for_each(|slot| slot.reset(shared.thinks, shared.stride));
        let mut sockets = Vec::new();
        if self.slots[0].connection.polled() {
            self.polling = Some(Polling::new(self.slots.len())?);
        } else {
            sockets.extend(self.slots.iter().filter_map(|slot| slot.connection.interest()).map(|interest| interest.fd));
        }
        let segments = self.settle();
        self.before = (traffic::of_this_thread(), segments);
        Ok(sockets)
    }

    /// The slice has these times.
    pub(super) fn begin(&mut self, times: Times) {
        self.times = times;
        self.boundary_ns = times.count_from_ns;
    }

    /// Open loop: the next request and when it is due; None when there are no more.
    pub(super) fn claim(&mut self) -> Option<(u64, u64)> {
        let (number, after_ns) = match self.due.as_mut()? {
            Due::Even(interval_ns) => {
                let number = self.shared.next.fetch_add(1, Relaxed);
                (number, (number as f64 * *interval_ns) as u64)
            }
            Due::Random(process) => process.next(),
            Due::Given(times_us) => {
                let number = self.shared.next.fetch_add(1, Relaxed);
                (number, times_us.get(number as usize).map_or(u64::MAX, |us| us * 1000))
            }
        };
        let due_ns = self.times.start_ns.saturating_add(after_ns);
        let over = due_ns >= self.times.end_ns || number >= self.shared.limit || self.shared.stop.load(Relaxed);
        (!over && now_ns() < self.times.end_ns).then_some((number, due_ns))
    }

    /// Counts the operation of slot `at`, which has just ended. Returns the time.
    #[inline(always)]
    pub(super) fn ended(&mut self, at: usize) -> u64 {
        let now = now_ns();
        if now >= self.boundary_ns {
            self.look(now);
        }
        let slot = &self.slots[at];
        let inside = now.min(self.times.end_ns).saturating_sub(slot.from_ns.max(self.times.count_from_ns));
        if inside > 0 && slot.connection.outcome().error.is_none() {
            let whole = now - slot.from_ns;
            self.tally.work += if inside == whole { 1.0 } else { inside as f64 / whole as f64 };
        }
        if self.counting {
            let outcome: &Outcome = slot.connection.outcome();
            self.tally.retries += outcome.retries;
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
            if let Some(error) = &slot.connection.outcome().error {
                // A failed operation that began before the end counts: in every slice, timeouts end long after it.
                self.tally.fail(error);
            }
        }
        now
    }

    /// Moves to the next part of the slice when it is time.
    #[cold]
    pub(super) fn look(&mut self, now: u64) {
        if now >= self.boundary_ns && self.boundary_ns == self.times.count_from_ns {
            self.counting = true;
            self.boundary_ns = self.times.end_ns;
            self.traffic = traffic::of_this_thread();
            self.cpu = CpuTime::of_this_thread();
        }
        if now >= self.boundary_ns && self.counting {
            self.close();
        }
    }

    /// The counted part is over.
    fn close(&mut self) {
        self.tally.cpu = CpuTime::of_this_thread().since(self.cpu);
        self.tally.traffic = traffic::of_this_thread().since(self.traffic);
        self.counting = false;
        self.boundary_ns = u64::MAX;
    }

    /// After the slice: counts what only the kernel knows.
    pub(super) fn finish(mut self) -> Tally {
        let to_the_end = self.counting;
        if to_the_end {
            self.close();
        }
        let segments = self.settle();
        let now = traffic::of_this_thread();
        if to_the_end {
            self.tally.traffic = now.since(self.traffic);
        }
        let (traffic_before, segments_before) = self.before;
        self.tally.traffic.add_share_of(segments.since(segments_before), now.since(traffic_before));
        self.tally
    }

    fn settle(&mut self) -> Segments {
        let mut sum = Segments::default();
        for slot in &mut *self.slots {
            sum.add(slot.connection.settle());
        }
        sum
    }
}
