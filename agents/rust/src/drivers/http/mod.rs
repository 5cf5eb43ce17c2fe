//! http: requests -> responses of a web server, one at a time a connection, which is opened anew where the server closes it.

mod body;
mod one;
mod reader;
mod statement;

use super::network::Wire;
use super::network::link::{Link, Target};
use super::{Connection, Interest, Opened, Outcome, Pool, Rows, Step, escape};
use crate::clock::{coarse_ns, now_ns};
use crate::failure::{Failure, Result};
use crate::message::{self, Connected, Http, HttpVersion, Tls};
use crate::program::{Operation, Script, Statement};
use crate::transport::Transport;
use crate::transport::socket::{Mode, Traffic, resolve};
use crate::transport::tls::{self, Facts, TlsClient};
use body::Body;
use one::One;
use statement::Asked;
use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Mutex};

/// How long an answer is waited for without a byte of it, and how long a connection may take to open.
const ANSWER_SECONDS: u64 = 30;
const OPEN_SECONDS: u64 = 10;
const SECOND_NS: u64 = 1_000_000_000;

/// What one thread receives at once, over all its connections: what is left over is the connections' own affair.
const RECEIVE_BYTES: usize = 256 * 1024;

thread_local! {
    static RECEIVED: RefCell<Box<[u8]>> = RefCell::new(vec![0; RECEIVE_BYTES].into_boxed_slice());
}

fn malformed(text: impl Into<String>) -> Failure {
    Failure::new("malformed", text)
}

fn closed_early(text: impl Into<String>) -> Failure {
    Failure::new("closed-early", text)
}

/// One version of HTTP: a connection's state, and what is said on it. One request at a time.
trait Exchange: Wire<Login: Send, Inbox: Send> + Default {
    type Request: Send + Sync;
    /// As ALPN calls it.
    const NAME: &'static str;
    const OFFER: &'static str;
    /// A server that does not agree to it under TLS is refused.
    const MUST_AGREE: bool;

    /// Makes a statement's request ready. `last`: it is the last on its connection.
    fn compile(asked: Asked, place: &Place, last: bool) -> Self::Request;
    /// The request's bytes, where they are the same every time.
    fn fixed(request: &Self::Request) -> Option<&[u8]>;
    fn put(&mut self, request: &Self::Request, operation: &Operation, into: &mut Vec<u8>);
    /// Makes ready for the answer.
    fn start(&mut self, request: &Self::Request, keep_body: bool);
    /// Takes what has come, and may say something to that. True: the answer is complete.
    fn take(&mut self, bytes: &[u8], say: &mut Vec<u8>) -> Result<bool>;
    /// The connection has ended. Ok: and so has the answer.
    fn end(&mut self, cleanly: bool) -> Result<()>;
    /// Something of the answer has come.
    fn begun(&self) -> bool;
    /// The connection may be used again.
    fn keep(&self) -> bool;
    fn response(&mut self) -> Response<'_>;
    /// The request in words.
    fn label(request: &Self::Request, operation: &Operation) -> String;
    fn is_clear(request: &Self::Request) -> bool;
}

/// A complete answer.
struct Response<'a> {
    status: u16,
    body: &'a mut Body,
    details: &'a Details,
}

/// What is looked at in a head only where somebody wants to know.
#[derive(Debug, Default)]
struct Details {
    wanted: bool,
    reason: String,
    location: String,
    server: String,
}

/// How a server is called in a request.
struct Place {
    authority: String,
    scheme: &'static str,
}

impl Place {
    fn new(server: &message::Server, authority: Option<&String>) -> Place {
        let (scheme, usual) = if server.tls == Tls::Off { ("http", 80) } else { ("https", 443) };
        let host = if server.host.contains(':') { format!("[{}]", server.host) } else { server.host.clone() };
        let stated = if server.port == usual { host } else { format!("{host}:{}", server.port) };
        Place { authority: authority.cloned().unwrap_or(stated), scheme }
    }
}

/// What the connections of an arm have in common.
struct Site<E: Exchange> {
    place: Place,
    clear_place: Option<Place>,
    path: String,
    per_request: bool,
    /// The script that was made ready last, and its requests.
    ready: Mutex<Option<(Arc<Script>, Requests<E>)>>,
}

type Requests<E> = Arc<Vec<<E as Exchange>::Request>>;

impl<E: Exchange> Site<E> {
    fn requests(&self, script: &Arc<Script>) -> Result<Requests<E>> {
        let mut ready = self.ready.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some((known, requests)) = &*ready
            && known.statements == script.statements
        {
            return Ok(requests.clone());
        }
        let mut requests = Vec::with_capacity(script.statements.len());
        for span in script.transactions() {
            let asked = script.statements[span].iter().map(|statement| Asked::read(statement, &self.path));
            let asked = asked.collect::<Result<Vec<_>>>()?;
            let last_of = |clear: bool| asked.iter().rposition(|asked| asked.clear == clear);
            let last = [last_of(false), last_of(true)];
            for (number, asked) in asked.into_iter().enumerate() {
                requests.push(self.compile(asked, self.per_request && last.contains(&Some(number)))?);
            }
        }
        let requests = Arc::new(requests);
        *ready = Some((script.clone(), requests.clone()));
        Ok(requests)
    }

    fn compile(&self, asked: Asked, last: bool) -> Result<E::Request> {
        let place = match &self.clear_place {
            Some(place) if asked.clear => place,
            None if asked.clear => return Err(Failure::statement("CLEAR: no clear_port was given to go to")),
            _ => &self.place,
        };
        Ok(E::compile(asked, place, last))
    }
}

/// Opens the connections of an arm, one after the other.
pub fn connect(pool: &message::Pool, asked: &Http) -> Result<Opened> {
    match asked.http {
        HttpVersion::V11 => connect_by::<One>(pool, asked),
        HttpVersion::V2 => Err(Failure::bad_message("http: 2 is not there yet")),
    }
}

fn connect_by<E: Exchange>(pool: &message::Pool, asked: &Http) -> Result<Opened> {
    let (server, clear_server) = (asked.server(), asked.clear_server());
    let site = Arc::new(Site::<E> {
        place: Place::new(&server, asked.authority.as_ref()),
        clear_place: clear_server.as_ref().map(|server| Place::new(server, asked.clear_authority.as_ref())),
        path: asked.path.clone(),
        per_request: pool.per_request,
        ready: Mutex::new(None),
    });
    let target = |asked: message::Server| -> Result<Arc<Target>> {
        let tls = TlsClient::offering(&asked, Some(E::OFFER))?;
        Ok(Arc::new(Target { address: resolve(&asked.host, asked.port)?, asked, tls, setup: Vec::new() }))
    };
    let target_of_clear = clear_server.map(target).transpose()?;
    let target = target(server)?;
    let polled = pool.connections > pool.threads;
    let mut connections = Vec::with_capacity(pool.connections);
    let encrypted = asked.tls != Tls::Off;
    let mut connected = Connected { encrypted, application: E::NAME.to_string(), ..Connected::default() };
    for number in 0..pool.connections {
        let clear = target_of_clear.as_ref().map(|target| Line::new(target.clone(), polled));
        let mut client = Client::<E>::new(site.clone(), Line::new(target.clone(), polled), clear, polled);
        // Where each operation opens its own connections, they are tried here once.
        if number == 0 || !pool.per_request {
            let facts = client.open_now()?;
            connected.encrypted &= facts.is_some();
            let facts = facts.unwrap_or_default();
            connected.resumed += u64::from(facts.resumed);
            connected.verified = facts.verified;
            (connected.protocol, connected.cipher, connected.group) = (facts.protocol, facts.cipher, facts.group);
            (connected.peer, connected.peer_key) = (facts.peer, facts.peer_key);
            connected.library = if connected.encrypted { tls::library() } else { String::new() };
            if pool.per_request {
                client.close();
            }
        }
        connections.push(client);
    }
    Ok((Box::new(Pool { connections, threads: pool.threads }), connected))
}

/// A connection to one server, open or not, and what is being said on it.
struct Line<E: Exchange> {
    link: Link<E>,
    exchange: E,
}

impl<E: Exchange> Line<E> {
    fn new(target: Arc<Target>, polled: bool) -> Line<E> {
        Line { link: Link::new(target, polled, false), exchange: E::default() }
    }

    fn open_now(&mut self) -> Result<Option<Facts>> {
        let facts = self.link.open_now()?;
        self.opened()?;
        Ok(facts)
    }

    /// Right after the connection was opened.
    fn opened(&mut self) -> Result<()> {
        self.exchange = E::default();
        let polled = self.link.polled;
        let Some(transport) = self.link.transport() else { return Ok(()) };
        if !polled {
            transport.socket().set_patience(ANSWER_SECONDS as i64)?;
        }
        match transport {
            Transport::Tls(stream) if E::MUST_AGREE => match stream.ssl().selected_alpn_protocol() {
                Some(name) if name == E::OFFER.as_bytes() => Ok(()),
                _ => {
                    Err(Failure::tls(format!("the server does not speak {} (it did not agree to it by ALPN)", E::NAME)))
                }
            },
            _ => Ok(()),
        }
    }
}

/// How far a request has come.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    Opening,
    /// So many of its bytes are sent.
    Sending(usize),
    Awaiting,
}

/// A user of the site: a connection, and one in clear where there is something in clear to ask for.
struct Client<E: Exchange> {
    site: Arc<Site<E>>,
    main: Line<E>,
    clear: Option<Line<E>>,
    polled: bool,
    requests: Requests<E>,
    /// The request that is under way, and how far it is.
    number: usize,
    stage: Stage,
    /// Its connection was opened for it: nobody can have closed it for having been idle.
    fresh: bool,
    /// The answer is kept, whatever its status.
    querying: bool,
    /// When something came last, or was sent; only where connections are polled.
    since_ns: u64,
    /// When to look at that next.
    look_ns: u64,
    outcome: Outcome,
}

impl<E: Exchange> Client<E> {
    fn new(site: Arc<Site<E>>, main: Line<E>, clear: Option<Line<E>>, polled: bool) -> Client<E> {
        Client {
            site,
            main,
            clear,
            polled,
            requests: Arc::default(),
            number: 0,
            stage: Stage::Opening,
            fresh: false,
            querying: false,
            since_ns: 0,
            look_ns: 0,
            outcome: Outcome::default(),
        }
    }

    /// Opens the connections, waiting for them. Gives what TLS negotiated: None in clear.
    fn open_now(&mut self) -> Result<Option<Facts>> {
        if let Some(clear) = &mut self.clear {
            clear.open_now()?;
        }
        self.main.open_now()
    }

    fn close(&mut self) {
        self.main.link.close();
        if let Some(clear) = &mut self.clear {
            clear.link.close();
        }
    }

    /// The connection of the request that is under way.
    #[inline]
    fn line(&mut self) -> &mut Line<E> {
        match &mut self.clear {
            Some(clear) if self.requests.get(self.number).is_some_and(E::is_clear) => clear,
            _ => &mut self.main,
        }
    }

    /// Begins the request that is next.
    #[inline]
    fn start(&mut self, operation: &Operation) -> Result<()> {
        self.fresh = false;
        if self.line().link.is_open() {
            self.start_sending(operation);
            return Ok(());
        }
        self.reopen()
    }

    /// Opens the request's connection for it.
    fn reopen(&mut self) -> Result<()> {
        self.fresh = true;
        self.stage = Stage::Opening;
        if self.polled {
            self.since_ns = coarse_ns();
            self.look_ns = self.since_ns + OPEN_SECONDS * SECOND_NS;
        }
        let mode = if self.polled { Mode::Polled } else { Mode::Blocking };
        self.line().link.start_opening(mode)
    }

    #[inline]
    fn start_sending(&mut self, operation: &Operation) {
        self.stage = Stage::Sending(0);
        if self.polled {
            self.since_ns = coarse_ns();
            if self.look_ns <= self.since_ns {
                self.look_ns = self.since_ns + ANSWER_SECONDS * SECOND_NS;
            }
        }
        let (number, querying) = (self.number, self.querying);
        let requests = &self.requests;
        let request = &requests[number];
        let line = match &mut self.clear {
            Some(clear) if E::is_clear(request) => clear,
            _ => &mut self.main,
        };
        line.exchange.start(request, querying);
        if E::fixed(request).is_none() {
            line.link.outbox.clear();
            line.exchange.put(request, operation, &mut line.link.outbox);
        }
    }

    /// Goes on as far as it can without waiting, or (where connections block) to the end.
    #[inline]
    fn go_on(&mut self, operation: &Operation) -> Result<Step> {
        loop {
            match self.stage {
                Stage::Opening => {
                    if self.line().link.go_on_opening()? == Step::Pending {
                        return if self.polled { Ok(Step::Pending) } else { Err(not_opened()) };
                    }
                    self.line().opened()?;
                    self.start_sending(operation);
                }
                Stage::Sending(sent) => {
                    if !self.send(sent)? || self.polled {
                        return Ok(Step::Pending);
                    }
                }
                Stage::Awaiting => match self.receive()? {
                    Heard::Nothing => return Ok(Step::Pending),
                    Heard::Silence => self.retry(operation)?,
                    Heard::Answer => {
                        self.answered(operation);
                        self.number += 1;
                        if self.number == operation.last || self.outcome.error.is_some() {
                            if self.site.per_request {
                                self.close();
                            }
                            return Ok(Step::Done);
                        }
                        self.start(operation)?;
                    }
                },
            }
        }
    }

    /// Sends what is left of the request. `false`: the socket is full.
    #[inline]
    fn send(&mut self, sent: usize) -> Result<bool> {
        let request = &self.requests[self.number];
        let line = match &mut self.clear {
            Some(clear) if E::is_clear(request) => clear,
            _ => &mut self.main,
        };
        let link = &mut line.link;
        let outbox = std::mem::take(&mut link.outbox);
        let bytes = E::fixed(request).unwrap_or(&outbox);
        let mut sent = sent;
        let mut full = false;
        while let (Some(rest), Some(transport)) = (bytes.get(sent..).filter(|rest| !rest.is_empty()), link.transport())
        {
            match transport.send_some(rest) {
                Ok(more) => sent += more,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    full = true;
                    break;
                }
                // The server has closed: what it still said, if anything, says why.
                Err(_) => break,
            }
        }
        link.outbox = outbox;
        if full && !self.polled {
            return Err(silent());
        }
        self.stage = if full { Stage::Sending(sent) } else { Stage::Awaiting };
        Ok(!full)
    }

    /// Receives until the answer is complete or nothing more is there.
    #[inline]
    fn receive(&mut self) -> Result<Heard> {
        let polled = self.polled;
        let request = &self.requests[self.number];
        let line = match &mut self.clear {
            Some(clear) if E::is_clear(request) => clear,
            _ => &mut self.main,
        };
        let (link, exchange) = (&mut line.link, &mut line.exchange);
        RECEIVED.with_borrow_mut(|room| {
            loop {
                let Some(transport) = link.transport() else { return Err(Failure::internal("not open")) };
                match transport.receive(room) {
                    Ok(0) => {
                        if !exchange.begun() && !self.fresh {
                            return Ok(Heard::Silence);
                        }
                        exchange.end(true)?;
                        return Ok(Heard::Answer);
                    }
                    Ok(read) => {
                        if exchange.take(&room[..read], &mut link.outbox)? {
                            return Ok(Heard::Answer);
                        }
                        if polled {
                            self.since_ns = coarse_ns();
                            let more = read == room.len() || link.transport().is_some_and(|held| held.holds_more());
                            if !more {
                                return Ok(Heard::Nothing);
                            }
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        return if polled { Ok(Heard::Nothing) } else { Err(silent()) };
                    }
                    Err(_) if !exchange.begun() && !self.fresh => return Ok(Heard::Silence),
                    Err(error) => {
                        exchange.end(false)?;
                        return Err(closed_early(error.to_string()));
                    }
                }
            }
        })
    }

    /// The server had closed the connection before the request came to it: it is sent once more, on a new one.
    #[cold]
    fn retry(&mut self, operation: &Operation) -> Result<()> {
        let _ = operation;
        self.line().link.abandon();
        self.reopen()
    }

    /// Judges the answer that is complete.
    #[inline]
    fn answered(&mut self, operation: &Operation) {
        let querying = self.querying;
        let request = &self.requests[self.number];
        let line = match &mut self.clear {
            Some(clear) if E::is_clear(request) => clear,
            _ => &mut self.main,
        };
        let keep = line.exchange.keep();
        let response = line.exchange.response();
        let hash = response.body.hash;
        if !(200..300).contains(&response.status) && response.status != 304 && !querying {
            self.outcome.fail(&refused::<E>(request, operation, &response));
        } else {
            self.outcome.row(hash);
        }
        if !keep {
            line.link.close();
        }
    }

    /// A request that fails costs its operation, not the slice; its connection is opened anew by the next one.
    fn forgive(&mut self, result: Result<Step>, operation: &Operation) -> Result<Step> {
        result.or_else(|failure| {
            self.fail(failure, operation);
            Ok(Step::Done)
        })
    }

    #[cold]
    fn fail(&mut self, failure: Failure, operation: &Operation) {
        self.line().link.abandon();
        if self.site.per_request {
            self.close();
        }
        let label = self.requests.get(self.number).map(|request| E::label(request, operation)).unwrap_or_default();
        self.outcome.fail(&Failure { text: format!("{label}: {}", failure.text), ..failure });
    }

    /// Whether too long has passed without a byte.
    #[inline]
    fn overdue(&mut self) -> Option<Failure> {
        if !self.polled || self.look_ns > coarse_ns() {
            return None;
        }
        self.overdue_now()
    }

    #[cold]
    fn overdue_now(&mut self) -> Option<Failure> {
        let now = now_ns();
        let (patience, failure) = match self.stage {
            Stage::Opening => (OPEN_SECONDS, not_opened()),
            _ => (ANSWER_SECONDS, silent()),
        };
        let until = self.since_ns + patience * SECOND_NS;
        if now >= until {
            return Some(failure);
        }
        self.look_ns = until;
        None
    }

    /// Waits for what the request waits for.
    fn wait(&self) -> Result<()> {
        const LOOK_MS: i32 = 1000;
        let clear = self.requests.get(self.number).is_some_and(E::is_clear);
        let line = self.clear.as_ref().filter(|_| clear).unwrap_or(&self.main);
        let events = self.interest().map_or(libc::POLLIN as u32, |interest| interest.events);
        if let Some(socket) = line.link.socket() {
            socket.wait_for(events as i16, LOOK_MS)?;
        }
        Ok(())
    }
}

/// What was heard on a connection.
enum Heard {
    /// Not all of the answer.
    Nothing,
    Answer,
    /// The connection has ended, which was open before the request, and nothing of an answer had come.
    Silence,
}

fn silent() -> Failure {
    Failure::new("timeout", format!("nothing came for {ANSWER_SECONDS} seconds"))
}

fn not_opened() -> Failure {
    Failure::new("connect", format!("the server did not answer within {OPEN_SECONDS} seconds"))
}

/// An answer of a status that is no success, in words.
#[cold]
fn refused<E: Exchange>(request: &E::Request, operation: &Operation, response: &Response<'_>) -> Failure {
    let (label, status, details) = (E::label(request, operation), response.status, response.details);
    let mut text = format!("{label}: {status} {}", details.reason).trim_end().to_string();
    if !details.location.is_empty() {
        text.push_str(&format!(" to {} (redirects are not followed)", details.location));
    }
    Failure::new(&format!("status-{status}"), text)
}

impl<E: Exchange> Connection for Client<E> {
    fn prepare(&mut self, script: &Arc<Script>) -> Result<()> {
        self.requests = self.site.requests(script)?;
        Ok(())
    }

    #[inline]
    fn begin(&mut self, _: &Script, operation: &Operation) -> Result<Step> {
        self.outcome.clear();
        self.number = operation.first;
        let begun = self.start(operation).and_then(|()| match self.stage {
            Stage::Opening => Ok(Step::Pending),
            _ => self.go_on(operation),
        });
        self.forgive(begun, operation)
    }

    #[inline]
    fn proceed(&mut self, _: &Script, operation: &Operation) -> Result<Step> {
        let step = match self.overdue() {
            None => self.go_on(operation),
            Some(failure) => Err(failure),
        };
        self.forgive(step, operation)
    }

    #[inline]
    fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// One request. Gives its answer, whatever its status.
    fn query(&mut self, sql: &str) -> Result<Rows> {
        let statement = Statement { sql: sql.to_string(), parameters: Vec::new(), open: false };
        let asked = Asked::read(&statement, &self.site.path)?;
        let request = self.site.compile(asked, self.site.per_request)?;
        let before = std::mem::replace(&mut self.requests, Arc::new(vec![request]));
        let mut operation = Operation::default();
        operation.last = 1;
        self.querying = true;
        let script = Script::default();
        let mut step = self.begin(&script, &operation)?;
        while step == Step::Pending {
            if self.polled {
                self.wait()?;
            }
            step = self.proceed(&script, &operation)?;
        }
        self.querying = false;
        self.number = 0;
        let answer = match self.outcome.error.take() {
            Some(error) => {
                let (code, text) = error.split_once(": ").unwrap_or(("statement", &error));
                Err(Failure::new(code, text))
            }
            None => {
                let response = self.line().exchange.response();
                let mut text = format!("{}\t", response.status);
                escape(&response.details.location, &mut text);
                text.push('\t');
                escape(&response.details.server, &mut text);
                text.push('\t');
                escape(&String::from_utf8_lossy(&response.body.kept), &mut text);
                response.body.kept = Vec::new();
                Ok(Rows { rows: 1, columns: "status\tlocation\tserver\tbody".to_string(), text })
            }
        };
        self.requests = before;
        answer
    }

    fn traffic(&mut self) -> Traffic {
        let mut sum = self.main.link.traffic();
        sum.add(self.clear.as_ref().map(|clear| clear.link.traffic()).unwrap_or_default());
        sum
    }

    fn polled(&self) -> bool {
        self.polled
    }

    #[inline]
    fn interest(&self) -> Option<Interest> {
        let clear = self.clear.as_ref().filter(|_| self.requests.get(self.number).is_some_and(E::is_clear));
        // Each side's sockets are counted apart.
        let interest = match clear {
            Some(clear) => clear.link.interest().map(|each| Interest { opened: each.opened | 1 << 63, ..each }),
            None => self.main.link.interest(),
        };
        match self.stage {
            Stage::Sending(_) => interest.map(|each| Interest { events: libc::EPOLLOUT as u32, ..each }),
            _ => interest,
        }
    }
}
