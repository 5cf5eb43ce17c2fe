//! Slices of several threads, and of threads that wait in their system calls.

use super::{null_arm, one, plan, script};
use crate::connection::{Connection, Interest, Outcome, Rows, Step};
use crate::draw::Kind;
use crate::failure::{Failure, Result};
use crate::load::{Hand, Plan, run};
use crate::program::{Operation, Script};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

#[test]
fn each_connection_runs_its_own_operations_whatever_the_threads() {
    for (connections, threads) in [(1, 1), (5, 2), (5, 5), (64, 3)] {
        // An operation's values depend on its number only.
        let script = script("THINK $1", Kind::Uniform { low: -1_000_000, high: -1 });
        let asked = Plan { operations: Some(100), ..plan(60.0, 0.0) };
        let total = null_arm(connections, threads).slice(&script, &asked, &mut || ()).unwrap();
        assert_eq!((total.tally.errors, total.threads), (100, threads));
        let first = null_arm(1, 1).slice(&script, &asked, &mut || ()).unwrap().tally.first_error;
        assert_eq!(total.tally.first_error, first, "operation 0 is the first one of the first thread");
    }
}

#[test]
fn a_script_that_one_thread_cannot_prepare_ends_the_slice_before_it_begins() {
    struct Choosy(usize, Outcome);
    impl Connection for Choosy {
        fn prepare(&mut self, _: &Arc<Script>) -> Result<()> {
            if self.0 == 3 { Err(Failure::statement("no such table")) } else { Ok(()) }
        }
        fn begin(&mut self, _: &Script, _: &mut Operation) -> Result<Step> {
            panic!("it must not begin")
        }
        fn proceed(&mut self, _: &Script, _: &mut Operation) -> Result<Step> {
            panic!("it must not go on")
        }
        fn outcome(&self) -> &Outcome {
            &self.1
        }
        fn query(&mut self, _: &str) -> Result<Rows> {
            Ok(Rows::default())
        }
    }
    for threads in [1, 4] {
        let connections = (0..4).map(|number| Choosy(number, Outcome::default())).collect();
        let mut counted = false;
        let mut hands = Hand::deal(connections, threads);
        let failure = run(&mut hands, &script("x", one()), &plan(60.0, 0.0), &mut || counted = true).unwrap_err();
        assert_eq!((failure.text.as_str(), failure.lost, counted), ("no such table", false, false));
    }
}

/// A blocking connection to a peer that sends a byte now and then, and never the end of a response.
struct Dripping {
    socket: crate::transport::socket::Socket,
    outcome: Outcome,
}

impl Connection for Dripping {
    fn prepare(&mut self, _: &Arc<Script>) -> Result<()> {
        Ok(())
    }
    fn begin(&mut self, _: &Script, _: &mut Operation) -> Result<Step> {
        Ok(Step::Pending)
    }
    fn proceed(&mut self, _: &Script, _: &mut Operation) -> Result<Step> {
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
        // A kernel does not always notify a peer whose window is closed that the connection is gone.
        peer.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
        let dripping = thread::spawn(move || match pause_ms {
            None => drop(peer.read(&mut [0; 8])),
            Some(ms) => {
                while peer.write_all(&vec![0; size]).is_ok() {
                    thread::sleep(Duration::from_millis(ms));
                }
            }
        });
        let mut hands = [Hand::new(0, vec![Dripping { socket, outcome: Outcome::default() }])];
        let asked = Plan { silence_ns: 100_000_000, ..plan(0.05, 0.0) };
        let script = script("nothing", one());
        let failure = run(&mut hands, &script, &asked, &mut || ()).unwrap_err();
        assert!(failure.lost && failure.code == "timeout", "{failure}");
        assert!(failure.text.contains("within 0.1 s of the slice's end"), "{failure}");
        drop(hands);
        dripping.join().unwrap();
    }
}
