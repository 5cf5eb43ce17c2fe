//! A connection to one server, open or not, and the dialogue on it.

use super::exchange::Exchange;
use super::site::Patience;
use crate::drivers::network::block::Block;
use crate::drivers::network::link::Link;
use crate::drivers::network::target::Target;
use crate::drivers::network::wire::Inbox;
use crate::failure::Result;
use crate::message;
use crate::transport::socket::Mode;
use crate::transport::tls::Facts;
use std::cell::RefCell;
use std::io;
use std::sync::Arc;

/// Receive buffer of one thread, shared by its connections; each connection keeps its own leftovers.
const RECEIVE_BYTES: usize = 256 * 1024;

thread_local! {
    pub static RECEIVED: RefCell<Block> = RefCell::new(Block::new(RECEIVE_BYTES));
}

/// A connection to one server, open or not, and the dialogue on it.
pub struct Line<E: Exchange> {
    pub link: Link<E>,
    pub exchange: E,
    /// Bytes to send before anything else.
    pub say: Vec<u8>,
}

impl<E: Exchange> Line<E> {
    pub fn new(target: Arc<Target<message::Server>>, polled: bool, per_request: bool) -> Line<E> {
        Line { link: Link::new(target, polled, per_request), exchange: E::default(), say: Vec::new() }
    }

    pub fn open_now(&mut self, patience: Patience) -> Result<Option<Facts>> {
        let facts = self.link.open_now()?;
        self.opened(patience)?;
        self.speak();
        Ok(facts)
    }

    /// Called right after the connection was opened.
    pub fn opened(&mut self, patience: Patience) -> Result<()> {
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

    /// Lets its thread sleep until the rest of a response of known length is there, instead of waking for each part: a TLS server
    /// sends 100 KB in seven parts, and pays for each waking. After a complete response, whatever arrives next is reported.
    #[inline]
    pub fn expect_rest(&mut self) {
        let missing = self.exchange.missing();
        if let Some(transport) = self.link.transport() {
            transport.expect(missing, RECEIVE_BYTES);
        }
    }

    /// Sends pending bytes at once. If that fails, the next request detects it.
    fn speak(&mut self) {
        if let Some(transport) = self.link.transport().filter(|_| !self.say.is_empty()) {
            let _ = transport.send(&self.say);
            self.say.clear();
        }
    }

    /// Reads what arrived while no request was pending, without waiting, and drops an unusable connection. Err: an
    /// unexpected response arrived.
    #[cold]
    pub fn attend(&mut self) -> Result<()> {
        let alive = self.set_mode(Mode::Polled).and_then(|()| self.hear());
        self.speak();
        if !alive.as_ref().is_ok_and(|alive| *alive && self.set_mode(Mode::Blocking).is_ok()) {
            self.link.abandon();
        }
        alive.map(drop)
    }

    /// Changes how a normally blocking connection waits.
    fn set_mode(&mut self, mode: Mode) -> Result<()> {
        match self.link.socket() {
            Some(socket) if !self.link.polled => socket.set_mode(mode),
            _ => Ok(()),
        }
    }

    /// `false`: the connection has ended or is about to.
    fn hear(&mut self) -> Result<bool> {
        RECEIVED.with_borrow_mut(|room| {
            loop {
                let Some(transport) = self.link.transport() else { return Ok(false) };
                let received = transport.receive(room);
                while let Some((stream, bytes, ended)) = transport.aside() {
                    self.exchange.aside(stream, &bytes, ended)?;
                }
                match received {
                    Ok(0) => return Ok(false),
                    Ok(read) => self.exchange.idle(&room[..read], &mut self.say)?,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Ok(error.kind() == io::ErrorKind::WouldBlock && self.exchange.keep()),
                }
                if !self.exchange.keep() || !transport.holds_more() {
                    return Ok(self.exchange.keep());
                }
            }
        })
    }

    /// Whether bytes have arrived on the open connection.
    pub fn is_heard(&mut self) -> bool {
        self.link.transport().is_some_and(|transport| {
            transport.holds_more() || transport.socket().wait_for(libc::POLLIN, 0).unwrap_or(true)
        })
    }
}
