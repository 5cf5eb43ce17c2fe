//! The methods that the load loop calls on a connection.

use super::client::{FirebirdConnection, Stage};
use super::sql::Verb;
use super::statement::Prepared;
use crate::connection::{Connection, Interest, Outcome, Rows, Step};
use crate::drivers::network::wire::Inbox;
use crate::failure::Result;
use crate::program::{Operation, Script};
use crate::query_mode::QueryMode;
use crate::transport::socket::Mode;
use crate::transport::traffic::Segments;
use std::sync::Arc;

impl Connection for FirebirdConnection {
    fn prepare(&mut self, script: &Arc<Script>) -> Result<()> {
        script.check_travel(&[QueryMode::Prepared], false, "firebird")?;
        if self.script.as_ref().is_some_and(|known| known.is_prepared_as(script)) {
            return Ok(());
        }
        self.script = None;
        let old = std::mem::take(&mut self.statements);
        if self.per_request {
            self.statements = script.statements.iter().map(Prepared::of).collect();
        } else {
            old.iter().for_each(|statement| self.forget(statement));
            self.statements = self.prepare_now(script)?;
            self.link.inbox.rest();
        }
        self.script = Some(script.clone());
        Ok(())
    }

    #[inline]
    fn begin(&mut self, script: &Script, operation: &mut Operation) -> Result<Step> {
        self.outcome.begin(operation);
        (self.due, self.over) = (true, false);
        self.sleep.clear();
        if self.per_request {
            self.forget_connection();
            for statement in &mut self.statements[operation.first..operation.last] {
                if statement.verb == Some(Verb::Other) {
                    *statement = Prepared { reads: statement.reads, open: statement.open, ..Prepared::default() };
                }
            }
            self.stage = Stage::Opening;
            let mode = if self.link.polled { Mode::Polled } else { Mode::Blocking };
            let begun = self.link.start_opening(mode).map(|()| Step::Pending);
            return self.forgive(begun);
        }
        Ok(if self.go(script, operation)? { Step::Pending } else { Step::Done })
    }

    #[inline]
    fn proceed(&mut self, script: &Script, operation: &mut Operation) -> Result<Step> {
        let step = self.go_on(script, operation);
        self.link.inbox.rest();
        self.forgive(step)
    }

    #[inline]
    fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    fn query(&mut self, sql: &str) -> Result<Rows> {
        if !self.per_request {
            let rows = self.query_now(sql);
            self.link.inbox.rest();
            return rows;
        }
        self.forget_connection();
        self.link.open_now()?;
        let rows = self.query_now(sql);
        let left = self.leave();
        rows.and_then(|rows| left.map(|()| rows))
    }

    fn settle(&mut self) -> Segments {
        self.link.settle()
    }

    fn is_opening(&self) -> bool {
        !self.link.is_open()
    }

    fn polled(&self) -> bool {
        self.link.polled
    }

    #[inline]
    fn interest(&self) -> Option<Interest> {
        self.link.interest()
    }

    #[inline]
    fn wakes(&self) -> Option<u64> {
        self.sleep.wakes()
    }

    #[inline]
    fn thought_ns(&self) -> u64 {
        self.sleep.thought_ns()
    }
}

impl FirebirdConnection {
    /// Discards state that belonged to the last connection.
    fn forget_connection(&mut self) {
        self.awaited.clear();
        (self.transaction, self.explicit, self.rolling_back) = (None, false, false);
    }

    /// If a connection for one operation fails, the operation fails, not the slice.
    fn forgive(&mut self, result: Result<Step>) -> Result<Step> {
        if !self.per_request {
            return result;
        }
        result.or_else(|failure| {
            self.link.abandon();
            self.outcome.fail_over(&failure);
            Ok(Step::Done)
        })
    }
}
