//! Opens an arm's connections to a database server and runs operations on them.

use super::facts;
use super::link::Link;
use super::protocol::{Protocol, Ready};
use super::setup::Setup;
use super::target::Target;
use super::wire::{Inbox, Login, Protection};
use crate::arm::Opened;
use crate::connection::{Connection, Interest, Outcome, Rows, Step};
use crate::failure::{Failure, Result};
use crate::message::{self, Connected, Tls};
use crate::opening;
use crate::program::{Next, Operation, Script};
use crate::query_mode::QueryMode;
use crate::think::Thinking;
use crate::transport::socket::{Mode, resolve};
use crate::transport::tls::{Application, Facts, TlsClient};
use crate::transport::traffic::Segments;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Opens the connections of an arm.
pub fn connect<P: Protocol>(pool: &message::Pool, asked: &message::Server) -> Result<Opened> {
    let login_proves = P::PROVES_CERTIFICATE && asked.names_no_authority();
    let asked = &message::Server { login_proves, ..asked.clone() };
    let offered = P::APPLICATION.filter(|_| asked.tls_at_once).map(|name| Application { name, must_agree: false });
    let protection = Protection::from(TlsClient::offering(asked, pool.is_crowd(), offered)?);
    let setup = Arc::new(Setup::new(asked.setup.as_ref()));
    let local = asked.socket.clone();
    let address = match local {
        Some(_) => SocketAddr::from((Ipv4Addr::LOCALHOST, asked.port)),
        None => resolve(&asked.host, asked.port)?,
    };
    let asked = &message::Server { address: Some(address.ip()), ..asked.clone() };
    let target = Arc::new(Target { address, local, asked: asked.clone(), protection });
    let polled = pool.connections > pool.threads;
    let (arm, opened) = opening::open(pool, |number| {
        let mut connection = Client::<P>::new(target.clone(), setup.clone(), polled, pool.per_request);
        // If each operation opens its own connection, try one here: it checks the address and the encryption.
        if number > 0 && pool.per_request {
            return Ok((connection, None));
        }
        let facts = pool.opening(|| connection.open_now())?;
        let login = &connection.link.login;
        let (version, auth) = (login.server_version(), login.auth());
        if pool.per_request {
            connection.link.close();
        }
        Ok((connection, Some((facts, version, auth))))
    })?;
    let mut connected = Connected { encrypted: asked.tls != Tls::Off, ..Connected::default() };
    for (facts, version, auth) in opened.into_iter().flatten() {
        facts::note(facts, &mut connected);
        (connected.server_version, connected.auth) = (version, auth);
    }
    Ok((Box::new(arm), connected))
}

/// A connection to a server, for any protocol.
struct Client<P: Protocol> {
    link: Link<P>,
    protocol: P,
    setup: Arc<Setup>,
    per_request: bool,
    /// The script whose statements are prepared.
    prepared: Option<Arc<Script>>,
    /// The running statement.
    statement: usize,
    /// Ends of results that are still to come.
    answers: u32,
    /// What the last end of a result said.
    ready: Ready,
    /// The time that the operation is asleep.
    sleep: Thinking,
    /// With `per_request`: how many setup statements have run on this connection.
    set_up: usize,
    rolling_back: bool,
    outcome: Outcome,
}

impl<P: Protocol> Client<P> {
    fn new(target: Arc<Target<message::Server>>, setup: Arc<Setup>, polled: bool, per_request: bool) -> Client<P> {
        Client {
            link: Link::new(target, polled, per_request),
            protocol: P::default(),
            setup,
            per_request,
            prepared: None,
            statement: 0,
            answers: 0,
            ready: Ready::default(),
            sleep: Thinking::default(),
            set_up: 0,
            rolling_back: false,
            outcome: Outcome::default(),
        }
    }

    /// Opens the connection and runs its setup, waiting for both. Returns what TLS negotiated: None without TLS.
    fn open_now(&mut self) -> Result<Option<Facts>> {
        let facts = self.link.open_now()?;
        for statement in self.setup.statements(&self.link) {
            let ran = self.protocol.query(&mut self.link, statement);
            ran.map_err(|failure| Failure { text: format!("setup: {}", failure.text), ..failure })?;
        }
        Ok(facts)
    }

    /// Appends the statement to the outbox.
    #[inline]
    fn put_statement(&mut self, script: &Script, operation: &Operation) {
        let Client { protocol, link, statement, .. } = self;
        match script.mode {
            QueryMode::Simple => protocol.run_simple(link, script, *statement, operation),
            // A connection for one operation gains nothing from a separate prepare.
            QueryMode::Prepared if !self.per_request => protocol.run(link, script, *statement, operation),
            QueryMode::Prepared | QueryMode::Extended => protocol.run_unprepared(link, script, *statement, operation),
        }
    }

    /// Sends what comes next, or falls asleep. `false`: the operation is over.
    #[inline]
    fn send_next(&mut self, script: &Script, operation: &mut Operation) -> Result<bool> {
        loop {
            match script.advance(operation) {
                Ok(Next::Run(statement)) => {
                    self.statement = statement;
                    self.put_statement(script, operation);
                    if operation.piped {
                        self.protocol.continue_pipeline(&mut self.link);
                        continue;
                    }
                    self.answers = 1;
                    self.link.flush()?;
                    return Ok(true);
                }
                Ok(Next::End) => return Ok(false),
                Ok(next) => {
                    if let Some(going) = self.go_without_statement(next)? {
                        return Ok(going);
                    }
                }
                Err(failure) => {
                    self.outcome.fail(&failure);
                    return self.give_up(operation);
                }
            }
        }
    }

    /// Does what is no statement. None: at once.
    #[cold]
    fn go_without_statement(&mut self, next: Next) -> Result<Option<bool>> {
        match next {
            Next::Sleep(ns) => {
                self.sleep.sleep(ns);
                self.link.flush()?;
            }
            Next::Sync => {
                self.protocol.sync(&mut self.link);
                self.answers += 1;
                return Ok(None);
            }
            _ => {
                self.protocol.sync(&mut self.link);
                self.answers += 1;
                self.link.flush()?;
            }
        }
        Ok(Some(true))
    }

    /// The operation has failed without the server's doing: awaits what is under way, and rolls back if a transaction is open.
    #[cold]
    fn give_up(&mut self, operation: &mut Operation) -> Result<bool> {
        if std::mem::take(&mut operation.piped) {
            return self.go_without_statement(Next::EndPipeline).map(|_| true);
        }
        if !self.ready.to_roll_back {
            return Ok(false);
        }
        self.roll_back().map(|()| true)
    }

    fn roll_back(&mut self) -> Result<()> {
        self.rolling_back = true;
        self.answers = 1;
        self.protocol.say(&mut self.link, "ROLLBACK");
        self.link.flush()
    }

    /// After an operation's error: rolls back, or begins it again if the server could not serialize it. `false`: it is over.
    #[cold]
    fn go_on_after_error(&mut self, script: &Script, operation: &mut Operation) -> Result<bool> {
        self.link.last_error = None;
        if self.ready.to_roll_back && !self.rolling_back {
            self.roll_back()?;
            return Ok(true);
        }
        if !self.outcome.begins_again(script.tries) {
            return Ok(false);
        }
        self.rolling_back = false;
        script.draw_again(operation);
        self.send_next(script, operation)
    }

    /// Runs the operation as far as the received bytes and the clock allow.
    #[inline]
    fn go_on(&mut self, script: &Script, operation: &mut Operation) -> Result<Step> {
        if self.link.is_stuck() {
            self.link.flush()?;
        }
        loop {
            if self.sleep.wakes().is_some() {
                if self.sleep.go_on(self.link.polled) == Step::Pending {
                    return Ok(Step::Pending);
                }
            } else {
                let heard = self.protocol.hear(&mut self.link, script, operation, &mut self.outcome)?;
                let Some(ready) = heard else {
                    if self.link.receive()? {
                        continue;
                    }
                    return Ok(Step::Pending);
                };
                self.ready = ready;
                self.answers = self.answers.saturating_sub(1);
                if self.answers > 0 {
                    continue;
                }
            }
            let goes_on = if self.outcome.error.is_some() {
                self.go_on_after_error(script, operation)?
            } else {
                self.send_next(script, operation)?
            };
            if !goes_on {
                return Ok(Step::Done);
            }
            if self.link.polled {
                return Ok(Step::Pending);
            }
        }
    }

    /// On a new connection: sends the rest of its setup, one statement at a time, then the operation's first statement.
    /// `false`: the operation is over without one.
    fn send_first(&mut self, script: &Script, operation: &mut Operation) -> Result<bool> {
        match self.setup.statements(&self.link).get(self.set_up) {
            Some(statement) => {
                self.protocol.say(&mut self.link, statement);
                self.link.flush().map(|()| true)
            }
            None => self.send_next(script, operation),
        }
    }

    /// One operation on its own connection.
    fn go_on_per_request(&mut self, script: &Script, operation: &mut Operation) -> Result<Step> {
        if !self.link.is_open() {
            if self.link.go_on_opening()? == Step::Pending {
                return Ok(Step::Pending);
            }
            self.set_up = 0;
            if !self.send_first(script, operation)? {
                self.link.close();
                return Ok(Step::Done);
            }
            if self.link.polled {
                return Ok(Step::Pending);
            }
        }
        while self.set_up < self.setup.statements(&self.link).len() {
            if self.link.is_stuck() {
                self.link.flush()?;
            }
            if self.protocol.hear(&mut self.link, script, operation, &mut self.outcome)?.is_none() {
                if self.link.receive()? {
                    continue;
                }
                return Ok(Step::Pending);
            }
            if let Some(error) = &mut self.outcome.error {
                error.text = format!("setup: {}", error.text);
                self.link.last_error = None;
                self.link.close();
                return Ok(Step::Done);
            }
            // The setup's responses are not part of the operation.
            self.outcome.clear();
            self.set_up += 1;
            if !self.send_first(script, operation)? {
                self.link.close();
                return Ok(Step::Done);
            }
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

    /// If a connection for one operation fails, the operation fails, not the slice.
    fn forgive(&mut self, result: Result<Step>) -> Result<Step> {
        result.or_else(|failure| {
            self.link.abandon();
            self.outcome.fail_over(&failure);
            Ok(Step::Done)
        })
    }
}

impl<P: Protocol> Connection for Client<P> {
    fn prepare(&mut self, script: &Arc<Script>) -> Result<()> {
        script.check_travel(P::MODES, P::PIPELINES, P::NAME)?;
        if self.prepared.as_ref().is_some_and(|known| known.is_prepared_as(script)) {
            return Ok(());
        }
        self.prepared = None;
        if self.per_request || script.mode != QueryMode::Prepared {
            self.protocol.check(script)?;
        } else {
            self.protocol.prepare(&mut self.link, script)?;
            self.link.inbox.rest();
        }
        self.prepared = Some(script.clone());
        Ok(())
    }

    #[inline]
    fn begin(&mut self, script: &Script, operation: &mut Operation) -> Result<Step> {
        self.outcome.begin(operation);
        self.rolling_back = false;
        (self.ready, self.answers) = (Ready::default(), 0);
        self.sleep.clear();
        if self.per_request {
            let mode = if self.link.polled { Mode::Polled } else { Mode::Blocking };
            let begun = self.link.start_opening(mode).map(|()| Step::Pending);
            return self.forgive(begun);
        }
        Ok(if self.send_next(script, operation)? { Step::Pending } else { Step::Done })
    }

    #[inline]
    fn proceed(&mut self, script: &Script, operation: &mut Operation) -> Result<Step> {
        let step = if self.per_request {
            let step = self.go_on_per_request(script, operation);
            self.forgive(step)
        } else {
            self.go_on(script, operation)
        };
        self.link.inbox.rest();
        step
    }

    #[inline]
    fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    fn query(&mut self, sql: &str) -> Result<Rows> {
        if self.per_request {
            self.open_now()?;
        }
        let answer = self.protocol.query(&mut self.link, sql);
        self.link.inbox.rest();
        if self.per_request {
            self.link.close();
        }
        answer
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
