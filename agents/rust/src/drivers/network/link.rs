//! Opens and closes a connection to a server: connect, TLS, login, goodbye. Waits only if its socket blocks.

use super::wire::{Inbox, Login, Protection, Turn, Wire};
use crate::connection::{Interest, Step};
use crate::deadline::{self, LOGIN_BYTES};
use crate::failure::{Failure, Result};
use crate::transport::Transport;
use crate::transport::socket::{Mode, Socket, Traffic};
use crate::transport::tls::Facts;
use crate::transport::wirecrypt::{Ciphers, WireCrypt};
use openssl::ssl::SslStream;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// A server, and how to log in.
pub struct Target<A> {
    pub address: SocketAddr,
    pub asked: A,
    pub protection: Protection,
}

/// State of a connection.
#[derive(Default)]
enum Phase {
    #[default]
    Closed,
    Connecting(Socket),
    /// The protocol's unencrypted exchange before TLS or the login.
    Greeting(Socket),
    Handshake(SslStream<Socket>),
    Login(Transport),
    Open(Transport),
}

impl Phase {
    #[inline]
    fn socket(&self) -> Option<&Socket> {
        match self {
            Phase::Closed => None,
            Phase::Connecting(socket) | Phase::Greeting(socket) => Some(socket),
            Phase::Handshake(stream) => Some(stream.get_ref()),
            Phase::Login(transport) | Phase::Open(transport) => Some(transport.socket()),
        }
    }
}

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
    /// The server's last error: if the connection closes next, this is the reason.
    pub last_error: Option<Failure>,
    /// Traffic of closed connections, and what was opened.
    past: Traffic,
    /// The last closed connection, which waits for its peer's close: so none of our ports stays in TIME_WAIT.
    leaving: Option<Socket>,
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
            last_error: None,
            past: Traffic::default(),
            leaving: None,
        }
    }

    /// Opens the connection and waits for it. Returns its negotiated encryption: None without encryption.
    pub fn open_now(&mut self) -> Result<Option<Facts>> {
        self.start_opening(Mode::Blocking)?;
        if self.go_on_opening()? == Step::Pending {
            return Err(Failure::connect("the server did not answer in time"));
        }
        let Phase::Open(transport) = &self.phase else { return Err(Failure::internal("not open")) };
        let facts = match (transport, &self.target.protection) {
            (Transport::Tls(stream), Protection::Tls(tls)) => Some(tls.facts(stream.ssl())),
            (Transport::WireCrypt(stream), _) => Some(stream.facts()),
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
        self.inbox.clear();
        self.outbox.clear();
        self.last_error = None;
        self.login = W::Login::default();
        self.opened += 1;
        self.heard_bytes = 0;
        self.phase = Phase::Connecting(Socket::open(self.target.address, mode)?);
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
                    self.past.resumed += u64::from(stream.ssl().session_reused());
                    let Phase::Handshake(stream) = std::mem::take(&mut self.phase) else { continue };
                    self.log_in(Transport::Tls(stream))?;
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
        );
        if !as_asked {
            return Err(Failure::internal("the connection is not encrypted as requested"));
        }
        self.past.connects += 1;
        if let Phase::Login(transport) = std::mem::take(&mut self.phase) {
            self.phase = Phase::Open(transport);
        }
        Ok(())
    }

    /// Closes like a driver: the protocol's goodbye, close_notify. The next open awaits the peer's close.
    pub fn close(&mut self) {
        if let Some(leaving) = self.leaving.take() {
            self.past.add(W::part(leaving));
        }
        if let Phase::Open(mut transport) = std::mem::take(&mut self.phase) {
            let _ = transport.send(W::GOODBYE);
            transport.say_goodbye();
            self.leaving = Some(transport.into_socket());
        }
    }

    pub fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open(_))
    }

    /// Drops the connection, if there is one, without a goodbye.
    pub fn abandon(&mut self) {
        self.past.add(self.socket().map(Socket::traffic).unwrap_or_default());
        self.phase = Phase::Closed;
    }

    /// The connection's transport, once open.
    #[inline]
    pub fn transport(&mut self) -> Option<&mut Transport> {
        match &mut self.phase {
            Phase::Open(transport) => Some(transport),
            _ => None,
        }
    }

    /// Sends the outbox.
    #[inline]
    pub fn flush(&mut self) -> Result<()> {
        let Phase::Open(transport) = &mut self.phase else { return Err(Failure::connect("the connection is closed")) };
        let sent = transport.send(&self.outbox);
        self.outbox.clear();
        sent.map_err(|error| self.last_error.take().map_or_else(|| error.into(), Failure::lost))
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

    /// All traffic so far. With one connection per operation, only that of finished ones, so that a connection's handshake
    /// and response are never split where a slice begins or ends.
    pub fn traffic(&self) -> Traffic {
        let mut sum = self.past;
        if !self.per_request {
            sum.add(self.socket().map(Socket::traffic).unwrap_or_default());
        }
        sum.add(self.leaving.as_ref().map(Socket::traffic).unwrap_or_default());
        sum
    }

    /// What the link waits for, if it has a socket.
    #[inline]
    pub fn interest(&self) -> Option<Interest> {
        let events = if matches!(self.phase, Phase::Connecting(_)) { libc::EPOLLOUT } else { libc::EPOLLIN };
        self.socket().map(|socket| Interest { opened: self.opened, fd: socket.as_raw_fd(), events: events as u32 })
    }

    #[inline]
    pub fn socket(&self) -> Option<&Socket> {
        self.phase.socket()
    }
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
