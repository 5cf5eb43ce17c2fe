//! two: HTTP/2 (RFC 9113), one stream at a time: requests -> frames, and frames cut anywhere -> the stream's response.

use super::body::Body;
use super::exchange::{Details, Exchange, Place, Response, Taken, closed_early, malformed};
use super::hpack::{self, Name};
use super::reader::{MOST_HEADERS, MOST_INTERIM};
use super::statement::{Asked, Method};
use crate::decimal::{DIGITS, decimal};
use crate::drivers::network::buffer::Buffer;
use crate::drivers::network::wire::{Inbox, Login, Turn, Wire};
use crate::failure::{Failure, Result};
use crate::message;
use crate::program::Operation;
use crate::transport::socket::{Socket, Traffic};

const HEADER_BYTES: usize = 9;
/// As large as a frame is unless somebody allows more, which this client does not.
const FRAME_BYTES: usize = 16_384;
const BLOCK_BYTES: usize = 64 * 1024;
/// Frames of one response that are neither its head, its body nor room for a request's body.
const MOST_OTHERS: u32 = 1000;
/// What a server may send unasked for: so much that no response waits for it to be renewed.
const WINDOW: u32 = 1 << 30;
const USUAL_WINDOW: i64 = 65_535;
/// No connection is used for more streams than this; there are 2³⁰.
const LAST_STREAM: u32 = 1 << 30;

mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

mod flag {
    pub const END_STREAM: u8 = 1;
    pub const ACK: u8 = 1;
    pub const END_HEADERS: u8 = 4;
    pub const PADDED: u8 = 8;
    pub const PRIORITY: u8 = 32;
}

#[derive(Debug, Clone, Copy, Default)]
struct Frame {
    length: usize,
    kind: u8,
    flags: u8,
    stream: u32,
}

impl Frame {
    fn read(bytes: &[u8]) -> Frame {
        Frame {
            length: usize::from(bytes[0]) << 16 | usize::from(bytes[1]) << 8 | usize::from(bytes[2]),
            kind: bytes[3],
            flags: bytes[4],
            stream: u32_at(bytes, 5) & 0x7fff_ffff,
        }
    }

    fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |four| u32::from_be_bytes([four[0], four[1], four[2], four[3]]))
}

fn put_frame(kind: u8, flags: u8, stream: u32, payload: &[u8], into: &mut Vec<u8>) {
    into.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    into.extend_from_slice(&[kind, flags]);
    into.extend_from_slice(&stream.to_be_bytes());
    into.extend_from_slice(payload);
}

/// One connection's side of HTTP/2.
#[derive(Debug)]
pub struct Two {
    /// The stream that was opened last, or 0.
    stream: u32,
    of_head: bool,
    begun: bool,
    done: bool,
    /// The server takes no more streams.
    leaving: bool,
    status: u16,
    /// Interim responses (1xx) before the response, and frames that are no part of it.
    interim: u32,
    others: u32,
    length: Option<u64>,
    received: u64,
    body: Body,
    details: Details,
    /// A frame's header, or a frame that is looked at as a whole, of which not all has come.
    partial: Vec<u8>,
    /// A frame of the body whose rest has yet to come: how much, and whether it is the last.
    data_left: usize,
    data_ends: bool,
    /// A header block that goes on in the next frame, and whether the stream ends with it.
    block: Option<(Vec<u8>, bool)>,
    /// Room for what is decoded of a block. Reused.
    room: Vec<u8>,
    /// What was received since it was last said that there is room again.
    unsaid: u32,
    unsaid_of_stream: u32,
    /// How much may be sent, on the connection and on the stream; what a new stream begins with; a frame's most bytes.
    may_send: i64,
    may_send_on_stream: i64,
    usual_window: i64,
    most_bytes: usize,
    /// The request's body, and how much of it was sent.
    upload: Vec<u8>,
    uploaded: usize,
}

impl Default for Two {
    fn default() -> Two {
        Two {
            stream: 0,
            of_head: false,
            begun: false,
            done: true,
            leaving: false,
            status: 0,
            interim: 0,
            others: 0,
            length: None,
            received: 0,
            body: Body::default(),
            details: Details::default(),
            partial: Vec::new(),
            data_left: 0,
            data_ends: false,
            block: None,
            room: Vec::new(),
            unsaid: 0,
            unsaid_of_stream: 0,
            may_send: USUAL_WINDOW,
            may_send_on_stream: USUAL_WINDOW,
            usual_window: USUAL_WINDOW,
            most_bytes: FRAME_BYTES,
            upload: Vec::new(),
            uploaded: 0,
        }
    }
}

/// A statement's request: the fields that are the same every time are encoded already.
pub struct Request {
    asked: Asked,
    fields: Vec<u8>,
}

/// Entries of the static table.
mod entry {
    pub const AUTHORITY: usize = 1;
    pub const GET: usize = 2;
    pub const POST: usize = 3;
    pub const PATH: usize = 4;
    pub const HTTP: usize = 6;
    pub const HTTPS: usize = 7;
    pub const ACCEPT: usize = 19;
    pub const CONTENT_LENGTH: usize = 28;
    pub const CONTENT_TYPE: usize = 31;
    pub const USER_AGENT: usize = 58;
}

impl Exchange for Two {
    type Request = Request;
    const NAME: &'static str = "h2";
    const MUST_AGREE: bool = true;
    const BY_PLACE: bool = false;

    fn compile(asked: Asked, place: &Place, _: bool) -> Request {
        let mut fields = Vec::new();
        match asked.method {
            Method::Get => hpack::put_entry(entry::GET, &mut fields),
            Method::Post => hpack::put_entry(entry::POST, &mut fields),
            other => hpack::put_field(entry::GET, other.name().as_bytes(), &mut fields),
        }
        hpack::put_entry(if place.scheme == "https" { entry::HTTPS } else { entry::HTTP }, &mut fields);
        hpack::put_field(entry::AUTHORITY, place.authority.as_bytes(), &mut fields);
        let mut request = Request { asked, fields: Vec::new() };
        if let Some(path) = request.asked.path.fixed() {
            hpack::put_field(entry::PATH, path, &mut fields);
        }
        request.fields = fields;
        request
    }

    #[inline]
    fn fixed(_: &Request) -> Option<&[u8]> {
        None
    }

    #[inline]
    fn put(&mut self, request: &Request, operation: &Operation, into: &mut Vec<u8>) {
        self.upload.clear();
        self.uploaded = 0;
        if let Some(body) = &request.asked.body {
            body.text.put(operation, &mut self.upload);
        }
        let at = into.len();
        let ends = if self.upload.is_empty() { flag::END_STREAM } else { 0 };
        put_frame(kind::HEADERS, flag::END_HEADERS | ends, self.stream, &request.fields, into);
        if request.asked.path.fixed().is_none() {
            self.room.clear();
            request.asked.path.put(operation, &mut self.room);
            hpack::put_field(entry::PATH, &self.room, into);
        }
        hpack::put_field(entry::USER_AGENT, b"ciphercost", into);
        hpack::put_field(entry::ACCEPT, b"*/*", into);
        if let Some(body) = &request.asked.body {
            hpack::put_field(entry::CONTENT_TYPE, body.content_type.as_bytes(), into);
        }
        if request.asked.states_length() {
            let mut digits = [0; DIGITS];
            hpack::put_field(entry::CONTENT_LENGTH, decimal(self.upload.len() as i64, &mut digits), into);
        }
        let length = into.len() - at - HEADER_BYTES;
        if length > FRAME_BYTES {
            self.split(at, into);
        } else {
            into[at..at + 3].copy_from_slice(&(length as u32).to_be_bytes()[1..]);
        }
        self.send_body(into);
    }

    #[inline]
    fn start(&mut self, request: &Request, keep_body: bool) {
        self.stream = if self.stream == 0 { 1 } else { self.stream + 2 };
        self.of_head = request.asked.method == Method::Head;
        self.begun = false;
        self.done = false;
        self.length = None;
        self.received = 0;
        self.status = 0;
        self.interim = 0;
        self.others = 0;
        self.unsaid_of_stream = 0;
        self.may_send_on_stream = self.usual_window;
        self.body.start(keep_body);
        self.details.wanted = keep_body;
    }

    #[inline]
    fn take(&mut self, bytes: &[u8], say: &mut Vec<u8>) -> Result<Taken> {
        self.frames(bytes, say)?;
        Ok(match self.done {
            true => Taken::Answer,
            false if self.leaving && !self.begun && self.stream == 0 => Taken::Refused,
            false => Taken::Part,
        })
    }

    fn idle(&mut self, bytes: &[u8], say: &mut Vec<u8>) -> Result<()> {
        self.frames(bytes, say)
    }

    fn end(&mut self, _: bool) -> Result<()> {
        Err(closed_early(match (self.begun, self.status) {
            (false, _) => "the connection ended before any answer came".to_string(),
            (true, 0) => "the connection ended within the response's head".to_string(),
            _ => match self.length {
                Some(length) => format!("the connection ended {} bytes before the body does", length - self.received),
                None => "the connection ended before the stream does".to_string(),
            },
        }))
    }

    #[inline]
    fn begun(&self) -> bool {
        self.begun
    }

    #[inline]
    fn keep(&self) -> bool {
        !self.leaving && self.stream < LAST_STREAM
    }

    #[inline]
    fn response(&mut self) -> Response<'_> {
        Response { status: self.status, body: &mut self.body, details: &self.details }
    }

    fn label(request: &Request, operation: &Operation) -> String {
        request.asked.label(operation)
    }
}

impl Two {
    /// A header block longer than a frame: HEADERS, and CONTINUATION for what is left.
    #[cold]
    fn split(&mut self, at: usize, into: &mut Vec<u8>) {
        let frame = into.split_off(at);
        let mut parts = frame[HEADER_BYTES..].chunks(FRAME_BYTES).peekable();
        let mut first = Some(frame[4] & flag::END_STREAM);
        while let Some(part) = parts.next() {
            let ends = if parts.peek().is_none() { flag::END_HEADERS } else { 0 };
            match first.take() {
                Some(end_stream) => put_frame(kind::HEADERS, ends | end_stream, self.stream, part, into),
                None => put_frame(kind::CONTINUATION, ends, self.stream, part, into),
            }
        }
    }

    /// Sends as much of the request's body as the server has room for.
    #[inline]
    fn send_body(&mut self, into: &mut Vec<u8>) {
        while self.uploaded < self.upload.len() {
            let room = self.may_send.min(self.may_send_on_stream);
            let most = (self.upload.len() - self.uploaded).min(self.most_bytes);
            let Some(take) = usize::try_from(room).ok().map(|room| room.min(most)).filter(|take| *take > 0) else {
                return;
            };
            let part = &self.upload[self.uploaded..self.uploaded + take];
            self.uploaded += take;
            self.may_send -= take as i64;
            self.may_send_on_stream -= take as i64;
            let ends = if self.uploaded == self.upload.len() { flag::END_STREAM } else { 0 };
            put_frame(kind::DATA, ends, self.stream, part, into);
        }
    }

    /// Takes frames, the first and the last of which may be cut.
    #[inline]
    fn frames(&mut self, mut bytes: &[u8], say: &mut Vec<u8>) -> Result<()> {
        loop {
            if self.data_left > 0 {
                let take = bytes.len().min(self.data_left);
                self.data_left -= take;
                let (part, rest) = bytes.split_at(take);
                bytes = rest;
                self.data(part, self.data_ends && self.data_left == 0)?;
                if self.data_left > 0 {
                    return Ok(());
                }
            }
            if bytes.is_empty() {
                return Ok(());
            }
            // What is cut is put together first: a header, or (but for bodies) the frame.
            if !self.partial.is_empty() || bytes.len() < HEADER_BYTES {
                let missing = HEADER_BYTES.saturating_sub(self.partial.len());
                bytes = self.complete(bytes, missing);
                if self.partial.len() < HEADER_BYTES {
                    return Ok(());
                }
                let frame = self.checked(Frame::read(&self.partial))?;
                if frame.kind == kind::DATA && !frame.has(flag::PADDED) {
                    self.partial.clear();
                    self.begin_data(frame, say)?;
                    continue;
                }
                let missing = (HEADER_BYTES + frame.length).saturating_sub(self.partial.len());
                bytes = self.complete(bytes, missing);
                if self.partial.len() < HEADER_BYTES + frame.length {
                    return Ok(());
                }
                let whole = std::mem::take(&mut self.partial);
                self.frame(frame, &whole[HEADER_BYTES..], say)?;
                self.partial = whole;
                self.partial.clear();
                continue;
            }
            let frame = self.checked(Frame::read(bytes))?;
            if frame.kind == kind::DATA && !frame.has(flag::PADDED) {
                bytes = &bytes[HEADER_BYTES..];
                self.begin_data(frame, say)?;
            } else if let Some((whole, rest)) = bytes.split_at_checked(HEADER_BYTES + frame.length) {
                self.frame(frame, &whole[HEADER_BYTES..], say)?;
                bytes = rest;
            } else {
                self.partial.extend_from_slice(bytes);
                return Ok(());
            }
        }
    }

    /// Puts so many bytes to what is there of a frame, as far as they have come.
    fn complete<'a>(&mut self, bytes: &'a [u8], missing: usize) -> &'a [u8] {
        let (part, rest) = bytes.split_at(missing.min(bytes.len()));
        self.partial.extend_from_slice(part);
        rest
    }

    #[inline]
    fn checked(&self, frame: Frame) -> Result<Frame> {
        if frame.length > FRAME_BYTES {
            return Err(malformed("a frame of HTTP/2 is longer than was allowed"));
        }
        if self.block.is_some() && frame.kind != kind::CONTINUATION {
            return Err(malformed("a header block of HTTP/2 is broken off"));
        }
        Ok(frame)
    }

    #[inline]
    fn begin_data(&mut self, frame: Frame, say: &mut Vec<u8>) -> Result<()> {
        self.expect_data(frame, say)?;
        self.data_left = frame.length;
        self.data_ends = frame.has(flag::END_STREAM);
        if frame.length == 0 && self.data_ends {
            self.data(&[], true)?;
        }
        Ok(())
    }

    /// Counts a frame of the body, and says that there is room again where much has passed.
    #[inline]
    fn expect_data(&mut self, frame: Frame, say: &mut Vec<u8>) -> Result<()> {
        if frame.stream != self.stream || self.done || self.status == 0 {
            return Err(malformed("a body of HTTP/2 comes that nobody asked for"));
        }
        self.unsaid += frame.length as u32;
        self.unsaid_of_stream += frame.length as u32;
        if self.unsaid > WINDOW / 2 {
            put_frame(kind::WINDOW_UPDATE, 0, 0, &self.unsaid.to_be_bytes(), say);
            self.unsaid = 0;
        }
        if self.unsaid_of_stream > WINDOW / 2 && !frame.has(flag::END_STREAM) {
            put_frame(kind::WINDOW_UPDATE, 0, self.stream, &self.unsaid_of_stream.to_be_bytes(), say);
            self.unsaid_of_stream = 0;
        }
        Ok(())
    }

    #[inline]
    fn data(&mut self, part: &[u8], ends: bool) -> Result<()> {
        self.received += part.len() as u64;
        if !part.is_empty() && (self.of_head || matches!(self.status, 204 | 304)) {
            return Err(malformed("a body comes that nobody asked for"));
        }
        self.body.add(part, ends)?;
        if self.length.is_some_and(|length| self.received > length) {
            return Err(malformed("the body is longer than its Content-Length"));
        }
        if ends {
            self.end_stream()?;
        }
        Ok(())
    }

    fn end_stream(&mut self) -> Result<()> {
        let bodiless = self.of_head || matches!(self.status, 204 | 304);
        if !bodiless && self.length.is_some_and(|length| self.received < length) {
            return Err(closed_early("the stream ended before the body does, by its Content-Length"));
        }
        self.done = true;
        if self.uploaded < self.upload.len() {
            // The server has answered without waiting for the rest of the request: the connection is of no more use.
            self.leaving = true;
        }
        Ok(())
    }

    /// Any frame but of an unpadded body.
    fn frame(&mut self, frame: Frame, payload: &[u8], say: &mut Vec<u8>) -> Result<()> {
        let short = || malformed("a frame of HTTP/2 is too short");
        if !matches!(frame.kind, kind::DATA | kind::HEADERS | kind::WINDOW_UPDATE) {
            self.others += 1;
            if self.others > MOST_OTHERS {
                return Err(malformed(format!("more than {MOST_OTHERS} frames of HTTP/2 that are no response")));
            }
        }
        match frame.kind {
            kind::DATA => {
                self.expect_data(frame, say)?;
                let payload = unpadded(frame, payload).ok_or_else(short)?;
                self.data(payload, frame.has(flag::END_STREAM))?;
            }
            kind::HEADERS => {
                if frame.stream != self.stream || self.done {
                    return Err(malformed("a response of HTTP/2 comes that nobody asked for"));
                }
                self.begun = true;
                let payload = unpadded(frame, payload).ok_or_else(short)?;
                let skip = if frame.has(flag::PRIORITY) { 5 } else { 0 };
                let block = payload.get(skip..).ok_or_else(short)?;
                if frame.has(flag::END_HEADERS) {
                    self.head(block, frame.has(flag::END_STREAM))?;
                } else {
                    self.block = Some((block.to_vec(), frame.has(flag::END_STREAM)));
                }
            }
            kind::CONTINUATION => {
                let Some((mut block, ends)) = self.block.take().filter(|_| frame.stream == self.stream) else {
                    return Err(malformed("a header block of HTTP/2 goes on that never began"));
                };
                block.extend_from_slice(payload);
                if block.len() > BLOCK_BYTES {
                    return Err(malformed("the response's head is longer than 64 KiB"));
                }
                if frame.has(flag::END_HEADERS) {
                    self.head(&block, ends)?;
                } else {
                    self.block = Some((block, ends));
                }
            }
            kind::RST_STREAM if frame.stream == self.stream && !self.done => {
                let why = error_name(u32_at(payload, 0));
                return Err(closed_early(format!("the server broke off the stream: {why}")));
            }
            kind::SETTINGS if !frame.has(flag::ACK) => {
                if payload.len() % 6 != 0 || frame.stream != 0 {
                    return Err(malformed("the server's SETTINGS are broken"));
                }
                for setting in payload.chunks(6) {
                    let value = u32_at(setting, 2);
                    match u16::from_be_bytes([setting[0], setting[1]]) {
                        4 => {
                            self.may_send_on_stream += i64::from(value) - self.usual_window;
                            self.usual_window = value.into();
                        }
                        5 => self.most_bytes = (value as usize).max(FRAME_BYTES),
                        _ => {}
                    }
                }
                put_frame(kind::SETTINGS, flag::ACK, 0, &[], say);
                self.go_on_sending(say);
            }
            kind::PUSH_PROMISE => return Err(malformed("the server pushes what nobody asked for")),
            kind::PING if !frame.has(flag::ACK) => put_frame(kind::PING, flag::ACK, 0, payload, say),
            kind::GOAWAY => {
                let (last, code) = (u32_at(payload, 0) & 0x7fff_ffff, u32_at(payload, 4));
                self.leaving = true;
                if self.stream > last && !self.done {
                    if code != 0 && self.stream > 1 {
                        return Err(closed_early(format!("the server took leave: {}", error_name(code))));
                    }
                    // It has not looked at the stream, which can be opened on another connection.
                    self.stream = 0;
                }
            }
            kind::WINDOW_UPDATE => {
                let more = i64::from(u32_at(payload, 0) & 0x7fff_ffff);
                if frame.stream == 0 {
                    self.may_send += more;
                } else if frame.stream == self.stream {
                    self.may_send_on_stream += more;
                }
                self.go_on_sending(say);
            }
            _ => {}
        }
        Ok(())
    }

    fn go_on_sending(&mut self, say: &mut Vec<u8>) {
        if !self.done {
            self.send_body(say);
        }
    }

    /// A header block: of an interim response, of the response, or behind its body.
    fn head(&mut self, block: &[u8], ends: bool) -> Result<()> {
        let trailer = self.status != 0;
        let wanted = self.details.wanted;
        let (mut status, mut length, mut sound, mut fields) = (0u16, None, true, 0);
        let (mut location, mut server) = (String::new(), String::new());
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let decoded = hpack::decode(block, &mut self.room, |name, value| {
            fields += 1;
            match name {
                Name::Status => {
                    sound &= status == 0 && value.len() == 3 && value.iter().all(u8::is_ascii_digit);
                    status = value.iter().fold(0, |sum, digit| sum * 10 + u16::from(digit.wrapping_sub(b'0') % 10));
                }
                Name::ContentLength => {
                    let stated = super::reader::decimal(value);
                    sound &= stated.is_some() && length.is_none_or(|known| Some(known) == stated);
                    length = stated;
                }
                Name::Location => location = text(value),
                Name::Server if wanted => server = text(value),
                Name::Pseudo => sound = false,
                Name::Server | Name::Other => {}
            }
        });
        if decoded.is_none() {
            return Err(malformed("the response's header block is broken"));
        }
        if fields > MOST_HEADERS {
            return Err(malformed(format!("the response's head has more than {MOST_HEADERS} fields")));
        }
        if trailer {
            return match ends && sound && status == 0 {
                true => self.data(&[], true),
                false => Err(malformed("what follows the body is broken")),
            };
        }
        if !sound || status < 100 || status == 101 {
            return Err(malformed("the response's head is broken"));
        }
        if status < 200 {
            self.interim += 1;
            if self.interim > MOST_INTERIM {
                return Err(malformed(format!("more than {MOST_INTERIM} interim responses")));
            }
            return if ends { Err(malformed("the stream ended with an interim response")) } else { Ok(()) };
        }
        self.status = status;
        self.length = length.filter(|_| !self.of_head && !matches!(status, 204 | 304));
        self.details.reason = String::new();
        (self.details.location, self.details.server) = (location, server);
        self.body.seed(status);
        if ends {
            self.data(&[], true)?;
        }
        Ok(())
    }
}

/// A payload without its padding. None: there is more of that than payload.
fn unpadded(frame: Frame, payload: &[u8]) -> Option<&[u8]> {
    if !frame.has(flag::PADDED) {
        return Some(payload);
    }
    let (&padding, rest) = payload.split_first()?;
    rest.get(..rest.len().checked_sub(padding.into())?)
}

fn error_name(code: u32) -> String {
    const NAMES: [&str; 14] = [
        "NO_ERROR",
        "PROTOCOL_ERROR",
        "INTERNAL_ERROR",
        "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM",
        "CANCEL",
        "COMPRESSION_ERROR",
        "CONNECT_ERROR",
        "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    ];
    NAMES.get(code as usize).map_or_else(|| format!("error {code}"), |name| name.to_string())
}

impl Wire for Two {
    type Asked = message::Server;
    type Inbox = Beginning;
    type Login = Preface;
    /// GOAWAY, without an error.
    const GOODBYE: &'static [u8] = b"\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0";

    /// Not every server closes the connection for a GOAWAY.
    fn part(socket: Socket) -> Traffic {
        socket.finish_within(0)
    }
}

/// What comes before the first request: the server's SETTINGS, and what else comes with them. It has room only then.
pub struct Beginning(Buffer);

impl Default for Beginning {
    fn default() -> Beginning {
        Beginning(Buffer::with_room(0))
    }
}

impl Inbox for Beginning {
    fn buffer(&mut self) -> &mut Buffer {
        &mut self.0
    }

    fn clear(&mut self) {
        self.0 = Buffer::with_room(HEADER_BYTES + FRAME_BYTES);
    }
}

/// Both sides say what they can.
#[derive(Default)]
pub struct Preface;

impl Login<Beginning> for Preface {
    fn first(&mut self, _: &message::Server) -> Result<Vec<u8>> {
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        // No dynamic table, no push, and a window that holds any response.
        let settings = [(1u16, 0u32), (2, 0), (4, WINDOW)];
        let settings =
            settings.iter().flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat());
        put_frame(kind::SETTINGS, 0, 0, &settings.collect::<Vec<u8>>(), &mut bytes);
        put_frame(kind::WINDOW_UPDATE, 0, 0, &(WINDOW - USUAL_WINDOW as u32).to_be_bytes(), &mut bytes);
        Ok(bytes)
    }

    /// Leaves them where they are: the connection's own side takes them.
    fn hear(&mut self, inbox: &mut Beginning, _: &message::Server) -> Result<Turn> {
        let unread = inbox.0.unread();
        if unread.len() < HEADER_BYTES {
            return Ok(Turn::Wait);
        }
        let frame = Frame::read(unread);
        if frame.kind != kind::SETTINGS || frame.has(flag::ACK) || frame.length > FRAME_BYTES {
            return Err(Failure::connect("the server does not speak HTTP/2"));
        }
        Ok(if unread.len() < HEADER_BYTES + frame.length { Turn::Wait } else { Turn::Ready })
    }
}
