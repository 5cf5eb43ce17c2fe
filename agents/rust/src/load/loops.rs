//! Runs a thread's operations one after the other, in a closed or an open loop. Nothing here allocates or locks.

use super::gate::Times;
use super::tally::Tally;
use super::worker::{LATE_NS, Worker};
use crate::clock::{now_ns, sleep_until};
use crate::connection::Connection;
use crate::deadline;
use crate::failure::Result;
use std::sync::atomic::Ordering::Relaxed;

impl<C: Connection> Worker<'_, C> {
    /// Runs the slice, once it is ready.
    pub fn work(mut self, times: Times) -> Result<Tally> {
        self.begin(times);
        deadline::of_load(times.until_ns);
        sleep_until(times.start_ns);
        self.look(now_ns().max(times.start_ns));
        match (self.polling.take(), &self.due) {
            (None, None) => self.closed()?,
            (None, Some(_)) => self.open()?,
            (Some(polling), _) => self.polled(polling)?,
        }
        if self.shared.limit == u64::MAX && !self.shared.stop.load(Relaxed) {
            sleep_until(times.end_ns);
            self.look(now_ns().max(times.end_ns));
        }
        Ok(self.finish())
    }

    /// One connection at a time: it waits in its own system calls.
    fn closed(&mut self) -> Result<()> {
        let (shared, end_ns) = (self.shared, self.times.end_ns);
        let mut now = now_ns();
        loop {
            let mut begun = false;
            for at in 0..self.slots.len() {
                let slot = &mut self.slots[at];
                if now >= end_ns || slot.number >= shared.limit || shared.stop.load(Relaxed) {
                    continue;
                }
                begun = true;
                slot.from_ns = now;
                shared.script.draw(shared.seed, slot.number, &mut slot.operation);
                slot.number += shared.stride;
                slot.run(shared.script)?;
                now = self.ended(at);
            }
            if !begun {
                return Ok(());
            }
        }
    }

    /// One connection at a time; each request begins when it is due.
    fn open(&mut self) -> Result<()> {
        let shared = self.shared;
        for at in (0..self.slots.len()).cycle() {
            let Some((number, due_ns)) = self.claim() else { break };
            if due_ns > now_ns() {
                sleep_until(due_ns);
            }
            let slot = &mut self.slots[at];
            slot.from_ns = due_ns;
            slot.late = now_ns() > due_ns + LATE_NS;
            shared.script.draw(shared.seed, number, &mut slot.operation);
            slot.run(shared.script)?;
            self.ended(at);
        }
        Ok(())
    }
}
