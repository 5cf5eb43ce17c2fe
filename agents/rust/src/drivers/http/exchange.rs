//! The interface of an HTTP version: how it writes requests and parses responses.

use super::body::Body;
use super::statement::Asked;
use crate::drivers::network::wire::Wire;
use crate::failure::{Failure, Result};
use crate::message::{self, Tls};
use crate::program::Operation;

pub fn malformed(text: impl Into<String>) -> Failure {
    Failure::new("malformed", text)
}

pub fn closed_early(text: impl Into<String>) -> Failure {
    Failure::new("closed-early", text)
}

/// One version of HTTP: a connection's state and messages. One request at a time.
pub trait Exchange: Wire<Asked = message::Server> + Default {
    type Request: Send + Sync;
    /// Its name in ALPN.
    const NAME: &'static str;
    /// Whether a server that does not agree under TLS is refused.
    const MUST_AGREE: bool;
    /// Whether only the order of responses tells which request they belong to.
    const BY_PLACE: bool;

    /// Prepares a statement's request. `last`: it is the last on its connection.
    fn compile(asked: Asked, place: &Place, last: bool) -> Self::Request;
    /// The request's bytes, if they are always the same.
    fn fixed(request: &Self::Request) -> Option<&[u8]>;
    fn put(&mut self, request: &Self::Request, operation: &Operation, into: &mut Vec<u8>);
    /// Prepares for the response.
    fn start(&mut self, request: &Self::Request, keep_body: bool);
    /// Takes received bytes and may send something in response.
    fn take(&mut self, bytes: &[u8], say: &mut Vec<u8>) -> Result<Taken>;
    /// The same while no request is pending. Err: the connection is unusable.
    fn idle(&mut self, bytes: &[u8], say: &mut Vec<u8>) -> Result<()>;
    /// Takes what the server says on a stream of its own, by the stream's number. Err: the connection is unusable.
    fn aside(&mut self, _stream: u64, _bytes: &[u8], _ended: bool) -> Result<()> {
        Ok(())
    }
    /// The connection, or the response's own stream, has ended. Ok: and so has the response.
    fn end(&mut self, cleanly: bool) -> Result<()>;
    /// Whether some part of the response has arrived.
    fn begun(&self) -> bool;
    /// Bytes of the response that are certain to come without another word from us; 1 if that is not known.
    fn missing(&self) -> u64 {
        1
    }
    /// Whether the connection can be reused.
    fn keep(&self) -> bool;
    fn response(&mut self) -> Response<'_>;
    /// The request for error messages.
    fn label(request: &Self::Request, operation: &Operation) -> String;
}

/// How far received bytes complete a response.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Taken {
    Part,
    /// The response is complete.
    Answer,
    /// The server closed the connection without processing the request.
    Refused,
}

/// A complete response.
pub struct Response<'a> {
    pub status: u16,
    pub body: &'a mut Body,
    pub details: &'a Details,
}

/// Parts of the head that only `query` reads.
#[derive(Debug, Default)]
pub struct Details {
    pub wanted: bool,
    pub reason: String,
    pub location: String,
    pub server: String,
    pub content_type: String,
    pub content_encoding: String,
}

/// The server's name in requests.
pub struct Place {
    pub authority: String,
    pub scheme: &'static str,
}

impl Place {
    pub fn new(server: &message::Server, authority: Option<&String>) -> Place {
        let (scheme, usual) = if server.tls == Tls::Off { ("http", 80) } else { ("https", 443) };
        let host = if server.host.contains(':') { format!("[{}]", server.host) } else { server.host.clone() };
        let stated = if server.port == usual { host } else { format!("{host}:{}", server.port) };
        Place { authority: authority.cloned().unwrap_or(stated), scheme }
    }
}
