//! The connections of one side of a comparison, distributed over load threads.

use crate::connection::{Connection, Rows};
use crate::failure::Result;
use crate::load::{self, Hand, Plan, Total};
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

/// Connections of one driver, a range of them for each thread.
pub struct Pool<C> {
    hands: Vec<Hand<C>>,
}

impl<C: Connection> Pool<C> {
    pub fn new(hands: Vec<Hand<C>>) -> Pool<C> {
        Pool { hands }
    }

    /// Gives each thread its range of the connections.
    pub fn deal(connections: Vec<C>, threads: usize) -> Pool<C> {
        Pool::new(Hand::deal(connections, threads))
    }
}

impl<C: Connection> Arm for Pool<C> {
    fn query(&mut self, sql: &str, all: bool) -> Result<Rows> {
        let mut answer = Rows::default();
        let asked = if all { usize::MAX } else { 1 };
        for connection in self.hands.iter_mut().flat_map(Hand::connections).take(asked) {
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
        load::run(&mut self.hands, script, plan, counting)
    }

    #[cfg(any(test, fuzzing))]
    fn first(&mut self) -> &mut dyn Connection {
        self.hands[0].connections().next().expect("an arm has a connection")
    }
}

/// Result of a driver's `connect`.
pub type Opened = (Box<dyn Arm>, Connected);
