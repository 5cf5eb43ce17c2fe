//! Opens an arm's connections in parallel. Each load thread gets its own range of them, so neighbours belong together.

use crate::arm::Pool;
use crate::connection::{Connection, OPENING_AT_ONCE};
use crate::cpu;
use crate::deadline;
use crate::failure::{Failure, Result};
use crate::load::Hand;
use crate::memory;
use crate::message;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Opens the connections of an arm by `one`, which takes a connection's number. Returns also what `one` reports about each, in
/// the order of their numbers. The first failure ends it, and closes what is open already.
pub fn open<C: Connection, F: Send>(
    pool: &message::Pool,
    one: impl Fn(usize) -> Result<(C, F)> + Sync,
) -> Result<(Pool<C>, Vec<F>)> {
    // The first one alone: what would fail for all, like a wrong password, fails once.
    let (first, report) = one(0)?;
    let threads = pool.threads.min(pool.connections);
    // Connections of single operations are not opened yet.
    let lanes = if pool.per_request { 1 } else { OPENING_AT_ONCE };
    let opening =
        Opening { one, until_ns: deadline::of_this_thread(), stop: AtomicBool::new(false), failed: Mutex::default() };
    let parts = opening.by_threads(pool.connections, threads, lanes);
    if let Some(failure) = opening.failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(failure);
    }
    let mut reports = Vec::with_capacity(pool.connections);
    reports.push(report);
    let mut hands = Vec::with_capacity(threads);
    for (hand, of_hand) in parts {
        hands.push(hand);
        reports.extend(of_hand);
    }
    hands[0].put_first(first);
    if pool.is_crowd() {
        memory::return_unused();
    }
    Ok((Pool::new(hands), reports))
}

/// A thread's connections, and the reports about them.
type Part<C, F> = (Hand<C>, Vec<F>);

struct Opening<O> {
    one: O,
    /// The deadline of all.
    until_ns: u64,
    stop: AtomicBool,
    /// The first failure.
    failed: Mutex<Option<Failure>>,
}

impl<O> Opening<O> {
    /// The parts of all threads, except connection 0.
    fn by_threads<C: Connection, F: Send>(&self, connections: usize, threads: usize, lanes: usize) -> Vec<Part<C, F>>
    where
        O: Fn(usize) -> Result<(C, F)> + Sync,
    {
        let range = |thread| {
            let range = Hand::<C>::range(thread, threads, connections);
            range.start.max(1)..range.end
        };
        if threads == 1 {
            return vec![self.part(range(0), lanes)];
        }
        let cpus = cpu::one_for_each(threads);
        let at_once = threads.min(lanes);
        let mut parts = Vec::with_capacity(threads);
        for first in (0..threads).step_by(at_once) {
            thread::scope(|scope| {
                let opened: Vec<_> = (first..threads.min(first + at_once))
                    .map(|thread| {
                        let (range, cpu) = (range(thread), cpus.as_ref().map(|cpus| cpus[thread]));
                        let open = move || {
                            if let Some(cpu) = cpu {
                                cpu::stay_on(cpu);
                            }
                            self.part(range, lanes / at_once)
                        };
                        thread::Builder::new().spawn_scoped(scope, open)
                    })
                    .collect();
                parts.extend(opened.into_iter().map(|thread| match thread.map(thread::ScopedJoinHandle::join) {
                    Ok(Ok(part)) => part,
                    Ok(Err(_)) => self.failed_part(Failure::internal("a load thread crashed")),
                    Err(error) => {
                        self.failed_part(Failure::internal(format!("can't start {threads} threads: {error}")))
                    }
                }));
            });
        }
        parts
    }

    fn failed_part<C: Connection, F>(&self, failure: Failure) -> Part<C, F> {
        self.fail(failure);
        (Hand::new(0, Vec::new()), Vec::new())
    }

    /// The connections of this thread: several at a time, by as many threads more, which inherit its CPU.
    fn part<C: Connection, F: Send>(&self, range: Range<usize>, lanes: usize) -> Part<C, F>
    where
        O: Fn(usize) -> Result<(C, F)> + Sync,
    {
        let lanes = lanes.min(range.len()).max(1);
        let lane = |number: usize| {
            let at = |number| range.start + number * range.len() / lanes;
            at(number)..at(number + 1)
        };
        let opened = thread::scope(|scope| {
            let others: Vec<_> = (1..lanes)
                .map(|number| {
                    let range = lane(number);
                    let again = range.clone();
                    let open = move || deadline::until(self.until_ns, || self.lane(range));
                    (thread::Builder::new().spawn_scoped(scope, open), again)
                })
                .collect();
            let mut opened = deadline::until(self.until_ns, || self.lane(lane(0)));
            for (other, range) in others {
                match other.map(thread::ScopedJoinHandle::join) {
                    Ok(Ok(more)) => opened.extend(more),
                    Ok(Err(_)) => self.fail(Failure::internal("a thread that opens connections crashed")),
                    // Not so many threads: then this one does its work.
                    Err(_) => opened.extend(deadline::until(self.until_ns, || self.lane(range))),
                }
            }
            opened
        });
        let (connections, reports) = opened.into_iter().unzip();
        (Hand::new(range.start, connections), reports)
    }

    /// Opens these, one after the other, unless one has failed.
    fn lane<C, F>(&self, range: Range<usize>) -> Vec<(C, F)>
    where
        O: Fn(usize) -> Result<(C, F)>,
    {
        let mut opened = Vec::with_capacity(range.len());
        for number in range {
            if self.stop.load(Relaxed) {
                break;
            }
            match (self.one)(number) {
                Ok(one) => opened.push(one),
                Err(failure) => {
                    self.fail(failure);
                    break;
                }
            }
        }
        opened
    }

    fn fail(&self, failure: Failure) {
        self.stop.store(true, Relaxed);
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arm::Arm;
    use crate::connection::{Outcome, Rows, Step};
    use crate::program::{Operation, Script};
    use std::cell::Cell;
    use std::collections::HashSet;
    use std::sync::atomic::AtomicUsize;
    use std::sync::{Arc, Barrier, mpsc};
    use std::time::Duration;

    /// A connection that answers its number, and counts how many like it there are.
    struct Numbered {
        number: usize,
        open: Arc<AtomicUsize>,
        outcome: Outcome,
    }

    impl Drop for Numbered {
        fn drop(&mut self) {
            self.open.fetch_sub(1, Relaxed);
        }
    }

    impl Connection for Numbered {
        fn prepare(&mut self, _: &Arc<Script>) -> Result<()> {
            Ok(())
        }
        fn begin(&mut self, _: &Script, _: &mut Operation) -> Result<Step> {
            Ok(Step::Done)
        }
        fn proceed(&mut self, _: &Script, _: &mut Operation) -> Result<Step> {
            Ok(Step::Done)
        }
        fn outcome(&self) -> &Outcome {
            &self.outcome
        }
        fn query(&mut self, _: &str) -> Result<Rows> {
            Ok(Rows { rows: 1, columns: "number".into(), text: self.number.to_string() })
        }
    }

    fn pool(connections: usize, threads: usize) -> message::Pool {
        message::Pool { arm: "a".into(), connections, threads, per_request: false, timeout: None }
    }

    fn numbered(number: usize, open: &Arc<AtomicUsize>) -> Numbered {
        open.fetch_add(1, Relaxed);
        Numbered { number, open: open.clone(), outcome: Outcome::default() }
    }

    #[test]
    fn every_connection_has_its_number_whatever_the_threads() {
        for (connections, threads) in [(1, 1), (2, 1), (7, 7), (7, 3), (500, 1), (500, 2), (200, 150), (3, 1000)] {
            let open_now = Arc::new(AtomicUsize::new(0));
            let one = |number| Ok((numbered(number, &open_now), number * 10));
            let (mut arm, reports) = open(&pool(connections, threads), one).unwrap();
            assert_eq!(reports, (0..connections).map(|number| number * 10).collect::<Vec<_>>());
            let wanted: Vec<String> = (0..connections).map(|number| number.to_string()).collect();
            assert_eq!(arm.query("", true).unwrap().text, wanted.join("\n"), "{connections} {threads}");
            assert_eq!(open_now.load(Relaxed), connections);
            drop(arm);
            assert_eq!(open_now.load(Relaxed), 0);
        }
    }

    #[test]
    fn several_open_at_once_but_the_first_alone_and_never_too_many() {
        for threads in [1, 2, 100] {
            let (now, most, open_now) = (AtomicUsize::new(0), AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
            let one = |number| {
                most.fetch_max(now.fetch_add(1, Relaxed) + 1, Relaxed);
                thread::sleep(Duration::from_millis(2));
                if number == 0 {
                    assert_eq!(most.load(Relaxed), 1);
                }
                now.fetch_sub(1, Relaxed);
                Ok((numbered(number, &open_now), ()))
            };
            open(&pool(400, threads), one).unwrap();
            let most = most.load(Relaxed);
            assert!((2..=OPENING_AT_ONCE).contains(&most), "{threads} threads, {most} at once");
        }
    }

    #[test]
    fn the_first_failure_is_the_answer_and_what_is_open_is_closed() {
        // Of 64 threads that open 100,000 connections, the second and the third open these, not as their first ones.
        const FIRST: usize = 1_600;
        const LATER: usize = 3_150;
        thread_local! {
            static END: Cell<Option<mpsc::Sender<()>>> = const { Cell::new(None) };
        }
        for threads in [1, 4] {
            let (open_now, tried) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
            let (both_on_the_way, (end, ended)) = (Barrier::new(2), mpsc::channel::<()>());
            let (end, ended) = (Mutex::new(Some(end)), Mutex::new(ended));
            let one = |number| {
                tried.fetch_add(1, Relaxed);
                match number {
                    FIRST => {
                        both_on_the_way.wait();
                        // Dropped when this thread ends, which is after its failure was noted.
                        END.set(end.lock().unwrap().take());
                        Err(Failure::connect("too many connections"))
                    }
                    // Whoever is on the way fails later, for a reason that follows from the first.
                    LATER => {
                        both_on_the_way.wait();
                        ended.lock().unwrap().recv().unwrap_err();
                        Err(Failure::connect("the server closed the connection"))
                    }
                    _ => {
                        thread::sleep(Duration::from_micros(200));
                        Ok((numbered(number, &open_now), ()))
                    }
                }
            };
            let failure = open(&pool(100_000, threads), one).map(drop).unwrap_err();
            assert_eq!(failure.text, "too many connections");
            assert_eq!(open_now.load(Relaxed), 0);
            assert!(tried.load(Relaxed) < 100_000, "the others are not tried");
            // The first one's failure is the only attempt.
            tried.store(0, Relaxed);
            let one = |_| -> Result<(Numbered, ())> {
                tried.fetch_add(1, Relaxed);
                Err(Failure::connect("wrong password"))
            };
            assert_eq!(open(&pool(100, threads), one).map(drop).unwrap_err().text, "wrong password");
            assert_eq!(tried.load(Relaxed), 1);
        }
    }

    #[test]
    fn the_deadline_of_all_holds_in_every_thread() {
        let open_now = Arc::new(AtomicUsize::new(0));
        let (wakes, limited) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let opened = deadline::within(100.0, "open all connections", || {
            let one = |number| {
                wakes.fetch_add(usize::from(deadline::wakes()), Relaxed);
                limited.fetch_add(usize::from(deadline::left_ms(-1) > 0), Relaxed);
                Ok((numbered(number, &open_now), ()))
            };
            open(&pool(100, 2), one)
        });
        assert_eq!((opened.unwrap().1.len(), wakes.into_inner(), limited.into_inner()), (100, 100, 100));
    }

    #[test]
    fn threads_have_ranges_of_about_the_same_size() {
        for (threads, connections) in [(1, 5), (3, 10), (64, 10_000), (7, 7)] {
            let ranges: Vec<_> = (0..threads).map(|at| Hand::<Numbered>::range(at, threads, connections)).collect();
            let all: Vec<usize> = ranges.iter().cloned().flatten().collect();
            assert_eq!(all, (0..connections).collect::<Vec<_>>());
            let sizes: HashSet<usize> = ranges.iter().map(|range| range.len()).collect();
            assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
        }
    }
}
