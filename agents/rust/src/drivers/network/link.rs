//! Opens and closes a connection to a server: connect, TLS, login, goodbye. Waits only if its socket blocks.

use super::phase::Phase;
use super::target::Target;
use super::wire::{Inbox, Login, Protection, Turn, Wire};
use crate::connection::{Interest, Step};
use crate::deadline::{self, LOGIN_BYTES};
use crate::failure::{Failure, Result};
use crate::transport::Transport;
use crate::transport::quic;
use crate::transport::socket::{Mode, Socket};
use crate::transport::tls::Facts;
use crate::transport::traffic::{self, Segments, Traffic};
use crate::transport::wirecrypt::{Ciphers, WireCrypt};
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

pub struct Link<W: Wire> {
    pub target: Arc<Target<W::Asked>>,
    pub polled: bool,
    per_request: bool,
    phase: Phase,
    /// The last login, running or complete.
    pub login: W::Login,
    /// How many sockets this link has had.
    opened: u64,
    /// Bytes from the server since the login began.
    heard_bytes: usize,
    pub inbox: W::Inbox,
    /// Messages that wait for `flush`. Reused, so that encoding doesn't allocate.
    pub outbox: Vec<u8>,
    /// How much of it was sent, and whether the rest waits for room in the socket.
    sent: usize,
    unsent: bool,
    /// The server's last error: if the connection closes next, this is the reason.
    pub last_error: Option<Failure>,
    /// Segments of closed connections, unless each operation has its own: then all of their traffic counts when they close.
    past: Segments,
    /// The last closed connection, which waits for its peer's close: so none of our ports stays in TIME_WAIT.
    leaving: Option<Socket>,
    /// With one connection per operation: how much of its traffic was counted.
    counted: Traffic,
}

impl<W: Wire> Link<W> {
    pub fn new(target: Arc<Target<W::Asked>>, polled: bool, per_request: bool) -> Link<W> {
        Link {
            target,
            polled,
            per_request,
            phase: Phase::Closed,
            login: W::Login::default(),
            opened: 0,
            heard_bytes: 0,
            inbox: W::Inbox::default(),
            outbox: Vec::new(),
            sent: 0,
            unsent: false,
            last_error: None,
            past: Segments::default(),
            leaving: None,
            counted: Traffic::default(),
        }
    }

    /// Opens the connection and waits for it. Returns its negotiated encryption: None without encryption.
    pub fn open_now(&mut self) -> Result<Option<Facts>> {
        self.start_opening(Mode::Blocking)?;
        let mut opened = self.go_on_opening()? == Step::Done;
        if let Phase::Open(Transport::Quic(quic)) = &mut self.phase {
            opened = quic.complete()?;
        }
        if !opened {
            return Err(match &self.target.protection {
                Protection::Quic(_) => quic::unanswered(self.target.address),
                _ => Failure::connect("the server did not answer in time"),
            });
        }
        let Phase::Open(transport) = &self.phase else { return Err(Failure::internal("not open")) };
        let facts = match (transport, &self.target.protection) {
            (Transport::Tls(stream), Protection::Tls(tls)) => {
                let facts = tls.facts(stream.ssl());
                match self.login.verified_by() {
                    Some(by) if facts.verified_by.is_empty() => Some(Facts { verified_by: by, ..facts }),
                    _ => Some(facts),
                }
            }
            (Transport::WireCrypt(stream), _) => Some(stream.facts()),
            (Transport::Quic(quic), _) => Some(quic.facts()),
            _ => None,
        };
        transport.socket().set_timeout(false)?;
        if self.polled && !self.per_request {
            transport.socket().set_mode(Mode::Polled)?;
        }
        Ok(facts)
    }

    pub fn start_opening(&mut self, mode: Mode) -> Result<()> {
        self.abandon();
        if !self.per_request {
            // Its peer closed it: nothing to wait for, and no next close would free it.
            self.part();
        }
        self.inbox.clear();
        self.forget_outbox();
        self.last_error = None;
        self.login = W::Login::default();
        self.opened += 1;
        self.heard_bytes = 0;
        let socket = self.target.open(mode)?;
        if self.per_request {
            socket.count_later();
        }
        self.phase = Phase::Connecting(socket);
        Ok(())
    }

    /// Continues until login is complete (`Done`) or the server must respond (`Pending`).
    pub fn go_on_opening(&mut self) -> Result<Step> {
        let step = self.open_further();
        if step.is_err() {
            self.abandon();
        }
        step
    }

    /// The same. After an error the phase still holds the socket, whose traffic counts.
    fn open_further(&mut self) -> Result<Step> {
        let target = self.target.clone();
        loop {
            match &mut self.phase {
                Phase::Connecting(socket) => {
                    if self.polled {
                        socket.connected(target.address)?;
                    }
                    if let Phase::Connecting(socket) = std::mem::take(&mut self.phase) {
                        self.phase = Phase::Greeting(socket);
                    }
                }
                Phase::Greeting(socket) => {
                    if self.login.greet(socket, &target.asked)? == Step::Pending {
                        return Ok(Step::Pending);
                    }
                    let Phase::Greeting(socket) = std::mem::take(&mut self.phase) else { continue };
                    match &target.protection {
                        Protection::Tls(tls) => self.phase = Phase::Handshake(tls.start(socket)?),
                        Protection::Quic(quic) => {
                            self.phase = Phase::QuicHandshake(quic.start(socket, target.address)?);
                        }
                        _ => self.log_in(Transport::Clear(socket))?,
                    }
                }
                Phase::Handshake(stream) => {
                    let Protection::Tls(tls) = &target.protection else {
                        return Err(Failure::internal("a handshake without TLS"));
                    };
                    if !tls.shake_hands(stream)? {
                        return Ok(Step::Pending);
                    }
                    let resumed = u64::from(stream.ssl().session_reused());
                    traffic::add(Traffic { resumed, ..Traffic::default() });
                    let Phase::Handshake(stream) = std::mem::take(&mut self.phase) else { continue };
                    self.log_in(Transport::Tls(stream))?;
                }
                Phase::QuicHandshake(quic) => {
                    if !quic.shake_hands()? {
                        return Ok(Step::Pending);
                    }
                    let Phase::QuicHandshake(quic) = std::mem::take(&mut self.phase) else { continue };
                    self.log_in(Transport::Quic(quic))?;
                }
                Phase::Login(transport) => match self.login.hear(&mut self.inbox, &target.asked)? {
                    Turn::Send(answer) => transport.send(&answer)?,
                    Turn::Wait => {
                        if !self.hear_login()? {
                            return Ok(Step::Pending);
                        }
                    }
                    Turn::Encrypt(last_in_clear, ciphers) => self.encrypt(&last_in_clear, ciphers)?,
                    Turn::Ready => return self.let_in().map(|()| Step::Done),
                },
                Phase::Open(_) => return Ok(Step::Done),
                Phase::Closed => return Err(Failure::connect("the connection is closed")),
            }
        }
    }

    /// Sends the login's first message.
    fn log_in(&mut self, transport: Transport) -> Result<()> {
        if let (Transport::Tls(stream), Protection::Tls(tls)) = (&transport, &self.target.protection) {
            self.login.protected_by(stream.ssl(), &self.target.asked);
            if let Some(certificate) = tls.to_be_proven(stream.ssl())? {
                self.login.must_prove(certificate);
            }
        }
        self.phase = Phase::Login(transport);
        let first = self.login.first(&self.target.asked)?;
        if let Phase::Login(transport) = &mut self.phase {
            transport.send(&first)?;
        }
        Ok(())
    }

    /// Receives once during the login. `false`: nothing has arrived yet.
    fn hear_login(&mut self) -> Result<bool> {
        let Phase::Login(transport) = &mut self.phase else { return Err(Failure::internal("no login")) };
        let heard_bytes = &mut self.heard_bytes;
        let filled = self.inbox.fill(|into| {
            let received = transport.receive(into)?;
            *heard_bytes += received;
            Ok(received)
        });
        if self.heard_bytes > LOGIN_BYTES {
            return Err(Failure::connect("the server sent more than 1 MiB before the login completed"));
        }
        match filled {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            other => other.map(|()| true).map_err(Failure::from),
        }
    }

    /// Sends this unencrypted. The login then continues encrypted.
    fn encrypt(&mut self, last_in_clear: &[u8], ciphers: Ciphers) -> Result<()> {
        if !self.inbox.buffer().unread().is_empty() {
            // Early unencrypted bytes could come from someone else.
            return Err(Failure::tls("the server sent unencrypted bytes where encryption begins"));
        }
        if let Phase::Login(transport) = &mut self.phase {
            transport.send(last_in_clear)?;
        }
        if let Phase::Login(transport) = std::mem::take(&mut self.phase) {
            self.phase = Phase::Login(Transport::WireCrypt(WireCrypt::new(transport.into_socket(), ciphers)));
        }
        Ok(())
    }

    fn let_in(&mut self) -> Result<()> {
        let Phase::Login(transport) = &self.phase else { return Err(Failure::internal("no login")) };
        let as_asked = matches!(
            (transport, &self.target.protection),
            (Transport::Clear(_), Protection::Clear)
                | (Transport::Tls(_), Protection::Tls(_))
                | (Transport::WireCrypt(_), Protection::WireCrypt)
                | (Transport::Quic(_), Protection::Quic(_))
        );
        if !as_asked {
            return Err(Failure::internal("the connection is not encrypted as requested"));
        }
        // A QUIC connection counts itself: its handshake may not be complete yet.
        if !matches!(transport, Transport::Quic(_)) {
            traffic::connected();
        }
        self.inbox.rest();
        if let Phase::Login(transport) = std::mem::take(&mut self.phase) {
            self.phase = Phase::Open(transport);
        }
        Ok(())
    }

    /// Closes like a driver: the protocol's goodbye, close_notify. The next close awaits the peer's, or, of a connection
    /// that is meant to stay, the next open.
    pub fn close(&mut self) {
        self.part();
        self.forget_outbox();
        if let Phase::Open(mut transport) = std::mem::take(&mut self.phase) {
            let _ = transport.send(W::GOODBYE);
            transport.say_goodbye();
            self.leaving = Some(transport.into_socket());
            self.counted = Traffic::default();
            self.count_leaving();
        }
    }

    /// Awaits the close of the last closed connection.
    fn part(&mut self) {
        let Some(leaving) = self.leaving.take() else { return };
        let whole = W::part(leaving);
        if self.per_request {
            traffic::add(whole.since(self.counted));
        } else {
            self.past.add(whole.segments());
        }
    }

    /// With one connection per operation: counts what the closed connection has moved since it was counted last.
    fn count_leaving(&mut self) {
        if let (true, Some(leaving)) = (self.per_request, &self.leaving) {
            let whole = leaving.traffic();
            traffic::add(whole.since(self.counted));
            self.counted = whole;
        }
    }

    pub fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open(_))
    }

    /// Drops the connection, if there is one, without a goodbye.
    pub fn abandon(&mut self) {
        let whole = self.socket().map(Socket::traffic).unwrap_or_default();
        if self.per_request {
            traffic::add(whole);
        } else {
            self.past.add(whole.segments());
        }
        self.phase = Phase::Closed;
        self.forget_outbox();
    }

    fn forget_outbox(&mut self) {
        self.outbox.clear();
        (self.sent, self.unsent) = (0, false);
    }

    /// The connection's transport, once open.
    #[inline]
    pub fn transport(&mut self) -> Option<&mut Transport> {
        match &mut self.phase {
            Phase::Open(transport) => Some(transport),
            _ => None,
        }
    }

    /// Sends the outbox. Where others share the thread of a load, the rest may have to wait: then `is_stuck` is true until
    /// later calls have sent it.
    #[inline]
    pub fn flush(&mut self) -> Result<()> {
        let Phase::Open(transport) = &mut self.phase else { return Err(Failure::connect("the connection is closed")) };
        let sent = if self.polled && !deadline::wakes() {
            send_some(transport, &self.outbox, &mut self.sent)
        } else {
            transport.send(&self.outbox[self.sent..]).map(|()| true)
        };
        self.unsent = matches!(sent, Ok(false));
        if self.unsent {
            return Ok(());
        }
        self.outbox.clear();
        self.sent = 0;
        sent.map(drop).map_err(|error| self.last_error.take().map_or_else(|| error.into(), Failure::lost))
    }

    /// Whether bytes of a flush wait for room in the socket.
    #[inline]
    pub fn is_stuck(&self) -> bool {
        self.unsent
    }

    /// Receives once. `false`: nothing has arrived yet.
    #[inline]
    pub fn receive(&mut self) -> Result<bool> {
        let Phase::Open(transport) = &mut self.phase else { return Err(Failure::connect("the connection is closed")) };
        match self.inbox.fill(|into| transport.receive(into)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(self.last_error.take().map_or_else(|| error.into(), Failure::lost)),
        }
    }

    /// Receives, waiting for bytes whether the socket blocks or not.
    pub fn await_more(&mut self) -> Result<()> {
        while !self.receive()? {
            if let Phase::Open(transport) = &self.phase {
                transport.socket().wait(libc::POLLIN)?;
            }
        }
        Ok(())
    }

    /// Segments of its connections so far. With one connection per operation the traffic of each counts, whole, once it has
    /// closed, so that its handshake and its response are never split where a slice begins or ends: then there are none.
    pub fn settle(&mut self) -> Segments {
        if self.per_request {
            self.count_leaving();
            return Segments::default();
        }
        let mut sum = self.past;
        for socket in self.socket().into_iter().chain(&self.leaving) {
            sum.add(socket.traffic().segments());
        }
        sum
    }

    /// What the link waits for, if it has a socket.
    #[inline]
    pub fn interest(&self) -> Option<Interest> {
        let events = match self.phase {
            Phase::Connecting(_) => libc::EPOLLOUT,
            _ if self.unsent => libc::EPOLLIN | libc::EPOLLOUT,
            _ => libc::EPOLLIN,
        };
        self.socket().map(|socket| Interest { opened: self.opened, fd: socket.as_raw_fd(), events: events as u32 })
    }

    /// When the connection has something to do although nothing arrives (monotonic clock).
    #[inline]
    pub fn timer_ns(&self) -> Option<u64> {
        self.phase.timer_ns()
    }

    /// What to wait for when a request can't be sent any further.
    #[inline]
    pub fn waits_to_send_for(&self) -> i32 {
        self.phase.waits_to_send_for()
    }

    #[inline]
    pub fn socket(&self) -> Option<&Socket> {
        self.phase.socket()
    }
}

/// Sends what the socket has room for, from `sent` on. `false`: the rest must wait.
#[inline]
fn send_some(transport: &mut Transport, bytes: &[u8], sent: &mut usize) -> io::Result<bool> {
    while *sent < bytes.len() {
        match transport.send_some(&bytes[*sent..]) {
            Ok(more) => *sent += more,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Says goodbye without waiting for the peer.
impl<W: Wire> Drop for Link<W> {
    fn drop(&mut self) {
        if let Phase::Open(transport) = &mut self.phase {
            let words = [&self.login.farewell()[..], W::GOODBYE].concat();
            deadline::at_once(|| {
                let _ = transport.send(&words);
                transport.say_goodbye();
            });
        }
    }
}
