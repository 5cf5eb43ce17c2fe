//! Where the threads of a slice meet: its clock starts when all of them are ready.

use super::plan::Plan;
use std::os::fd::RawFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// When the parts of a slice begin and end, by the monotonic clock.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Times {
    pub start_ns: u64,
    pub count_from_ns: u64,
    pub end_ns: u64,
    /// The last moment of this slice, whatever is in flight.
    pub until_ns: u64,
}

impl Times {
    pub fn new(start_ns: u64, plan: &Plan) -> Times {
        let end_ns = start_ns + plan.length_ns;
        Times {
            start_ns,
            count_from_ns: start_ns + plan.discard_ns,
            end_ns,
            until_ns: end_ns.saturating_add(plan.silence_ns),
        }
    }
}

#[derive(Default)]
pub struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    ready: usize,
    /// Of threads that will wait in their system calls.
    sockets: Vec<RawFd>,
    times: Option<Times>,
    /// Some thread will never be ready.
    abandoned: bool,
}

impl Gate {
    /// Waits for the other threads. None: the slice won't begin.
    pub fn arrive(&self, sockets: &[RawFd]) -> Option<Times> {
        let mut state = self.state();
        state.ready += 1;
        state.sockets.extend(sockets);
        self.changed.notify_all();
        while state.times.is_none() && !state.abandoned {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.times
    }

    /// Waits until so many threads are ready and lets them begin. Returns also the sockets that they wait for.
    pub fn open(&self, threads: usize, times: impl FnOnce() -> Times) -> Option<(Times, Vec<RawFd>)> {
        let mut state = self.state();
        while state.ready < threads && !state.abandoned {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.abandoned {
            return None;
        }
        let times = times();
        state.times = Some(times);
        self.changed.notify_all();
        Some((times, std::mem::take(&mut state.sockets)))
    }

    /// Keeps a slice that has not begun from beginning.
    pub fn abandon(&self) {
        self.state().abandoned = true;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use std::time::Duration;

    fn times(start_ns: u64) -> Times {
        Times { start_ns, ..Times::default() }
    }

    #[test]
    fn nobody_begins_before_the_last_is_ready() {
        let gate = &Gate::default();
        let found = thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|number| {
                    scope.spawn(move || {
                        thread::sleep(Duration::from_millis(number));
                        gate.arrive(&[number as RawFd])
                    })
                })
                .collect();
            let (opened, mut sockets) = gate.open(8, || times(7)).unwrap();
            sockets.sort_unstable();
            assert_eq!((opened, sockets), (times(7), (0..8).collect()));
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(found, [Some(times(7)); 8]);
        gate.abandon();
        assert_eq!(gate.state().times, Some(times(7)), "too late");
    }

    #[test]
    fn a_thread_that_fails_lets_nobody_wait() {
        let gate = &Gate::default();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.arrive(&[]));
            scope.spawn(|| gate.abandon());
            assert_eq!(gate.open(2, || times(7)), None);
            assert_eq!(waiting.join().unwrap(), None);
        });
    }
}
