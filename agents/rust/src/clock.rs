//! Reads the time and this thread's CPU time.

use std::mem::zeroed;

fn read(clock: libc::clockid_t) -> u64 {
    // SAFETY: clock_gettime fills the struct it is given; these clocks always exist on Linux.
    let time = unsafe {
        let mut time: libc::timespec = zeroed();
        libc::clock_gettime(clock, &mut time);
        time
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The monotonic clock, in nanoseconds.
#[inline]
pub fn now_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// The same clock at its last tick, at most a few milliseconds ago: for times that need not be exact.
#[inline]
pub fn coarse_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC_COARSE)
}

/// Sleeps until the monotonic clock shows `due_ns`.
pub fn sleep_until(due_ns: u64) {
    let time = timespec(due_ns);
    // SAFETY: the request is a valid timespec, and no remainder is requested. An interrupted sleep is just shorter;
    // every caller reads the clock again.
    unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &time, std::ptr::null_mut());
    }
}

pub fn timespec(ns: u64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}

/// Lets this thread's timers fire when due: the kernel's default slack of 50 µs would add to latencies.
pub fn wake_on_time() {
    // SAFETY: PR_SET_TIMERSLACK takes one integer and changes only this thread.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0);
    }
}

/// CPU time of the calling thread.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CpuTime {
    pub user_ns: u64,
    pub system_ns: u64,
}

impl CpuTime {
    pub fn of_this_thread() -> ThreadCpu {
        // SAFETY: getrusage fills the struct it is given.
        let usage = unsafe {
            let mut usage: libc::rusage = zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
            usage
        };
        let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
        ThreadCpu {
            total_ns: read(libc::CLOCK_THREAD_CPUTIME_ID),
            user_ns: ns(usage.ru_utime),
            system_ns: ns(usage.ru_stime),
        }
    }

    pub fn total_ns(self) -> u64 {
        self.user_ns + self.system_ns
    }

    pub fn add(&mut self, other: CpuTime) {
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
    }
}

/// A reading of a thread's CPU clocks: the total is exact, user and system may be sampled by ticks.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadCpu {
    total_ns: u64,
    user_ns: u64,
    system_ns: u64,
}

impl ThreadCpu {
    /// CPU time since `earlier`: the exact total, split in getrusage's proportion.
    pub fn since(self, earlier: ThreadCpu) -> CpuTime {
        let total = self.total_ns.saturating_sub(earlier.total_ns);
        let user = self.user_ns.saturating_sub(earlier.user_ns) as f64;
        let system = self.system_ns.saturating_sub(earlier.system_ns) as f64;
        let share = if user + system > 0.0 { user / (user + system) } else { 1.0 };
        let user_ns = (total as f64 * share) as u64;
        CpuTime { user_ns, system_ns: total - user_ns.min(total) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_thread_is_charged_its_time_and_a_sleeping_one_is_not() {
        let total = |time: CpuTime| time.user_ns + time.system_ns;
        // A machine may charge a sleeping thread for an interrupt, but not each time.
        let sleep = || {
            let start = CpuTime::of_this_thread();
            sleep_until(now_ns() + 20_000_000);
            total(CpuTime::of_this_thread().since(start))
        };
        assert!((0..3).map(|_| sleep()).min().unwrap() < 5_000_000);
        let asleep = CpuTime::of_this_thread();
        let until = asleep.total_ns + 20_000_000;
        while read(libc::CLOCK_THREAD_CPUTIME_ID) < until {}
        let busy = CpuTime::of_this_thread();
        assert!(total(busy.since(asleep)) >= 20_000_000);
    }
}
