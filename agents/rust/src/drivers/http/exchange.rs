//! exchange: what a version of HTTP does with requests and with the bytes of responses.

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

/// One version of HTTP: a connection's state, and what is said on it. One request at a time.
pub trait Exchange: Wire<Asked = message::Server> + Default {
    type Request: Send + Sync;
    /// As ALPN calls it.
    const NAME: &'static str;
    /// A server that does not agree to it under TLS is refused.
    const MUST_AGREE: bool;
    /// Nothing but its place says to which request an answer belongs.
    const BY_PLACE: bool;

    /// Makes a statement's request ready. `last`: it is the last on its connection.
    fn compile(asked: Asked, place: &Place, last: bool) -> Self::Request;
    /// The request's bytes, where they are the same every time.
    fn fixed(request: &Self::Request) -> Option<&[u8]>;
    fn put(&mut self, request: &Self::Request, operation: &Operation, into: &mut Vec<u8>);
    /// Makes ready for the answer.
    fn start(&mut self, request: &Self::Request, keep_body: bool);
    /// Takes what has come, and may say something to that.
    fn take(&mut self, bytes: &[u8], say: &mut Vec<u8>) -> Result<Taken>;
    /// The same while nothing is asked for. Err: the connection is of no more use.
    fn idle(&mut self, bytes: &[u8], say: &mut Vec<u8>) -> Result<()>;
    /// The connection has ended. Ok: and so has the answer.
    fn end(&mut self, cleanly: bool) -> Result<()>;
    /// Something of the answer has come.
    fn begun(&self) -> bool;
    /// The connection may be used again.
    fn keep(&self) -> bool;
    fn response(&mut self) -> Response<'_>;
    /// The request in words.
    fn label(request: &Self::Request, operation: &Operation) -> String;
}

/// What bytes of an answer were.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Taken {
    Part,
    /// The answer is complete.
    Answer,
    /// The server closes the connection and has not looked at the request.
    Refused,
}

/// A complete answer.
pub struct Response<'a> {
    pub status: u16,
    pub body: &'a mut Body,
    pub details: &'a Details,
}

/// What is looked at in a head only where somebody wants to know.
#[derive(Debug, Default)]
pub struct Details {
    pub wanted: bool,
    pub reason: String,
    pub location: String,
    pub server: String,
}

/// How a server is called in a request.
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
