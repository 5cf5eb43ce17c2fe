//! postgres: statements -> PostgreSQL's extended protocol, one send and one receive a statement.

mod inbox;
mod login;
mod outbox;

use super::{Connection, Interest, Opened, Outcome, Pool, QUERY_LIMIT_BYTES, Rows, Step, escape};
use crate::failure::{Failure, Result};
use crate::message::{self, Connected, Tls};
use crate::program::{Operation, Script};
use crate::transport::Transport;
use crate::transport::socket::{Mode, Socket, Traffic};
use crate::transport::tls::{self, Facts, TlsClient};
use inbox::{Fields, Inbox, Message, error_of};
use login::{Login, Turn};
use openssl::ssl::SslStream;
use outbox::Outbox;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// Opens the connections of an arm, one after the other.
pub fn connect(pool: &message::Pool, asked: &message::Postgres) -> Result<Opened> {
    let tls = TlsClient::new(asked)?;
    let unknown = |why: String| Failure::connect(format!("host {:?}: {why}", asked.host));
    let addresses = (asked.host.as_str(), asked.port).to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
    let addresses: Vec<SocketAddr> = addresses.collect();
    let mut server = Server { address: SocketAddr::from(([127, 0, 0, 1], 0)), asked: asked.clone(), tls };
    let mut reached = Err(unknown("has no address".into()));
    for address in addresses {
        server.address = address;
        reached = Socket::open(address, Mode::Blocking);
        if reached.is_ok() {
            break;
        }
    }
    drop(reached?);
    let server = Arc::new(server);
    let polled = pool.connections > pool.threads;
    let mut connections = Vec::with_capacity(pool.connections);
    let mut connected = Connected { encrypted: asked.tls != Tls::Off, ..Connected::default() };
    for number in 0..pool.connections {
        let mut connection = PostgresConnection::new(server.clone(), polled, pool.per_request);
        // Where each operation opens its own connection, one is tried here: it proves the address and the encryption.
        if number == 0 || !pool.per_request {
            let facts = connection.open_now(&mut connected.server_version)?;
            connected.encrypted &= facts.is_some();
            let facts = facts.unwrap_or_default();
            connected.resumed += u64::from(facts.resumed);
            connected.verified = facts.verified;
            (connected.protocol, connected.cipher, connected.group) = (facts.protocol, facts.cipher, facts.group);
            (connected.peer, connected.peer_key) = (facts.peer, facts.peer_key);
            connected.library = if connected.encrypted { tls::library() } else { String::new() };
        }
        connections.push(connection);
    }
    Ok((Box::new(Pool { connections, threads: pool.threads }), connected))
}

struct Server {
    address: SocketAddr,
    asked: message::Postgres,
    tls: Option<TlsClient>,
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

pub struct PostgresConnection {
    server: Arc<Server>,
    polled: bool,
    per_request: bool,
    phase: Phase,
    /// How many sockets this connection has had.
    opened: u64,
    inbox: Inbox,
    outbox: Outbox,
    /// The names of the prepared statements, and the script that they were prepared from.
    names: Vec<Vec<u8>>,
    prepared: Option<Arc<Script>>,
    /// The statement that runs.
    statement: usize,
    rolling_back: bool,
    outcome: Outcome,
    /// The error that the server sent last: if the connection closes next, that is why.
    last_error: Option<Failure>,
    /// Traffic of connections that were closed, and what was opened.
    past: Traffic,
    /// The last closed connection, whose peer has yet to close it: then no port of ours stays in TIME_WAIT.
    leaving: Option<Socket>,
}

impl PostgresConnection {
    fn new(server: Arc<Server>, polled: bool, per_request: bool) -> PostgresConnection {
        PostgresConnection {
            server,
            polled,
            per_request,
            phase: Phase::Closed,
            opened: 0,
            inbox: Inbox::new(),
            outbox: Outbox::default(),
            names: Vec::new(),
            prepared: None,
            statement: 0,
            rolling_back: false,
            outcome: Outcome::default(),
            last_error: None,
            past: Traffic::default(),
            leaving: None,
        }
    }

    /// Opens the connection, waiting for it. Gives what TLS negotiated: None in clear.
    fn open_now(&mut self, server_version: &mut String) -> Result<Option<Facts>> {
        self.start_opening(Mode::Blocking)?;
        if let Phase::Connecting(socket) = &self.phase {
            socket.set_timeout(true)?;
        }
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
        if self.per_request {
            self.close();
        } else if self.polled {
            transport.socket().set_mode(Mode::Polled)?;
        }
        Ok(facts)
    }

    fn start_opening(&mut self, mode: Mode) -> Result<()> {
        self.inbox = Inbox::new();
        self.prepared = None;
        self.opened += 1;
        self.phase = Phase::Connecting(Socket::open(self.server.address, mode)?);
        Ok(())
    }

    /// Goes on until the server has let us in (`Done`) or has yet to answer (`Pending`).
    fn go_on_opening(&mut self, server_version: &mut String) -> Result<Step> {
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
                        match login.hear(tag, body, &asked.user, asked.password.as_deref())? {
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
        let asked = &self.server.asked;
        transport.send(&login::startup(&asked.user, &asked.database, asked.search_path.as_deref())?)?;
        Ok(Phase::Login(transport, Box::default()))
    }

    /// Closes as a driver does: Terminate, close_notify. The peer's own close is awaited at the next one.
    fn close(&mut self) {
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

    #[inline]
    fn send(&mut self) -> Result<()> {
        let Phase::Open(transport) = &mut self.phase else { return Err(Failure::connect("the connection is closed")) };
        let sent = transport.send(&self.outbox.0);
        self.outbox.0.clear();
        sent.map_err(|error| self.last_error.take().map_or_else(|| error.into(), Failure::lost))
    }

    /// Receives once. `false`: nothing has come yet.
    #[inline]
    fn receive(&mut self) -> Result<bool> {
        let Phase::Open(transport) = &mut self.phase else { return Err(Failure::connect("the connection is closed")) };
        match self.inbox.fill(|into| transport.receive(into)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(self.last_error.take().map_or_else(|| error.into(), Failure::lost)),
        }
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
        while let Some(message) = self.inbox.next(true)? {
            match message {
                Message::Row(hash) => self.outcome.row(hash),
                Message::Other { tag: b'Z', body } => return Ok(Some(body.first().copied().unwrap_or(b'I'))),
                Message::Other { tag: b'E', body } => {
                    let failure = error_of(body);
                    if self.outcome.error.is_none() {
                        self.outcome.error = Some(failure.to_string());
                    }
                    self.last_error = Some(failure);
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
                if self.receive()? {
                    continue;
                }
                return Ok(Step::Pending);
            };
            self.statement += 1;
            if self.outcome.error.is_some() {
                self.last_error = None;
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
            if self.polled {
                return Ok(Step::Pending);
            }
        }
    }

    /// One operation on a connection of its own.
    fn go_on_per_request(&mut self, script: &Script, operation: &Operation) -> Result<Step> {
        if !matches!(self.phase, Phase::Open(_)) {
            if self.go_on_opening(&mut String::new())? == Step::Pending {
                return Ok(Step::Pending);
            }
            self.send_statement(script, operation)?;
            if self.polled {
                return Ok(Step::Pending);
            }
        }
        let step = self.go_on(script, operation)?;
        if step == Step::Done {
            self.close();
        }
        Ok(step)
    }

    /// A connection for one operation that fails costs this operation, not the slice.
    fn forgive(&mut self, result: Result<Step>) -> Result<Step> {
        result.or_else(|failure| {
            self.phase = Phase::Closed;
            self.outcome.error = Some(failure.to_string());
            Ok(Step::Done)
        })
    }

    /// Waits for the end of a dialogue outside the load loop; `see` gets every message.
    fn dialogue(&mut self, mut see: impl FnMut(u8, &[u8])) -> Result<()> {
        self.send()?;
        let mut refusal = None;
        loop {
            while let Some(message) = self.inbox.next(false)? {
                match message {
                    Message::Other { tag: b'Z', .. } => {
                        self.last_error = None;
                        return refusal.map_or(Ok(()), Err);
                    }
                    Message::Other { tag: b'E', body } => {
                        refusal = refusal.or(Some(error_of(body)));
                        self.last_error.clone_from(&refusal);
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
            if !self.receive()? {
                let Phase::Open(transport) = &self.phase else { continue };
                transport.socket().wait(libc::POLLIN)?;
            }
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
            let mode = if self.polled { Mode::Polled } else { Mode::Blocking };
            let begun = self.start_opening(mode).map(|()| Step::Pending);
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
            let polled = std::mem::replace(&mut self.polled, false);
            self.start_opening(Mode::Blocking)?;
            let opened = self.go_on_opening(&mut String::new());
            self.polled = polled;
            opened?;
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
            self.close();
        }
        answer?;
        if too_long {
            return Err(Failure::statement("the answer is longer than 16 MiB"));
        }
        Ok(rows)
    }

    fn traffic(&mut self) -> Traffic {
        let mut sum = self.past;
        match &self.phase {
            Phase::Closed => {}
            Phase::Connecting(socket) | Phase::TlsAsked(socket) => sum.add(socket.traffic()),
            Phase::Handshake(stream) => sum.add(stream.get_ref().traffic()),
            Phase::Login(transport, _) | Phase::Open(transport) => sum.add(transport.socket().traffic()),
        }
        if let Some(leaving) = &self.leaving {
            sum.add(leaving.traffic());
        }
        sum
    }

    fn polled(&self) -> bool {
        self.polled
    }

    #[inline]
    fn interest(&self) -> Option<Interest> {
        let (fd, events) = match &self.phase {
            Phase::Closed => return None,
            Phase::Connecting(socket) => (socket.as_raw_fd(), libc::EPOLLOUT),
            Phase::TlsAsked(socket) => (socket.as_raw_fd(), libc::EPOLLIN),
            Phase::Handshake(stream) => (stream.get_ref().as_raw_fd(), libc::EPOLLIN),
            Phase::Login(transport, _) | Phase::Open(transport) => (transport.socket().as_raw_fd(), libc::EPOLLIN),
        };
        Some(Interest { opened: self.opened, fd, events: events as u32 })
    }
}

impl Drop for PostgresConnection {
    fn drop(&mut self) {
        if let Phase::Open(transport) = &mut self.phase {
            let mut outbox = Outbox::default();
            outbox.terminate();
            let _ = transport.send(&outbox.0);
            transport.say_goodbye();
        }
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
