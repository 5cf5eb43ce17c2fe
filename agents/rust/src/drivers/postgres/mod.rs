//! postgres: statements -> PostgreSQL's extended protocol, one send and one receive a statement.

mod inbox;
mod link;
mod login;
mod outbox;

use super::{Connection, Interest, Opened, Outcome, Pool, QUERY_LIMIT_BYTES, Rows, Step, escape};
use crate::failure::{Failure, Result};
use crate::message::{self, Connected, Tls};
use crate::program::{Operation, Script};
use crate::transport::socket::{Mode, Traffic, resolve};
use crate::transport::tls::{self, TlsClient};
use inbox::{Fields, Message, error_of};
use link::{Link, Server};
use outbox::Outbox;
use std::sync::Arc;

/// Opens the connections of an arm, one after the other.
pub fn connect(pool: &message::Pool, asked: &message::Postgres) -> Result<Opened> {
    let tls = TlsClient::new(asked)?;
    let server = Arc::new(Server { address: resolve(&asked.host, asked.port)?, asked: asked.clone(), tls });
    let polled = pool.connections > pool.threads;
    let mut connections = Vec::with_capacity(pool.connections);
    let mut connected = Connected { encrypted: asked.tls != Tls::Off, ..Connected::default() };
    for number in 0..pool.connections {
        let mut connection = PostgresConnection::new(server.clone(), polled, pool.per_request);
        // Where each operation opens its own connection, one is tried here: it proves the address and the encryption.
        if number == 0 || !pool.per_request {
            let facts = connection.link.open_now(&mut connected.server_version)?;
            connected.encrypted &= facts.is_some();
            let facts = facts.unwrap_or_default();
            connected.resumed += u64::from(facts.resumed);
            connected.verified = facts.verified;
            (connected.protocol, connected.cipher, connected.group) = (facts.protocol, facts.cipher, facts.group);
            (connected.peer, connected.peer_key) = (facts.peer, facts.peer_key);
            if pool.per_request {
                connection.link.close();
            }
            connected.library = if connected.encrypted { tls::library() } else { String::new() };
        }
        connections.push(connection);
    }
    Ok((Box::new(Pool { connections, threads: pool.threads }), connected))
}

pub struct PostgresConnection {
    link: Link,
    per_request: bool,
    outbox: Outbox,
    /// The names of the prepared statements, and the script that they were prepared from.
    names: Vec<Vec<u8>>,
    prepared: Option<Arc<Script>>,
    /// The statement that runs.
    statement: usize,
    rolling_back: bool,
    outcome: Outcome,
}

impl PostgresConnection {
    fn new(server: Arc<Server>, polled: bool, per_request: bool) -> PostgresConnection {
        PostgresConnection {
            link: Link::new(server, polled, per_request),
            per_request,
            outbox: Outbox::default(),
            names: Vec::new(),
            prepared: None,
            statement: 0,
            rolling_back: false,
            outcome: Outcome::default(),
        }
    }

    #[inline]
    fn send(&mut self) -> Result<()> {
        let sent = self.link.send(&self.outbox.0);
        self.outbox.0.clear();
        sent
    }

    /// Sends the statement that is next.
    #[inline]
    fn send_statement(&mut self, script: &Script, operation: &Operation) -> Result<()> {
        let statement = &script.statements[self.statement];
        if self.per_request {
            // Unnamed, and parsed in the same flight: a connection for one operation gains nothing by preparing apart.
            self.outbox.parse("", &statement.sql);
            self.outbox.run(b"", statement, operation);
        } else {
            self.outbox.run(&self.names[self.statement], statement, operation);
        }
        self.send()
    }

    /// Takes what has come. `Some(status)`: the server is ready for the next statement.
    #[inline]
    fn hear(&mut self) -> Result<Option<u8>> {
        while let Some(message) = self.link.inbox.next(true)? {
            match message {
                Message::Row(hash) => self.outcome.row(hash),
                Message::Other { tag: b'Z', body } => return Ok(Some(body.first().copied().unwrap_or(b'I'))),
                Message::Other { tag: b'E', body } => {
                    let failure = error_of(body);
                    if self.outcome.error.is_none() {
                        self.outcome.error = Some(failure.to_string());
                    }
                    self.link.last_error = Some(failure);
                }
                Message::Other { tag: b'G', .. } => {
                    self.outbox.copy_fail();
                    self.outbox.sync();
                    self.send()?;
                }
                Message::Other { .. } | Message::TooLong => {}
            }
        }
        Ok(None)
    }

    /// Runs the operation as far as the bytes go that have come.
    #[inline]
    fn go_on(&mut self, script: &Script, operation: &Operation) -> Result<Step> {
        loop {
            let Some(status) = self.hear()? else {
                if self.link.receive()? {
                    continue;
                }
                return Ok(Step::Pending);
            };
            self.statement += 1;
            if self.outcome.error.is_some() {
                self.link.last_error = None;
                if status == b'E' && !self.rolling_back {
                    self.rolling_back = true;
                    self.outbox.query("ROLLBACK");
                    self.send()?;
                } else {
                    return Ok(Step::Done);
                }
            } else if self.statement < operation.last {
                self.send_statement(script, operation)?;
            } else {
                return Ok(Step::Done);
            }
            if self.link.polled {
                return Ok(Step::Pending);
            }
        }
    }

    /// One operation on a connection of its own.
    fn go_on_per_request(&mut self, script: &Script, operation: &Operation) -> Result<Step> {
        if !self.link.is_open() {
            if self.link.go_on_opening(&mut String::new())? == Step::Pending {
                return Ok(Step::Pending);
            }
            self.send_statement(script, operation)?;
            if self.link.polled {
                return Ok(Step::Pending);
            }
        }
        let step = self.go_on(script, operation)?;
        if step == Step::Done {
            self.link.close();
        }
        Ok(step)
    }

    /// A connection for one operation that fails costs this operation, not the slice.
    fn forgive(&mut self, result: Result<Step>) -> Result<Step> {
        result.or_else(|failure| {
            self.link.abandon();
            self.outcome.error = Some(failure.to_string());
            Ok(Step::Done)
        })
    }

    /// Waits for the end of a dialogue outside the load loop; `see` gets every message.
    fn dialogue(&mut self, mut see: impl FnMut(u8, &[u8])) -> Result<()> {
        self.send()?;
        let mut refusal = None;
        loop {
            while let Some(message) = self.link.inbox.next(false)? {
                match message {
                    Message::Other { tag: b'Z', .. } => {
                        self.link.last_error = None;
                        return refusal.map_or(Ok(()), Err);
                    }
                    Message::Other { tag: b'E', body } => {
                        refusal = refusal.or(Some(error_of(body)));
                        self.link.last_error.clone_from(&refusal);
                    }
                    Message::Other { tag: b'G', .. } => {
                        self.outbox.copy_fail();
                        self.send()?;
                    }
                    Message::Other { tag, body } => see(tag, body),
                    Message::TooLong => see(b'D', &[]),
                    Message::Row(_) => {}
                }
            }
            if !self.link.receive()? {
                self.link.wait()?;
            }
        }
    }
}

impl Connection for PostgresConnection {
    fn prepare(&mut self, script: &Arc<Script>) -> Result<()> {
        if self.per_request || self.prepared.as_ref().is_some_and(|known| known.statements == script.statements) {
            return Ok(());
        }
        self.prepared = None;
        for name in &self.names {
            self.outbox.close_statement(&String::from_utf8_lossy(name));
        }
        self.names = (0..script.statements.len()).map(|number| format!("s{number}").into_bytes()).collect();
        for (name, statement) in self.names.iter().zip(&script.statements) {
            self.outbox.parse(&String::from_utf8_lossy(name), &statement.sql);
        }
        self.outbox.sync();
        self.dialogue(|_, _| {})?;
        self.prepared = Some(script.clone());
        Ok(())
    }

    #[inline]
    fn begin(&mut self, script: &Script, operation: &Operation) -> Result<Step> {
        self.outcome.clear();
        self.statement = operation.first;
        self.rolling_back = false;
        if self.per_request {
            let mode = if self.link.polled { Mode::Polled } else { Mode::Blocking };
            let begun = self.link.start_opening(mode).map(|()| Step::Pending);
            return self.forgive(begun);
        }
        self.send_statement(script, operation)?;
        Ok(Step::Pending)
    }

    #[inline]
    fn proceed(&mut self, script: &Script, operation: &Operation) -> Result<Step> {
        if self.per_request {
            let step = self.go_on_per_request(script, operation);
            return self.forgive(step);
        }
        self.go_on(script, operation)
    }

    #[inline]
    fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    fn query(&mut self, sql: &str) -> Result<Rows> {
        if self.per_request {
            self.link.open_now(&mut String::new())?;
        }
        self.outbox.query(sql);
        let mut rows = Rows::default();
        let mut too_long = false;
        let answer = self.dialogue(|tag, body| match tag {
            b'T' => rows = Rows { columns: columns(body), ..Rows::default() },
            b'D' if body.is_empty() || rows.text.len() + body.len() > QUERY_LIMIT_BYTES => too_long = true,
            b'D' => add_row(body, &mut rows),
            _ => {}
        });
        if self.per_request {
            self.link.close();
        }
        answer?;
        if too_long {
            return Err(Failure::statement("the answer is longer than 16 MiB"));
        }
        Ok(rows)
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

/// The column names of a RowDescription, separated by tabs.
fn columns(body: &[u8]) -> String {
    let mut fields = Fields(body);
    let mut names = String::new();
    for number in 0..fields.i16() {
        if number > 0 {
            names.push('\t');
        }
        escape(&fields.string(), &mut names);
        fields.bytes(18);
    }
    names
}

fn add_row(body: &[u8], rows: &mut Rows) {
    if rows.rows > 0 {
        rows.text.push('\n');
    }
    rows.rows += 1;
    let mut fields = Fields(body);
    for number in 0..fields.i16() {
        if number > 0 {
            rows.text.push('\t');
        }
        match usize::try_from(fields.i32()) {
            Err(_) => rows.text.push_str("\\N"),
            Ok(length) => escape(&String::from_utf8_lossy(fields.bytes(length)), &mut rows.text),
        }
    }
}
