//! A server without a network, for tests and fuzzing: it says given bytes on every connection of this thread, in given pieces.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::os::fd::RawFd;

/// What a server says on each of its connections.
#[derive(Debug, Clone, Default)]
pub struct Speech {
    /// One receive never returns bytes of two flights.
    pub flights: Vec<Vec<u8>>,
    /// Most bytes that one receive returns, in turns; empty or 0: the rest of a flight.
    pub cuts: Vec<usize>,
    pub echo: Option<Echo>,
}

/// Bytes that stand, after a mark, for as many which the client sent after that mark: a login repeats what the client drew.
#[derive(Debug, Clone, Copy)]
pub struct Echo {
    pub after: &'static [u8],
    pub stand_in: &'static [u8],
}

/// A connection: how far its client has read, and what it sent last.
#[derive(Default)]
struct Line {
    flight: usize,
    read: usize,
    /// The flight's bytes, once its first one was asked for.
    saying: Option<Vec<u8>>,
    pieces: usize,
    /// A polled socket had to wait for the next piece.
    waited: bool,
    sent: Vec<u8>,
}

#[derive(Default)]
struct Server {
    speech: Speech,
    lines: HashMap<RawFd, Line>,
}

thread_local! {
    static SERVER: RefCell<Option<Server>> = const { RefCell::new(None) };
}

/// Runs `run` while this server answers every connection of this thread.
pub fn with<T>(speech: Speech, run: impl FnOnce() -> T) -> T {
    SERVER.set(Some(Server { speech, lines: HashMap::new() }));
    let done = run();
    SERVER.set(None);
    done
}

/// Accepts a connection. `false`: no server is set, so a real one is meant.
pub fn accept(socket: RawFd) -> bool {
    SERVER.with_borrow_mut(|server| match server {
        Some(server) => {
            server.lines.insert(socket, Line::default());
            true
        }
        None => false,
    })
}

/// Receives on a connection; None: it is a real one.
pub fn receive(socket: RawFd, polled: bool, into: &mut [u8]) -> Option<io::Result<usize>> {
    SERVER.with_borrow_mut(|server| {
        let Server { speech, lines } = server.as_mut()?;
        Some(lines.get_mut(&socket)?.receive(speech, polled, into))
    })
}

/// Takes what a client sends; None: it is a real connection.
pub fn send(socket: RawFd, bytes: &[u8]) -> Option<usize> {
    SERVER.with_borrow_mut(|server| {
        let line = server.as_mut()?.lines.get_mut(&socket)?;
        line.sent.clear();
        line.sent.extend_from_slice(bytes);
        Some(bytes.len())
    })
}

/// Whether a connection is one of this server's: its client never waits.
pub fn serves(socket: RawFd) -> bool {
    SERVER.with_borrow(|server| server.as_ref().is_some_and(|server| server.lines.contains_key(&socket)))
}

impl Line {
    fn receive(&mut self, speech: &Speech, polled: bool, into: &mut [u8]) -> io::Result<usize> {
        if polled && !std::mem::replace(&mut self.waited, true) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.waited = false;
        loop {
            let Some(flight) = speech.flights.get(self.flight) else { return Ok(0) };
            let saying = self.saying.get_or_insert_with(|| echoing(flight, &self.sent, speech.echo));
            let rest = &saying[self.read..];
            if rest.is_empty() {
                (self.flight, self.read, self.saying) = (self.flight + 1, 0, None);
                continue;
            }
            let cut = speech.cuts.get(self.pieces % speech.cuts.len().max(1)).copied().unwrap_or(0);
            let cut = if cut == 0 { usize::MAX } else { cut };
            let length = rest.len().min(cut).min(into.len());
            into[..length].copy_from_slice(&rest[..length]);
            self.read += length;
            self.pieces += 1;
            return Ok(length);
        }
    }
}

/// A flight with the client's own bytes where its stand-in is.
fn echoing(flight: &[u8], sent: &[u8], echo: Option<Echo>) -> Vec<u8> {
    let mut bytes = flight.to_vec();
    if let Some(Echo { after, stand_in }) = echo {
        let find = |bytes: &[u8], what: &[u8]| bytes.windows(what.len()).position(|window| window == what);
        let own = find(sent, after).and_then(|at| sent[at + after.len()..].get(..stand_in.len()));
        let said = find(&bytes, &[after, stand_in].concat()).map(|at| at + after.len());
        if let (Some(at), Some(own)) = (said, own) {
            bytes[at..at + stand_in.len()].copy_from_slice(own);
        }
    }
    bytes
}
