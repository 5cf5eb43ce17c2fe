//! HTTP/3 (RFC 9114): each request and its response on a QUIC stream of their own, one at a time.

mod asides;
mod frame;
mod receiving;
mod sending;
#[cfg(test)]
mod tests;

use super::exchange::{Exchange, Place, Response, Taken, malformed};
use super::one::{LetIn, Nothing};
use super::reply::Reply;
use super::statement::Asked;
use crate::drivers::network::wire::Wire;
use crate::failure::Result;
use crate::message;
use crate::program::Operation;
use crate::transport::quic::Manners;
use asides::Asides;
use sending::Request;

/// The client's control stream: its type, and SETTINGS that allow no dynamic table of QPACK, as they say nothing. H3_NO_ERROR.
pub const MANNERS: Manners = Manners { first: &[0, 4, 0], goodbye: 0x100 };

/// State of one HTTP/3 connection.
#[derive(Debug)]
pub struct Three {
    reply: Reply,
    /// An incomplete frame that is parsed as a whole, or the beginning of a frame's header.
    partial: Vec<u8>,
    /// The missing rest of a body's frame, and of a frame that nobody reads.
    data_left: u64,
    skip_left: u64,
    /// Frames during a response that are neither head nor body.
    others: u32,
    asides: Asides,
    /// Buffer for fields. Reused.
    room: Vec<u8>,
}

impl Default for Three {
    fn default() -> Three {
        Three {
            reply: Reply::none(),
            partial: Vec::new(),
            data_left: 0,
            skip_left: 0,
            others: 0,
            asides: Asides::default(),
            room: Vec::new(),
        }
    }
}

impl Exchange for Three {
    type Request = Request;
    const NAME: &'static str = "h3";
    const MUST_AGREE: bool = true;
    const BY_PLACE: bool = false;

    fn compile(asked: Asked, place: &Place, _: bool) -> Request {
        Request::new(asked, place)
    }

    #[inline]
    fn fixed(request: &Request) -> Option<&[u8]> {
        request.fixed()
    }

    fn put(&mut self, request: &Request, operation: &Operation, into: &mut Vec<u8>) {
        request.put(operation, &mut self.room, into);
    }

    #[inline]
    fn start(&mut self, request: &Request, keep_body: bool) {
        self.reply.start(request.is_head(), keep_body);
        self.partial.clear();
        (self.data_left, self.skip_left, self.others) = (0, 0, 0);
    }

    #[inline]
    fn take(&mut self, bytes: &[u8], _: &mut Vec<u8>) -> Result<Taken> {
        // The response ends with its stream.
        self.frames(bytes).map(|()| Taken::Part)
    }

    fn idle(&mut self, bytes: &[u8], _: &mut Vec<u8>) -> Result<()> {
        if bytes.is_empty() { Ok(()) } else { Err(malformed("unexpected response: no request is pending")) }
    }

    fn aside(&mut self, stream: u64, bytes: &[u8], ended: bool) -> Result<()> {
        self.asides.take(stream, bytes, ended)
    }

    /// Why a stream or its connection broke off, the transport says.
    fn end(&mut self, cleanly: bool) -> Result<()> {
        if cleanly { self.end_stream() } else { Ok(()) }
    }

    #[inline]
    fn begun(&self) -> bool {
        self.reply.begun
    }

    #[inline]
    fn keep(&self) -> bool {
        !self.asides.leaving
    }

    #[inline]
    fn response(&mut self) -> Response<'_> {
        self.reply.response()
    }

    fn label(request: &Request, operation: &Operation) -> String {
        request.label(operation)
    }
}

impl Wire for Three {
    type Asked = message::Server;
    type Inbox = Nothing;
    type Login = LetIn;
    /// QUIC's own goodbye says all.
    const GOODBYE: &'static [u8] = b"";
}

/// Status and hash of a response in these pieces, and whether the server goes on, after what the server has said aside; or the error's code and text.
#[cfg(any(test, fuzzing))]
pub fn read(asides: &[&[u8]], pieces: &[&[u8]]) -> std::result::Result<(u16, u64, bool), String> {
    let statement = crate::program::Statement { sql: "GET /".into(), ..crate::program::Statement::default() };
    let place = Place { authority: "localhost".into(), scheme: "https" };
    let run = || -> Result<(u16, u64, bool)> {
        let request = Three::compile(Asked::read(&statement, "/", "")?, &place, false);
        let mut three = Three::default();
        for aside in asides {
            three.aside(0, aside, false)?;
        }
        three.start(&request, false);
        for piece in pieces {
            three.take(piece, &mut Vec::new())?;
        }
        three.end(true)?;
        let keep = three.keep();
        let response = three.response();
        Ok((response.status, response.body.hash, keep))
    };
    run().map_err(|failure| failure.to_string())
}
