//! Runs one slice: starts the threads, and stops them if the server doesn't respond.

use super::arrivals::{Due, Process};
use super::plan::Plan;
use super::shared::{Shared, endless};
use super::slot::Slot;
use super::tally::{Tally, Total};
use super::worker::Worker;
use crate::clock::now_ns;
use crate::connection::Connection;
use crate::failure::{Failure, Result};
use crate::message::Arrivals;
use crate::program::Script;
use std::os::fd::RawFd;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::thread;
use std::time::Duration;

/// Delay between creating the threads and their common start.
const GATHER_NS: u64 = 500_000;

/// Runs one slice. `counting` is called when the counted part begins.
pub fn run<C: Connection>(
    connections: &mut [C],
    threads: usize,
    script: &Script,
    plan: &Plan,
    counting: &mut dyn FnMut(),
) -> Result<Total> {
    let threads = threads.min(connections.len());
    let start_ns = now_ns() + GATHER_NS;
    let shared = Shared {
        script,
        seed: plan.seed,
        stride: connections.len() as u64,
        start_ns,
        count_from_ns: start_ns + plan.discard_ns,
        end_ns: start_ns + plan.length_ns,
        silence_ns: plan.silence_ns,
        until_ns: (start_ns + plan.length_ns).saturating_add(plan.silence_ns),
        limit: plan.operations.unwrap_or(u64::MAX),
        next: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        working: AtomicUsize::new(threads),
    };
    let mut hands: Vec<Vec<Slot<C>>> = (0..threads).map(|_| Vec::new()).collect();
    let mut sockets = Vec::new();
    for (number, connection) in connections.iter_mut().enumerate() {
        connection.thinks(plan.is_open());
        sockets.extend(connection.interest().map(|interest| interest.fd));
        hands[number % threads].push(Slot::new(connection, number as u64));
    }
    let tallies: Vec<Result<Tally>> = thread::scope(|scope| {
        let main = thread::current();
        let workers: Vec<_> = hands
            .into_iter()
            .enumerate()
            .map(|(number, slots)| {
                let (shared, main) = (&shared, main.clone());
                let due = match (plan.interval_ns, plan.arrivals) {
                    (None, _) => None,
                    (Some(interval), Arrivals::Even) => Some(Due::Even(interval)),
                    (Some(interval), Arrivals::Random) => {
                        let share = slots.len() as f64 / shared.stride as f64;
                        Some(Due::Random(Process::new(plan.seed, interval / share, number, threads)))
                    }
                };
                scope.spawn(move || {
                    let _working = Working { shared, main };
                    // A thread may notice the deadline before the main thread does.
                    let in_time =
                        |failure| if now_ns() < shared.until_ns { failure } else { endless(shared.silence_ns) };
                    let tally = Worker::new(shared, slots, due).work().map_err(in_time);
                    if tally.is_err() {
                        shared.stop.store(true, Relaxed);
                    }
                    tally
                })
            })
            .collect();
        while now_ns() < shared.count_from_ns && !shared.stop.load(Relaxed) {
            thread::park_timeout(Duration::from_nanos(shared.count_from_ns.saturating_sub(now_ns())));
        }
        if !shared.stop.load(Relaxed) {
            counting();
        }
        let mut overdue = false;
        while shared.working.load(Relaxed) > 0 {
            let left_ns = shared.until_ns.saturating_sub(now_ns());
            if left_ns == 0 && !std::mem::replace(&mut overdue, true) {
                shared.stop.store(true, Relaxed);
                // Closing its connection wakes a thread that waits in a system call.
                sockets.iter().for_each(|socket| hang_up(*socket));
            }
            thread::park_timeout(Duration::from_nanos(if overdue { GATHER_NS } else { left_ns }));
        }
        let crashed = |_| Err(Failure::internal("a load thread crashed"));
        workers.into_iter().map(|worker| worker.join().unwrap_or_else(crashed)).collect()
    });
    let mut total = Total { threads, ..Total::default() };
    for tally in tallies {
        total.tally.add(&tally?);
    }
    let counted_ns = match plan.operations {
        Some(_) => total.tally.last_end_ns.saturating_sub(start_ns).max(1),
        None => plan.length_ns - plan.discard_ns,
    };
    total.seconds = counted_ns as f64 / 1e9;
    Ok(total)
}

/// A running thread; it reports its end to the main thread, even after a crash.
struct Working<'a> {
    shared: &'a Shared<'a>,
    main: thread::Thread,
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.shared.working.fetch_sub(1, Relaxed);
        self.main.unpark();
    }
}

/// Ends a connection that another thread waits for.
fn hang_up(socket: RawFd) {
    // SAFETY: takes no pointer. The kernel refuses a descriptor that is no longer a socket.
    unsafe { libc::shutdown(socket, libc::SHUT_RDWR) };
}
