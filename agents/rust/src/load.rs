//! load: connections and a plan -> operations, timed. The hot loop: nothing in it allocates or takes a lock.

use crate::alarms::{Alarms, NEVER};
use crate::clock::{CpuTime, ThreadCpu, now_ns, sleep_until, timespec, wake_on_time};
use crate::connection::{Connection, Interest, Outcome, Step};
use crate::deadline;
use crate::draw::Random;
use crate::envelope;
use crate::failure::{Failure, Fault, Result};
use crate::histogram::Latencies;
use crate::kinds::Kinds;
use crate::message::Arrivals;
use crate::program::{Operation, Script};
use crate::transport::socket::Traffic;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// One slice, as asked for.
#[derive(Debug, Clone)]
pub struct Plan {
    pub length_ns: u64,
    pub discard_ns: u64,
    pub seed: u64,
    /// Nanoseconds between requests that are due; None: closed loop.
    pub interval_ns: Option<f64>,
    pub arrivals: Arrivals,
    pub operations: Option<u64>,
    /// Polled connections of which nothing is heard for so long, while operations are in flight, are lost. So are
    /// operations that have not ended so long after the slice's end, however much the server sends.
    pub silence_ns: u64,
}

impl Plan {
    /// Whether requests come by the clock, and not when the connection is free for the next.
    pub fn is_open(&self) -> bool {
        self.interval_ns.is_some()
    }
}

/// What a slice brought, over all threads.
#[derive(Debug, Default)]
pub struct Total {
    pub seconds: f64,
    pub threads: usize,
    pub tally: Tally,
}

/// What one thread counted.
#[derive(Debug, Default)]
pub struct Tally {
    pub operations: u64,
    /// Operations by their share in the counted part: one that is half inside counts a half.
    pub work: f64,
    pub errors: u64,
    pub kinds: Kinds,
    pub rows: u64,
    /// Values that were sealed by counted operations, and opened.
    pub sealed: u64,
    pub opened: u64,
    pub checksum: u64,
    pub late: u64,
    pub first_error: String,
    pub cpu: CpuTime,
    pub traffic: Traffic,
    pub latencies: Latencies,
    last_end_ns: u64,
}

impl Tally {
    #[cold]
    fn fail(&mut self, error: &Fault) {
        self.errors += 1;
        self.kinds.count(&error.kind, 1);
        if self.first_error.is_empty() {
            self.first_error.clone_from(&error.text);
        }
    }

    fn add(&mut self, other: &Tally) {
        self.operations += other.operations;
        self.work += other.work;
        self.errors += other.errors;
        self.kinds.add(&other.kinds);
        self.rows += other.rows;
        self.sealed += other.sealed;
        self.opened += other.opened;
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

/// A request that begins later than this after it was due is late.
const LATE_NS: u64 = 1_000_000;
/// Threads start together, this long after they were made.
const GATHER_NS: u64 = 500_000;
/// Generators of operations have numbers from 0 up; those of arrivals, one a thread, from here down.
const ARRIVALS: u64 = u64::MAX;

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
                    let tally = Worker::new(shared, slots, due).work();
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
                // Whoever waits in a system call is woken by the end of its connection.
                sockets.iter().for_each(|socket| hang_up(*socket));
            }
            thread::park_timeout(Duration::from_nanos(if overdue { GATHER_NS } else { left_ns }));
        }
        let crashed = |_| Err(Failure::internal("a load thread crashed"));
        let joined = workers.into_iter().map(|worker| worker.join().unwrap_or_else(crashed));
        joined.map(|tally| if overdue { tally.map_err(|_| endless(plan.silence_ns)) } else { tally }).collect()
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

/// A thread that has not ended; its end, even by a crash, is told to the main thread.
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

/// What the threads of a slice have in common.
struct Shared<'a> {
    script: &'a Script,
    seed: u64,
    /// Connection i of n runs operations i, i + n, …
    stride: u64,
    start_ns: u64,
    count_from_ns: u64,
    end_ns: u64,
    silence_ns: u64,
    /// The last moment of this slice, whatever is in flight.
    until_ns: u64,
    limit: u64,
    /// Open loop: the next request that nobody has claimed.
    next: AtomicU64,
    /// A connection was lost: the slice is void.
    stop: AtomicBool,
    /// Threads that have not ended.
    working: AtomicUsize,
}

/// A connection and the operation that runs on it.
struct Slot<'a, C> {
    connection: &'a mut C,
    operation: Operation,
    /// Closed loop: the number of its next operation.
    number: u64,
    /// When the operation's time began to run: when it was begun, or when it was due.
    from_ns: u64,
    late: bool,
    /// Its operation is in flight.
    pending: bool,
    interest: Option<Interest>,
}

impl<'a, C: Connection> Slot<'a, C> {
    fn new(connection: &'a mut C, number: u64) -> Slot<'a, C> {
        Slot {
            connection,
            operation: Operation::default(),
            number,
            from_ns: 0,
            late: false,
            pending: false,
            interest: None,
        }
    }
}

/// Open loop: when requests are due.
enum Due {
    /// So many nanoseconds from each other, whichever thread claims them.
    Even(f64),
    /// As a process of this thread's own has it, so that threads wait for each other in nothing.
    Random(Process),
}

/// The requests of a Poisson process: their numbers, and when they are due, in nanoseconds since the slice's start.
struct Process {
    random: Random,
    mean_ns: f64,
    at_ns: f64,
    number: u64,
    /// Thread i of n runs operations i, i + n, …
    stride: u64,
}

impl Process {
    fn new(seed: u64, mean_ns: f64, thread: usize, threads: usize) -> Process {
        let random = Random::of_operation(seed, ARRIVALS - thread as u64);
        Process { random, mean_ns, at_ns: 0.0, number: thread as u64, stride: threads as u64 }
    }

    #[inline]
    fn next(&mut self) -> (u64, u64) {
        self.at_ns += self.mean_ns * self.random.exponential();
        let number = self.number;
        self.number += self.stride;
        (number, self.at_ns as u64)
    }
}

/// One thread's part of a slice.
struct Worker<'a, C> {
    shared: &'a Shared<'a>,
    /// None: closed loop.
    due: Option<Due>,
    slots: Vec<Slot<'a, C>>,
    tally: Tally,
    /// When the next part begins: the counted one, then the rest. u64::MAX after that.
    boundary_ns: u64,
    counting: bool,
    cpu: ThreadCpu,
    traffic: Traffic,
}

impl<'a, C: Connection> Worker<'a, C> {
    fn new(shared: &'a Shared<'a>, slots: Vec<Slot<'a, C>>, due: Option<Due>) -> Worker<'a, C> {
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

    fn work(mut self) -> Result<Tally> {
        wake_on_time();
        deadline::of_load(self.shared.until_ns);
        envelope::enter(self.shared.script.cipher.as_ref())?;
        sleep_until(self.shared.start_ns);
        self.look(now_ns().max(self.shared.start_ns));
        let polled = self.slots[0].connection.polled();
        match (polled, &self.due) {
            (false, None) => self.closed()?,
            (false, Some(_)) => self.open()?,
            (true, _) => self.polled()?,
        }
        if self.shared.limit == u64::MAX && !self.shared.stop.load(Relaxed) {
            sleep_until(self.shared.end_ns);
            self.look(now_ns().max(self.shared.end_ns));
        }
        if self.counting {
            self.close();
        }
        Ok(self.tally)
    }

    /// One connection at a time: it waits in its own system calls.
    fn closed(&mut self) -> Result<()> {
        let shared = self.shared;
        let mut now = now_ns();
        loop {
            let mut begun = false;
            for at in 0..self.slots.len() {
                let slot = &mut self.slots[at];
                if now >= shared.end_ns || slot.number >= shared.limit || shared.stop.load(Relaxed) {
                    continue;
                }
                begun = true;
                slot.from_ns = now;
                shared.script.draw(shared.seed, slot.number, &mut slot.operation);
                slot.number += shared.stride;
                run_to_end(shared.script, slot)?;
                now = self.ended(at);
            }
            if !begun {
                return Ok(());
            }
        }
    }

    /// One connection at a time, each request begun when it is due.
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
            run_to_end(shared.script, slot)?;
            self.ended(at);
        }
        Ok(())
    }

    /// Several connections side by side, in a closed loop or in an open one.
    fn polled(&mut self) -> Result<()> {
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
            // Begin whatever may begin on connections that are idle.
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
            // Who will be woken is not silent: it has its own patience. Where nothing is in flight nobody owes a word.
            heard = ready > 0 || patience_ns == NEVER;
        }
    }

    /// Goes on with the operation of slot `at`: something came, or its time has come.
    #[inline]
    fn go_on(&mut self, at: usize, polling: &mut Polling, closed: bool) -> Result<()> {
        let shared = self.shared;
        let slot = &mut self.slots[at];
        if !slot.pending {
            slot.connection.unasked(shared.script, &slot.operation)?;
            return polling.poller.watch(at, slot);
        }
        if slot.connection.proceed(shared.script, &slot.operation)? == Step::Pending {
            return polling.watch(at, slot);
        }
        let now = self.ended(at);
        let slot = &mut self.slots[at];
        polling.poller.watch(at, slot)?;
        // The closed loop's short way: the same connection's next operation, with no look at the others.
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

    /// Goes on with operations that have waited for the clock.
    fn wake(&mut self, polling: &mut Polling, closed: bool) -> Result<()> {
        let now = now_ns();
        // Each at most once, before the sockets are looked at again.
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

    /// Open loop: the next request and when it is due, or None when there is no more.
    fn claim(&mut self) -> Option<(u64, u64)> {
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
    fn ended(&mut self, at: usize) -> u64 {
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
                // Begun before the end, like all: who waits in vain fails long after it, in every slice.
                self.tally.fail(error);
            }
        }
        now
    }

    /// Passes from one part of the slice to the next where it is time to.
    #[cold]
    fn look(&mut self, now: u64) {
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
    fn close(&mut self) {
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

#[inline]
fn run_to_end<C: Connection>(script: &Script, slot: &mut Slot<'_, C>) -> Result<()> {
    let mut step = slot.connection.begin(script, &slot.operation)?;
    while step == Step::Pending {
        step = slot.connection.proceed(script, &slot.operation)?;
    }
    Ok(())
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

#[cold]
fn endless(ns: u64) -> Failure {
    let text = format!("the server did not finish its answers within {} s of the slice's end", ns as f64 / 1e9);
    Failure::new("timeout", text).lost()
}

/// Ends a connection that another thread waits for.
fn hang_up(socket: RawFd) {
    // SAFETY: takes no pointer. A descriptor that is no socket any more is refused.
    unsafe { libc::shutdown(socket, libc::SHUT_RDWR) };
}

/// What a thread's polled connections wait for.
struct Polling {
    poller: Poller,
    alarms: Alarms,
    idle: Vec<usize>,
    in_flight: usize,
}

impl Polling {
    fn new(slots: usize) -> Result<Polling> {
        let idle = (0..slots).rev().collect();
        Ok(Polling { poller: Poller::new()?, alarms: Alarms::new(slots), idle, in_flight: 0 })
    }

    /// Waits for what the pending operation of slot `at` waits for.
    #[inline]
    fn watch<C: Connection>(&mut self, at: usize, slot: &mut Slot<'_, C>) -> Result<()> {
        if let Some(ns) = slot.connection.wakes() {
            self.alarms.no_later(at, ns);
        }
        self.poller.watch(at, slot)
    }
}

/// An epoll, level-triggered: whoever has not read everything is told again.
struct Poller(OwnedFd);

impl Poller {
    fn new() -> Result<Poller> {
        // SAFETY: epoll_create1 takes no pointers; a descriptor that is not negative is ours alone.
        unsafe {
            match libc::epoll_create1(libc::EPOLL_CLOEXEC) {
                -1 => Err(std::io::Error::last_os_error().into()),
                fd => Ok(Poller(OwnedFd::from_raw_fd(fd))),
            }
        }
    }

    /// Watches slot `at` for what its connection waits for, where that has changed.
    #[inline]
    fn watch<C: Connection>(&self, at: usize, slot: &mut Slot<'_, C>) -> Result<()> {
        let wanted = slot.connection.interest();
        if wanted == slot.interest {
            return Ok(());
        }
        let Some(interest) = wanted else {
            self.forget(slot);
            return Ok(());
        };
        let same_socket = slot.interest.is_some_and(|known| known.opened == interest.opened);
        if !same_socket {
            self.forget(slot);
        }
        let action = if same_socket { libc::EPOLL_CTL_MOD } else { libc::EPOLL_CTL_ADD };
        let mut event = libc::epoll_event { events: interest.events, u64: at as u64 };
        slot.interest = wanted;
        // SAFETY: both descriptors are open and the event is read during the call only.
        match unsafe { libc::epoll_ctl(self.0.as_raw_fd(), action, interest.fd, &mut event) } {
            -1 => Err(std::io::Error::last_os_error().into()),
            _ => Ok(()),
        }
    }

    /// Stops watching a socket that its connection has done with, though it may still be open for its peer's goodbye.
    #[cold]
    fn forget<C: Connection>(&self, slot: &mut Slot<'_, C>) {
        if let Some(interest) = slot.interest.take() {
            // SAFETY: removal takes no event; a descriptor that is closed already was removed by that.
            unsafe { libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_DEL, interest.fd, std::ptr::null_mut()) };
        }
    }

    /// Waits for events, at most `wait_ns`, by a clock of nanoseconds.
    fn wait(&self, events: &mut [libc::epoll_event], wait_ns: u64) -> Result<usize> {
        let time = timespec(wait_ns);
        let (poll, count) = (self.0.as_raw_fd(), events.len() as libc::c_long);
        let none = std::ptr::null::<libc::sigset_t>();
        // SAFETY: the kernel writes at most `events.len()` events; the timespec lives until the call returns.
        let ready = unsafe {
            libc::syscall(libc::SYS_epoll_pwait2, poll, events.as_mut_ptr(), count, &raw const time, none, 0)
        };
        found(ready as i32)
    }

    /// Waits for events, about as long as `most_ns`: where nothing is due.
    #[inline]
    fn wait_long(&self, events: &mut [libc::epoll_event], most_ns: u64) -> Result<usize> {
        let ms = i32::try_from(most_ns.div_ceil(1_000_000)).unwrap_or(-1);
        // SAFETY: the kernel writes at most `events.len()` events.
        found(unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), events.len() as i32, ms) })
    }
}

#[inline]
fn found(ready: i32) -> Result<usize> {
    match ready {
        -1 if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => Ok(0),
        -1 => Err(std::io::Error::last_os_error().into()),
        ready => Ok(ready as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arm::Arm;
    use crate::connection::Rows;
    use crate::draw::Kind;
    use crate::drivers::null;
    use crate::message;
    use crate::program::Program;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    fn script(sql: &str, kind: Kind) -> Arc<Script> {
        let mut program = Program::new("p".into());
        program.add_variable("v".into(), kind).unwrap();
        program.add_transaction("t".into(), 1).unwrap();
        program.add_statement("t", None, sql.into(), "v", false).unwrap();
        Arc::new(program.script("plain").unwrap())
    }

    fn one() -> Kind {
        Kind::Constant { value: "1".into() }
    }

    fn plan(seconds: f64, rate: f64) -> Plan {
        Plan {
            length_ns: (seconds * 1e9) as u64,
            discard_ns: 0,
            seed: 7,
            interval_ns: (rate > 0.0).then(|| 1e9 / rate),
            arrivals: Arrivals::Even,
            operations: None,
            silence_ns: 120_000_000_000,
        }
    }

    fn null_arm(connections: usize, threads: usize) -> Box<dyn Arm> {
        let pool = message::Pool { arm: "plain".into(), connections, threads, per_request: false, timeout: None };
        null::connect(&pool, &message::Null { busy_ns: 0, jitter: 0.0 }).unwrap().0
    }

    #[test]
    fn a_process_has_its_rate_and_exponential_gaps_and_is_the_same_for_the_same_seed() {
        let times = |seed, thread, threads: usize| {
            let mut process = Process::new(seed, 1000.0, thread, threads);
            (0..50_000).map(|_| process.next()).collect::<Vec<_>>()
        };
        let found = times(3, 0, 1);
        let gaps: Vec<f64> = found.windows(2).map(|pair| (pair[1].1 - pair[0].1) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((970.0..1030.0).contains(&mean), "{mean}");
        assert!((0.9..1.1).contains(&(variance / mean.powi(2))), "{variance}");
        let following =
            gaps.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>() / gaps.len() as f64;
        assert!((following / variance).abs() < 0.03, "a gap says nothing of the next");
        assert_eq!(found, times(3, 0, 1));
        assert_ne!(found, times(4, 0, 1));
        assert_ne!(found[0].1, times(3, 1, 2)[0].1, "each thread has its own");
        assert_eq!(times(3, 1, 2)[..3].iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 3, 5]);
    }

    #[test]
    fn random_arrivals_keep_the_rate_whatever_the_threads() {
        let script = script("nothing", one());
        for (connections, threads) in [(1, 1), (3, 2)] {
            let asked = Plan { arrivals: Arrivals::Random, ..plan(0.4, 5_000.0) };
            let mut operations = Vec::new();
            for _ in 0..2 {
                let total = null_arm(connections, threads).slice(&script, &asked, &mut || ()).unwrap();
                operations.push(total.tally.operations as f64);
            }
            // 2000 are expected, and √2000 is their standard deviation; an agent held up at the end does fewer.
            assert!((1_600.0..2_300.0).contains(&operations[0]), "{operations:?}");
            assert!((operations[0] - operations[1]).abs() < 300.0, "the same seed: {operations:?}");
        }
    }

    #[test]
    fn operations_of_random_arrivals_are_as_many_as_were_asked_for() {
        let asked = Plan { arrivals: Arrivals::Random, operations: Some(101), ..plan(60.0, 10_000.0) };
        let total = null_arm(5, 2).slice(&script("nothing", one()), &asked, &mut || ()).unwrap();
        assert_eq!((total.tally.operations, total.tally.errors), (101, 0));
    }

    #[test]
    fn who_thinks_in_an_open_loop_does_so_beside_the_others_and_latency_leaves_it_out() {
        let script = script("THINK $1", Kind::Constant { value: "200000".into() });
        // One thread sleeps in its connection, or has 20 of them to wake.
        for (connections, rate, least) in [(1, 4.0, 2), (20, 60.0, 20)] {
            let total = null_arm(connections, 1).slice(&script, &plan(1.0, rate), &mut || ()).unwrap();
            assert_eq!(total.tally.errors, 0);
            assert!(total.tally.operations >= least, "{}", total.tally.operations);
            assert!(total.tally.latencies.quantile(0.5) < 100_000_000, "a thought is 200 ms");
        }
    }

    #[test]
    fn nobody_thinks_in_a_closed_loop() {
        let script = script("THINK $1", Kind::Constant { value: "3600000000".into() });
        let asked = Plan { operations: Some(1_000), ..plan(60.0, 0.0) };
        let total = null_arm(3, 1).slice(&script, &asked, &mut || ()).unwrap();
        assert_eq!(total.tally.operations, 1_000);
    }

    #[test]
    fn failures_are_counted_by_their_kind() {
        let script = script("THINK $1", Kind::Uniform { low: -3, high: -1 });
        let asked = Plan { operations: Some(10), ..plan(60.0, 0.0) };
        for (connections, threads) in [(1, 1), (4, 2)] {
            let tally = null_arm(connections, threads).slice(&script, &asked, &mut || ()).unwrap().tally;
            assert_eq!((tally.operations, tally.errors, tally.kinds.spell().as_str()), (0, 10, "statement=10"));
            assert!(tally.first_error.starts_with("statement: THINK -"), "{}", tally.first_error);
        }
    }

    /// A polled connection whose peer answers each operation, or is silent; `patience_ns` after its begin it gives up.
    struct Polled {
        own: UnixStream,
        peer: UnixStream,
        answers: bool,
        patience_ns: u64,
        until_ns: Option<u64>,
        thought_ns: u64,
        unasked: usize,
        /// What comes is never the end of an answer.
        drips: bool,
        outcome: Outcome,
    }

    impl Polled {
        fn new(answers: bool, patience_ns: u64) -> Polled {
            let (own, peer) = UnixStream::pair().unwrap();
            own.set_nonblocking(true).unwrap();
            let outcome = Outcome::default();
            Polled { own, peer, answers, patience_ns, until_ns: None, thought_ns: 0, unasked: 0, drips: false, outcome }
        }

        fn take(&mut self) -> bool {
            self.own.read(&mut [0; 64]).is_ok_and(|got| got > 0)
        }
    }

    impl Connection for Polled {
        fn prepare(&mut self, _: &Arc<Script>) -> Result<()> {
            Ok(())
        }
        fn begin(&mut self, _: &Script, _: &Operation) -> Result<Step> {
            self.outcome.clear();
            self.until_ns = (self.patience_ns > 0).then(|| now_ns() + self.patience_ns);
            if self.answers {
                self.peer.write_all(b"1")?;
            }
            Ok(Step::Pending)
        }
        fn proceed(&mut self, _: &Script, _: &Operation) -> Result<Step> {
            if self.take() && !self.drips {
                self.until_ns = None;
                return Ok(Step::Done);
            }
            if self.until_ns.is_none_or(|until| now_ns() < until) {
                return Ok(Step::Pending);
            }
            self.until_ns = None;
            self.outcome.fail(&Failure::new("timeout", "no answer"));
            Ok(Step::Done)
        }
        fn unasked(&mut self, _: &Script, _: &Operation) -> Result<()> {
            self.unasked += usize::from(self.take());
            Ok(())
        }
        fn outcome(&self) -> &Outcome {
            &self.outcome
        }
        fn query(&mut self, _: &str) -> Result<Rows> {
            Ok(Rows::default())
        }
        fn polled(&self) -> bool {
            true
        }
        fn interest(&self) -> Option<Interest> {
            Some(Interest { opened: 1, fd: self.own.as_raw_fd(), events: libc::EPOLLIN as u32 })
        }
        fn wakes(&self) -> Option<u64> {
            self.until_ns
        }
        fn thought_ns(&self) -> u64 {
            self.thought_ns
        }
    }

    fn run_polled(connections: &mut [Polled], plan: &Plan) -> Result<Total> {
        run(connections, 1, &script("nothing", one()), plan, &mut || ())
    }

    #[test]
    fn a_silent_server_fails_the_slice_in_words() {
        for rate in [0.0, 100.0] {
            let mut connections = [Polled::new(false, 0), Polled::new(false, 0)];
            let asked = Plan { silence_ns: 60_000_000, ..plan(600.0, rate) };
            let failure = run_polled(&mut connections, &asked).unwrap_err();
            assert!(failure.lost && failure.code == "connect", "{failure}");
            assert!(failure.text.contains("for 0.06 s") && failure.text.contains("2 operations"), "{failure}");
        }
    }

    /// A blocking connection to a peer that sends a byte now and then, and never the end of an answer.
    struct Dripping {
        socket: crate::transport::socket::Socket,
        outcome: Outcome,
    }

    impl Connection for Dripping {
        fn prepare(&mut self, _: &Arc<Script>) -> Result<()> {
            Ok(())
        }
        fn begin(&mut self, _: &Script, _: &Operation) -> Result<Step> {
            Ok(Step::Pending)
        }
        fn proceed(&mut self, _: &Script, _: &Operation) -> Result<Step> {
            loop {
                if self.socket.receive(&mut [0; 64])? == 0 {
                    return Err(Failure::connect("the server closed the connection"));
                }
            }
        }
        fn outcome(&self) -> &Outcome {
            &self.outcome
        }
        fn query(&mut self, _: &str) -> Result<Rows> {
            Ok(Rows::default())
        }
        fn interest(&self) -> Option<Interest> {
            let fd = self.socket.as_raw_fd();
            Some(Interest { opened: 1, fd, events: libc::EPOLLIN as u32 })
        }
    }

    #[test]
    fn an_answer_that_never_ends_fails_the_slice_however_it_comes() {
        use crate::transport::socket::{Mode, Socket};
        // Nothing, a byte now and then, as many as fit.
        for (pause_ms, size) in [(None, 0), (Some(20), 1), (Some(0), 4096)] {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let socket = Socket::open(listener.local_addr().unwrap(), Mode::Blocking).unwrap();
            socket.set_timeout(false).unwrap();
            let (mut peer, _) = listener.accept().unwrap();
            let dripping = thread::spawn(move || match pause_ms {
                None => drop(peer.read(&mut [0; 8])),
                Some(ms) => {
                    while peer.write_all(&vec![0; size]).is_ok() {
                        thread::sleep(Duration::from_millis(ms));
                    }
                }
            });
            let mut connections = [Dripping { socket, outcome: Outcome::default() }];
            let asked = Plan { silence_ns: 100_000_000, ..plan(0.05, 0.0) };
            let script = script("nothing", one());
            let failure = run(&mut connections, 1, &script, &asked, &mut || ()).unwrap_err();
            assert!(failure.lost && failure.code == "timeout", "{failure}");
            assert!(failure.text.contains("within 0.1 s of the slice's end"), "{failure}");
            drop(connections);
            dripping.join().unwrap();
        }
    }

    #[test]
    fn polled_connections_are_not_held_by_drips() {
        for rate in [0.0, 100.0] {
            let mut connections = [Polled::new(false, 0), Polled::new(false, 0)];
            let mut peer = connections[0].peer.try_clone().unwrap();
            connections[0].drips = true;
            connections[1].drips = true;
            let (done, asked) = (AtomicBool::new(false), Plan { silence_ns: 100_000_000, ..plan(0.05, rate) });
            let failure = thread::scope(|scope| {
                scope.spawn(|| {
                    while !done.load(Relaxed) {
                        let _ = peer.write_all(b"1");
                        thread::sleep(Duration::from_millis(10));
                    }
                });
                let failure = run_polled(&mut connections, &asked).unwrap_err();
                done.store(true, Relaxed);
                failure
            });
            assert!(failure.lost && failure.code == "timeout", "{failure}");
        }
    }

    #[test]
    fn who_waits_for_nothing_but_the_clock_is_not_silent() {
        // Rarer requests than the server may be silent, and a patience that is longer than that.
        let mut connections = [Polled::new(true, 0)];
        let asked = Plan { silence_ns: 5_000_000, operations: Some(3), ..plan(60.0, 20.0) };
        assert_eq!(run_polled(&mut connections, &asked).unwrap().tally.operations, 3);
        let mut connections = [Polled::new(false, 30_000_000)];
        let asked = Plan { silence_ns: 5_000_000, operations: Some(3), ..plan(60.0, 0.0) };
        assert_eq!(run_polled(&mut connections, &asked).unwrap().tally.kinds.spell(), "timeout=3");
    }

    #[test]
    fn a_connection_is_woken_when_it_wants_to_be_and_the_others_go_on() {
        for rate in [0.0, 500.0] {
            let mut connections =
                [Polled::new(false, 5_000_000), Polled::new(true, 0), Polled::new(true, 1_000_000_000)];
            let tally = run_polled(&mut connections, &plan(0.3, rate)).unwrap().tally;
            assert!(tally.operations > 10 && tally.errors > 2, "{} {}", tally.operations, tally.errors);
            assert_eq!(tally.kinds.spell(), format!("timeout={}", tally.errors));
        }
    }

    #[test]
    fn who_fails_after_the_end_is_counted_and_who_succeeds_then_is_not() {
        for rate in [0.0, 50.0] {
            let mut connections = [Polled::new(false, 60_000_000), Polled::new(false, 60_000_000)];
            let tally = run_polled(&mut connections, &plan(0.03, rate)).unwrap().tally;
            assert_eq!((tally.operations, tally.kinds.spell().as_str()), (0, "timeout=2"));
            assert_eq!((tally.errors, tally.first_error.as_str(), tally.work), (2, "timeout: no answer", 0.0));
        }
        let pool = message::Pool { arm: "plain".into(), connections: 1, threads: 1, per_request: false, timeout: None };
        let mut arm = null::connect(&pool, &message::Null { busy_ns: 60_000_000, jitter: 0.0 }).unwrap().0;
        let tally = arm.slice(&script("nothing", one()), &plan(0.03, 0.0), &mut || ()).unwrap().tally;
        assert_eq!((tally.operations, tally.errors), (0, 0));
        assert!(tally.work > 0.0 && tally.work < 1.0, "{}", tally.work);
    }

    #[test]
    fn what_comes_unasked_ends_no_operation() {
        let mut connections = [Polled::new(true, 0)];
        // It is watched since its first operation, and idle until the next.
        let asked = Plan { operations: Some(4), ..plan(60.0, 50.0) };
        let tally = thread::scope(|scope| {
            let mut peer = connections[0].peer.try_clone().unwrap();
            scope.spawn(move || {
                for _ in 0..30 {
                    thread::sleep(Duration::from_millis(2));
                    peer.write_all(b"unasked").unwrap();
                }
            });
            run_polled(&mut connections, &asked).unwrap().tally
        });
        assert_eq!((tally.operations, tally.errors), (4, 0));
        assert!(connections[0].unasked > 0);
    }

    #[test]
    fn a_latency_has_no_thought_in_it() {
        let mut connections = [Polled::new(true, 0)];
        connections[0].thought_ns = u64::MAX;
        let asked = Plan { operations: Some(50), ..plan(60.0, 0.0) };
        let latencies = run_polled(&mut connections, &asked).unwrap().tally.latencies;
        assert_eq!(latencies.quantile(1.0), 1, "the least that a histogram holds");
        connections[0].thought_ns = 0;
        assert!(run_polled(&mut connections, &asked).unwrap().tally.latencies.quantile(0.0) > 1);
    }
}
