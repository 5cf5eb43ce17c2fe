//! Runs several connections of one thread side by side. Nothing here allocates or locks once it runs.

use super::poll::Polling;
use super::shared::endless;
use super::worker::{LATE_NS, Worker};
use crate::alarms::NEVER;
use crate::clock::{coarse_ns, now_ns};
use crate::connection::{Connection, Step};
use crate::failure::{Failure, Result};
use std::sync::atomic::Ordering::Relaxed;

/// Events of one system call, at most.
const EVENTS: usize = 512;

impl<C: Connection> Worker<'_, C> {
    /// Several connections side by side, in a closed or an open loop.
    pub(super) fn polled(&mut self, mut polling: Polling) -> Result<()> {
        let (shared, times) = (self.shared, self.times);
        let closed = self.due.is_none();
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        let mut claimed = None;
        loop {
            let mut due_ns = NEVER;
            let mut now = now_ns();
            if now >= times.until_ns && polling.in_flight > 0 {
                return Err(endless(shared.silence_ns));
            }
            if now >= polling.doubt_ns {
                self.doubt(&mut polling, now)?;
            }
            // Begin operations on idle connections.
            while let Some(&at) = polling.idle.last() {
                if shared.stop.load(Relaxed) {
                    return Ok(());
                }
                if !polling.admits(&self.slots[at], shared.opening) {
                    break;
                }
                let number = if closed {
                    let slot = &mut self.slots[at];
                    if now >= times.end_ns || slot.number >= shared.limit {
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
                let slot = &mut self.slots[at];
                shared.script.draw(shared.seed, number, &mut slot.operation);
                match slot.connection.begin(shared.script, &mut slot.operation)? {
                    Step::Pending => {
                        polling.idle.pop();
                        polling.begun(at, slot, now, shared.silence_ns)?;
                        // The next one begins now, and not when the first of them did.
                        now = now_ns();
                    }
                    Step::Done => {
                        slot.begun = true;
                        now = self.ended(at);
                        polling.poller.watch(at, &mut self.slots[at])?;
                    }
                }
            }
            if polling.in_flight == 0 && claimed.is_none() {
                return Ok(());
            }
            let wake_ns = polling.alarms.next();
            let until_ns = due_ns.min(wake_ns);
            // A connection with an alarm has its own timeout. With nothing in flight, no response is due.
            let patience_ns = polling.doubt_ns.min(times.until_ns);
            let ready = if until_ns == NEVER {
                polling.poller.wait_long(&mut events, patience_ns.saturating_sub(now))?
            } else {
                polling.poller.wait(&mut events, until_ns.min(patience_ns).saturating_sub(now))?
            };
            for event in &events[..ready] {
                self.go_on(event.u64 as usize, &mut polling, closed)?;
            }
            if wake_ns != NEVER {
                self.wake(&mut polling, closed)?;
            }
        }
    }

    /// Fails if some connection that owes an answer has been silent for too long. One that waits for a time of its own is not
    /// silent. Otherwise sets when to look again: a moment late rather than often.
    #[cold]
    fn doubt(&mut self, polling: &mut Polling, now: u64) -> Result<()> {
        let silence_ns = self.shared.silence_ns;
        let nearly = now.saturating_sub(silence_ns - silence_ns / 32);
        let (mut oldest_ns, mut silent) = (NEVER, 0);
        for slot in self.slots.iter().filter(|slot| slot.pending && slot.connection.wakes().is_none()) {
            oldest_ns = oldest_ns.min(slot.heard_ns);
            silent += usize::from(slot.heard_ns <= nearly);
        }
        polling.doubt_ns = match oldest_ns {
            NEVER => NEVER,
            heard_ns if now >= heard_ns.saturating_add(silence_ns) => {
                return Err(Failure::silent(silence_ns, silent, polling.in_flight));
            }
            heard_ns => heard_ns.saturating_add(silence_ns).max(now.saturating_add(silence_ns / 64)),
        };
        Ok(())
    }

    /// Continues the operation of slot `at`: bytes arrived, or its time has come.
    #[inline]
    fn go_on(&mut self, at: usize, polling: &mut Polling, closed: bool) -> Result<()> {
        let shared = self.shared;
        let slot = &mut self.slots[at];
        if !slot.pending {
            slot.connection.unexpected_input(shared.script, &mut slot.operation)?;
            return polling.poller.watch(at, slot);
        }
        let step = slot.connection.proceed(shared.script, &mut slot.operation)?;
        if slot.opening && (step == Step::Done || !slot.connection.is_opening()) {
            polling.opened(slot);
        }
        if step == Step::Pending {
            slot.heard_ns = coarse_ns();
            return polling.watch(at, slot);
        }
        let now = self.ended(at);
        let slot = &mut self.slots[at];
        polling.poller.watch(at, slot)?;
        // Shortcut for the closed loop: the same connection's next operation, without checking the others.
        if closed && now < self.times.end_ns && slot.number < shared.limit {
            slot.from_ns = now;
            slot.heard_ns = now;
            shared.script.draw(shared.seed, slot.number, &mut slot.operation);
            slot.number += shared.stride;
            if slot.connection.begin(shared.script, &mut slot.operation)? == Step::Pending {
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
