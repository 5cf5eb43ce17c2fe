//! firebird: statements -> Firebird's wire protocol, in the flights that the server's own client library makes.
//!
//! Each statement outside BEGIN … COMMIT is a transaction of its own: begin, run, commit are a round trip each. A cursor is
//! opened and its first rows are fetched in one flight, and its close travels with what is sent next.

mod errors;
mod format;
mod inbox;
mod login;
mod query;
mod sql;
mod srp;
mod statement;
mod xdr;

use super::network::facts;
use super::network::link::{Link, Target};
use super::network::wire::{self, Login as _, Protection};
use crate::arm::{Opened, Pool};
use crate::connection::{Connection, Interest, Outcome, Rows, Step};
use crate::envelope::{Vault, opened_length};
use crate::failure::{Failure, Result};
use crate::message::{self, Connected, WireCrypt};
use crate::program::{Operation, Script, Statement};
use crate::transport::socket::{Mode, Traffic, resolve};
use format::{Format, Kind};
use inbox::Inbox;
use inbox::Packet;
use login::Login;
use sql::Verb;
use statement::Prepared;
use std::collections::VecDeque;
use std::sync::Arc;
use xdr::{Reader, padding};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// What is spoken on a connection.
struct Wire;

impl wire::Wire for Wire {
    type Asked = message::Firebird;
    type Inbox = Inbox;
    type Login = Login;
    /// Its opcode alone.
    const GOODBYE: &'static [u8] = b"\0\0\0\x06";
}

/// Opens the connections of an arm, one after the other.
pub fn connect(pool: &message::Pool, asked: &message::Firebird) -> Result<Opened> {
    let address = resolve(&asked.host, asked.port)?;
    let target = |asked: message::Firebird| {
        let in_clear = asked.wire_crypt == WireCrypt::Off;
        let protection = if in_clear { Protection::Clear } else { Protection::WireCrypt };
        Arc::new(Target { address, asked, protection })
    };
    // The first connection may make the database. Whatever is opened later attaches it.
    let (first, later) = (target(asked.clone()), target(message::Firebird { create: false, ..asked.clone() }));
    let polled = pool.connections > pool.threads;
    let mut connections = Vec::with_capacity(pool.connections);
    let mut connected = Connected { encrypted: asked.wire_crypt != WireCrypt::Off, ..Connected::default() };
    for number in 0..pool.connections {
        let target = if number == 0 { &first } else { &later };
        let mut connection = FirebirdConnection::new(target.clone(), polled, pool.per_request);
        // Where each operation opens its own connection, one is tried here: it proves the address and the encryption.
        if number == 0 || !pool.per_request {
            let facts = pool.opening(|| connection.link.open_now())?;
            facts::note(facts, &mut connected);
            connected.auth = connection.link.login.auth();
            if number == 0 {
                connected.server_version = pool.opening(|| connection.version())?;
            }
            if pool.per_request {
                connection.leave()?;
                connection.link.target = later.clone();
            }
        }
        connections.push(connection);
    }
    Ok((Box::new(Pool { connections, threads: pool.threads }), connected))
}

/// An answer that is due, in the order in which they come.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Awaited {
    /// Of the end of something that nobody needs any more.
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

/// What the operation does at present.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    Opening,
    Beginning,
    Preparing,
    Running,
    OpeningBlob,
    ReadingBlob,
    Ending,
    Leaving,
}

pub struct FirebirdConnection {
    link: Link<Wire>,
    per_request: bool,
    awaited: VecDeque<Awaited>,
    /// The statements, in the order of the script that they were prepared from.
    statements: Vec<Prepared>,
    script: Option<Arc<Script>>,
    stage: Stage,
    /// The statement that runs.
    statement: usize,
    transaction: Option<i32>,
    /// Whether the transaction was begun by a statement, not for one.
    explicit: bool,
    rolling_back: bool,
    /// Whether the cursor has no more rows, and the BLOB that is open no more segments.
    exhausted: bool,
    blob_read: bool,
    /// BLOBs of the rows that came, which have yet to be read, and the one that is open.
    blobs: Vec<i64>,
    blob: i32,
    content: Xxh3,
    outcome: Outcome,
}

impl FirebirdConnection {
    fn new(target: Arc<Target<message::Firebird>>, polled: bool, per_request: bool) -> FirebirdConnection {
        FirebirdConnection {
            link: Link::new(target, polled, per_request),
            per_request,
            awaited: VecDeque::with_capacity(8),
            statements: Vec::new(),
            script: None,
            stage: Stage::Opening,
            statement: 0,
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

    /// Sends whatever is next in the operation. `false`: it is over.
    #[inline]
    fn go(&mut self, script: &Script, operation: &Operation) -> Result<bool> {
        loop {
            if self.outcome.error.is_some() || self.statement == operation.last {
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
                    self.statement = script.after(operation, self.statement);
                    return self.begin_transaction(false);
                }
                (Some(Verb::Begin), Some(_)) => self.fail(&Failure::statement("BEGIN within a transaction")),
                (Some(verb @ (Verb::Commit | Verb::Rollback)), Some(_)) => {
                    self.explicit = false;
                    self.statement = script.after(operation, self.statement);
                    return self.end(verb == Verb::Commit);
                }
                (Some(Verb::Commit | Verb::Rollback), None) => {
                    self.statement = script.after(operation, self.statement);
                }
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

    #[inline]
    fn put_run(&mut self, script: &Script, operation: &Operation, transaction: i32) -> Result<()> {
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

    /// Everything that was awaited has come: goes on from there. `false`: the operation is over.
    #[inline]
    fn turn(&mut self, script: &Script, operation: &Operation) -> Result<bool> {
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

    /// A batch of rows has come, or all that the statement gives.
    #[inline]
    fn after_rows(&mut self, script: &Script, operation: &Operation) -> Result<bool> {
        if let (Some(id), Some(transaction)) = (self.blobs.pop(), self.transaction) {
            self.content.reset();
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
        self.statement = script.after(operation, self.statement);
        if self.explicit { self.go(script, operation) } else { self.end(true) }
    }

    /// Takes what has come. `true`: all that was awaited.
    #[inline]
    fn hear(&mut self) -> Result<bool> {
        while let Some(&awaited) = self.awaited.front() {
            let FirebirdConnection { link, statements, outcome, .. } = self;
            let none = Prepared::default();
            let prepared = statements.get(self.statement).unwrap_or(&none);
            let format = &prepared.columns;
            let Some(packet) = link.inbox.next(format)? else { return Ok(false) };
            match (awaited, packet) {
                (Awaited::Rows, Packet::Row(row)) => {
                    add_row(row, prepared, outcome, &mut self.blobs);
                    continue;
                }
                (Awaited::Rows, Packet::Batch { last }) => self.exhausted = last,
                (Awaited::Single, Packet::Single(row)) => {
                    if let Some(row) = row {
                        add_row(row, prepared, outcome, &mut self.blobs);
                    }
                }
                (Awaited::Ignored, Packet::Response { .. }) => {}
                (_, Packet::Response { failure: Some((_, failure)), .. }) => {
                    outcome.fail(&failure);
                    link.last_error = Some(failure);
                    if awaited == Awaited::Single {
                        self.awaited.pop_front(); // of two answers only this one comes
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
                        *prepared =
                            Prepared { reads, open, ..Prepared::new(prepared.handle, order, &description, false) };
                    }
                    Err(failure) => outcome.fail_over(&failure),
                },
                (Awaited::Blob, Packet::Response { object, .. }) => self.blob = object,
                (Awaited::Segments, Packet::Response { object, data, .. }) => {
                    statement::segments(data).for_each(|segment| self.content.update(segment));
                    self.blob_read = object == 2;
                }
                (awaited, packet) => {
                    let text = format!("the server answers out of order ({packet:?} where {awaited:?} is due)");
                    return Err(Failure::connect(text));
                }
            }
            self.awaited.pop_front();
        }
        Ok(true)
    }

    /// Runs the operation as far as the bytes go that have come.
    #[inline]
    fn go_on(&mut self, script: &Script, operation: &Operation) -> Result<Step> {
        loop {
            if self.stage == Stage::Opening && self.link.go_on_opening()? == Step::Pending {
                return Ok(Step::Pending);
            }
            if !self.hear()? {
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

    /// A connection for one operation that fails costs this operation, not the slice.
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

/// Counts a row. BLOBs are no part of it: their content is hashed when it is read.
#[inline]
fn add_row(row: &[u8], prepared: &Prepared, outcome: &mut Outcome, blobs: &mut Vec<i64>) {
    let format = &prepared.columns;
    if prepared.open {
        return outcome.opened_row(|vault, opened| open_row(row, format, vault, opened, blobs));
    }
    if !format.has_blobs {
        outcome.row(xxh3_64(row));
        return;
    }
    let mut hash = Xxh3::new();
    format.walk(&mut Reader::new(row), |kind, value| match (kind, value) {
        (Kind::Blob, Some(id)) => blobs.push(id.try_into().map_or(0, i64::from_be_bytes)),
        (_, Some(value)) => hash.update(value),
        (_, None) => hash.update(&[0]),
    });
    outcome.row(hash.digest());
}

/// A row with its sealed values opened: as the row would be that holds their texts, or what is hashed of it.
fn open_row(row: &[u8], format: &Format, vault: &mut Vault, opened: &mut Vec<u8>, blobs: &mut Vec<i64>) -> Result<()> {
    let mut done = Ok(());
    let pad = |opened: &mut Vec<u8>, length: usize| opened.extend_from_slice(&[0; 3][..padding(length)]);
    if !format.has_blobs {
        let nulls = format.kinds.len().div_ceil(8);
        opened.extend_from_slice(&row[..nulls]);
        pad(opened, nulls);
    }
    format.walk(&mut Reader::new(row), |kind, value| match (kind, value) {
        (Kind::Blob, Some(id)) => blobs.push(id.try_into().map_or(0, i64::from_be_bytes)),
        (_, None) if format.has_blobs => opened.push(0),
        (_, None) => {}
        (kind, Some(value)) => {
            let whole = !format.has_blobs;
            if whole && kind == Kind::Varying {
                opened.extend_from_slice(&(opened_length(value) as u32).to_be_bytes());
            }
            let at = opened.len();
            match kind {
                Kind::Varying if done.is_ok() => done = vault.put(value, opened),
                _ => opened.extend_from_slice(value),
            }
            if whole {
                pad(opened, opened.len() - at);
            }
        }
    });
    done
}

impl Connection for FirebirdConnection {
    fn prepare(&mut self, script: &Arc<Script>) -> Result<()> {
        if self.script.as_ref().is_some_and(|known| known.statements == script.statements) {
            return Ok(());
        }
        self.script = None;
        let old = std::mem::take(&mut self.statements);
        if self.per_request {
            self.statements = script.statements.iter().map(unprepared).collect();
        } else {
            old.iter().for_each(|statement| self.forget(statement));
            self.statements = self.prepare_now(script)?;
        }
        self.script = Some(script.clone());
        Ok(())
    }

    #[inline]
    fn begin(&mut self, script: &Script, operation: &Operation) -> Result<Step> {
        self.outcome.clear();
        self.statement = operation.first;
        if self.per_request {
            self.awaited.clear();
            (self.transaction, self.explicit, self.rolling_back) = (None, false, false);
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
    fn proceed(&mut self, script: &Script, operation: &Operation) -> Result<Step> {
        let step = self.go_on(script, operation);
        self.forgive(step)
    }

    #[inline]
    fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    fn query(&mut self, sql: &str) -> Result<Rows> {
        if !self.per_request {
            return self.query_now(sql);
        }
        self.link.open_now()?;
        let rows = self.query_now(sql);
        let left = self.leave();
        rows.and_then(|rows| left.map(|()| rows))
    }

    fn traffic(&mut self) -> Traffic {
        self.link.traffic()
    }

    fn polled(&self) -> bool {
        self.link.polled
    }

    #[inline]
    fn interest(&self) -> Option<Interest> {
        self.link.interest()
    }
}

/// A statement before the server knows it.
fn unprepared(statement: &Statement) -> Prepared {
    match sql::verb(&statement.sql) {
        Verb::Other => Prepared { reads: sql::reads(&statement.sql), open: statement.open, ..Prepared::default() },
        verb => Prepared::own(verb),
    }
}

#[cfg(test)]
mod tests;
