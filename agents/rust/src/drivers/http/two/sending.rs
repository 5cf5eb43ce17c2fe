//! Encodes requests as frames: a header block, and as much of a body as the server's windows allow.

use super::frame::{FRAME_BYTES, HEADER_BYTES, flag, kind, put_frame};
use super::state::Two;
use crate::decimal::{DIGITS, decimal};
use crate::drivers::http::exchange::Place;
use crate::drivers::http::hpack;
use crate::drivers::http::statement::{Asked, Method};
use crate::program::Operation;

/// A statement's request: fields that are always the same are already encoded.
pub struct Request {
    pub(super) asked: Asked,
    /// Pseudo-header fields, but not a path with values.
    fields: Vec<u8>,
    /// Headers without values.
    headers: Vec<u8>,
}

/// Entries of the static table.
mod entry {
    pub const AUTHORITY: usize = 1;
    pub const GET: usize = 2;
    pub const POST: usize = 3;
    pub const PATH: usize = 4;
    pub const HTTP: usize = 6;
    pub const HTTPS: usize = 7;
    pub const CONTENT_LENGTH: usize = 28;
    /// Names of headers.
    pub const NAMES: [(&str, usize); 7] = [
        ("accept-encoding", 16),
        ("accept-language", 17),
        ("accept", 19),
        ("authorization", 23),
        ("content-type", 31),
        ("cookie", 32),
        ("user-agent", 58),
    ];
}

/// A header that must not be indexed.
fn put_header(name: &str, value: &[u8], into: &mut Vec<u8>) {
    let name = name.to_ascii_lowercase();
    match entry::NAMES.iter().find(|(known, _)| *known == name) {
        Some((_, entry)) => hpack::put_field(*entry, value, into),
        None => hpack::put_named(name.as_bytes(), value, into),
    }
}

impl Request {
    pub fn new(asked: Asked, place: &Place) -> Request {
        let mut fields = Vec::new();
        match asked.method {
            Method::Get => hpack::put_entry(entry::GET, &mut fields),
            Method::Post => hpack::put_entry(entry::POST, &mut fields),
            other => hpack::put_field(entry::GET, other.name().as_bytes(), &mut fields),
        }
        hpack::put_entry(if place.scheme == "https" { entry::HTTPS } else { entry::HTTP }, &mut fields);
        hpack::put_field(entry::AUTHORITY, place.authority.as_bytes(), &mut fields);
        if let Some(path) = asked.path.fixed() {
            hpack::put_field(entry::PATH, path, &mut fields);
        }
        let mut headers = Vec::new();
        for header in &asked.headers {
            if let Some(value) = header.value.fixed() {
                put_header(&header.name, value, &mut headers);
            }
        }
        Request { asked, fields, headers }
    }
}

impl Two {
    #[inline]
    pub(super) fn open_stream(&mut self, request: &Request, keep_body: bool) {
        self.stream = if self.stream == 0 { 1 } else { self.stream + 2 };
        self.reply.start(request.asked.method == Method::Head, keep_body);
        self.others = 0;
        self.unsaid_of_stream = 0;
        self.may_send_on_stream = self.usual_window;
    }

    #[inline]
    pub(super) fn put_request(&mut self, request: &Request, operation: &Operation, into: &mut Vec<u8>) {
        self.upload.clear();
        self.uploaded = 0;
        if let Some(body) = &request.asked.body {
            body.put(operation, &mut self.upload);
        }
        let at = into.len();
        let ends = if self.upload.is_empty() { flag::END_STREAM } else { 0 };
        put_frame(kind::HEADERS, flag::END_HEADERS | ends, self.stream, &request.fields, into);
        if request.asked.path.fixed().is_none() {
            self.room.clear();
            request.asked.path.put(operation, &mut self.room);
            hpack::put_field(entry::PATH, &self.room, into);
        }
        into.extend_from_slice(&request.headers);
        for header in request.asked.headers.iter().filter(|header| header.value.fixed().is_none()) {
            self.room.clear();
            header.value.put(operation, &mut self.room);
            put_header(&header.name, &self.room, into);
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

    /// A header block longer than a frame: HEADERS, then CONTINUATION for the rest.
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

    /// Sends as much of the request's body as the windows allow.
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

    /// Sends more of the request's body after a window update.
    pub(super) fn go_on_sending(&mut self, say: &mut Vec<u8>) {
        if !self.reply.done {
            self.send_body(say);
        }
    }
}
