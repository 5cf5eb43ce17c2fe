//! A connection to a database, and an operation on it as far as the received packets allow.

use super::format;
use super::inbox::{Inbox, Packet};
use super::login::Login;
use super::rows::{add_row, capture_row};
use super::sql::Verb;
use super::statement::{self, Prepared};
use crate::connection::{Outcome, Step};
use crate::drivers::network::link::Link;
use crate::drivers::network::target::Target;
use crate::drivers::network::wire;
use crate::failure::{Failure, Result};
use crate::message;
use crate::program::{Next, Operation, Script};
use crate::think::Thinking;
use crate::xxh3::Xxh3;
use std::collections::VecDeque;
use std::sync::Arc;

/// State of the dialogue on a connection.
pub struct Wire;

impl wire::Wire for Wire {
    type Asked = message::Firebird;
    type Inbox = Inbox;
    type Login = Login;
    /// Its opcode alone.
    const GOODBYE: &'static [u8] = b"\0\0\0\x06";
}

/// An expected response, in the order of arrival.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Awaited {
    /// The response to closing something that is no longer needed.
    Ignored,
    Done,
    Transaction,
    Statement,
    Description,
    Rows,
    Single,
    Blob,
    Segments,
}

/// Current step of the operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Stage {
    Opening,
    Beginning,
    Preparing,
    Running,
    OpeningBlob,
    ReadingBlob,
    Ending,
    Sleeping,
    Leaving,
}

pub struct FirebirdConnection {
    pub link: Link<Wire>,
    pub per_request: bool,
    pub awaited: VecDeque<Awaited>,
    /// The prepared statements, in the order of their script.
    pub statements: Vec<Prepared>,
    pub script: Option<Arc<Script>>,
    pub stage: Stage,
    /// The running statement.
    pub statement: usize,
    /// The operation's next step is due, or it has none any more.
    pub due: bool,
    pub over: bool,
    /// The time that the operation is asleep.
    pub sleep: Thinking,
    pub transaction: Option<i32>,
    /// Whether a BEGIN statement started the transaction, instead of the driver for a single statement.
    pub explicit: bool,
    pub rolling_back: bool,
    /// Whether the cursor has no more rows, and the open BLOB no more segments.
    exhausted: bool,
    blob_read: bool,
    /// BLOBs of received rows that are still to be read, and the open one.
    blobs: Vec<i64>,
    blob: i32,
    content: Xxh3,
    pub outcome: Outcome,
}

impl FirebirdConnection {
    pub fn new(target: Arc<Target<message::Firebird>>, polled: bool, per_request: bool) -> FirebirdConnection {
        FirebirdConnection {
            link: Link::new(target, polled, per_request),
            per_request,
            awaited: VecDeque::with_capacity(8),
            statements: Vec::new(),
            script: None,
            stage: Stage::Opening,
            statement: 0,
            due: false,
            over: false,
            sleep: Thinking::default(),
            transaction: None,
            explicit: false,
            rolling_back: false,
            exhausted: false,
            blob_read: false,
            blobs: Vec::new(),
            blob: 0,
            content: Xxh3::new(),
            outcome: Outcome::default(),
        }
    }

    fn fail(&mut self, failure: &Failure) {
        self.outcome.fail(failure);
    }

    /// Sends the next part of the operation. `false`: it is over.
    #[inline]
    pub fn go(&mut self, script: &Script, operation: &mut Operation) -> Result<bool> {
        loop {
            if self.due && self.outcome.error.is_none() && self.step(script, operation) {
                return Ok(true);
            }
            if self.transaction.is_none() && self.outcome.error.is_some() && self.outcome.begins_again(script.tries) {
                (self.due, self.over) = (true, false);
                script.draw_again(operation);
                continue;
            }
            if self.outcome.error.is_some() || self.over {
                return match self.transaction {
                    Some(_) if !self.rolling_back => self.end(self.outcome.error.is_none()),
                    _ if self.per_request => {
                        self.link.login.detach(&mut self.link.outbox);
                        self.await_one(Awaited::Ignored, Stage::Leaving)
                    }
                    _ => Ok(false),
                };
            }
            match (self.statements[self.statement].verb, self.transaction) {
                (Some(Verb::Begin), None) => {
                    self.explicit = true;
                    self.due = true;
                    return self.begin_transaction(false);
                }
                (Some(Verb::Begin), Some(_)) => self.fail(&Failure::statement("BEGIN within a transaction")),
                (Some(verb @ (Verb::Commit | Verb::Rollback)), Some(_)) => {
                    self.explicit = false;
                    self.due = true;
                    return self.end(verb == Verb::Commit);
                }
                (Some(Verb::Commit | Verb::Rollback), None) => self.due = true,
                (Some(Verb::DropDatabase), _) => {
                    self.fail(&Failure::statement("no operation may drop the database that it runs in"));
                }
                (_, None) => return self.begin_transaction(self.statements[self.statement].reads),
                (None, Some(transaction)) => {
                    let (database, sql) = (self.link.login.database, &script.statements[self.statement].sql);
                    let order = statement::prepare(&mut self.link.outbox, database, transaction, sql);
                    self.statements[self.statement].order = order;
                    self.awaited.push_back(Awaited::Statement);
                    return self.await_one(Awaited::Description, Stage::Preparing);
                }
                (Some(Verb::Other), Some(transaction)) => {
                    if let Err(failure) = self.put_run(script, operation, transaction) {
                        self.fail(&failure);
                        continue;
                    }
                    self.stage = Stage::Running;
                    self.link.flush()?;
                    return Ok(true);
                }
            }
        }
    }

    /// Takes the operation's next step. `true`: it is asleep.
    #[inline]
    fn step(&mut self, script: &Script, operation: &mut Operation) -> bool {
        self.due = false;
        match script.advance(operation) {
            Ok(Next::Run(statement)) => self.statement = statement,
            Ok(Next::Sleep(ns)) => {
                (self.due, self.stage) = (true, Stage::Sleeping);
                self.sleep.sleep(ns);
                return true;
            }
            Ok(Next::Sync | Next::EndPipeline) => self.fail(&Failure::internal("a pipeline without its server")),
            Ok(Next::End) => self.over = true,
            Err(failure) => self.fail(&failure),
        }
        false
    }

    #[inline]
    fn put_run(&mut self, script: &Script, operation: &Operation, transaction: i32) -> Result<()> {
        if let Some(captured) = &mut self.statements[self.statement].captured {
            captured.begin();
        }
        let (asked, prepared) = (&script.statements[self.statement], &self.statements[self.statement]);
        let before = self.link.outbox.len();
        let values = prepared.order.iter().map(|at| match asked.parameters.get(*at) {
            Some(variable) => operation.parameter(*variable),
            None => crate::program::Parameter::Text(b""),
        });
        if let Err(failure) = prepared.run(&mut self.link.outbox, transaction, self.link.login.protocol, values) {
            self.link.outbox.truncate(before);
            return Err(failure);
        }
        if !prepared.cursor && !prepared.columns.is_empty() {
            self.awaited.push_back(Awaited::Single);
        }
        self.awaited.push_back(Awaited::Done);
        if prepared.cursor {
            self.awaited.push_back(Awaited::Rows);
        }
        self.exhausted = !prepared.cursor;
        Ok(())
    }

    #[inline]
    fn await_one(&mut self, awaited: Awaited, stage: Stage) -> Result<bool> {
        self.awaited.push_back(awaited);
        self.stage = stage;
        self.link.flush()?;
        Ok(true)
    }

    #[inline]
    fn begin_transaction(&mut self, read_only: bool) -> Result<bool> {
        statement::begin(&mut self.link.outbox, self.link.login.database, read_only);
        self.await_one(Awaited::Transaction, Stage::Beginning)
    }

    #[inline]
    fn end(&mut self, commit: bool) -> Result<bool> {
        let Some(transaction) = self.transaction else { return Ok(false) };
        self.rolling_back = !commit;
        statement::end(&mut self.link.outbox, transaction, commit);
        self.await_one(Awaited::Done, Stage::Ending)
    }

    /// Continues after everything awaited has arrived. `false`: the operation is over.
    #[inline]
    fn turn(&mut self, script: &Script, operation: &mut Operation) -> Result<bool> {
        match self.stage {
            Stage::Running if self.outcome.error.is_none() => self.after_rows(script, operation),
            Stage::OpeningBlob if self.outcome.error.is_none() => self.read_blob(),
            Stage::ReadingBlob if self.outcome.error.is_none() && !self.blob_read => self.read_blob(),
            Stage::ReadingBlob if self.outcome.error.is_none() => {
                self.outcome.checksum = self.outcome.checksum.wrapping_add(self.content.digest());
                statement::close_blob(&mut self.link.outbox, self.blob);
                self.awaited.push_back(Awaited::Ignored);
                self.after_rows(script, operation)
            }
            Stage::Ending => {
                if self.outcome.error.is_none() || self.rolling_back {
                    self.transaction = None;
                    self.explicit = false;
                    self.rolling_back = false;
                }
                self.go(script, operation)
            }
            Stage::Leaving => {
                self.link.close();
                Ok(false)
            }
            _ => self.go(script, operation),
        }
    }

    fn read_blob(&mut self) -> Result<bool> {
        statement::get_segment(&mut self.link.outbox, self.blob);
        self.await_one(Awaited::Segments, Stage::ReadingBlob)
    }

    /// Handles a batch of rows, or the single row of a statement without a cursor.
    #[inline]
    fn after_rows(&mut self, script: &Script, operation: &mut Operation) -> Result<bool> {
        if let (Some(id), Some(transaction)) = (self.blobs.pop(), self.transaction) {
            self.content = Xxh3::new();
            statement::open_blob(&mut self.link.outbox, transaction, id);
            return self.await_one(Awaited::Blob, Stage::OpeningBlob);
        }
        let prepared = &self.statements[self.statement];
        if !self.exhausted {
            prepared.fetch(&mut self.link.outbox, false);
            return self.await_one(Awaited::Rows, Stage::Running);
        }
        if prepared.cursor {
            prepared.close(&mut self.link.outbox);
            self.awaited.push_back(Awaited::Ignored);
        }
        if let Some(captured) = &prepared.captured {
            if let Err(failure) = captured.end(&script.statements[self.statement]) {
                self.outcome.fail(&failure);
            }
        }
        self.due = true;
        if self.explicit { self.go(script, operation) } else { self.end(true) }
    }

    /// Takes received packets. `true`: everything awaited has arrived.
    #[inline]
    fn hear(&mut self, script: &Script, operation: &mut Operation) -> Result<bool> {
        while let Some(&awaited) = self.awaited.front() {
            let FirebirdConnection { link, statements, outcome, .. } = self;
            let none = Prepared::default();
            let prepared = statements.get(self.statement).unwrap_or(&none);
            let format = &prepared.columns;
            let Some(packet) = link.inbox.next(format)? else { return Ok(false) };
            match (awaited, packet) {
                (Awaited::Rows, Packet::Row(row)) => {
                    add_row(row, prepared, outcome, &mut self.blobs);
                    if prepared.captured.is_some() {
                        capture_row(row, &mut statements[self.statement], operation);
                    }
                    continue;
                }
                (Awaited::Rows, Packet::Batch { last }) => self.exhausted = last,
                (Awaited::Single, Packet::Single(row)) => {
                    if let Some(row) = row {
                        add_row(row, prepared, outcome, &mut self.blobs);
                        if prepared.captured.is_some() {
                            capture_row(row, &mut statements[self.statement], operation);
                        }
                    }
                }
                (Awaited::Ignored, Packet::Response { .. }) => {}
                (_, Packet::Response { failure: Some((_, failure)), .. }) => {
                    outcome.fail(&failure);
                    link.last_error = Some(failure);
                    if awaited == Awaited::Single {
                        self.awaited.pop_front(); // of two expected responses only this one arrives
                    }
                }
                (Awaited::Done, Packet::Response { .. }) => link.last_error = None,
                (Awaited::Transaction, Packet::Response { object, .. }) => {
                    self.transaction = Some(object);
                    link.last_error = None;
                }
                (Awaited::Statement, Packet::Response { object, .. }) => {
                    self.statements[self.statement].handle = object
                }
                (Awaited::Description, Packet::Response { data, .. }) => match format::describe(data) {
                    Ok(description) => {
                        let prepared = &mut self.statements[self.statement];
                        let (order, reads, open) = (std::mem::take(&mut prepared.order), prepared.reads, prepared.open);
                        let statement = &script.statements[self.statement];
                        let found = Prepared::of_script(prepared.handle, order, &description, script, statement);
                        *prepared = Prepared { reads, open, ..found };
                    }
                    Err(failure) => outcome.fail_over(&failure),
                },
                (Awaited::Blob, Packet::Response { object, .. }) => self.blob = object,
                (Awaited::Segments, Packet::Response { object, data, .. }) => {
                    statement::segments(data).for_each(|segment| self.content.update(segment));
                    self.blob_read = object == 2;
                }
                (awaited, packet) => {
                    let text = format!("unexpected response from the server ({packet:?} instead of {awaited:?})");
                    return Err(Failure::connect(text));
                }
            }
            self.awaited.pop_front();
        }
        Ok(true)
    }

    /// Runs the operation as far as the received bytes allow.
    #[inline]
    pub fn go_on(&mut self, script: &Script, operation: &mut Operation) -> Result<Step> {
        if self.link.is_stuck() {
            self.link.flush()?;
        }
        loop {
            if self.sleep.wakes().is_some() && self.sleep.go_on(self.link.polled) == Step::Pending {
                return Ok(Step::Pending);
            }
            if self.stage == Stage::Opening && self.link.go_on_opening()? == Step::Pending {
                return Ok(Step::Pending);
            }
            if !self.hear(script, operation)? {
                if self.link.receive()? {
                    continue;
                }
                return Ok(Step::Pending);
            }
            if !self.turn(script, operation)? {
                return Ok(Step::Done);
            }
            if self.link.polled {
                return Ok(Step::Pending);
            }
        }
    }
}
