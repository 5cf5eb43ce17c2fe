//! client: a user of the site: its requests, one after the other, each as far as the bytes go that have come.

use super::exchange::{Exchange, Response, Taken, closed_early};
use super::line::{Line, RECEIVED};
use super::site::{Errand, Errands, Site};
use crate::clock::coarse_ns;
use crate::connection::{Outcome, Step};
use crate::drivers::network::link::Link;
use crate::failure::{Failure, Result};
use crate::program::Operation;
use crate::think::Thinking;
use crate::transport::socket::Mode;
use crate::transport::tls::Facts;
use std::io;
use std::sync::Arc;

const SECOND_NS: u64 = 1_000_000_000;

/// How far a request has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Stage {
    Opening,
    /// So many of its bytes are sent.
    Sending(usize),
    Awaiting,
    Thinking,
}

/// A user of the site: a connection, and one in clear where there is something in clear to ask for.
pub struct Client<E: Exchange> {
    pub site: Arc<Site<E>>,
    pub main: Line<E>,
    pub clear: Option<Line<E>>,
    pub polled: bool,
    pub errands: Errands<E>,
    /// The one that is under way, and how far it is.
    pub number: usize,
    pub stage: Stage,
    /// Its connection was opened for it: nobody can have closed it for having been idle.
    fresh: bool,
    /// The answer is kept, whatever its status.
    pub querying: bool,
    /// When something came last, or was sent; only where connections are polled.
    since_ns: u64,
    pub thinking: Thinking,
    /// What came that nobody had asked for: it fails the next request, so that it is counted.
    pub surplus: Option<Failure>,
    pub outcome: Outcome,
}

impl<E: Exchange> Client<E> {
    pub fn new(site: Arc<Site<E>>, main: Line<E>, clear: Option<Line<E>>, polled: bool) -> Client<E> {
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
    pub fn open_now(&mut self) -> Result<Option<Facts>> {
        if let Some(clear) = &mut self.clear {
            clear.open_now(self.site.patience)?;
        }
        self.main.open_now(self.site.patience)
    }

    pub fn close(&mut self) {
        self.main.link.close();
        if let Some(clear) = &mut self.clear {
            clear.link.close();
        }
    }

    /// The request that is under way, and its connection. None: there is none.
    #[inline]
    pub fn current(&mut self) -> Option<(&E::Request, &mut Line<E>)> {
        match (self.errands.get(self.number), &mut self.clear) {
            (Some(Errand::Request { clear: true, request }), Some(clear)) => Some((request, clear)),
            (Some(Errand::Request { request, .. }), _) => Some((request, &mut self.main)),
            _ => None,
        }
    }

    /// The same to look at.
    #[inline]
    pub fn link(&self) -> &Link<E> {
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
    pub fn is_clear(&self) -> bool {
        matches!(self.errands.get(self.number), Some(Errand::Request { clear: true, .. }))
    }

    /// Begins what is next.
    #[inline]
    pub fn start(&mut self, operation: &Operation) -> Result<()> {
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
    pub fn listen(&mut self) {
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
    pub fn go_on(&mut self, operation: &Operation) -> Result<Step> {
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

    #[cold]
    pub fn silent(&self) -> Failure {
        Failure::new("timeout", format!("nothing came for {} seconds", self.site.patience.answer))
    }

    #[cold]
    pub fn not_opened(&self) -> Failure {
        Failure::new("connect", format!("the server did not answer within {} seconds", self.site.patience.open))
    }

    /// When the peer has had its time.
    #[inline]
    pub fn until_ns(&self) -> u64 {
        // The clock that is asked is a tick late: whoever is woken by it must find that it is time.
        const TICK_NS: u64 = 10_000_000;
        let patience = self.site.patience;
        let seconds = if self.stage == Stage::Opening { patience.open } else { patience.answer };
        self.since_ns + seconds * SECOND_NS + TICK_NS
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
