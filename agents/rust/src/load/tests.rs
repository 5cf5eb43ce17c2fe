//! Slices on the null driver, and on connections whose peers are silent, slow, or send unexpected bytes.

mod threads;

use super::hand::Hand;
use super::{Plan, Total, run};
use crate::arm::Arm;
use crate::clock::now_ns;
use crate::connection::{Connection, Interest, OPENING_AT_ONCE, Outcome, Rows, Step};
use crate::draw::Kind;
use crate::drivers::null;
use crate::failure::{Failure, Result};
use crate::message;
use crate::message::Arrivals;
use crate::program::{Operation, Program, Script};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

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
        due_us: None,
        operations: None,
        silence_ns: 120_000_000_000,
    }
}

fn null_arm(connections: usize, threads: usize) -> Box<dyn Arm> {
    let pool = message::Pool { arm: "plain".into(), connections, threads, per_request: false, timeout: None };
    null::connect(&pool, &message::Null { busy_ns: 0, jitter: 0.0 }).unwrap().0
}

#[test]
fn random_arrivals_keep_the_rate_whatever_the_threads() {
    let script = script("nothing", one());
    for (connections, threads) in [(1, 1), (3, 2)] {
        let asked = Plan { arrivals: Arrivals::Random, ..plan(0.4, 5_000.0) };
        // 2000 are expected with a standard deviation of √2000; an agent that is delayed at the end does fewer.
        let enough = (0..5).any(|_| {
            let total = null_arm(connections, threads).slice(&script, &asked, &mut || ()).unwrap();
            assert!(total.tally.operations < 2_300, "{}", total.tally.operations);
            total.tally.operations >= 1_600
        });
        assert!(enough, "too few in each of five slices");
    }
}

#[test]
fn given_times_are_when_operations_are_due_and_no_others_run() {
    let due: Vec<u64> = (0..40).map(|number| if number < 30 { 20_000 } else { 60_000 + number }).collect();
    for (connections, threads) in [(1, 1), (3, 2)] {
        // A slice with a number of operations ends with the last one.
        let asked = Plan { due_us: Some(due[..].into()), operations: Some(1_000), ..plan(60.0, 200.0) };
        let total = null_arm(connections, threads).slice(&script("nothing", one()), &asked, &mut || ()).unwrap();
        assert_eq!((total.tally.operations, total.tally.errors), (40, 0));
        assert!(total.seconds >= 0.06, "{}", total.seconds);
        let beyond = Plan { due_us: Some([1_000, 61_000_000][..].into()), ..asked };
        let total = null_arm(connections, threads).slice(&script("nothing", one()), &beyond, &mut || ()).unwrap();
        assert_eq!(total.tally.operations, 1, "what is due after the end does not run");
    }
}

#[test]
fn random_arrivals_run_the_requested_number_of_operations() {
    let asked = Plan { arrivals: Arrivals::Random, operations: Some(101), ..plan(60.0, 10_000.0) };
    let total = null_arm(5, 2).slice(&script("nothing", one()), &asked, &mut || ()).unwrap();
    assert_eq!((total.tally.operations, total.tally.errors), (101, 0));
}

#[test]
fn think_times_of_an_open_loop_overlap_and_latency_excludes_them() {
    let script = script("THINK $1", Kind::Constant { value: "200000".into() });
    // One thread sleeps in its connection, or has 20 of them to wake.
    for (connections, rate, operations) in [(1, 4.0, 3), (20, 60.0, 30)] {
        let asked = Plan { operations: Some(operations), ..plan(60.0, rate) };
        let total = null_arm(connections, 1).slice(&script, &asked, &mut || ()).unwrap();
        assert_eq!((total.tally.operations, total.tally.errors), (operations, 0));
        assert!(total.seconds < 5.0, "30 thoughts in turn take 6 s: {}", total.seconds);
        assert!(total.tally.latencies.quantile(0.0) < 200_000_000, "a thought is 200 ms");
    }
}

#[test]
fn a_closed_loop_skips_think_times() {
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

/// A polled connection whose peer answers each operation or is silent; it gives up `patience_ns` after it begins.
struct Polled {
    own: UnixStream,
    peer: UnixStream,
    answers: bool,
    patience_ns: u64,
    until_ns: Option<u64>,
    thought_ns: u64,
    unexpected_input: usize,
    /// Received bytes never end a response.
    drips: bool,
    /// How long beginning an operation takes.
    busy_ms: u64,
    /// How many answers it takes to open, how many are still missing, and how many connections open.
    opens: usize,
    missing: usize,
    opening: Arc<AtomicUsize>,
    most_opening: Arc<AtomicUsize>,
    outcome: Outcome,
}

impl Polled {
    fn new(answers: bool, patience_ns: u64) -> Polled {
        let (own, peer) = UnixStream::pair().unwrap();
        own.set_nonblocking(true).unwrap();
        let outcome = Outcome::default();
        Polled {
            own,
            peer,
            answers,
            patience_ns,
            until_ns: None,
            thought_ns: 0,
            unexpected_input: 0,
            drips: false,
            busy_ms: 0,
            opens: 0,
            missing: 0,
            opening: Arc::default(),
            most_opening: Arc::default(),
            outcome,
        }
    }

    fn take(&mut self) -> bool {
        self.own.read(&mut [0; 64]).is_ok_and(|got| got > 0)
    }
}

impl Connection for Polled {
    fn prepare(&mut self, _: &Arc<Script>) -> Result<()> {
        Ok(())
    }
    fn begin(&mut self, _: &Script, _: &mut Operation) -> Result<Step> {
        self.outcome.clear();
        self.until_ns = (self.patience_ns > 0).then(|| now_ns() + self.patience_ns);
        thread::sleep(Duration::from_millis(self.busy_ms));
        if self.answers {
            self.peer.write_all(b"1")?;
        }
        self.missing = self.opens;
        if self.opens > 0 {
            self.most_opening.fetch_max(self.opening.fetch_add(1, Relaxed) + 1, Relaxed);
        }
        Ok(Step::Pending)
    }
    fn proceed(&mut self, _: &Script, _: &mut Operation) -> Result<Step> {
        if self.missing > 0 && self.take() {
            self.missing -= 1;
            self.opening.fetch_sub(usize::from(self.missing == 0), Relaxed);
            self.peer.write_all(b"1")?;
            return Ok(Step::Pending);
        }
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
    fn unexpected_input(&mut self, _: &Script, _: &mut Operation) -> Result<()> {
        self.unexpected_input += usize::from(self.take());
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
    fn is_opening(&self) -> bool {
        self.missing > 0
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

fn hand<const N: usize>(connections: [Polled; N]) -> [Hand<Polled>; 1] {
    [Hand::new(0, connections.into())]
}

fn run_polled(hands: &mut [Hand<Polled>], plan: &Plan) -> Result<Total> {
    run(hands, &script("nothing", one()), plan, &mut || ())
}

#[test]
fn a_silent_server_fails_the_slice_in_words() {
    // In the open loop too, both operations are due at once.
    for rate in [0.0, 1e9] {
        let mut hands = hand([Polled::new(false, 0), Polled::new(false, 0)]);
        let asked = Plan { silence_ns: 60_000_000, ..plan(600.0, rate) };
        let failure = run_polled(&mut hands, &asked).unwrap_err();
        assert!(failure.lost && failure.code == "connect", "{failure}");
        // The second one began later, by as long as the thread did not run. So it may not have been silent for so long.
        assert!(failure.text.contains("for 0.06 s") && failure.text.contains(" of 2 operations"), "{failure}");
    }
}

/// Checks how a slice fails whose server may be silent for so many nanoseconds. A busy machine may stop any thread for as long as
/// the shortest silence, so longer ones follow.
fn fails(code: &str, words: &str, slice: impl Fn(u64) -> Failure) {
    let mut others = Vec::new();
    for silence_ns in [60_000_000, 600_000_000, 6_000_000_000] {
        let (failure, time) = (slice(silence_ns), format!(" {} s", silence_ns as f64 / 1e9));
        if failure.lost && failure.code == code && failure.text.contains(words) && failure.text.contains(&time) {
            return;
        }
        others.push(failure.to_string());
    }
    panic!("{others:?}");
}

#[test]
fn a_silent_connection_is_noticed_among_living_ones() {
    for rate in [0.0, 500.0] {
        fails("connect", "answers of 1 of ", |silence_ns| {
            let mut hands = hand([Polled::new(true, 0), Polled::new(false, 0), Polled::new(true, 0)]);
            run_polled(&mut hands, &Plan { silence_ns, ..plan(600.0, rate) }).unwrap_err()
        });
    }
}

/// How a slice fails of which so many connections get a byte now and then, and never the end of a response.
fn dripped<const N: usize>(mut connections: [Polled; N], dripping: usize, asked: &Plan) -> Failure {
    connections[..dripping].iter_mut().for_each(|connection| connection.drips = true);
    let peers: Vec<_> = connections[..dripping].iter().map(|each| each.peer.try_clone().unwrap()).collect();
    let (done, mut hands) = (AtomicBool::new(false), hand(connections));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                peers.iter().for_each(|mut peer| drop(peer.write_all(b"1")));
                thread::sleep(Duration::from_nanos(asked.silence_ns / 20));
            }
        });
        let total = run_polled(&mut hands, asked);
        done.store(true, Relaxed);
        total.unwrap_err()
    })
}

const ENDLESS: &str = "of the slice's end";

#[test]
fn an_answer_that_arrives_in_many_parts_is_not_silence() {
    // All parts together take three times as long as silence may last.
    fails("timeout", ENDLESS, |silence_ns| {
        let asked = Plan { length_ns: 2 * silence_ns, silence_ns, ..plan(0.0, 0.0) };
        dripped([Polled::new(false, 0), Polled::new(true, 0)], 1, &asked)
    });
}

#[test]
fn latencies_in_a_closed_loop_exclude_the_beginnings_of_earlier_connections() {
    let asked = Plan { operations: Some(20), ..plan(60.0, 0.0) };
    // The first waits until all have begun, the last for itself alone, unless its thread is stopped just then.
    assert!((0..5).any(|_| {
        let mut connections: Vec<Polled> = (0..20).map(|_| Polled::new(true, 0)).collect();
        connections.iter_mut().for_each(|connection| connection.busy_ms = 3);
        let latencies = run_polled(&mut Hand::deal(connections, 1), &asked).unwrap().tally.latencies;
        latencies.quantile(0.0) < latencies.quantile(1.0) / 2
    }));
}

#[test]
fn first_operations_open_few_connections_at_a_time_and_later_ones_as_many_as_there_are() {
    for (rate, threads) in [(0.0, 1), (0.0, 2), (1e6, 1)] {
        let (opening, most): (Arc<AtomicUsize>, Arc<AtomicUsize>) = Default::default();
        let mut connections: Vec<Polled> = (0..200).map(|_| Polled::new(true, 0)).collect();
        for connection in &mut connections {
            connection.opens = 2;
            (connection.opening, connection.most_opening) = (opening.clone(), most.clone());
        }
        let mut hands = Hand::deal(connections, threads);
        let asked = Plan { operations: Some(200), ..plan(60.0, rate) };
        let tally = run_polled(&mut hands, &asked).unwrap().tally;
        assert_eq!((tally.operations, tally.errors), (200, 0));
        // In the open loop, connections that have been opened before serve what waits for those that have not.
        let most_first = most.swap(0, Relaxed);
        let limit = if rate == 0.0 { OPENING_AT_ONCE } else { 199 };
        assert!((2..=limit).contains(&most_first), "{most_first}");
        let tally = run_polled(&mut hands, &Plan { operations: Some(2_000), ..asked }).unwrap().tally;
        assert_eq!((tally.operations, tally.errors), (2_000, 0));
    }
}

#[test]
fn polled_connections_are_not_held_by_drips() {
    for rate in [0.0, 100.0] {
        fails("timeout", ENDLESS, |silence_ns| {
            let asked = Plan { silence_ns, ..plan(0.05, rate) };
            dripped([Polled::new(false, 0), Polled::new(false, 0)], 2, &asked)
        });
    }
}

#[test]
fn waiting_for_the_clock_is_not_silence() {
    // The interval of requests exceeds the server's silence limit, and so does the operation's own timeout.
    let mut hands = hand([Polled::new(true, 0)]);
    let asked = Plan { silence_ns: 5_000_000, operations: Some(3), ..plan(60.0, 20.0) };
    assert_eq!(run_polled(&mut hands, &asked).unwrap().tally.operations, 3);
    let mut hands = hand([Polled::new(false, 30_000_000)]);
    let asked = Plan { silence_ns: 5_000_000, operations: Some(3), ..plan(60.0, 0.0) };
    assert_eq!(run_polled(&mut hands, &asked).unwrap().tally.kinds.spell(), "timeout=3");
}

#[test]
fn a_connection_is_woken_when_it_wants_to_be_and_the_others_go_on() {
    for rate in [0.0, 500.0] {
        let mut hands = hand([Polled::new(false, 5_000_000), Polled::new(true, 0), Polled::new(true, 1_000_000_000)]);
        let asked = Plan { operations: Some(30), ..plan(60.0, rate) };
        let tally = run_polled(&mut hands, &asked).unwrap().tally;
        assert_eq!(tally.kinds.spell(), format!("timeout={}", tally.errors));
        assert_eq!(tally.operations + tally.errors, 30);
        // In the open loop it depends on the machine which connection is idle when the next operation is due.
        let failed = if rate == 0.0 { 10..=10 } else { 1..=20 };
        assert!(failed.contains(&tally.errors), "{}", tally.errors);
    }
}

#[test]
fn failures_after_the_end_count_and_successes_do_not() {
    // Whatever begins within the second ends after it.
    for rate in [0.0, 5.0] {
        let mut hands = hand([Polled::new(false, 1_100_000_000), Polled::new(false, 1_100_000_000)]);
        let tally = run_polled(&mut hands, &plan(1.0, rate)).unwrap().tally;
        assert_eq!((tally.operations, tally.kinds.spell().as_str()), (0, "timeout=2"));
        assert_eq!((tally.errors, tally.first_error.as_str(), tally.work), (2, "timeout: no answer", 0.0));
    }
    let pool = message::Pool { arm: "plain".into(), connections: 1, threads: 1, per_request: false, timeout: None };
    let mut arm = null::connect(&pool, &message::Null { busy_ns: 1_100_000_000, jitter: 0.0 }).unwrap().0;
    let tally = arm.slice(&script("nothing", one()), &plan(1.0, 0.0), &mut || ()).unwrap().tally;
    assert_eq!((tally.operations, tally.errors), (0, 0));
    assert!(tally.work > 0.0 && tally.work < 1.0, "{}", tally.work);
}

#[test]
fn unexpected_input_ends_no_operation() {
    let mut hands = hand([Polled::new(true, 0)]);
    // It is watched since its first operation, and idle until the next.
    let asked = Plan { operations: Some(4), ..plan(60.0, 50.0) };
    let mut peer = hands[0].slots[0].connection.peer.try_clone().unwrap();
    let done = AtomicBool::new(false);
    let tallies: Vec<_> = thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                thread::sleep(Duration::from_millis(2));
                let _ = peer.write_all(b"unexpected_input");
            }
        });
        // Several slices, in case the other thread does not run within the first.
        let mut tallies = Vec::new();
        while tallies.len() < 20 && hands[0].slots[0].connection.unexpected_input == 0 {
            tallies.push(run_polled(&mut hands, &asked).map(|total| total.tally));
        }
        done.store(true, Relaxed);
        tallies
    });
    for tally in tallies {
        assert!(tally.is_ok_and(|tally| (tally.operations, tally.errors) == (4, 0)));
    }
    assert!(hands[0].slots[0].connection.unexpected_input > 0);
}

#[test]
fn latency_excludes_think_time() {
    let mut hands = hand([Polled::new(true, 0)]);
    hands[0].slots[0].connection.thought_ns = u64::MAX;
    let asked = Plan { operations: Some(50), ..plan(60.0, 0.0) };
    let latencies = run_polled(&mut hands, &asked).unwrap().tally.latencies;
    assert_eq!(latencies.quantile(1.0), 1, "the least that a histogram holds");
    hands[0].slots[0].connection.thought_ns = 0;
    assert!(run_polled(&mut hands, &asked).unwrap().tally.latencies.quantile(0.0) > 1);
}
