//! What the drivers of databases inside this process share: nothing is awaited, so each connection has its own thread.

use crate::arm::{Opened, Pool};
use crate::clock::{now_ns, sleep_until};
use crate::connection::{Connection, Outcome, Rows, Step};
use crate::failure::{Failure, Result};
use crate::message::{self, Connected};
use crate::program::{Next, Operation, Script};
use crate::query_mode::QueryMode;
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
    /// Runs a prepared statement with the operation's values, and counts its rows in `outcome`.
    fn run_prepared(
        &mut self,
        script: &Script,
        number: usize,
        operation: &mut Operation,
        outcome: &mut Outcome,
    ) -> Result<()>;
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
            slept_ns: 0,
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
    /// How long the last operation was asleep.
    slept_ns: u64,
}

impl<D: Embedded> EmbeddedConnection<D> {
    fn close(&mut self) {
        self.prepared = None;
        self.database.close();
    }

    /// Runs the operation's statements, and sleeps where it says so.
    #[inline]
    fn operate(&mut self, script: &Script, operation: &mut Operation) -> Result<()> {
        self.slept_ns = 0;
        loop {
            match script.advance(operation)? {
                Next::Run(number) => self.database.run_prepared(script, number, operation, &mut self.outcome)?,
                Next::Sleep(ns) => {
                    self.slept_ns += ns;
                    sleep_until(now_ns() + ns);
                }
                Next::Sync | Next::EndPipeline => return Err(Failure::internal("a pipeline without a server")),
                Next::End => return Ok(()),
            }
        }
    }

    #[cold]
    fn fail(&mut self, failure: &Failure) {
        self.outcome.fail(failure);
        self.database.roll_back();
    }
}

impl<D: Embedded> Connection for EmbeddedConnection<D> {
    fn prepare(&mut self, script: &Arc<Script>) -> Result<()> {
        script.check_travel(&[QueryMode::Prepared], false, "an embedded database")?;
        if self.per_request || self.prepared.as_ref().is_some_and(|known| known.is_prepared_as(script)) {
            return Ok(());
        }
        self.prepared = None;
        self.database.prepare(script)?;
        self.prepared = Some(script.clone());
        Ok(())
    }

    #[inline]
    fn begin(&mut self, script: &Script, operation: &mut Operation) -> Result<Step> {
        self.outcome.begin(operation);
        if self.per_request {
            traffic::connected();
            if let Err(failure) = self.database.open().and_then(|()| self.database.prepare(script)) {
                self.fail(&failure);
                self.close();
                return Ok(Step::Done);
            }
        }
        if let Err(failure) = self.operate(script, operation) {
            self.fail(&failure);
        }
        if self.per_request {
            self.close();
        }
        Ok(Step::Done)
    }

    fn proceed(&mut self, _: &Script, _: &mut Operation) -> Result<Step> {
        Ok(Step::Done)
    }

    #[inline]
    fn thought_ns(&self) -> u64 {
        self.slept_ns
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
