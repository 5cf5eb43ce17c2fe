//! An operation that does nothing, waits busily, or thinks: the agent's own floor, or a known effect to detect.

use crate::arm::{Opened, Pool};
use crate::clock::now_ns;
use crate::connection::{Connection, Outcome, Rows, Step};
use crate::draw::Random;
use crate::failure::{Failure, Result};
use crate::message::{self, Connected};
use crate::program::{Operation, Script};
use crate::think::{Think, Thinking};
use crate::transport::traffic;
use std::sync::Arc;

pub struct NullConnection {
    /// Operations do nothing at all: this is the floor and must cost nothing.
    nothing: bool,
    busy_ns: u64,
    jitter: f64,
    per_request: bool,
    random: Random,
    /// Shares its thread with others, so it must not sleep.
    crowded: bool,
    /// By statement; empty if none thinks.
    thinks: Vec<Option<Think>>,
    thinking: Thinking,
    /// The running statement.
    statement: usize,
    outcome: Outcome,
}

pub fn connect(pool: &message::Pool, asked: &message::Null) -> Result<Opened> {
    let connection = |number: usize| NullConnection {
        nothing: false,
        busy_ns: asked.busy_ns,
        jitter: asked.jitter,
        per_request: pool.per_request,
        random: Random::of_operation(0, number as u64),
        crowded: pool.connections > pool.threads,
        thinks: Vec::new(),
        thinking: Thinking::default(),
        statement: 0,
        outcome: Outcome::default(),
    };
    let connections: Vec<_> = (0..pool.connections).map(connection).collect();
    Ok((Box::new(Pool::deal(connections, pool.threads)), Connected::default()))
}

impl NullConnection {
    /// Skips the operation's statements up to its next think time.
    fn think(&mut self, operation: &Operation) -> Step {
        while self.statement < operation.last {
            let think = self.thinks[self.statement];
            self.statement += 1;
            match think.map_or(Ok(Step::Done), |think| self.thinking.begin(think, operation)) {
                Ok(Step::Done) => (),
                Ok(Step::Pending) => return Step::Pending,
                Err(failure) => {
                    self.outcome.fail(&failure);
                    return Step::Done;
                }
            }
        }
        Step::Done
    }
}

/// A function of its own, so that a CPU profile shows the known effect under a known name.
#[inline(never)]
fn busy_wait(ns: u64) {
    let until = now_ns() + ns;
    while now_ns() < until {
        std::hint::spin_loop();
    }
}

impl Connection for NullConnection {
    /// Skips all statements except those that think.
    fn prepare(&mut self, script: &Arc<Script>) -> Result<()> {
        script.must_not_decide("null")?;
        self.thinks = script.statements.iter().map(Think::read).collect::<Result<_>>()?;
        if self.thinks.iter().all(Option::is_none) {
            self.thinks.clear();
        }
        self.nothing = self.busy_ns == 0 && !self.per_request && self.thinks.is_empty();
        self.outcome.clear();
        self.thinking.clear();
        Ok(())
    }

    #[inline]
    fn begin(&mut self, _: &Script, operation: &mut Operation) -> Result<Step> {
        if self.nothing {
            return Ok(Step::Done);
        }
        if self.per_request {
            traffic::connected();
        }
        if self.busy_ns > 0 {
            let share = if self.jitter > 0.0 { 1.0 + self.jitter * (2.0 * self.random.share() - 1.0) } else { 1.0 };
            busy_wait((self.busy_ns as f64 * share) as u64);
        }
        if self.thinks.is_empty() {
            return Ok(Step::Done);
        }
        self.outcome.clear();
        self.thinking.clear();
        self.statement = operation.first;
        Ok(self.think(operation))
    }

    fn proceed(&mut self, _: &Script, operation: &mut Operation) -> Result<Step> {
        match self.thinking.go_on(self.polled()) {
            Step::Pending => Ok(Step::Pending),
            Step::Done => Ok(self.think(operation)),
        }
    }

    /// Only think times need waiting.
    fn polled(&self) -> bool {
        self.crowded && self.thinking.is_on() && !self.thinks.is_empty()
    }

    fn wakes(&self) -> Option<u64> {
        self.thinking.wakes()
    }

    fn thinks(&mut self, on: bool) {
        self.thinking.turn(on);
    }

    #[inline]
    fn thought_ns(&self) -> u64 {
        self.thinking.thought_ns()
    }

    #[inline]
    fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    fn query(&mut self, _: &str) -> Result<Rows> {
        Err(Failure::statement("the null driver runs no SQL"))
    }
}
