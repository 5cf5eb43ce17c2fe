//! Parses frames in arbitrary pieces into the stream's response, and acknowledges what the server must know.

use super::frame::{FRAME_BYTES, Frame, HEADER_BYTES, error_name, flag, kind, put_frame, u32_at, unpadded};
use super::preface::WINDOW;
use super::state::Two;
use crate::drivers::http::exchange::{closed_early, malformed};
use crate::drivers::http::hpack;
use crate::failure::Result;

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
        if frame.stream != self.stream || self.reply.done || self.reply.status == 0 {
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
        self.reply.data(part, ends)?;
        if ends {
            self.end_stream();
        }
        Ok(())
    }

    fn end_stream(&mut self) {
        if self.uploaded < self.upload.len() {
            // The server responded without waiting for the rest of the request: the connection can't be reused.
            self.leaving = true;
        }
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
                if frame.stream != self.stream || self.reply.done {
                    return Err(malformed("unexpected HTTP/2 response: no request is pending"));
                }
                self.reply.begun = true;
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
            kind::RST_STREAM if frame.stream == self.stream && !self.reply.done => {
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
                if self.stream > last && !self.reply.done {
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
        let room = &mut self.room;
        self.reply.head(ends, |see| hpack::decode(block, room, see))?;
        if ends {
            self.end_stream();
        }
        Ok(())
    }
}
