//! HTTP/1.1: requests as they are sent, mostly encoded in advance, and responses as `Reader` parses them.

use super::exchange::{Exchange, Place, Response, Taken, malformed};
use super::reader::Reader;
use super::statement::{Asked, Method};
use crate::decimal::{DIGITS, decimal};
use crate::drivers::network::buffer::Buffer;
use crate::drivers::network::wire::{Inbox, Login, Turn, Wire};
use crate::failure::Result;
use crate::message;
use crate::program::Operation;
use crate::transport::socket::{MOMENT_MS, Socket};
use crate::transport::traffic::Traffic;

/// A text of HTTP/1.1: `name: value` and the end of the line.
fn put_line(name: &str, value: &[u8], into: &mut Vec<u8>) {
    into.extend_from_slice(name.as_bytes());
    into.extend_from_slice(b": ");
    into.extend_from_slice(value);
    into.extend_from_slice(b"\r\n");
}

/// The line of the server's name.
fn put_host(place: &Place, into: &mut Vec<u8>) {
    put_line("Host", place.authority.as_bytes(), into);
}

/// State of one HTTP/1.1 connection.
#[derive(Default)]
pub struct One {
    reader: Reader,
}

/// A statement's request.
pub struct Request {
    asked: Asked,
    /// The complete request if it has no values; otherwise the part between the path and the body's length.
    bytes: Vec<u8>,
    whole: bool,
}

impl Exchange for One {
    type Request = Request;
    const NAME: &'static str = "http/1.1";
    const MUST_AGREE: bool = false;
    const BY_PLACE: bool = true;

    fn compile(asked: Asked, place: &Place, last: bool) -> Request {
        let mut head = b" HTTP/1.1\r\n".to_vec();
        put_host(place, &mut head);
        for header in &asked.headers {
            if let Some(value) = header.value.fixed() {
                put_line(&header.name, value, &mut head);
            }
        }
        if last {
            put_line("Connection", b"close", &mut head);
        }
        let whole = asked.is_fixed();
        let mut request = Request { asked, bytes: head, whole: false };
        if whole {
            let mut bytes = Vec::new();
            request.put(&Operation::default(), &mut bytes);
            request.bytes = bytes;
            request.whole = true;
        }
        request
    }

    #[inline]
    fn fixed(request: &Request) -> Option<&[u8]> {
        request.whole.then_some(&request.bytes)
    }

    fn put(&mut self, request: &Request, operation: &Operation, into: &mut Vec<u8>) {
        request.put(operation, into);
    }

    #[inline]
    fn start(&mut self, request: &Request, keep_body: bool) {
        self.reader.start(request.asked.method == Method::Head, keep_body);
    }

    #[inline]
    fn take(&mut self, bytes: &[u8], _: &mut Vec<u8>) -> Result<Taken> {
        Ok(if self.reader.take(bytes)? { Taken::Answer } else { Taken::Part })
    }

    fn idle(&mut self, bytes: &[u8], _: &mut Vec<u8>) -> Result<()> {
        // RFC 9110, 15.5.9: a server may announce this way that it closes an idle connection.
        if bytes.starts_with(b"HTTP/1.1 408 ") || bytes.starts_with(b"HTTP/1.0 408 ") {
            self.reader.keep = false;
            return Ok(());
        }
        if bytes.is_empty() { Ok(()) } else { Err(malformed("unexpected response: no request is pending")) }
    }

    fn end(&mut self, cleanly: bool) -> Result<()> {
        self.reader.end(cleanly)
    }

    #[inline]
    fn begun(&self) -> bool {
        self.reader.begun
    }

    #[inline]
    fn missing(&self) -> u64 {
        self.reader.missing()
    }

    #[inline]
    fn keep(&self) -> bool {
        self.reader.keep
    }

    #[inline]
    fn response(&mut self) -> Response<'_> {
        Response { status: self.reader.status, body: &mut self.reader.body, details: &self.reader.details }
    }

    fn label(request: &Request, operation: &Operation) -> String {
        request.asked.label(operation)
    }
}

impl Request {
    fn put(&self, operation: &Operation, into: &mut Vec<u8>) {
        into.extend_from_slice(self.asked.method.name().as_bytes());
        into.push(b' ');
        self.asked.path.put(operation, into);
        into.extend_from_slice(&self.bytes);
        for header in self.asked.headers.iter().filter(|header| header.value.fixed().is_none()) {
            into.extend_from_slice(header.name.as_bytes());
            into.extend_from_slice(b": ");
            header.value.put(operation, into);
            into.extend_from_slice(b"\r\n");
        }
        if self.asked.states_length() {
            let length = self.asked.body.as_ref().map_or(0, |body| body.length(operation));
            into.extend_from_slice(b"Content-Length: ");
            into.extend_from_slice(decimal(length as i64, &mut [0; DIGITS]));
            into.extend_from_slice(b"\r\n");
        }
        into.extend_from_slice(b"\r\n");
        if let Some(body) = &self.asked.body {
            body.put(operation, into);
        }
    }
}

impl Wire for One {
    type Asked = message::Server;
    type Inbox = Nothing;
    type Login = LetIn;
    const GOODBYE: &'static [u8] = b"";

    /// A server that was told to close, and doesn't, is not waited for.
    fn part(socket: Socket) -> Traffic {
        socket.finish_within(MOMENT_MS)
    }
}

/// Received bytes pass through a thread's buffer; a connection has none of its own.
pub struct Nothing(Buffer);

impl Default for Nothing {
    fn default() -> Nothing {
        Nothing(Buffer::with_room(0))
    }
}

impl Inbox for Nothing {
    fn buffer(&mut self) -> &mut Buffer {
        &mut self.0
    }

    fn clear(&mut self) {}
}

/// There is no login.
#[derive(Default)]
pub struct LetIn;

impl Login<Nothing> for LetIn {
    fn first(&mut self, _: &message::Server) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn hear(&mut self, _: &mut Nothing, _: &message::Server) -> Result<Turn> {
        Ok(Turn::Ready)
    }
}
