//! A QUIC connection (RFC 9000) over one UDP socket: quinn-proto's state machine, and TLS and ciphers of the agent's own OpenSSL.
//!
//! To its user it is one message to the server and one back at a time, each on a stream of its own, and what the server says
//! aside, on streams that it opens itself.

mod client;
mod closing;
mod handshake;
mod keys;
mod parameters;
#[cfg(test)]
mod tests;

use super::socket::Socket;
use super::tls::Facts;
use super::traffic::{self, Traffic};
use crate::clock::now_ns;
use crate::deadline;
use crate::failure::{Failure, Result};
use bytes::{Bytes, BytesMut};
pub use client::{Manners, QuicClient};
use closing::Silent;
pub use closing::unanswered;
use quinn_proto::{
    Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, Event, ReadError, ReadableError, StreamEvent, StreamId,
    VarInt, WriteError,
};
use std::cell::RefCell;
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Instant;

/// The longest datagram that this client takes: an Ethernet packet of 1500 bytes without the headers of IP and UDP.
const DATAGRAM_BYTES: u16 = 1472;
/// Datagrams that are read before what they call for is sent.
const TURN: usize = 64;

thread_local! {
    static DATAGRAM: RefCell<Box<[u8]>> = RefCell::new(vec![0; usize::from(DATAGRAM_BYTES) + 1].into_boxed_slice());
}

/// One connection.
pub struct Quic {
    socket: Socket,
    address: SocketAddr,
    endpoint: Endpoint,
    handle: ConnectionHandle,
    connection: Connection,
    manners: Manners,
    /// The handshake is complete.
    connected: bool,
    /// Why the connection has ended.
    lost: Option<Failure>,
    /// The stream of the current message, until the server's part of it has ended.
    stream: Option<StreamId>,
    /// Whether that stream may have something to read.
    readable: bool,
    /// The server's own streams, and whether one of them may have something to read.
    asides: Vec<StreamId>,
    aside: bool,
    /// When the connection has something to do although nothing arrives.
    due: Option<Instant>,
    /// The same by this program's clock.
    due_ns: Option<u64>,
    /// A datagram to send. Reused.
    room: Vec<u8>,
}

impl fmt::Debug for Quic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Quic({:?}, lost: {:?})", self.socket, self.lost)
    }
}

impl Quic {
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    pub fn into_socket(mut self) -> Socket {
        self.socket.take()
    }

    /// What the handshake negotiated.
    pub fn facts(&self) -> Facts {
        let data = self.connection.crypto_session().handshake_data();
        data.and_then(|data| data.downcast::<Facts>().ok()).map(|facts| *facts).unwrap_or_default()
    }

    /// Continues the handshake until messages can be sent: to its end, unless a resumed session allows them before that. `false`:
    /// the server's part has not arrived yet.
    pub fn shake_hands(&mut self) -> Result<bool> {
        if !self.connection.has_0rtt() && !self.complete()? {
            return Ok(false);
        }
        let opened = self.connection.streams().open(Dir::Uni);
        let Some(stream) = opened else { return Err(Failure::connect("the server allows no stream for settings")) };
        match self.connection.send_stream(stream).write(self.manners.first) {
            Ok(written) if written == self.manners.first.len() => Ok(true),
            _ => Err(Failure::connect("the server allows no settings")),
        }
    }

    /// Continues the handshake to its end. `false`: the server's part has not arrived yet.
    pub fn complete(&mut self) -> Result<bool> {
        while !self.connected {
            match self.advance() {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(self.lost.take().unwrap_or_else(|| error.into())),
            }
        }
        Ok(true)
    }

    /// Writes as much of a message as the server allows; `WouldBlock` if it allows nothing, until it is heard again.
    pub fn send_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.check()?;
            let stream = self.stream.or_else(|| self.connection.streams().open(Dir::Bi));
            self.stream = stream;
            if let Some(stream) = stream {
                match self.connection.send_stream(stream).write(bytes) {
                    Ok(written) => return Ok(written),
                    // The server has answered without it.
                    Err(WriteError::Stopped(_)) => return Ok(bytes.len()),
                    Err(WriteError::Blocked) => {}
                    Err(WriteError::ClosedStream) => return Err(io::Error::other("the stream is closed")),
                }
            }
            self.advance()?;
        }
    }

    /// The message is complete: sends it.
    pub fn conclude(&mut self) -> io::Result<()> {
        if let Some(stream) = self.stream {
            // A stream that the server stopped is complete already.
            let _ = self.connection.send_stream(stream).finish();
        }
        self.push()
    }

    /// Reads what has arrived of the server's message; 0 is its end. `WouldBlock` if nothing has, or too long not; `Interrupted`
    /// if the server has said something aside, which may concern the message.
    pub fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(read) = self.read(into)? {
                return Ok(read);
            }
            if self.aside {
                return Err(ErrorKind::Interrupted.into());
            }
            self.advance()?;
        }
    }

    /// Whether some of the message may be there to read.
    pub fn holds_more(&self) -> bool {
        self.readable
    }

    /// Whether the server may have said something aside.
    pub fn has_aside(&self) -> bool {
        self.aside
    }

    /// What the server has said aside: the stream's number, bytes, and whether the stream has ended.
    pub fn take_aside(&mut self) -> Option<(u64, Bytes, bool)> {
        for at in 0..self.asides.len() {
            let stream = self.asides[at];
            match read_chunk(&mut self.connection, stream, usize::MAX) {
                Ok(Some(bytes)) => return Some((stream.index(), bytes, false)),
                Err(ReadError::Blocked) => {}
                Ok(None) | Err(ReadError::Reset(_)) => {
                    self.asides.swap_remove(at);
                    return Some((stream.index(), Bytes::new(), true));
                }
            }
        }
        self.aside = false;
        None
    }

    /// When something is due although nothing arrives, by the monotonic clock.
    pub fn timer_ns(&self) -> Option<u64> {
        self.due_ns
    }

    /// Closes the connection without waiting for the server.
    pub fn say_goodbye(&mut self) {
        self.connection.close(Instant::now(), VarInt::from_u32(self.manners.goodbye), Bytes::new());
        let _ = self.push();
    }

    /// Reads the current stream once. None: nothing has arrived.
    fn read(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let Some(stream) = self.stream.filter(|_| self.readable) else { return self.check().map(|()| None) };
        match read_chunk(&mut self.connection, stream, into.len()) {
            Ok(Some(bytes)) => {
                into[..bytes.len()].copy_from_slice(&bytes);
                Ok(Some(bytes.len()))
            }
            Ok(None) => {
                (self.stream, self.readable) = (None, false);
                Ok(Some(0))
            }
            Err(ReadError::Blocked) => {
                self.readable = false;
                self.check().map(|()| None)
            }
            Err(ReadError::Reset(code)) => {
                (self.stream, self.readable) = (None, false);
                Err(io::Error::new(ErrorKind::ConnectionReset, closing::reset(code)))
            }
        }
    }

    fn check(&self) -> io::Result<()> {
        match &self.lost {
            Some(lost) => Err(io::Error::new(ErrorKind::ConnectionAborted, lost.text.clone())),
            None => Ok(()),
        }
    }

    /// Handles what has arrived or is due. A socket that blocks is waited for, for as long as its patience lasts.
    fn advance(&mut self) -> io::Result<()> {
        if self.tend()? {
            return Ok(());
        }
        self.push()?;
        if self.socket.is_polled() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let until = self.socket.patience().map(|patience| Instant::now() + patience);
        loop {
            deadline::check()?;
            let now = Instant::now();
            let next = [until, self.due].into_iter().flatten().min();
            // Rounded up: a timer must have passed when the thread wakes.
            let ms = next.map_or(-1, |next| {
                i32::try_from(next.saturating_duration_since(now).as_micros().div_ceil(1000)).unwrap_or(i32::MAX)
            });
            let heard = self.socket.wait_for(libc::POLLIN, ms)?;
            if heard || self.tend()? {
                return if heard { self.tend().map(drop) } else { Ok(()) };
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Err(ErrorKind::WouldBlock.into());
            }
        }
    }

    /// Handles datagrams that have arrived and timers that are due, and sends what follows. `false`: there was neither.
    fn tend(&mut self) -> io::Result<bool> {
        let now = Instant::now();
        let mut tended = false;
        for _ in 0..TURN {
            match DATAGRAM.with_borrow_mut(|room| {
                self.socket.receive_datagram(room).map(|length| BytesMut::from(&room[..length]))
            }) {
                Ok(datagram) => self.take(now, datagram),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(self.broken(error)),
            }
            tended = true;
        }
        if self.due.is_some_and(|due| due <= now) {
            self.connection.handle_timeout(now);
            tended = true;
        }
        if tended {
            self.hear_events();
            self.push()?;
            if self.lost.is_some() && !self.connected {
                return self.check().map(|()| true);
            }
        }
        Ok(tended)
    }

    fn take(&mut self, now: Instant, datagram: BytesMut) {
        self.room.clear();
        match self.endpoint.handle(now, self.address, None, None, datagram, &mut self.room) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) if handle == self.handle => {
                self.connection.handle_event(event);
            }
            // It belongs to no connection of ours: nobody answers it.
            _ => {}
        }
    }

    fn hear_events(&mut self) {
        while let Some(event) = self.connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                self.connection.handle_event(event);
            }
        }
        while let Some(event) = self.connection.poll() {
            match event {
                Event::Connected => self.shaken(),
                Event::ConnectionLost { reason } => {
                    let silent = if self.connected { Silent::Later } else { Silent::AtFirst };
                    self.lost.get_or_insert_with(|| closing::failure(&reason, self.address, silent));
                }
                Event::Stream(StreamEvent::Readable { id }) if Some(id) == self.stream => self.readable = true,
                Event::Stream(StreamEvent::Readable { .. }) => self.aside = true,
                Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                    while let Some(id) = self.connection.streams().accept(Dir::Uni) {
                        self.asides.push(id);
                    }
                    self.aside = true;
                }
                _ => {}
            }
        }
    }

    /// The handshake is complete: counts the connection.
    fn shaken(&mut self) {
        self.connected = true;
        let early = self.connection.has_0rtt();
        let accepted = early && self.connection.accepted_0rtt();
        let resumed = u64::from(self.facts().resumed);
        traffic::add(Traffic { connects: 1, resumed, early: u64::from(accepted), ..Traffic::default() });
        if early && !accepted {
            self.lost.get_or_insert_with(|| {
                Failure::tls("the server refused what was sent before the handshake was complete (0-RTT)")
            });
        }
    }

    /// Sends every datagram that is ready.
    fn push(&mut self) -> io::Result<()> {
        loop {
            self.room.clear();
            let Some(transmit) = self.connection.poll_transmit(Instant::now(), 1, &mut self.room) else {
                self.due = self.connection.poll_timeout();
                // Not before `due`: the clock is read last.
                self.due_ns = self.due.map(|due| {
                    let left = due.saturating_duration_since(Instant::now());
                    now_ns() + left.as_nanos() as u64
                });
                return Ok(());
            };
            if let Err(error) = self.socket.send_datagram(&self.room[..transmit.size]) {
                return Err(self.broken(error));
            }
        }
    }

    /// The socket fails: nobody listens on the server's port, say.
    #[cold]
    fn broken(&mut self, error: io::Error) -> io::Error {
        if error.kind() == ErrorKind::TimedOut {
            return error;
        }
        self.lost.get_or_insert_with(|| closing::unreachable(self.address, &error));
        error
    }
}

/// A server keeps a connection that it was not told about for as long as its idle time.
impl Drop for Quic {
    fn drop(&mut self) {
        if !self.connection.is_closed() {
            deadline::at_once(|| self.say_goodbye());
        }
    }
}

/// The next bytes of a stream, at most this many. None: it has ended.
fn read_chunk(
    connection: &mut Connection,
    stream: StreamId,
    most: usize,
) -> std::result::Result<Option<Bytes>, ReadError> {
    let mut stream = connection.recv_stream(stream);
    let mut chunks = match stream.read(true) {
        Ok(chunks) => chunks,
        // It was read to its end before.
        Err(ReadableError::ClosedStream) => return Ok(None),
        Err(ReadableError::IllegalOrderedRead) => return Err(ReadError::Blocked),
    };
    let chunk = chunks.next(most);
    let _ = chunks.finalize();
    chunk.map(|chunk| chunk.map(|chunk| chunk.bytes))
}
