//! Runs several connections of one thread side by side. Nothing here allocates or locks once it runs.

use super::poll::Polling;
use super::shared::endless;
use super::worker::{LATE_NS, Worker};
use crate::alarms::NEVER;
use crate::clock::now_ns;
use crate::connection::{Connection, Step};
use crate::failure::{Failure, Result};
use std::sync::atomic::Ordering::Relaxed;

impl<C: Connection> Worker<'_, C> {
    /// Several connections side by side, in a closed or an open loop.
    pub(super) fn polled(&mut self) -> Result<()> {
        let shared = self.shared;
        let closed = self.due.is_none();
        let mut polling = Polling::new(self.slots.len())?;
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        let mut claimed = None;
        let (mut heard, mut heard_ns) = (true, 0);
        loop {
            let mut due_ns = NEVER;
            let mut now = now_ns();
            if now >= shared.until_ns && polling.in_flight > 0 {
                return Err(endless(shared.silence_ns));
            }
            if heard {
                heard_ns = now;
            } else if now >= heard_ns.saturating_add(shared.silence_ns) && polling.in_flight > 0 {
                return Err(silent(shared.silence_ns, polling.in_flight));
            }
            // Begin operations on idle connections.
            while let Some(&at) = polling.idle.last() {
                if shared.stop.load(Relaxed) {
                    return Ok(());
                }
                let number = if closed {
                    let slot = &mut self.slots[at];
                    if now >= shared.end_ns || slot.number >= shared.limit {
                        polling.idle.pop();
                        continue;
                    }
                    slot.from_ns = now;
                    slot.number += shared.stride;
                    slot.number - shared.stride
                } else {
                    claimed = claimed.or_else(|| self.claim());
                    let Some((number, due)) = claimed else { break };
                    if due > now {
                        due_ns = due;
                        break;
                    }
                    claimed = None;
                    self.slots[at].from_ns = due;
                    self.slots[at].late = now > due + LATE_NS;
                    number
                };
                heard_ns = now;
                let slot = &mut self.slots[at];
                shared.script.draw(shared.seed, number, &mut slot.operation);
                match slot.connection.begin(shared.script, &slot.operation)? {
                    Step::Pending => {
                        slot.pending = true;
                        polling.watch(at, slot)?;
                        polling.idle.pop();
                        polling.in_flight += 1;
                    }
                    Step::Done => {
                        now = self.ended(at);
                        polling.poller.watch(at, &mut self.slots[at])?;
                    }
                }
            }
            if polling.in_flight == 0 && claimed.is_none() {
                return Ok(());
            }
            let wake_ns = polling.alarms.next();
            let patience_ns = if polling.in_flight > 0 && wake_ns == NEVER { shared.silence_ns } else { NEVER };
            let until_ns = due_ns.min(wake_ns);
            let ready = if until_ns == NEVER {
                let left_ns = shared.until_ns.saturating_sub(now);
                polling.poller.wait_long(&mut events, patience_ns.min(left_ns))?
            } else {
                let until_ns = until_ns.min(heard_ns.saturating_add(patience_ns)).min(shared.until_ns);
                polling.poller.wait(&mut events, until_ns.saturating_sub(now))?
            };
            for event in &events[..ready] {
                self.go_on(event.u64 as usize, &mut polling, closed)?;
            }
            if wake_ns != NEVER {
                self.wake(&mut polling, closed)?;
            }
            // A connection with an alarm has its own timeout. With nothing in flight, no response is due.
            heard = ready > 0 || patience_ns == NEVER;
        }
    }

    /// Continues the operation of slot `at`: bytes arrived, or its time has come.
    #[inline]
    fn go_on(&mut self, at: usize, polling: &mut Polling, closed: bool) -> Result<()> {
        let shared = self.shared;
        let slot = &mut self.slots[at];
        if !slot.pending {
            slot.connection.unexpected_input(shared.script, &slot.operation)?;
            return polling.poller.watch(at, slot);
        }
        if slot.connection.proceed(shared.script, &slot.operation)? == Step::Pending {
            return polling.watch(at, slot);
        }
        let now = self.ended(at);
        let slot = &mut self.slots[at];
        polling.poller.watch(at, slot)?;
        // Shortcut for the closed loop: the same connection's next operation, without checking the others.
        if closed && now < shared.end_ns && slot.number < shared.limit {
            slot.from_ns = now;
            shared.script.draw(shared.seed, slot.number, &mut slot.operation);
            slot.number += shared.stride;
            if slot.connection.begin(shared.script, &slot.operation)? == Step::Pending {
                return polling.watch(at, slot);
            }
            self.ended(at);
            polling.poller.watch(at, &mut self.slots[at])?;
        }
        self.slots[at].pending = false;
        polling.in_flight -= 1;
        polling.idle.push(at);
        Ok(())
    }

    /// Continues operations that waited for the clock.
    fn wake(&mut self, polling: &mut Polling, closed: bool) -> Result<()> {
        let now = now_ns();
        // Each at most once before the sockets are checked again.
        for _ in 0..self.slots.len() {
            if polling.alarms.next() > now {
                break;
            }
            let at = polling.alarms.whose();
            polling.alarms.set(at, NEVER);
            let slot = &self.slots[at];
            match slot.connection.wakes().filter(|_| slot.pending) {
                Some(ns) if ns <= now => self.go_on(at, polling, closed)?,
                Some(ns) => polling.alarms.set(at, ns),
                None => (),
            }
        }
        Ok(())
    }
}

#[cold]
fn silent(ns: u64, in_flight: usize) -> Failure {
    let text = format!(
        "nothing has come from the server for {} s, though it owes the answers of {in_flight} operations: it hangs, or what is \
         between has lost the connections",
        ns as f64 / 1e9
    );
    Failure::connect(text)
}
