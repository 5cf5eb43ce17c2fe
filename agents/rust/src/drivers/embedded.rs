//! What the drivers of databases inside this process share: nothing is awaited, so each connection has its own thread.

use crate::arm::{Opened, Pool};
use crate::connection::{Connection, Outcome, Rows, Step};
use crate::failure::{Failure, Result};
use crate::message::{self, Connected};
use crate::program::{Operation, Script};
use crate::transport::traffic;
use std::sync::Arc;

/// One connection to a database whose library runs in the caller's thread.
pub trait Embedded: Send {
    fn open(&mut self) -> Result<()>;
    /// Drops its prepared statements, then closes it.
    fn close(&mut self);
    /// What was opened.
    fn facts(&self) -> Result<Connected>;
    /// Fails unless the open database is encrypted, or not, as asked.
    fn check(&self) -> Result<()>;
    /// Runs statements separated by `;`; returns the last result.
    fn run(&self, sql: &str) -> Result<Rows>;
    /// Prepares every statement in place of those prepared before.
    fn prepare(&mut self, script: &Script) -> Result<()>;
    /// Runs the operation's prepared statements and counts their rows in `outcome`.
    fn operate(&mut self, script: &Script, operation: &Operation, outcome: &mut Outcome) -> Result<()>;
    /// Ends the transaction of a failed operation, if one is open.
    fn roll_back(&self);
}

/// Opens the pool's connections, each with a new database of `new`.
pub fn connect<D: Embedded + 'static>(pool: &message::Pool, new: impl Fn() -> D) -> Result<Opened> {
    let mut connections = Vec::with_capacity(pool.connections);
    for _ in 0..pool.connections {
        let mut database = new();
        database.open()?;
        connections.push(EmbeddedConnection {
            database,
            per_request: pool.per_request,
            prepared: None,
            outcome: Outcome::default(),
        });
    }
    let first = connections.first().ok_or_else(|| Failure::bad_message("connections: must be at least 1"))?;
    let connected = first.database.facts()?;
    for connection in &mut connections {
        connection.database.check()?;
        if pool.per_request {
            connection.close();
        }
    }
    let threads = pool.connections;
    Ok((Box::new(Pool::deal(connections, threads)), connected))
}

struct EmbeddedConnection<D> {
    database: D,
    per_request: bool,
    prepared: Option<Arc<Script>>,
    outcome: Outcome,
}

impl<D: Embedded> EmbeddedConnection<D> {
    fn close(&mut self) {
        self.prepared = None;
        self.database.close();
    }

    #[cold]
    fn fail(&mut self, failure: &Failure) {
        self.outcome.fail(failure);
        self.database.roll_back();
    }
}

impl<D: Embedded> Connection for EmbeddedConnection<D> {
    fn prepare(&mut self, script: &Arc<Script>) -> Result<()> {
        if self.per_request || self.prepared.as_ref().is_some_and(|known| known.statements == script.statements) {
            return Ok(());
        }
        self.prepared = None;
        self.database.prepare(script)?;
        self.prepared = Some(script.clone());
        Ok(())
    }

    #[inline]
    fn begin(&mut self, script: &Script, operation: &Operation) -> Result<Step> {
        self.outcome.clear();
        if self.per_request {
            traffic::connected();
            if let Err(failure) = self.database.open().and_then(|()| self.database.prepare(script)) {
                self.fail(&failure);
                self.close();
                return Ok(Step::Done);
            }
        }
        if let Err(failure) = self.database.operate(script, operation, &mut self.outcome) {
            self.fail(&failure);
        }
        if self.per_request {
            self.close();
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

    fn query(&mut self, sql: &str) -> Result<Rows> {
        if !self.per_request {
            return self.database.run(sql);
        }
        self.database.open()?;
        let answer = self.database.run(sql);
        self.close();
        answer
    }
}
