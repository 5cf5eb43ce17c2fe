//! Parses an HTTP/1.1 response from bytes in arbitrary pieces: its status, its body's hash, and its end.

use super::body::Body;
use super::exchange::{Details, closed_early, malformed};
use crate::failure::Result;
use httparse::{Header, ParserConfig, Status};
use std::mem::MaybeUninit;

/// Maximum length of a response's head and of the trailer after its last chunk.
const HEAD_BYTES: usize = 64 * 1024;
pub const MOST_HEADERS: usize = 256;
/// Maximum number of interim responses (1xx) before the response.
pub const MOST_INTERIM: u32 = 100;

#[derive(Debug, Clone, Copy, PartialEq, Default)]
enum State {
    #[default]
    Head,
    /// Bytes of the body that are missing.
    Fixed(u64),
    UntilClose,
    /// In a chunk's first line: its size so far, and the number of digits.
    ChunkSize(u64, u32),
    /// After the size: chunk extensions up to the end of line.
    ChunkExtension(u64),
    ChunkSizeEnd(u64),
    Chunk(u64),
    ChunkCr,
    ChunkLf,
    /// After the last chunk, at the start of a line, and within one.
    TrailerStart,
    TrailerLine,
    TrailerEnd,
    Done,
}

/// Parses one response after the other.
#[derive(Debug, Default)]
pub struct Reader {
    state: State,
    /// The request was HEAD: its response has no body, whatever its headers say.
    of_head: bool,
    /// The beginning of an incomplete head.
    partial: Vec<u8>,
    /// A byte of the response has arrived.
    pub begun: bool,
    /// The connection can be reused.
    pub keep: bool,
    pub status: u16,
    interim: u32,
    /// Bytes of the head and of lines around chunks, which are limited.
    framing_bytes: usize,
    pub body: Body,
    pub details: Details,
}

impl Reader {
    /// Prepares for the next response. `keep_body`: keep it instead of only hashing it.
    #[inline]
    pub fn start(&mut self, of_head: bool, keep_body: bool) {
        self.state = State::Head;
        self.of_head = of_head;
        self.partial.clear();
        self.begun = false;
        self.keep = true;
        self.interim = 0;
        self.framing_bytes = 0;
        self.body.start(keep_body);
        self.details.wanted = keep_body;
    }

    /// Takes received bytes. True: the response is complete.
    #[inline]
    pub fn take(&mut self, mut bytes: &[u8]) -> Result<bool> {
        self.begun = true;
        while self.state == State::Head {
            match self.head(bytes)? {
                Some(used) => bytes = &bytes[used..],
                None => return Ok(false),
            }
        }
        if let State::Fixed(left) = self.state {
            let take = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let last = take as u64 == left;
            self.body.add(&bytes[..take], last);
            self.state = if last { State::Done } else { State::Fixed(left - take as u64) };
            bytes = &bytes[take..];
        } else {
            bytes = self.other(bytes)?;
        }
        match self.state {
            State::Done if bytes.is_empty() => Ok(true),
            State::Done => Err(malformed("unexpected bytes after the response")),
            _ => Ok(false),
        }
    }

    /// Bytes that are certain to come: those of a body, or a chunk, of known length; otherwise 1.
    #[inline]
    pub fn missing(&self) -> u64 {
        match self.state {
            State::Fixed(left) | State::Chunk(left) => left,
            _ => 1,
        }
    }

    /// The connection has ended; `cleanly`: properly closed, not cut.
    pub fn end(&mut self, cleanly: bool) -> Result<()> {
        match self.state {
            State::UntilClose if cleanly => {
                self.body.finish();
                self.state = State::Done;
                Ok(())
            }
            State::UntilClose => Err(closed_early("the connection was cut within the body (TLS sent no close_notify)")),
            State::Head if !self.begun => Err(closed_early("the connection ended before any response")),
            State::Head => Err(closed_early("the connection ended within the response's head")),
            State::Fixed(left) => Err(closed_early(format!("the connection ended {left} bytes before the body does"))),
            _ => Err(closed_early("the connection ended before the last chunk")),
        }
    }

    /// Parses a head. Returns how many bytes belong to it; None: it is incomplete.
    fn head(&mut self, bytes: &[u8]) -> Result<Option<usize>> {
        if self.partial.is_empty() {
            let used = self.parse(bytes)?;
            if used.is_none() {
                self.partial.extend_from_slice(bytes);
                self.within_bounds(self.partial.len())?;
            }
            return Ok(used);
        }
        let mut partial = std::mem::take(&mut self.partial);
        let known = partial.len();
        partial.extend_from_slice(&bytes[..bytes.len().min(HEAD_BYTES + 1)]);
        let used = self.parse(&partial)?;
        if used.is_none() {
            self.partial = partial;
            self.within_bounds(self.partial.len())?;
            return Ok(None);
        }
        // A head that was incomplete without these bytes ends within them.
        partial.clear();
        self.partial = partial;
        Ok(used.map(|used| used.saturating_sub(known)))
    }

    fn within_bounds(&self, bytes: usize) -> Result<()> {
        if bytes > HEAD_BYTES { Err(malformed("the response's head is longer than 64 KiB")) } else { Ok(()) }
    }

    #[inline]
    fn parse(&mut self, bytes: &[u8]) -> Result<Option<usize>> {
        let mut room = [const { MaybeUninit::<Header<'_>>::uninit() }; 32];
        let mut response = httparse::Response::new(&mut []);
        let parser = ParserConfig::default();
        let parsed = match parser.parse_response_with_uninit_headers(&mut response, bytes, &mut room) {
            Err(httparse::Error::TooManyHeaders) => return self.parse_long(bytes),
            other => other,
        };
        self.understand(parsed, &response)
    }

    #[cold]
    fn parse_long(&mut self, bytes: &[u8]) -> Result<Option<usize>> {
        let mut room = [const { MaybeUninit::<Header<'_>>::uninit() }; MOST_HEADERS];
        let mut response = httparse::Response::new(&mut []);
        let parser = ParserConfig::default();
        let parsed = parser.parse_response_with_uninit_headers(&mut response, bytes, &mut room);
        self.understand(parsed, &response)
    }

    #[inline]
    fn understand(
        &mut self,
        parsed: httparse::Result<usize>,
        response: &httparse::Response<'_, '_>,
    ) -> Result<Option<usize>> {
        let used = match parsed {
            Ok(Status::Complete(used)) => used,
            Ok(Status::Partial) => return Ok(None),
            Err(error) => return Err(malformed(format!("not an HTTP response: {error}"))),
        };
        self.within_bounds(used)?;
        self.status = response.code.unwrap_or(0);
        if self.status < 200 {
            self.interim += 1;
            if self.status < 100 || self.status == 101 || self.interim > MOST_INTERIM {
                return Err(malformed(format!("unexpected response of status {}", self.status)));
            }
            return Ok(Some(used));
        }
        let mut length = None;
        let mut chunked = false;
        self.keep = response.version == Some(1);
        for header in response.headers.iter() {
            let name = header.name.as_bytes();
            match name.len() {
                14 if name.eq_ignore_ascii_case(b"content-length") => {
                    let stated = decimal(header.value);
                    if stated.is_none() || length.is_some_and(|known| Some(known) != stated) {
                        return Err(malformed(
                            "its Content-Length is not a number, or is given twice with different values",
                        ));
                    }
                    length = stated;
                }
                17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                    if chunked || !header.value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                        let named = String::from_utf8_lossy(header.value).into_owned();
                        return Err(malformed(format!("its Transfer-Encoding {named:?} was not requested")));
                    }
                    chunked = true;
                }
                10 if name.eq_ignore_ascii_case(b"connection") => {
                    for word in header.value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                        if word.eq_ignore_ascii_case(b"close") {
                            self.keep = false;
                        } else if word.eq_ignore_ascii_case(b"keep-alive") && response.version == Some(0) {
                            self.keep = true;
                        }
                    }
                }
                _ => {}
            }
        }
        if self.details.wanted || !matches!(self.status, 200..300 | 304) {
            let header = |name: &str| {
                let found = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
                found.map(|header| String::from_utf8_lossy(header.value).into_owned()).unwrap_or_default()
            };
            self.details.reason = response.reason.unwrap_or_default().to_string();
            self.details.location = header("location");
            self.details.server = header("server");
            self.details.content_type = header("content-type");
            self.details.content_encoding = header("content-encoding");
        }
        self.body.seed(self.status);
        self.state = if self.of_head || matches!(self.status, 204 | 304) {
            self.body.finish();
            State::Done
        } else if chunked {
            State::ChunkSize(0, 0)
        } else if let Some(length) = length {
            State::Fixed(length)
        } else {
            self.keep = false;
            State::UntilClose
        };
        Ok(Some(used))
    }

    /// Takes bytes of a chunked body or of one that ends with the connection. Returns the bytes after the response.
    fn other<'a>(&mut self, mut bytes: &'a [u8]) -> Result<&'a [u8]> {
        loop {
            match self.state {
                State::UntilClose => {
                    self.body.add(bytes, false);
                    return Ok(&[]);
                }
                State::Chunk(left) => {
                    let take = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    self.body.add(&bytes[..take], false);
                    bytes = &bytes[take..];
                    self.state = if take as u64 == left { State::ChunkCr } else { State::Chunk(left - take as u64) };
                }
                State::Done => return Ok(bytes),
                _ => {}
            }
            let Some((&byte, rest)) = bytes.split_first() else { return Ok(bytes) };
            bytes = rest;
            self.framing_bytes += 1;
            self.state = match (self.state, byte) {
                (State::ChunkSize(size, digits), digit) if digit.is_ascii_hexdigit() && digits < 15 => {
                    let digit = (digit as char).to_digit(16).unwrap_or(0);
                    State::ChunkSize(size << 4 | u64::from(digit), digits + 1)
                }
                (State::ChunkSize(size, 1..), b'\r') => State::ChunkSizeEnd(size),
                (State::ChunkSize(size, 1..), b';' | b' ' | b'\t') => State::ChunkExtension(size),
                (State::ChunkExtension(size), b'\r') => State::ChunkSizeEnd(size),
                (State::ChunkExtension(size), byte) if byte != b'\n' => State::ChunkExtension(size),
                (State::ChunkSizeEnd(0), b'\n') => State::TrailerStart,
                (State::ChunkSizeEnd(size), b'\n') => {
                    self.framing_bytes = 0;
                    State::Chunk(size)
                }
                (State::ChunkCr, b'\r') => State::ChunkLf,
                (State::ChunkLf, b'\n') => State::ChunkSize(0, 0),
                (State::TrailerStart, b'\r') => State::TrailerEnd,
                (State::TrailerStart | State::TrailerLine, byte) if byte != b'\n' => State::TrailerLine,
                (State::TrailerLine, _) => State::TrailerStart,
                (State::TrailerEnd, b'\n') => {
                    self.body.finish();
                    State::Done
                }
                _ => return Err(malformed("its chunks are malformed")),
            };
            if self.framing_bytes > HEAD_BYTES {
                return Err(malformed("a chunk's line, or what follows the last chunk, is longer than 64 KiB"));
            }
        }
    }
}

/// Parses digits only.
pub fn decimal(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii();
    if text.is_empty() || text.len() > 18 {
        return None;
    }
    text.iter().try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + u64::from(byte - b'0')))
}
