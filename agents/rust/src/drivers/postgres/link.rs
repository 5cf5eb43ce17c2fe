//! link: a server -> an open connection to it: connect, TLS, login, goodbye. Waits nowhere unless its socket does.

use super::inbox::{Inbox, Message};
use super::login::{self, Login, Turn};
use super::outbox::Outbox;
use crate::drivers::{Interest, Step};
use crate::failure::{Failure, Result};
use crate::message;
use crate::transport::Transport;
use crate::transport::socket::{Mode, Socket, Traffic};
use crate::transport::tls::{Facts, TlsClient};
use openssl::ssl::SslStream;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// A server, and how to come in.
pub struct Server {
    pub address: SocketAddr,
    pub asked: message::Postgres,
    pub tls: Option<TlsClient>,
}

/// Where a connection stands.
enum Phase {
    Closed,
    Connecting(Socket),
    /// TLS was asked for; the server answers with one byte.
    TlsAsked(Socket),
    Handshake(SslStream<Socket>),
    Login(Transport, Box<Login>),
    Open(Transport),
}

pub struct Link {
    server: Arc<Server>,
    pub polled: bool,
    per_request: bool,
    phase: Phase,
    /// How many sockets this link has had.
    opened: u64,
    pub inbox: Inbox,
    /// The error that the server sent last: if the connection closes next, that is why.
    pub last_error: Option<Failure>,
    /// Traffic of connections that were closed, and what was opened.
    past: Traffic,
    /// The last closed connection, whose peer has yet to close it: then no port of ours stays in TIME_WAIT.
    leaving: Option<Socket>,
}

impl Link {
    pub fn new(server: Arc<Server>, polled: bool, per_request: bool) -> Link {
        Link {
            server,
            polled,
            per_request,
            phase: Phase::Closed,
            opened: 0,
            inbox: Inbox::new(),
            last_error: None,
            past: Traffic::default(),
            leaving: None,
        }
    }

    /// Opens the connection, waiting for it. Gives what TLS negotiated: None in clear.
    pub fn open_now(&mut self, server_version: &mut String) -> Result<Option<Facts>> {
        self.start_opening(Mode::Blocking)?;
        if self.go_on_opening(server_version)? == Step::Pending {
            return Err(Failure::connect("the server did not answer in time"));
        }
        let Phase::Open(transport) = &self.phase else { return Err(Failure::internal("not open")) };
        let facts = match (transport, &self.server.tls) {
            (Transport::Tls(stream), Some(tls)) => Some(tls.facts(stream.ssl())),
            (Transport::Clear(_), None) => None,
            _ => return Err(Failure::internal("the connection is not what was asked for")),
        };
        transport.socket().set_timeout(false)?;
        if self.polled && !self.per_request {
            transport.socket().set_mode(Mode::Polled)?;
        }
        Ok(facts)
    }

    pub fn start_opening(&mut self, mode: Mode) -> Result<()> {
        self.inbox = Inbox::new();
        self.opened += 1;
        self.phase = Phase::Connecting(Socket::open(self.server.address, mode)?);
        Ok(())
    }

    /// Goes on until the server has let us in (`Done`) or has yet to answer (`Pending`).
    pub fn go_on_opening(&mut self, server_version: &mut String) -> Result<Step> {
        loop {
            match std::mem::replace(&mut self.phase, Phase::Closed) {
                Phase::Connecting(socket) => {
                    if self.polled {
                        socket.connected(self.server.address)?;
                    }
                    self.phase = if self.server.tls.is_some() {
                        socket.send_all(&login::ssl_request())?;
                        Phase::TlsAsked(socket)
                    } else {
                        self.log_in(Transport::Clear(socket))?
                    };
                }
                Phase::TlsAsked(socket) => {
                    // One byte and no more: whatever follows in clear would be someone else's.
                    let mut answer = [0];
                    match (socket.receive(&mut answer), &self.server.tls) {
                        (Err(error), _) if error.kind() == io::ErrorKind::WouldBlock => {
                            self.phase = Phase::TlsAsked(socket);
                            return Ok(Step::Pending);
                        }
                        (Ok(1), Some(tls)) if answer == *b"S" => self.phase = Phase::Handshake(tls.start(socket)?),
                        (Ok(_), _) => return Err(Failure::tls("the server does not offer TLS")),
                        (Err(error), _) => return Err(error.into()),
                    }
                }
                Phase::Handshake(mut stream) => {
                    let tls = self.server.tls.as_ref().ok_or_else(|| Failure::internal("a handshake without TLS"))?;
                    if !tls.shake_hands(&mut stream)? {
                        self.phase = Phase::Handshake(stream);
                        return Ok(Step::Pending);
                    }
                    self.past.resumed += u64::from(stream.ssl().session_reused());
                    self.phase = self.log_in(Transport::Tls(stream))?;
                }
                Phase::Login(mut transport, mut login) => {
                    let asked = &self.server.asked;
                    while let Some(message) = self.inbox.next(false)? {
                        let Message::Other { tag, body } = message else { continue };
                        match login.hear(tag, body, asked)? {
                            Turn::Wait => {}
                            Turn::Send(answer) => transport.send(&answer)?,
                            Turn::Ready => {
                                self.past.connects += 1;
                                // "15.18 (Debian …)": the packager's name is no part of the version.
                                *server_version = login.server_version.split(' ').next().unwrap_or_default().into();
                                self.phase = Phase::Open(transport);
                                return Ok(Step::Done);
                            }
                        }
                    }
                    let filled = self.inbox.fill(|into| transport.receive(into));
                    self.phase = Phase::Login(transport, login);
                    match filled {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Step::Pending),
                        other => other?,
                    }
                }
                Phase::Open(transport) => {
                    self.phase = Phase::Open(transport);
                    return Ok(Step::Done);
                }
                Phase::Closed => return Err(Failure::connect("the connection is closed")),
            }
        }
    }

    fn log_in(&self, mut transport: Transport) -> Result<Phase> {
        transport.send(&login::startup(&self.server.asked)?)?;
        Ok(Phase::Login(transport, Box::default()))
    }

    /// Closes as a driver does: Terminate, close_notify. The peer's own close is awaited at the next one.
    pub fn close(&mut self) {
        if let Some(leaving) = self.leaving.take() {
            while matches!(wait_and_receive(&leaving), Ok(1..)) {}
            self.past.add(leaving.traffic());
            leaving.forget_on_close();
        }
        if let Phase::Open(mut transport) = std::mem::replace(&mut self.phase, Phase::Closed) {
            let mut outbox = Outbox::default();
            outbox.terminate();
            let _ = transport.send(&outbox.0);
            transport.say_goodbye();
            self.leaving = Some(transport.into_socket());
        }
    }

    pub fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open(_))
    }

    /// Drops the connection without a word.
    pub fn abandon(&mut self) {
        self.phase = Phase::Closed;
    }

    #[inline]
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        let Phase::Open(transport) = &mut self.phase else { return Err(Failure::connect("the connection is closed")) };
        let sent = transport.send(bytes);
        sent.map_err(|error| self.last_error.take().map_or_else(|| error.into(), Failure::lost))
    }

    /// Receives once. `false`: nothing has come yet.
    #[inline]
    pub fn receive(&mut self) -> Result<bool> {
        let Phase::Open(transport) = &mut self.phase else { return Err(Failure::connect("the connection is closed")) };
        match self.inbox.fill(|into| transport.receive(into)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(self.last_error.take().map_or_else(|| error.into(), Failure::lost)),
        }
    }

    /// Waits until something has come, whether the socket blocks or not.
    pub fn wait(&self) -> Result<()> {
        if let Phase::Open(transport) = &self.phase {
            transport.socket().wait(libc::POLLIN)?;
        }
        Ok(())
    }

    /// All traffic so far.
    pub fn traffic(&self) -> Traffic {
        let mut sum = self.past;
        sum.add(self.socket().map(Socket::traffic).unwrap_or_default());
        sum.add(self.leaving.as_ref().map(Socket::traffic).unwrap_or_default());
        sum
    }

    /// What the link waits for, while there is one.
    #[inline]
    pub fn interest(&self) -> Option<Interest> {
        let events = if matches!(self.phase, Phase::Connecting(_)) { libc::EPOLLOUT } else { libc::EPOLLIN };
        self.socket().map(|socket| Interest { opened: self.opened, fd: socket.as_raw_fd(), events: events as u32 })
    }

    #[inline]
    fn socket(&self) -> Option<&Socket> {
        match &self.phase {
            Phase::Closed => None,
            Phase::Connecting(socket) | Phase::TlsAsked(socket) => Some(socket),
            Phase::Handshake(stream) => Some(stream.get_ref()),
            Phase::Login(transport, _) | Phase::Open(transport) => Some(transport.socket()),
        }
    }
}

/// Takes leave without waiting for the peer.
impl Drop for Link {
    fn drop(&mut self) {
        if let Phase::Open(transport) = &mut self.phase {
            let mut outbox = Outbox::default();
            outbox.terminate();
            let _ = transport.send(&outbox.0);
            transport.say_goodbye();
        }
    }
}

fn wait_and_receive(socket: &Socket) -> io::Result<usize> {
    let mut rest = [0; 1024];
    match socket.receive(&mut rest) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            socket.wait(libc::POLLIN)?;
            socket.receive(&mut rest)
        }
        other => other,
    }
}
