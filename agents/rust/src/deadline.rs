//! Limits how long a thread may wait for its peers, however much they send meanwhile. Sockets respect it.
//!
//! A timeout of one system call is not enough: a server that sends a byte now and then keeps every such timeout from
//! expiring.

use crate::clock::{coarse_ns, now_ns};
use crate::failure::{Failure, Result};
use std::cell::Cell;
use std::io;

const NEVER: u64 = u64::MAX;
/// The coarse clock is at most one tick late.
const TICK_NS: u64 = 10_000_000;

/// Default of `timeout`: seconds until a new connection must be usable.
pub const CONNECT_SECONDS: f64 = 30.0;
/// All connections of an arm together may take this many times as long as one. They open one after the other, so a
/// slow link needs more time for many.
pub fn of_all(connections: usize) -> f64 {
    4.0 + connections as f64 / 8.0
}
/// Seconds that a query may take.
pub const QUERY_SECONDS: f64 = 60.0;
/// Seconds by which a slice may exceed its length; also the limit for its preparation.
pub const SLICE_SECONDS: f64 = 120.0;
pub const LONGEST_SECONDS: f64 = 86_400.0;

/// Maximum bytes from a server before login completes. Real ones send a few kilobytes.
pub const LOGIN_BYTES: usize = 1 << 20;

thread_local! {
    static UNTIL_NS: Cell<u64> = const { Cell::new(NEVER) };
    /// A blocking socket is polled before it is read, so the deadline can wake the thread. That costs a system call per
    /// wait, so load threads don't do it.
    static WAKES: Cell<bool> = const { Cell::new(false) };
}

/// Restores the thread's previous deadline on drop.
struct Before {
    until_ns: u64,
    wakes: bool,
}

impl Drop for Before {
    fn drop(&mut self) {
        UNTIL_NS.set(self.until_ns);
        WAKES.set(self.wakes);
    }
}

fn set(until_ns: u64) -> Before {
    let before = Before { until_ns: UNTIL_NS.get(), wakes: WAKES.get() };
    UNTIL_NS.set(until_ns.min(before.until_ns));
    WAKES.set(true);
    before
}

/// Runs `run`, which must end within this many seconds. `what` completes "the server did not …" in the error.
pub fn within<T>(seconds: f64, what: &str, run: impl FnOnce() -> Result<T>) -> Result<T> {
    let until_ns = now_ns().saturating_add((seconds * 1e9) as u64);
    let result = {
        let _before = set(until_ns);
        run()
    };
    result.map_err(|failure| {
        if now_ns() < until_ns {
            return failure;
        }
        let advice = "if it is only slow, allow more with CIPHERCOST_TIMEOUT";
        Failure::new("timeout", format!("the server did not {what} within {seconds} s: {advice}")).lost()
    })
}

/// This thread's deadline, for a thread that works for it.
pub fn of_this_thread() -> u64 {
    UNTIL_NS.get()
}

/// Runs code that works for another thread, with that one's deadline.
pub fn until<T>(until_ns: u64, run: impl FnOnce() -> T) -> T {
    let _before = set(until_ns);
    run()
}

/// Runs code that must not wait: it sends only what can be sent at once.
pub fn at_once<T>(run: impl FnOnce() -> T) -> T {
    let _before = set(0);
    run()
}

/// This thread makes load until this time at the latest.
pub fn of_load(until_ns: u64) {
    UNTIL_NS.set(until_ns);
    WAKES.set(false);
}

/// Whether this thread's waits must be cut short by polling.
#[inline]
pub fn wakes() -> bool {
    WAKES.get()
}

/// Returns an error once the deadline has passed. Cheap.
#[inline]
pub fn check() -> io::Result<()> {
    let until_ns = UNTIL_NS.get();
    if until_ns != NEVER && coarse_ns() >= until_ns { Err(passed()) } else { Ok(()) }
}

/// How long a wait of at most `ms` milliseconds (-1: no limit) may last.
pub fn left_ms(ms: i32) -> i32 {
    let until_ns = UNTIL_NS.get();
    if until_ns == NEVER {
        return ms;
    }
    // A woken thread reads the coarse clock, which must then be past the deadline.
    let left_ns = until_ns.saturating_sub(now_ns());
    let left = if left_ns == 0 { 0 } else { (left_ns + TICK_NS).div_ceil(1_000_000) };
    let left = i32::try_from(left).unwrap_or(i32::MAX);
    if ms < 0 { left } else { ms.min(left) }
}

#[cold]
pub fn passed() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the server took too long")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earlier_deadline_holds_and_the_previous_one_returns() {
        let inner = within(100.0, "answer", || {
            let outer = left_ms(-1);
            assert!((99_000..=100_020).contains(&outer), "{outer}");
            within(200.0, "answer", || Ok(left_ms(-1)))
        });
        assert!(inner.unwrap() <= 100_020);
        assert_eq!((left_ms(-1), left_ms(7), wakes()), (-1, 7, false));
        assert!(check().is_ok());
    }

    #[test]
    fn a_failure_after_the_deadline_is_a_timeout() {
        let failed = within(0.0, "finish the login", || Err::<(), _>(Failure::statement("connection lost")));
        let failure = failed.unwrap_err();
        assert!(failure.lost && failure.code == "timeout", "{failure}");
        assert!(failure.text.starts_with("the server did not finish the login within 0 s"), "{failure}");
        let failed = within(100.0, "answer", || Err::<(), _>(Failure::statement("no such table")));
        assert_eq!(failed.unwrap_err().text, "no such table");
    }

    #[test]
    fn nothing_waits_after_the_deadline() {
        at_once(|| assert!(check().is_err() && left_ms(-1) == 0 && left_ms(50) == 0));
        assert!(check().is_ok());
    }
}
