//! http: requests -> responses of a web server, one at a time a connection, which is opened anew where the server closes it.

mod body;
mod hpack;
mod one;
mod reader;
mod statement;
mod two;

use super::network::facts;
use super::network::link::{Link, Target};
use super::network::wire::{Inbox, Wire};
use crate::arm::{Opened, Pool};
use crate::clock::coarse_ns;
use crate::connection::{Connection, Interest, Outcome, Rows, Step, escape};
use crate::failure::{Failure, Result};
use crate::message::{self, Connected, Http, HttpVersion, Tls};
use crate::program::{Operation, Script, Statement};
use crate::think::{Think, Thinking};
use crate::transport::socket::{Mode, Traffic, resolve};
use crate::transport::tls::{Application, Facts, TlsClient};
use body::Body;
use one::One;
use statement::Asked;
use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use two::Two;

/// How many seconds an answer is waited for without a byte of it, and how many a connection may take to open.
#[derive(Clone, Copy)]
struct Patience {
    answer: u64,
    open: u64,
}

const PATIENCE: Patience = Patience { answer: 30, open: 10 };
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
trait Exchange: Wire<Asked = message::Server> + Default {
    type Request: Send + Sync;
    /// As ALPN calls it.
    const NAME: &'static str;
    /// A server that does not agree to it under TLS is refused.
    const MUST_AGREE: bool;
    /// Nothing but its place says to which request an answer belongs.
    const BY_PLACE: bool;

    /// Makes a statement's request ready. `last`: it is the last on its connection.
    fn compile(asked: Asked, place: &Place, last: bool) -> Self::Request;
    /// The request's bytes, where they are the same every time.
    fn fixed(request: &Self::Request) -> Option<&[u8]>;
    fn put(&mut self, request: &Self::Request, operation: &Operation, into: &mut Vec<u8>);
    /// Makes ready for the answer.
    fn start(&mut self, request: &Self::Request, keep_body: bool);
    /// Takes what has come, and may say something to that.
    fn take(&mut self, bytes: &[u8], say: &mut Vec<u8>) -> Result<Taken>;
    /// The same while nothing is asked for. Err: the connection is of no more use.
    fn idle(&mut self, bytes: &[u8], say: &mut Vec<u8>) -> Result<()>;
    /// The connection has ended. Ok: and so has the answer.
    fn end(&mut self, cleanly: bool) -> Result<()>;
    /// Something of the answer has come.
    fn begun(&self) -> bool;
    /// The connection may be used again.
    fn keep(&self) -> bool;
    fn response(&mut self) -> Response<'_>;
    /// The request in words.
    fn label(request: &Self::Request, operation: &Operation) -> String;
}

/// What bytes of an answer were.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Taken {
    Part,
    /// The answer is complete.
    Answer,
    /// The server closes the connection and has not looked at the request.
    Refused,
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
    patience: Patience,
    /// The script that was made ready last, and its requests.
    ready: Mutex<Option<(Arc<Script>, Errands<E>)>>,
}

/// What a statement is, made ready.
enum Errand<R> {
    Request { clear: bool, request: R },
    Think(Think),
}

type Errands<E> = Arc<Vec<Errand<<E as Exchange>::Request>>>;

impl<E: Exchange> Site<E> {
    fn errands(&self, script: &Arc<Script>) -> Result<Errands<E>> {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, errands)) = &*ready {
            if known.statements == script.statements {
                return Ok(errands.clone());
            }
        }
        let mut errands = Vec::with_capacity(script.statements.len());
        for span in script.transactions() {
            let statements = &script.statements[span.clone()];
            if statements.iter().all(|statement| matches!(Think::read(statement), Ok(Some(_)))) {
                let sql = statements.first().map(|statement| statement.sql.trim()).unwrap_or_default();
                return Err(Failure::statement(format!("{sql:?}: the transaction has no request, it only thinks")));
            }
            // The last requests of the transaction, in clear and else: they close the connections that are its own.
            let mut last = [self.per_request; 2];
            for statement in statements.iter().rev() {
                errands.push(match Think::read(statement)? {
                    Some(think) => Errand::Think(think),
                    None => {
                        let asked = Asked::read(statement, &self.path)?;
                        let last = std::mem::take(&mut last[usize::from(asked.clear)]);
                        self.errand(asked, last)?
                    }
                });
            }
            errands[span].reverse();
        }
        let errands = Arc::new(errands);
        *ready = Some((script.clone(), errands.clone()));
        Ok(errands)
    }

    fn errand(&self, asked: Asked, last: bool) -> Result<Errand<E::Request>> {
        let clear = asked.clear;
        let place = match &self.clear_place {
            Some(place) if clear => place,
            None if clear => return Err(Failure::statement("CLEAR: no clear_port was given to go to")),
            _ => &self.place,
        };
        Ok(Errand::Request { clear, request: E::compile(asked, place, last) })
    }
}

/// Opens the connections of an arm, one after the other.
pub fn connect(pool: &message::Pool, asked: &Http) -> Result<Opened> {
    match asked.http {
        HttpVersion::V11 => connect_by::<One>(pool, asked, PATIENCE),
        HttpVersion::V2 => connect_by::<Two>(pool, asked, PATIENCE),
    }
}

fn connect_by<E: Exchange>(pool: &message::Pool, asked: &Http, patience: Patience) -> Result<Opened> {
    let (server, clear_server) = (asked.server(), asked.clear_server());
    let site = Arc::new(Site::<E> {
        place: Place::new(&server, asked.authority.as_ref()),
        clear_place: clear_server.as_ref().map(|server| Place::new(server, asked.clear_authority.as_ref())),
        path: asked.path.clone(),
        per_request: pool.per_request,
        patience,
        ready: Mutex::new(None),
    });
    let target = |asked: message::Server| -> Result<Arc<Target<message::Server>>> {
        let tls = TlsClient::offering(&asked, Some(Application { name: E::NAME, must_agree: E::MUST_AGREE }))?;
        Ok(Arc::new(Target { address: resolve(&asked.host, asked.port)?, asked, protection: tls.into() }))
    };
    let target_of_clear = clear_server.map(target).transpose()?;
    let target = target(server)?;
    let polled = pool.connections > pool.threads;
    let mut connections = Vec::with_capacity(pool.connections);
    let encrypted = asked.tls != Tls::Off;
    let mut connected = Connected { encrypted, application: E::NAME.to_string(), ..Connected::default() };
    for number in 0..pool.connections {
        let clear = target_of_clear.as_ref().map(|target| Line::new(target.clone(), polled, pool.per_request));
        let main = Line::new(target.clone(), polled, pool.per_request);
        let mut client = Client::<E>::new(site.clone(), main, clear, polled);
        // Where each operation opens its own connections, they are tried here once.
        if number == 0 || !pool.per_request {
            let facts = pool.opening(|| client.open_now())?;
            facts::note(facts, &mut connected);
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
    /// What is to be said before anything else.
    say: Vec<u8>,
}

impl<E: Exchange> Line<E> {
    fn new(target: Arc<Target<message::Server>>, polled: bool, per_request: bool) -> Line<E> {
        Line { link: Link::new(target, polled, per_request), exchange: E::default(), say: Vec::new() }
    }

    fn open_now(&mut self, patience: Patience) -> Result<Option<Facts>> {
        let facts = self.link.open_now()?;
        self.opened(patience)?;
        self.speak();
        Ok(facts)
    }

    /// Right after the connection was opened.
    fn opened(&mut self, patience: Patience) -> Result<()> {
        self.exchange = E::default();
        self.say.clear();
        self.exchange.idle(self.link.inbox.buffer().unread(), &mut self.say)?;
        self.link.inbox = E::Inbox::default();
        let polled = self.link.polled;
        let Some(transport) = self.link.transport() else { return Ok(()) };
        if !polled {
            transport.socket().set_patience(patience.answer as i64)?;
        }
        Ok(())
    }
}

impl<E: Exchange> Line<E> {
    /// Says at once what is to be said. Where that fails, the next request finds out.
    fn speak(&mut self) {
        if let Some(transport) = self.link.transport().filter(|_| !self.say.is_empty()) {
            let _ = transport.send(&self.say);
            self.say.clear();
        }
    }

    /// Takes what has come while nothing is asked for, without waiting for more, and drops a connection that is of no
    /// more use. Err: something came that nobody asked for.
    #[cold]
    fn attend(&mut self) -> Result<()> {
        let alive = self.set_mode(Mode::Polled).and_then(|()| self.hear());
        self.speak();
        if !alive.as_ref().is_ok_and(|alive| *alive && self.set_mode(Mode::Blocking).is_ok()) {
            self.link.abandon();
        }
        alive.map(drop)
    }

    /// Changes how a connection waits that blocks else.
    fn set_mode(&mut self, mode: Mode) -> Result<()> {
        match self.link.socket() {
            Some(socket) if !self.link.polled => socket.set_mode(mode),
            _ => Ok(()),
        }
    }

    /// `false`: the connection has ended, or is about to.
    fn hear(&mut self) -> Result<bool> {
        RECEIVED.with_borrow_mut(|room| {
            loop {
                let Some(transport) = self.link.transport() else { return Ok(false) };
                match transport.receive(room) {
                    Ok(0) => return Ok(false),
                    Ok(read) => self.exchange.idle(&room[..read], &mut self.say)?,
                    Err(error) => return Ok(error.kind() == io::ErrorKind::WouldBlock),
                }
                if !self.exchange.keep() || !transport.holds_more() {
                    return Ok(self.exchange.keep());
                }
            }
        })
    }

    /// Something has come on the open connection.
    fn is_heard(&mut self) -> bool {
        self.link.transport().is_some_and(|transport| {
            transport.holds_more() || transport.socket().wait_for(libc::POLLIN, 0).unwrap_or(true)
        })
    }
}

/// How far a request has come.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    Opening,
    /// So many of its bytes are sent.
    Sending(usize),
    Awaiting,
    Thinking,
}

/// A user of the site: a connection, and one in clear where there is something in clear to ask for.
struct Client<E: Exchange> {
    site: Arc<Site<E>>,
    main: Line<E>,
    clear: Option<Line<E>>,
    polled: bool,
    errands: Errands<E>,
    /// The one that is under way, and how far it is.
    number: usize,
    stage: Stage,
    /// Its connection was opened for it: nobody can have closed it for having been idle.
    fresh: bool,
    /// The answer is kept, whatever its status.
    querying: bool,
    /// When something came last, or was sent; only where connections are polled.
    since_ns: u64,
    thinking: Thinking,
    /// What came that nobody had asked for: it fails the next request, so that it is counted.
    surplus: Option<Failure>,
    outcome: Outcome,
}

impl<E: Exchange> Client<E> {
    fn new(site: Arc<Site<E>>, main: Line<E>, clear: Option<Line<E>>, polled: bool) -> Client<E> {
        Client {
            site,
            main,
            clear,
            polled,
            errands: Arc::new(Vec::new()),
            number: 0,
            stage: Stage::Opening,
            fresh: false,
            querying: false,
            since_ns: 0,
            thinking: Thinking::default(),
            surplus: None,
            outcome: Outcome::default(),
        }
    }

    /// Opens the connections, waiting for them. Gives what TLS negotiated: None in clear.
    fn open_now(&mut self) -> Result<Option<Facts>> {
        if let Some(clear) = &mut self.clear {
            clear.open_now(self.site.patience)?;
        }
        self.main.open_now(self.site.patience)
    }

    fn close(&mut self) {
        self.main.link.close();
        if let Some(clear) = &mut self.clear {
            clear.link.close();
        }
    }

    /// The request that is under way, and its connection. None: there is none.
    #[inline]
    fn current(&mut self) -> Option<(&E::Request, &mut Line<E>)> {
        match (self.errands.get(self.number), &mut self.clear) {
            (Some(Errand::Request { clear: true, request }), Some(clear)) => Some((request, clear)),
            (Some(Errand::Request { request, .. }), _) => Some((request, &mut self.main)),
            _ => None,
        }
    }

    /// The same to look at.
    #[inline]
    fn link(&self) -> &Link<E> {
        match (self.errands.get(self.number), &self.clear) {
            (Some(Errand::Request { clear: true, .. }), Some(clear)) => &clear.link,
            _ => &self.main.link,
        }
    }

    /// Something was received on the request's connection that has not been taken.
    #[inline]
    fn holds_more(&mut self) -> bool {
        self.current().and_then(|(_, line)| line.link.transport()).is_some_and(|transport| transport.holds_more())
    }

    #[inline]
    fn is_clear(&self) -> bool {
        matches!(self.errands.get(self.number), Some(Errand::Request { clear: true, .. }))
    }

    /// Begins what is next.
    #[inline]
    fn start(&mut self, operation: &Operation) -> Result<()> {
        self.fresh = false;
        if let Some(Errand::Think(think)) = self.errands.get(self.number) {
            self.stage = Stage::Thinking;
            return self.thinking.begin(*think, operation).map(drop);
        }
        // An answer that came behind the last one is not the next one's.
        if E::BY_PLACE && self.holds_more() {
            self.listen();
        }
        if self.surplus.is_some() {
            return self.surplus.take().map_or(Ok(()), Err);
        }
        if self.link().is_open() {
            self.start_sending(operation);
            return Ok(());
        }
        self.reopen()
    }

    /// Takes what has come while nothing is asked for.
    #[cold]
    fn listen(&mut self) {
        for line in std::iter::once(&mut self.main).chain(&mut self.clear) {
            if line.is_heard() {
                if let Err(surplus) = line.attend() {
                    self.surplus = Some(surplus);
                }
            }
        }
    }

    /// Opens the request's connection for it.
    fn reopen(&mut self) -> Result<()> {
        self.fresh = true;
        self.stage = Stage::Opening;
        if self.polled {
            self.since_ns = coarse_ns();
        }
        let mode = if self.polled { Mode::Polled } else { Mode::Blocking };
        self.current().map_or(Ok(()), |(_, line)| line.link.start_opening(mode))
    }

    #[inline]
    fn start_sending(&mut self, operation: &Operation) {
        self.stage = Stage::Sending(0);
        if self.polled {
            self.since_ns = coarse_ns();
        }
        let querying = self.querying;
        let Some((request, line)) = self.current() else { return };
        line.exchange.start(request, querying);
        if E::fixed(request).is_none() {
            line.link.outbox.clear();
            line.link.outbox.append(&mut line.say);
            line.exchange.put(request, operation, &mut line.link.outbox);
        }
    }

    /// Goes on as far as it can without waiting, or (where connections block) to the end.
    #[inline]
    fn go_on(&mut self, operation: &Operation) -> Result<Step> {
        loop {
            match self.stage {
                Stage::Opening => {
                    let patience = self.site.patience;
                    let Some((_, line)) = self.current() else { return Err(Failure::internal("no request")) };
                    if line.link.go_on_opening()? == Step::Pending {
                        return if self.polled { Ok(Step::Pending) } else { Err(self.not_opened()) };
                    }
                    line.opened(patience)?;
                    self.start_sending(operation);
                }
                Stage::Sending(sent) => {
                    // What was received together with something else is there already: no socket tells of it.
                    if !self.send(sent)? || self.polled && !self.holds_more() {
                        return Ok(Step::Pending);
                    }
                }
                Stage::Awaiting => match self.receive()? {
                    Heard::Nothing if self.polled => return Ok(Step::Pending),
                    Heard::Nothing => return Err(self.silent()),
                    Heard::Reply => {
                        let Some((_, line)) = self.current() else { return Err(Failure::internal("no request")) };
                        line.link.outbox.clear();
                        std::mem::swap(&mut line.link.outbox, &mut line.say);
                        self.stage = Stage::Sending(0);
                    }
                    Heard::Silence => self.retry()?,
                    Heard::Answer => {
                        self.answered(operation);
                        if self.is_last(operation) {
                            return Ok(Step::Done);
                        }
                        self.start(operation)?;
                    }
                },
                Stage::Thinking => {
                    if self.thinking.go_on(self.polled) == Step::Pending {
                        return Ok(Step::Pending);
                    }
                    if self.is_last(operation) {
                        return Ok(Step::Done);
                    }
                    self.start(operation)?;
                }
            }
        }
    }

    /// Passes on to the next statement. True: there is none, or no more after a failure.
    #[inline]
    fn is_last(&mut self, operation: &Operation) -> bool {
        self.number += 1;
        if self.number < operation.last && self.outcome.error.is_none() {
            return false;
        }
        // What comes now concerns the connection that was used last.
        self.number -= 1;
        if self.site.per_request {
            self.close();
        }
        true
    }

    /// Sends what is left of the request. `false`: the socket is full.
    #[inline]
    fn send(&mut self, sent: usize) -> Result<bool> {
        let polled = self.polled;
        let Some((request, line)) = self.current() else { return Err(Failure::internal("no request")) };
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
        if full && !polled {
            return Err(self.silent());
        }
        self.stage = if full { Stage::Sending(sent) } else { Stage::Awaiting };
        Ok(!full)
    }

    /// Receives until the answer is complete or nothing more is there.
    #[inline]
    fn receive(&mut self) -> Result<Heard> {
        let (polled, fresh) = (self.polled, self.fresh);
        let mut since_ns = self.since_ns;
        let Some((_, line)) = self.current() else { return Err(Failure::internal("no request")) };
        let (link, exchange, say) = (&mut line.link, &mut line.exchange, &mut line.say);
        let heard = RECEIVED.with_borrow_mut(|room| {
            loop {
                let Some(transport) = link.transport() else { return Err(Failure::internal("not open")) };
                match transport.receive(room) {
                    Ok(0) => {
                        if !exchange.begun() && !fresh {
                            return Ok(Heard::Silence);
                        }
                        exchange.end(true)?;
                        return Ok(Heard::Answer);
                    }
                    Ok(read) => {
                        match exchange.take(&room[..read], say)? {
                            Taken::Answer => return Ok(Heard::Answer),
                            Taken::Refused if !fresh => return Ok(Heard::Silence),
                            Taken::Refused => return Err(closed_early("the server closes the connection")),
                            Taken::Part => {}
                        }
                        if polled {
                            since_ns = coarse_ns();
                        }
                        if !say.is_empty() {
                            return Ok(Heard::Reply);
                        }
                        if polled {
                            let more = read == room.len() || link.transport().is_some_and(|held| held.holds_more());
                            if !more {
                                return Ok(Heard::Nothing);
                            }
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        return Ok(Heard::Nothing);
                    }
                    Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                        return Err(Failure::new("timeout", error.to_string()));
                    }
                    Err(_) if !exchange.begun() && !fresh => return Ok(Heard::Silence),
                    Err(error) => {
                        exchange.end(false)?;
                        return Err(closed_early(error.to_string()));
                    }
                }
            }
        });
        self.since_ns = since_ns;
        heard
    }

    /// The server had closed the connection before the request came to it: it is sent once more, on a new one.
    #[cold]
    fn retry(&mut self) -> Result<()> {
        if let Some((_, line)) = self.current() {
            line.link.abandon();
        }
        self.reopen()
    }

    /// Judges the answer that is complete.
    #[inline]
    fn answered(&mut self, operation: &Operation) {
        let querying = self.querying;
        let Some((request, line)) = self.current() else { return };
        let keep = line.exchange.keep();
        let response = line.exchange.response();
        let hash = response.body.hash;
        let success = matches!(response.status, 200..300 | 304) || querying;
        let refusal = if success { None } else { Some(refused::<E>(request, operation, &response)) };
        if !keep {
            line.link.close();
        }
        match refusal {
            None => self.outcome.row(hash),
            Some(refusal) => self.outcome.fail(&refusal),
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
        let mut text = failure.text;
        if let Some((request, line)) = self.current() {
            line.link.abandon();
            text = format!("{}: {text}", E::label(request, operation));
        }
        if self.site.per_request {
            self.close();
        }
        self.outcome.fail(&Failure { text, ..failure });
    }

    /// Makes the one request there is, and gives its answer.
    fn ask(&mut self) -> Result<Rows> {
        const LOOK_MS: i32 = 1000;
        let (script, mut operation) = (Script::default(), Operation::default());
        operation.last = 1;
        let mut step = self.begin(&script, &operation)?;
        while step == Step::Pending {
            if self.polled {
                self.is_ready(LOOK_MS);
            }
            step = self.proceed(&script, &operation)?;
        }
        if let Some(fault) = self.outcome.error.take() {
            let text = fault.text.strip_prefix(&format!("{}: ", fault.kind)).unwrap_or(&fault.text);
            return Err(Failure::new(&fault.kind, text));
        }
        let Some((_, line)) = self.current() else { return Err(Failure::internal("no request")) };
        let response = line.exchange.response();
        let mut text = format!("{}\t", response.status);
        escape(&response.details.location, &mut text);
        text.push('\t');
        escape(&response.details.server, &mut text);
        text.push('\t');
        escape(&String::from_utf8_lossy(&std::mem::take(&mut response.body.kept)), &mut text);
        Ok(Rows { rows: 1, columns: "status\tlocation\tserver\tbody".to_string(), text })
    }

    #[cold]
    fn silent(&self) -> Failure {
        Failure::new("timeout", format!("nothing came for {} seconds", self.site.patience.answer))
    }

    #[cold]
    fn not_opened(&self) -> Failure {
        Failure::new("connect", format!("the server did not answer within {} seconds", self.site.patience.open))
    }

    /// When the peer has had its time.
    #[inline]
    fn until_ns(&self) -> u64 {
        // The clock that is asked is a tick late: whoever is woken by it must find that it is time.
        const TICK_NS: u64 = 10_000_000;
        let patience = self.site.patience;
        let seconds = if self.stage == Stage::Opening { patience.open } else { patience.answer };
        self.since_ns + seconds * SECOND_NS + TICK_NS
    }

    /// Whether too long has passed without a byte.
    #[inline]
    fn is_overdue(&self) -> bool {
        self.polled && self.stage != Stage::Thinking && coarse_ns() >= self.until_ns() - 5_000_000 && !self.is_ready(0)
    }

    /// Whether what the request waits for has come, within so many milliseconds.
    #[cold]
    fn is_ready(&self, ms: i32) -> bool {
        let events = self.interest().map_or(libc::EPOLLIN as u32, |interest| interest.events);
        self.link().socket().is_some_and(|socket| socket.wait_for(events as i16, ms).unwrap_or(true))
    }
}

/// What was heard on a connection.
enum Heard {
    /// Something that wants a reply before the answer goes on.
    Reply,
    /// Not all of the answer.
    Nothing,
    Answer,
    /// The connection has ended, which was open before the request, and nothing of an answer had come.
    Silence,
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
        if script.has_loops() {
            return Err(Failure::statement("a variable of kind \"each\" is for SQL statements, not for requests"));
        }
        self.errands = self.site.errands(script)?;
        self.listen();
        Ok(())
    }

    #[inline]
    fn begin(&mut self, _: &Script, operation: &Operation) -> Result<Step> {
        self.outcome.clear();
        self.thinking.clear();
        self.number = operation.first;
        let begun = self.start(operation).and_then(|()| match self.stage {
            Stage::Opening => Ok(Step::Pending),
            _ => self.go_on(operation),
        });
        self.forgive(begun, operation)
    }

    #[inline]
    fn proceed(&mut self, _: &Script, operation: &Operation) -> Result<Step> {
        let step = match (self.is_overdue(), self.stage) {
            (false, _) => self.go_on(operation),
            (true, Stage::Opening) => Err(self.not_opened()),
            (true, _) => Err(self.silent()),
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
        let errand = self.site.errand(asked, self.site.per_request)?;
        let before = std::mem::replace(&mut self.errands, Arc::new(vec![errand]));
        self.listen();
        self.querying = true;
        let answer = self.ask();
        self.querying = false;
        self.errands = before;
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
        let interest = self.link().interest();
        match self.stage {
            Stage::Thinking => None,
            Stage::Sending(_) => interest.map(|each| Interest { events: libc::EPOLLOUT as u32, ..each }),
            _ => interest,
        }
        // Each side's sockets are counted apart.
        .map(|each| if self.is_clear() { Interest { opened: each.opened | 1 << 63, ..each } } else { each })
    }

    #[inline]
    fn wakes(&self) -> Option<u64> {
        match self.stage {
            Stage::Thinking => self.thinking.wakes(),
            _ => Some(self.until_ns()),
        }
    }

    /// The server has closed the connection, or says what nobody asked for: the next request opens another, or fails.
    fn unasked(&mut self, _: &Script, _: &Operation) -> Result<()> {
        if let Some((_, line)) = self.current() {
            if let Err(surplus) = line.attend() {
                self.surplus = Some(surplus);
            }
        }
        Ok(())
    }

    fn thinks(&mut self, on: bool) {
        self.thinking.turn(on);
    }

    #[inline]
    fn thought_ns(&self) -> u64 {
        self.thinking.thought_ns()
    }
}

#[cfg(test)]
mod tests;
