//! HTTP/2 (RFC 9113), one stream at a time.

mod frame;
mod preface;
mod receiving;
mod sending;
mod state;

use super::exchange::{Exchange, Place, Response, Taken};
use super::statement::Asked;
use crate::drivers::network::wire::Wire;
use crate::failure::Result;
use crate::message;
use crate::program::Operation;
use crate::transport::socket::Socket;
use crate::transport::traffic::Traffic;
use preface::{Beginning, Preface};
use sending::Request;
pub use state::Two;

/// Maximum streams on one connection; the protocol allows 2³⁰.
const LAST_STREAM: u32 = 1 << 30;

impl Exchange for Two {
    type Request = Request;
    const NAME: &'static str = "h2";
    const MUST_AGREE: bool = true;
    const BY_PLACE: bool = false;

    fn compile(asked: Asked, place: &Place, _: bool) -> Request {
        Request::new(asked, place)
    }

    #[inline]
    fn fixed(_: &Request) -> Option<&[u8]> {
        None
    }

    #[inline]
    fn put(&mut self, request: &Request, operation: &Operation, into: &mut Vec<u8>) {
        self.put_request(request, operation, into);
    }

    #[inline]
    fn start(&mut self, request: &Request, keep_body: bool) {
        self.open_stream(request, keep_body);
    }

    #[inline]
    fn take(&mut self, bytes: &[u8], say: &mut Vec<u8>) -> Result<Taken> {
        self.frames(bytes, say)?;
        Ok(match self.reply.done {
            true => Taken::Answer,
            false if self.leaving && !self.reply.begun && self.stream == 0 => Taken::Refused,
            false => Taken::Part,
        })
    }

    fn idle(&mut self, bytes: &[u8], say: &mut Vec<u8>) -> Result<()> {
        self.frames(bytes, say)
    }

    fn end(&mut self, _: bool) -> Result<()> {
        Err(self.reply.cut_off())
    }

    #[inline]
    fn begun(&self) -> bool {
        self.reply.begun
    }

    #[inline]
    fn keep(&self) -> bool {
        !self.leaving && self.stream < LAST_STREAM
    }

    #[inline]
    fn response(&mut self) -> Response<'_> {
        self.reply.response()
    }

    fn label(request: &Request, operation: &Operation) -> String {
        request.asked.label(operation)
    }
}

impl Wire for Two {
    type Asked = message::Server;
    type Inbox = Beginning;
    type Login = Preface;
    /// GOAWAY, without an error.
    const GOODBYE: &'static [u8] = b"\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0";

    /// Not every server closes the connection after a GOAWAY.
    fn part(socket: Socket) -> Traffic {
        socket.finish_within(0)
    }
}
