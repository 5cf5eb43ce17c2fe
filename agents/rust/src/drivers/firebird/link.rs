//! link: a server -> an open connection to a database: connect, login, wire encryption, attach, goodbye.

use super::format::Format;
use super::inbox::{Inbox, Packet};
use super::login::{Login, Turn};
use super::xdr::Outbox;
use crate::connection::{Interest, Step};
use crate::deadline::{self, LOGIN_BYTES};
use crate::failure::{Failure, Result};
use crate::message::{self, WireCrypt};
use crate::transport::Transport;
use crate::transport::socket::{Mode, Socket, Traffic};
use crate::transport::wirecrypt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;

const OP_DISCONNECT: i32 = 6;
const OP_DETACH: i32 = 21;

/// A server, and how to come in.
pub struct Server {
    pub address: SocketAddr,
    pub asked: message::Firebird,
}

/// Where a connection stands.
enum Phase {
    Closed,
    Connecting(Socket),
    Login(Transport, Box<Login>),
    Open(Transport),
}

/// What was agreed on while the connection was opened.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    pub auth: &'static str,
    /// The wire encryption plugin; empty in clear.
    pub plugin: String,
    /// Version of the protocol.
    pub protocol: i32,
    /// The database's handle.
    pub database: i32,
}

pub struct Link {
    server: Arc<Server>,
    pub polled: bool,
    per_request: bool,
    phase: Phase,
    /// How many sockets this link has had.
    opened: u64,
    /// What the server has sent since the login began.
    heard_bytes: usize,
    pub inbox: Inbox,
    pub facts: Facts,
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
            heard_bytes: 0,
            inbox: Inbox::new(),
            facts: Facts::default(),
            past: Traffic::default(),
            leaving: None,
        }
    }

    /// Opens the connection, waiting for it.
    pub fn open_now(&mut self) -> Result<()> {
        self.start_opening(Mode::Blocking)?;
        if self.go_on_opening()? == Step::Pending {
            return Err(Failure::connect("the server did not answer in time"));
        }
        let Phase::Open(transport) = &self.phase else { return Err(Failure::internal("not open")) };
        transport.socket().set_timeout(false)?;
        if self.polled && !self.per_request {
            transport.socket().set_mode(Mode::Polled)?;
        }
        Ok(())
    }

    pub fn start_opening(&mut self, mode: Mode) -> Result<()> {
        self.inbox = Inbox::new();
        self.facts = Facts::default();
        self.opened += 1;
        self.heard_bytes = 0;
        self.phase = Phase::Connecting(Socket::open(self.server.address, mode)?);
        Ok(())
    }

    /// Goes on until the database is attached (`Done`) or the server has yet to answer (`Pending`).
    pub fn go_on_opening(&mut self) -> Result<Step> {
        loop {
            match std::mem::replace(&mut self.phase, Phase::Closed) {
                Phase::Connecting(socket) => {
                    if self.polled {
                        socket.connected(self.server.address)?;
                    }
                    let (login, mut outbox) = (Box::new(Login::new()?), Outbox::default());
                    login.connect(&self.server.asked, &mut outbox);
                    socket.send_all(&outbox.0)?;
                    self.phase = Phase::Login(Transport::Clear(socket), login);
                }
                Phase::Login(mut transport, mut login) => {
                    let turn = match self.inbox.next(&Format::default())? {
                        Some(packet) => Some(login.hear(packet, &self.server.asked)?),
                        None => None,
                    };
                    match turn {
                        None => {
                            let heard_bytes = &mut self.heard_bytes;
                            let filled = self.inbox.fill(|into| {
                                let received = transport.receive(into)?;
                                *heard_bytes += received;
                                Ok(received)
                            });
                            if self.heard_bytes > LOGIN_BYTES {
                                let text = "the server sends more than 1 MiB before it lets us in";
                                return Err(Failure::connect(text));
                            }
                            self.phase = Phase::Login(transport, login);
                            match filled {
                                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Step::Pending),
                                other => other?,
                            }
                        }
                        Some(Turn::Send(outbox)) => {
                            transport.send(&outbox.0)?;
                            self.phase = Phase::Login(transport, login);
                        }
                        Some(Turn::Encrypt(outbox, chosen)) => {
                            if !self.inbox.is_empty() {
                                // Whatever came in clear before its time would be someone else's.
                                return Err(Failure::tls("the server speaks on in clear where encryption begins"));
                            }
                            transport.send(&outbox.0)?;
                            let (plugin, socket) = (chosen.plugin, transport.into_socket());
                            let stream = wirecrypt::WireCrypt::new(socket, &plugin, &chosen.key, &chosen.iv);
                            self.phase = Phase::Login(Transport::WireCrypt(stream.map_err(Failure::tls)?), login);
                        }
                        Some(Turn::Ready(database)) => {
                            self.attached(transport, &login, database)?;
                            return Ok(Step::Done);
                        }
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

    fn attached(&mut self, transport: Transport, login: &Login, database: i32) -> Result<()> {
        let plugin = match &transport {
            Transport::WireCrypt(stream) => stream.plugin().to_string(),
            _ => String::new(),
        };
        if plugin.is_empty() != (self.server.asked.wire_crypt == WireCrypt::Off) {
            return Err(Failure::internal("the connection is not what was asked for"));
        }
        self.past.connects += 1;
        self.facts = Facts { auth: login.plugin, plugin, protocol: login.protocol, database };
        self.phase = Phase::Open(transport);
        Ok(())
    }

    /// What takes leave of the database; its answer is awaited, as drivers do.
    pub fn detach(&self, outbox: &mut Outbox) {
        outbox.int(OP_DETACH);
        outbox.int(self.facts.database);
    }

    /// Closes once the database is detached. The peer's own close is awaited at the next one.
    pub fn close(&mut self) {
        if let Some(leaving) = self.leaving.take() {
            self.past.add(leaving.finish());
        }
        if let Phase::Open(mut transport) = std::mem::replace(&mut self.phase, Phase::Closed) {
            let _ = transport.send(&OP_DISCONNECT.to_be_bytes());
            self.leaving = Some(transport.into_socket());
        }
    }

    /// Drops the connection without a word.
    pub fn abandon(&mut self) {
        self.phase = Phase::Closed;
    }

    #[inline]
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        let Phase::Open(transport) = &mut self.phase else { return Err(Failure::connect("the connection is closed")) };
        Ok(transport.send(bytes)?)
    }

    /// Receives once. `false`: nothing has come yet.
    #[inline]
    pub fn receive(&mut self) -> Result<bool> {
        let Phase::Open(transport) = &mut self.phase else { return Err(Failure::connect("the connection is closed")) };
        match self.inbox.fill(|into| transport.receive(into)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The next packet, waited for.
    pub fn next_now(&mut self, format: &Format) -> Result<Packet<'_>> {
        // Looked for twice: what is returned from within the loop would hold the inbox for all of it.
        while self.inbox.next_is_missing(format)? {
            if !self.receive()? {
                if let Phase::Open(transport) = &self.phase {
                    transport.socket().wait(libc::POLLIN)?;
                }
            }
        }
        self.inbox.next(format)?.ok_or_else(|| Failure::internal("a packet was lost"))
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
            Phase::Connecting(socket) => Some(socket),
            Phase::Login(transport, _) | Phase::Open(transport) => Some(transport.socket()),
        }
    }
}

/// Takes leave without waiting for the peer.
impl Drop for Link {
    fn drop(&mut self) {
        let mut outbox = Outbox::default();
        self.detach(&mut outbox);
        outbox.int(OP_DISCONNECT);
        if let Phase::Open(transport) = &mut self.phase {
            let _ = deadline::at_once(|| transport.send(&outbox.0));
        }
    }
}
