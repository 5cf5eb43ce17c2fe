//! A site's user: its requests, one after the other, each as far as the received bytes allow.

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

/// Progress of a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Stage {
    Opening,
    /// Number of its bytes that were sent.
    Sending(usize),
    Awaiting,
    Thinking,
}

/// A site's user: one connection, and one without TLS if some request needs it.
pub struct Client<E: Exchange> {
    pub site: Arc<Site<E>>,
    pub main: Line<E>,
    pub clear: Option<Line<E>>,
    pub polled: bool,
    pub errands: Errands<E>,
    /// The current request and its progress.
    pub number: usize,
    pub stage: Stage,
    /// Its number in the arm, the number of connections that it has had, and how many requests the open one still carries.
    own: u64,
    had: u64,
    left: u64,
    /// Its connection was opened for it, so it can't have been closed for being idle.
    fresh: bool,
    /// Keep the response, whatever its status.
    pub querying: bool,
    /// Time of the last receive or send; only for polled connections.
    since_ns: u64,
    pub thinking: Thinking,
    /// An unexpected response: it fails the next request, so that it is counted.
    pub surplus: Option<Failure>,
    pub outcome: Outcome,
}

impl<E: Exchange> Client<E> {
    pub fn new(site: Arc<Site<E>>, main: Line<E>, clear: Option<Line<E>>, polled: bool, own: u64) -> Client<E> {
        let left = site.lengths.as_ref().map_or(u64::MAX, |lengths| lengths.of(own, 0));
        Client {
            own,
            had: 0,
            left,
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

    /// Opens the connections and waits for them. Returns what TLS negotiated: None without TLS.
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

    /// The connection of the current request, if any.
    #[inline]
    pub fn current(&mut self) -> Option<(&E::Request, &mut Line<E>)> {
        let Some(Errand::Request { clear, request, last }) = self.errands.get(self.number) else { return None };
        let request = match last {
            Some(last) if self.left <= 1 => last,
            _ => request,
        };
        match &mut self.clear {
            Some(line) if *clear => Some((request, line)),
            _ => Some((request, &mut self.main)),
        }
    }

    /// The same, read-only.
    #[inline]
    pub fn link(&self) -> &Link<E> {
        match (self.errands.get(self.number), &self.clear) {
            (Some(Errand::Request { clear: true, .. }), Some(clear)) => &clear.link,
            _ => &self.main.link,
        }
    }

    /// Whether received bytes on the request's connection are still unread.
    #[inline]
    fn holds_more(&mut self) -> bool {
        self.current().and_then(|(_, line)| line.link.transport()).is_some_and(|transport| transport.holds_more())
    }

    #[inline]
    pub fn is_clear(&self) -> bool {
        matches!(self.errands.get(self.number), Some(Errand::Request { clear: true, .. }))
    }

    /// Begins the next request.
    #[inline]
    pub fn start(&mut self, operation: &Operation) -> Result<()> {
        self.fresh = false;
        if let Some(Errand::Think(think)) = self.errands.get(self.number) {
            self.stage = Stage::Thinking;
            return self.thinking.begin(*think, operation).map(drop);
        }
        // Bytes after the last response don't belong to the next one.
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

    /// Reads what arrived while no request was pending.
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
        if let Some(lengths) = &self.site.lengths {
            self.had += 1;
            self.left = lengths.of(self.own, self.had);
        }
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

    /// Continues as far as possible without waiting or, with blocking connections, to the end.
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
                    // Bytes received together with others are already here: no socket reports them.
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

    /// Moves to the next statement. True: there is none, or an earlier one failed.
    #[inline]
    fn is_last(&mut self, operation: &Operation) -> bool {
        self.number += 1;
        if self.number < operation.last && self.outcome.error.is_none() {
            return false;
        }
        // From here on, input concerns the connection that was used last.
        self.number -= 1;
        if self.site.per_request {
            self.close();
        }
        true
    }

    /// Sends the rest of the request. `false`: the socket is full.
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
                // The server has closed: its last bytes, if any, give the reason.
                Err(_) => break,
            }
        }
        if let (false, Some(transport)) = (full, link.transport()) {
            // The same holds.
            let _ = transport.conclude();
        }
        link.outbox = outbox;
        if full && !polled {
            return Err(self.silent());
        }
        self.stage = if full { Stage::Sending(sent) } else { Stage::Awaiting };
        Ok(!full)
    }

    /// Receives until the response is complete or no more bytes are there.
    #[inline]
    fn receive(&mut self) -> Result<Heard> {
        let (polled, fresh) = (self.polled, self.fresh);
        let mut since_ns = self.since_ns;
        let Some((_, line)) = self.current() else { return Err(Failure::internal("no request")) };
        let (link, exchange, say) = (&mut line.link, &mut line.exchange, &mut line.say);
        let heard = RECEIVED.with_borrow_mut(|room| {
            loop {
                let Some(transport) = link.transport() else { return Err(Failure::internal("not open")) };
                let received = transport.receive(room);
                while let Some((stream, bytes, ended)) = transport.aside() {
                    exchange.aside(stream, &bytes, ended)?;
                }
                match received {
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
                            Taken::Refused => return Err(closed_early("the server closed the connection")),
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
                    // Something was said aside.
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                        return Err(Failure::new("timeout", error.to_string()));
                    }
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                        return Err(Failure::tls(error.to_string()));
                    }
                    Err(_) if !exchange.begun() && !fresh => return Ok(Heard::Silence),
                    Err(error) => {
                        exchange.end(false)?;
                        return Err(closed_early(error.to_string()));
                    }
                }
            }
        });
        if polled {
            line.expect_rest();
        }
        self.since_ns = since_ns;
        heard
    }

    /// The server closed the connection before it got the request: send it once more on a new one.
    #[cold]
    fn retry(&mut self) -> Result<()> {
        if let Some((_, line)) = self.current() {
            line.link.abandon();
        }
        self.reopen()
    }

    /// Judges the complete response.
    #[inline]
    fn answered(&mut self, operation: &Operation) {
        let querying = self.querying;
        self.left = self.left.saturating_sub(u64::from(!querying));
        let over = self.left == 0;
        let Some((request, line)) = self.current() else { return };
        let keep = line.exchange.keep() && !over;
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
        Failure::new("timeout", format!("the server sent nothing for {} seconds", self.site.patience.answer))
    }

    #[cold]
    pub fn not_opened(&self) -> Failure {
        Failure::new("connect", format!("the server did not answer within {} seconds", self.site.patience.open))
    }

    /// When the peer's time is up, or its connection has something to do.
    #[inline]
    pub fn wakes_ns(&self) -> u64 {
        let until_ns = self.until_ns();
        self.link().timer_ns().map_or(until_ns, |ns| ns.min(until_ns))
    }

    /// When the peer's time is up.
    #[inline]
    pub fn until_ns(&self) -> u64 {
        // The coarse clock lags by up to a tick, and must be past this time when the thread wakes.
        const TICK_NS: u64 = 10_000_000;
        let patience = self.site.patience;
        let seconds = if self.stage == Stage::Opening { patience.open } else { patience.answer };
        self.since_ns + seconds * SECOND_NS + TICK_NS
    }
}

/// Result of reading a connection.
enum Heard {
    /// Something needs a reply before the response continues.
    Reply,
    /// The response is incomplete.
    Nothing,
    Answer,
    /// A connection from before the request has ended without any part of the response.
    Silence,
}

/// Describes a response whose status isn't a success.
#[cold]
fn refused<E: Exchange>(request: &E::Request, operation: &Operation, response: &Response<'_>) -> Failure {
    let (label, status, details) = (E::label(request, operation), response.status, response.details);
    let mut text = format!("{label}: {status} {}", details.reason).trim_end().to_string();
    if !details.location.is_empty() {
        text.push_str(&format!(" to {} (redirects are not followed)", details.location));
    }
    Failure::new(&format!("status-{status}"), text)
}
