//! load: connections and a plan -> operations, timed. The hot loop: nothing in it allocates or takes a lock.

use crate::clock::{CpuTime, ThreadCpu, now_ns, sleep_until, timespec, wake_on_time};
use crate::drivers::{Connection, Interest, Outcome, Step};
use crate::envelope;
use crate::failure::{Failure, Result};
use crate::histogram::Latencies;
use crate::program::{Operation, Script};
use crate::transport::socket::Traffic;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
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
    pub operations: Option<u64>,
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
    fn add(&mut self, other: &Tally) {
        self.operations += other.operations;
        self.work += other.work;
        self.errors += other.errors;
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
        interval_ns: plan.interval_ns,
        limit: plan.operations.unwrap_or(u64::MAX),
        next: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    };
    let mut hands: Vec<Vec<Slot<C>>> = (0..threads).map(|_| Vec::new()).collect();
    for (number, connection) in connections.iter_mut().enumerate() {
        hands[number % threads].push(Slot::new(connection, number as u64));
    }
    let tallies: Vec<Result<Tally>> = thread::scope(|scope| {
        let main = thread::current();
        let workers: Vec<_> = hands
            .into_iter()
            .map(|slots| {
                let (shared, main) = (&shared, main.clone());
                scope.spawn(move || {
                    let tally = Worker::new(shared, slots).work();
                    if tally.is_err() {
                        shared.stop.store(true, Relaxed);
                    }
                    main.unpark();
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

/// What the threads of a slice have in common.
struct Shared<'a> {
    script: &'a Script,
    seed: u64,
    /// Connection i of n runs operations i, i + n, …
    stride: u64,
    start_ns: u64,
    count_from_ns: u64,
    end_ns: u64,
    interval_ns: Option<f64>,
    limit: u64,
    /// Open loop: the next request that nobody has claimed.
    next: AtomicU64,
    /// A connection was lost: the slice is void.
    stop: AtomicBool,
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
    interest: Option<Interest>,
}

impl<'a, C: Connection> Slot<'a, C> {
    fn new(connection: &'a mut C, number: u64) -> Slot<'a, C> {
        Slot { connection, operation: Operation::default(), number, from_ns: 0, late: false, interest: None }
    }
}

/// One thread's part of a slice.
struct Worker<'a, C> {
    shared: &'a Shared<'a>,
    slots: Vec<Slot<'a, C>>,
    tally: Tally,
    /// When the next part begins: the counted one, then the rest. u64::MAX after that.
    boundary_ns: u64,
    counting: bool,
    cpu: ThreadCpu,
    traffic: Traffic,
}

impl<'a, C: Connection> Worker<'a, C> {
    fn new(shared: &'a Shared<'a>, slots: Vec<Slot<'a, C>>) -> Worker<'a, C> {
        Worker {
            shared,
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
        envelope::enter(self.shared.script.cipher.as_ref())?;
        sleep_until(self.shared.start_ns);
        self.look(now_ns().max(self.shared.start_ns));
        let polled = self.slots[0].connection.polled();
        match (polled, self.shared.interval_ns) {
            (false, None) => self.closed()?,
            (false, Some(interval)) => self.open(interval)?,
            (true, interval) => self.polled(interval)?,
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
    fn open(&mut self, interval_ns: f64) -> Result<()> {
        let shared = self.shared;
        for at in (0..self.slots.len()).cycle() {
            let Some((number, due_ns)) = self.claim(interval_ns) else { break };
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

    /// Several connections side by side, in a closed loop or (with an interval) in an open one.
    fn polled(&mut self, interval_ns: Option<f64>) -> Result<()> {
        let shared = self.shared;
        let poller = Poller::new()?;
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        let mut idle: Vec<usize> = (0..self.slots.len()).rev().collect();
        let mut in_flight = 0;
        let mut claimed = None;
        loop {
            let mut wait_ns = None;
            let mut now = now_ns();
            // Begin whatever may begin on connections that are idle.
            while let Some(&at) = idle.last() {
                if shared.stop.load(Relaxed) {
                    return Ok(());
                }
                let number = match interval_ns {
                    None if now >= shared.end_ns || self.slots[at].number >= shared.limit => {
                        idle.pop();
                        continue;
                    }
                    None => {
                        let slot = &mut self.slots[at];
                        slot.from_ns = now;
                        slot.number += shared.stride;
                        slot.number - shared.stride
                    }
                    Some(interval) => {
                        claimed = claimed.or_else(|| self.claim(interval));
                        let Some((number, due_ns)) = claimed else { break };
                        if due_ns > now {
                            wait_ns = Some(due_ns - now);
                            break;
                        }
                        claimed = None;
                        self.slots[at].from_ns = due_ns;
                        self.slots[at].late = now > due_ns + LATE_NS;
                        number
                    }
                };
                let slot = &mut self.slots[at];
                shared.script.draw(shared.seed, number, &mut slot.operation);
                match slot.connection.begin(shared.script, &slot.operation)? {
                    Step::Pending => {
                        poller.watch(at, slot)?;
                        idle.pop();
                        in_flight += 1;
                    }
                    Step::Done => {
                        now = self.ended(at);
                        poller.watch(at, &mut self.slots[at])?;
                    }
                }
            }
            if in_flight == 0 && claimed.is_none() {
                return Ok(());
            }
            let ready = poller.wait(&mut events, wait_ns)?;
            for event in &events[..ready] {
                let at = event.u64 as usize;
                let slot = &mut self.slots[at];
                match slot.connection.proceed(shared.script, &slot.operation)? {
                    Step::Pending => poller.watch(at, slot)?,
                    Step::Done => {
                        let now = self.ended(at);
                        let slot = &mut self.slots[at];
                        poller.watch(at, slot)?;
                        // The closed loop's short way: the same connection's next operation, with no look at the others.
                        if interval_ns.is_none() && now < shared.end_ns && slot.number < shared.limit {
                            slot.from_ns = now;
                            shared.script.draw(shared.seed, slot.number, &mut slot.operation);
                            slot.number += shared.stride;
                            if slot.connection.begin(shared.script, &slot.operation)? == Step::Pending {
                                poller.watch(at, slot)?;
                                continue;
                            }
                            self.ended(at);
                            poller.watch(at, &mut self.slots[at])?;
                        }
                        in_flight -= 1;
                        idle.push(at);
                    }
                }
            }
        }
    }

    /// Open loop: the next request and when it is due, or None when there is no more.
    fn claim(&self, interval_ns: f64) -> Option<(u64, u64)> {
        let number = self.shared.next.fetch_add(1, Relaxed);
        let due_ns = self.shared.start_ns + (number as f64 * interval_ns) as u64;
        let over = due_ns >= self.shared.end_ns || number >= self.shared.limit || self.shared.stop.load(Relaxed);
        (!over && now_ns() < self.shared.end_ns).then_some((number, due_ns))
    }

    /// Counts the operation of slot `at`, which has just ended. Returns the time.
    #[inline]
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
                    self.tally.latencies.record(now - slot.from_ns);
                }
                Some(error) => {
                    self.tally.errors += 1;
                    if self.tally.first_error.is_empty() {
                        self.tally.first_error.clone_from(error);
                    }
                }
            }
            self.tally.late += u64::from(slot.late);
            self.tally.last_end_ns = now;
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

    /// Waits for events, at most `wait_ns`. epoll_pwait2 is used only with a time: its nanoseconds matter only then.
    fn wait(&self, events: &mut [libc::epoll_event], wait_ns: Option<u64>) -> Result<usize> {
        // SAFETY: the kernel writes at most `events.len()` events; the timespec lives until the call returns.
        let ready = unsafe {
            match wait_ns {
                None => libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), events.len() as i32, -1),
                Some(ns) => {
                    let time = timespec(ns);
                    let count = events.len() as libc::c_long;
                    let none = std::ptr::null::<libc::sigset_t>();
                    let poll = self.0.as_raw_fd();
                    libc::syscall(libc::SYS_epoll_pwait2, poll, events.as_mut_ptr(), count, &raw const time, none, 0)
                        as i32
                }
            }
        };
        match ready {
            -1 if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => Ok(0),
            -1 => Err(std::io::Error::last_os_error().into()),
            ready => Ok(ready as usize),
        }
    }
}
