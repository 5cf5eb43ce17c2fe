//! Parses frames in arbitrary pieces into the stream's response, and acknowledges what the server must know.

use super::frame::{FRAME_BYTES, Frame, HEADER_BYTES, error_name, flag, kind, put_frame, u32_at, unpadded};
use super::preface::WINDOW;
use super::state::Two;
use crate::drivers::http::exchange::{closed_early, malformed};
use crate::drivers::http::hpack::{self, Name};
use crate::drivers::http::reader::{self, MOST_HEADERS, MOST_INTERIM};
use crate::failure::{Failure, Result};

const BLOCK_BYTES: usize = 64 * 1024;
/// Maximum number of frames during a response that are neither head, body nor window updates.
const MOST_OTHERS: u32 = 1000;

impl Two {
    /// Takes frames; the first and the last may be incomplete.
    #[inline]
    pub(super) fn frames(&mut self, mut bytes: &[u8], say: &mut Vec<u8>) -> Result<()> {
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
            // Completes a partial header or, except for bodies, a partial frame.
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

    /// Appends up to this many bytes to the partial frame.
    fn complete<'a>(&mut self, bytes: &'a [u8], missing: usize) -> &'a [u8] {
        let (part, rest) = bytes.split_at(missing.min(bytes.len()));
        self.partial.extend_from_slice(part);
        rest
    }

    #[inline]
    fn checked(&self, frame: Frame) -> Result<Frame> {
        if frame.length > FRAME_BYTES {
            return Err(malformed("an HTTP/2 frame is longer than allowed"));
        }
        if self.block.is_some() && frame.kind != kind::CONTINUATION {
            return Err(malformed("an HTTP/2 header block was interrupted"));
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

    /// Counts a body frame, and renews the window after many bytes.
    #[inline]
    fn expect_data(&mut self, frame: Frame, say: &mut Vec<u8>) -> Result<()> {
        if frame.stream != self.stream || self.done || self.status == 0 {
            return Err(malformed("unexpected HTTP/2 body: no request is pending"));
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
            return Err(malformed("unexpected body before the response's head"));
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
            // The server responded without waiting for the rest of the request: the connection can't be reused.
            self.leaving = true;
        }
        Ok(())
    }

    /// Handles any frame except an unpadded body.
    fn frame(&mut self, frame: Frame, payload: &[u8], say: &mut Vec<u8>) -> Result<()> {
        let short = || malformed("an HTTP/2 frame is too short");
        if !matches!(frame.kind, kind::DATA | kind::HEADERS | kind::WINDOW_UPDATE) {
            self.others += 1;
            if self.others > MOST_OTHERS {
                return Err(malformed(format!("more than {MOST_OTHERS} HTTP/2 frames that aren't part of a response")));
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
                    return Err(malformed("unexpected HTTP/2 response: no request is pending"));
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
                    return Err(malformed("an HTTP/2 header block continues without a beginning"));
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
                return Err(closed_early(format!("the server reset the stream: {why}")));
            }
            kind::SETTINGS if !frame.has(flag::ACK) => {
                if payload.len() % 6 != 0 || frame.stream != 0 {
                    return Err(malformed("the server's SETTINGS are malformed"));
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
            kind::PUSH_PROMISE => return Err(malformed("the server pushes, which was disabled")),
            kind::PING if !frame.has(flag::ACK) => put_frame(kind::PING, flag::ACK, 0, payload, say),
            kind::GOAWAY => {
                let (last, code) = (u32_at(payload, 0) & 0x7fff_ffff, u32_at(payload, 4));
                self.leaving = true;
                if self.stream > last && !self.done {
                    if code != 0 && self.stream > 1 {
                        return Err(closed_early(format!("the server sent GOAWAY: {}", error_name(code))));
                    }
                    // It has not processed the stream, which can be opened on another connection.
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

    /// A header block: an interim response, the response, or its trailer.
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
                    let digits = value.len() == 3 && value.iter().all(u8::is_ascii_digit);
                    sound &= status == 0 && digits;
                    status =
                        if digits { value.iter().fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0')) } else { 0 };
                }
                Name::ContentLength => {
                    let stated = reader::decimal(value);
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
            return Err(malformed("the response's header block is malformed"));
        }
        if fields > MOST_HEADERS {
            return Err(malformed(format!("the response's head has more than {MOST_HEADERS} fields")));
        }
        if trailer {
            return match ends && sound && status == 0 {
                true => self.data(&[], true),
                false => Err(malformed("the response's trailer is malformed")),
            };
        }
        if !sound || status < 100 || status == 101 {
            return Err(malformed("the response's head is malformed"));
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

    /// The connection ended before the response did.
    pub(super) fn cut_off(&self) -> Failure {
        closed_early(match (self.begun, self.status) {
            (false, _) => "the connection ended before any response".to_string(),
            (true, 0) => "the connection ended within the response's head".to_string(),
            _ => match self.length {
                Some(length) => format!("the connection ended {} bytes before the body does", length - self.received),
                None => "the connection ended before the stream does".to_string(),
            },
        })
    }
}
