//! Runs one slice: starts the threads, and stops them if the server doesn't respond.

use super::arrivals::{Due, Process};
use super::gate::{Gate, Times};
use super::hand::Hand;
use super::plan::Plan;
use super::shared::{Apart, Shared, endless};
use super::tally::{Tally, Total};
use super::worker::Worker;
use crate::clock::now_ns;
use crate::connection::{Connection, OPENING_AT_ONCE};
use crate::cpu;
use crate::failure::{Failure, Result};
use crate::message::Arrivals;
use crate::program::Script;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::thread;
use std::time::Duration;

/// Delay between the moment when all threads are ready and their common start: it takes a while to wake them all.
const GATHER_NS: u64 = 500_000;

/// Runs one slice, with a thread for each hand. `counting` is called when the counted part begins.
pub fn run<C: Connection>(
    hands: &mut [Hand<C>],
    script: &Arc<Script>,
    plan: &Plan,
    counting: &mut dyn FnMut(),
) -> Result<Total> {
    let threads = hands.len();
    let connections: usize = hands.iter().map(|hand| hand.slots.len()).sum();
    let shared = Shared {
        script,
        seed: plan.seed,
        stride: connections as u64,
        silence_ns: plan.silence_ns,
        limit: plan.operations.unwrap_or(u64::MAX),
        thinks: plan.is_open(),
        opening: (OPENING_AT_ONCE / threads).max(1),
        gate: Gate::default(),
        next: Apart(AtomicU64::new(0)),
        stop: Apart(AtomicBool::new(false)),
        working: Apart(AtomicUsize::new(threads)),
    };
    let cpus = cpu::one_for_each(threads);
    let mut begun = None;
    let tallies: Vec<Result<Tally>> = thread::scope(|scope| {
        let main = thread::current();
        let workers = hands.iter_mut().enumerate().map(|(number, hand)| {
            let (shared, main, cpu) = (&shared, main.clone(), cpus.as_ref().map(|cpus| cpus[number]));
            let due = match (plan.interval_ns, &plan.due_us, plan.arrivals) {
                (None, ..) => None,
                (_, Some(times_us), _) => Some(Due::Given(times_us.clone())),
                (Some(interval), _, Arrivals::Even) => Some(Due::Even(interval)),
                (Some(interval), _, Arrivals::Random) => {
                    let share = hand.slots.len() as f64 / connections as f64;
                    Some(Due::Random(Process::new(plan.seed, interval / share, number, threads)))
                }
            };
            let work = move || {
                let _working = Working { shared, main };
                if let Some(cpu) = cpu {
                    cpu::stay_on(cpu);
                }
                let tally = work(Worker::new(shared, &mut hand.slots, due));
                if tally.is_err() {
                    shared.stop.store(true, Relaxed);
                }
                tally
            };
            thread::Builder::new().spawn_scoped(scope, work).map_err(|error| {
                shared.working.fetch_sub(1, Relaxed);
                shared.gate.abandon();
                Failure::internal(format!("can't start {threads} threads: {error}"))
            })
        });
        let workers: Vec<_> = workers.collect();
        if let Some((times, sockets)) = shared.gate.open(threads, || Times::new(now_ns() + GATHER_NS, plan)) {
            begun = Some(times);
            watch(&shared, times, &sockets, counting);
        }
        let crashed = |_| Err(Failure::internal("a load thread crashed"));
        let join = |worker: thread::ScopedJoinHandle<'_, _>| worker.join().unwrap_or_else(crashed);
        workers.into_iter().map(|worker| worker.and_then(join)).collect()
    });
    let mut total = Total { threads, ..Total::default() };
    for tally in tallies {
        total.tally.add(&tally?);
    }
    let start_ns = begun.map_or(0, |times| times.start_ns);
    let counted_ns = match plan.operations {
        Some(_) => total.tally.last_end_ns.saturating_sub(start_ns).max(1),
        None => plan.length_ns - plan.discard_ns,
    };
    total.seconds = counted_ns as f64 / 1e9;
    Ok(total)
}

/// A thread's part of the slice. Nothing is counted if some other thread keeps the slice from beginning.
fn work<C: Connection>(mut worker: Worker<'_, C>) -> Result<Tally> {
    let shared = worker.shared;
    let sockets = worker.get_ready()?;
    let Some(times) = shared.gate.arrive(&sockets) else { return Ok(Tally::default()) };
    // A thread may notice the deadline before the main thread does.
    let in_time = |failure| if now_ns() < times.until_ns { failure } else { endless(shared.silence_ns) };
    worker.work(times).map_err(in_time)
}

/// Says when the counted part begins, and ends the connections of threads that do not end in time.
fn watch(shared: &Shared, times: Times, sockets: &[RawFd], counting: &mut dyn FnMut()) {
    while now_ns() < times.count_from_ns && !shared.stop.load(Relaxed) {
        thread::park_timeout(Duration::from_nanos(times.count_from_ns.saturating_sub(now_ns())));
    }
    if !shared.stop.load(Relaxed) {
        counting();
    }
    let mut overdue = false;
    while shared.working.load(Relaxed) > 0 {
        let left_ns = times.until_ns.saturating_sub(now_ns());
        if left_ns == 0 && !std::mem::replace(&mut overdue, true) {
            shared.stop.store(true, Relaxed);
            // Closing its connection wakes a thread that waits in a system call.
            sockets.iter().for_each(|socket| hang_up(*socket));
        }
        thread::park_timeout(Duration::from_nanos(if overdue { GATHER_NS } else { left_ns }));
    }
}

/// A running thread; it reports its end, even after a crash, to those who wait for it.
struct Working<'a> {
    shared: &'a Shared<'a>,
    main: thread::Thread,
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.shared.gate.abandon();
        self.shared.working.fetch_sub(1, Relaxed);
        self.main.unpark();
    }
}

/// Ends a connection that another thread waits for.
fn hang_up(socket: RawFd) {
    // SAFETY: takes no pointer. The kernel refuses a descriptor that is no longer a socket.
    unsafe { libc::shutdown(socket, libc::SHUT_RDWR) };
}
