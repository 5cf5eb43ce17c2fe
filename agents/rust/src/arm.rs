//! The connections of one side of a comparison, distributed over load threads.

use crate::connection::{Connection, Rows};
use crate::deadline;
use crate::failure::Result;
use crate::load::{self, Plan, Total};
use crate::message::Connected;
use crate::program::Script;
use std::sync::Arc;

/// An arm: connections of one driver, distributed over load threads.
pub trait Arm {
    fn query(&mut self, sql: &str, all: bool) -> Result<Rows>;
    fn slice(&mut self, script: &Arc<Script>, plan: &Plan, counting: &mut dyn FnMut()) -> Result<Total>;
    /// Its first connection, for fuzzing without a clock and threads.
    #[cfg(any(test, fuzzing))]
    fn first(&mut self) -> &mut dyn Connection;
}

pub struct Pool<C> {
    pub connections: Vec<C>,
    pub threads: usize,
}

impl<C: Connection> Arm for Pool<C> {
    fn query(&mut self, sql: &str, all: bool) -> Result<Rows> {
        let mut answer = Rows::default();
        let asked = if all { self.connections.len() } else { 1 };
        for connection in &mut self.connections[..asked] {
            let rows = connection.query(sql)?;
            if answer.rows > 0 && rows.rows > 0 {
                answer.text.push('\n');
            }
            answer.rows += rows.rows;
            answer.columns = rows.columns;
            answer.text.push_str(&rows.text);
        }
        Ok(answer)
    }

    fn slice(&mut self, script: &Arc<Script>, plan: &Plan, counting: &mut dyn FnMut()) -> Result<Total> {
        deadline::within(plan.silence_ns as f64 / 1e9, "prepare the statements", || {
            self.connections.iter_mut().try_for_each(|connection| connection.prepare(script))
        })?;
        load::run(&mut self.connections, self.threads, script, plan, counting)
    }

    #[cfg(any(test, fuzzing))]
    fn first(&mut self) -> &mut dyn Connection {
        &mut self.connections[0]
    }
}

/// Result of a driver's `connect`.
pub type Opened = (Box<dyn Arm>, Connected);
