//! null: an operation that does nothing, or waits busily: the agent's own floor, and a known effect to be found.

use super::{Connection, Opened, Outcome, Pool, Rows, Step};
use crate::clock::now_ns;
use crate::draw::Random;
use crate::failure::{Failure, Result};
use crate::message::{self, Connected};
use crate::program::{Operation, Script};
use crate::transport::socket::Traffic;
use std::sync::Arc;

pub struct NullConnection {
    busy_ns: u64,
    jitter: f64,
    per_request: bool,
    random: Random,
    outcome: Outcome,
    traffic: Traffic,
}

pub fn connect(pool: &message::Pool, asked: &message::Null) -> Result<Opened> {
    let connection = |number: usize| NullConnection {
        busy_ns: asked.busy_ns,
        jitter: asked.jitter,
        per_request: pool.per_request,
        random: Random::of_operation(0, number as u64),
        outcome: Outcome::default(),
        traffic: Traffic::default(),
    };
    let connections: Vec<_> = (0..pool.connections).map(connection).collect();
    Ok((Box::new(Pool { connections, threads: pool.threads }), Connected::default()))
}

impl Connection for NullConnection {
    fn prepare(&mut self, _: &Arc<Script>) -> Result<()> {
        Ok(())
    }

    #[inline]
    fn begin(&mut self, _: &Script, _: &Operation) -> Result<Step> {
        self.traffic.connects += u64::from(self.per_request);
        if self.busy_ns > 0 {
            let share = if self.jitter > 0.0 { 1.0 + self.jitter * (2.0 * self.random.share() - 1.0) } else { 1.0 };
            let until = now_ns() + (self.busy_ns as f64 * share) as u64;
            while now_ns() < until {
                std::hint::spin_loop();
            }
        }
        Ok(Step::Done)
    }

    fn proceed(&mut self, _: &Script, _: &Operation) -> Result<Step> {
        Ok(Step::Done)
    }

    #[inline]
    fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    fn query(&mut self, _: &str) -> Result<Rows> {
        Err(Failure::statement("the null driver runs no SQL"))
    }

    fn traffic(&mut self) -> Traffic {
        self.traffic
    }
}
