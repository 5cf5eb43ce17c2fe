//! ciphercost-agent: one message per line in, one answer per line out. It only makes load; PROTOCOL.md describes the protocol.
//! `ciphercost-agent relay …` and `ciphercost-agent link …` are separate programs: they make no load but delay or lose what others send.

// libFuzzer brings its own `main`.
#![cfg_attr(fuzzing, no_main, allow(dead_code))]

mod alarms;
mod arm;
mod clock;
mod connection;
mod cpu;
#[cfg(test)]
mod cut_slices;
mod deadline;
mod decimal;
mod draw;
mod draw_mode;
mod drivers;
mod envelope;
mod failure;
mod files;
mod floor;
#[cfg(any(test, fuzzing))]
mod fuzz;
mod histogram;
mod kinds;
mod lengths;
mod link;
mod load;
mod memory;
mod message;
mod opening;
mod program;
mod query_mode;
mod relay;
mod session;
mod think;
mod transport;
mod xxh3;

use failure::Failure;
use message::Answer;
use session::{Next, Session};
use std::io::{self, BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

#[cfg(not(fuzzing))]
fn main() {
    let program: Option<fn(&[String]) -> i32> = match std::env::args().nth(1).as_deref() {
        Some("relay") => Some(relay::run),
        Some("link") => Some(link::run),
        _ => None,
    };
    if let Some(run) = program {
        std::process::exit(run(&std::env::args().skip(2).collect::<Vec<_>>()));
    }
    files::allow_most();
    memory::return_large_blocks();
    std::panic::set_hook(Box::new(|panic| eprintln!("ciphercost-agent: crashed: {panic}")));
    std::process::exit(serve(io::stdin().lock()));
}

/// Answers until the input or a message ends the agent; returns the exit status.
fn serve(mut input: impl BufRead) -> i32 {
    let (mut session, mut line) = (Session::default(), Vec::new());
    loop {
        line.clear();
        match input.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return 0,
            Ok(_) => {}
        }
        let answered = catch_unwind(AssertUnwindSafe(|| session.answer(&line, &mut say)));
        let (answer, next) = answered.unwrap_or_else(|_| {
            session.forget_arms();
            (Failure::internal("the agent crashed; its arms are disconnected").into(), Next::GoOn)
        });
        say(&answer);
        if matches!(answer, Answer::Slice(_)) {
            drop(answer);
            memory::return_unused();
        }
        if let Next::End(status) = next {
            return status;
        }
    }
}

/// Writes one line and flushes it. If the reader is gone, there is nothing left to do.
fn say(answer: &Answer) {
    let line =
        serde_json::to_string(answer).unwrap_or_else(|_| r#"{"type":"error","code":"internal","text":"?"}"#.into());
    let mut output = io::stdout().lock();
    if writeln!(output, "{line}").and_then(|()| output.flush()).is_err() {
        std::process::exit(0);
    }
}
