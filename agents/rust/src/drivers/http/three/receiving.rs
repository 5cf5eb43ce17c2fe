//! Parses a response's frames in arbitrary pieces.

use super::Three;
use super::frame::{header, kind};
use crate::drivers::http::exchange::{closed_early, malformed};
use crate::drivers::http::qpack;
use crate::failure::Result;

/// The longest field section of a head.
const SECTION_BYTES: u64 = 64 * 1024;
/// A frame's header has two numbers of at most eight bytes.
const HEADER_BYTES: usize = 16;
/// Maximum number of frames in a response that are neither head nor body.
const MOST_OTHERS: u32 = 1000;

impl Three {
    /// Takes frames; the first and the last may be incomplete.
    #[inline]
    pub(super) fn frames(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.reply.begun |= !bytes.is_empty();
        loop {
            if self.data_left > 0 {
                let part = first(&mut bytes, &mut self.data_left);
                self.reply.data(part, false)?;
            }
            if self.skip_left > 0 {
                first(&mut bytes, &mut self.skip_left);
            }
            if bytes.is_empty() {
                return Ok(());
            }
            if self.partial.is_empty() {
                let mut rest = bytes;
                let Some((kind, length)) = header(&mut rest) else {
                    self.partial.extend_from_slice(bytes);
                    return Ok(());
                };
                if self.begin(kind, length)? {
                    bytes = rest;
                    continue;
                }
                if let Some((section, more)) = rest.split_at_checked(length as usize) {
                    self.head(section)?;
                    bytes = more;
                    continue;
                }
                self.partial.extend_from_slice(bytes);
                return Ok(());
            }
            bytes = self.complete(bytes)?;
        }
    }

    /// Completes the partial frame, or its header, as far as these bytes allow. Returns the rest of them.
    #[cold]
    fn complete<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8]> {
        let known = self.partial.len();
        let ahead = bytes.len().min(HEADER_BYTES.saturating_sub(known));
        self.partial.extend_from_slice(&bytes[..ahead]);
        let mut rest = &self.partial[..];
        let Some((kind, length)) = header(&mut rest) else { return Ok(&bytes[ahead..]) };
        let begins = self.partial.len() - rest.len();
        self.partial.truncate(known);
        if self.begin(kind, length)? {
            // The header alone was missing something.
            self.partial.clear();
            return Ok(&bytes[begins - known..]);
        }
        let missing = begins + length as usize - known;
        let Some((part, more)) = bytes.split_at_checked(missing) else {
            self.partial.extend_from_slice(bytes);
            return Ok(&[]);
        };
        let mut whole = std::mem::take(&mut self.partial);
        whole.extend_from_slice(part);
        self.head(&whole[begins..])?;
        whole.clear();
        self.partial = whole;
        Ok(more)
    }

    /// Begins a frame. `false`: it is a head, which is parsed as a whole.
    #[inline]
    fn begin(&mut self, kind: u64, length: u64) -> Result<bool> {
        match kind {
            kind::HEADERS if length > SECTION_BYTES => Err(malformed("the response's head is longer than 64 KiB")),
            kind::HEADERS => Ok(false),
            kind::DATA if self.reply.status == 0 => Err(malformed("unexpected body before the response's head")),
            kind::DATA if self.reply.done => Err(malformed("a body after the response's trailer")),
            kind::DATA => {
                self.data_left = length;
                Ok(true)
            }
            _ => self.skip(kind, length).map(|()| true),
        }
    }

    /// Begins a frame that nobody reads, if the server may send it here.
    #[cold]
    fn skip(&mut self, kind: u64, length: u64) -> Result<()> {
        if kind::OF_PUSHES.contains(&kind) {
            return Err(malformed("the server pushes, which was never allowed"));
        }
        if kind::FORBIDDEN.contains(&kind) || matches!(kind, kind::SETTINGS | kind::GOAWAY) {
            return Err(malformed(format!("the response has a frame of type {kind}")));
        }
        self.others += 1;
        if self.others > MOST_OTHERS {
            return Err(malformed(format!("more than {MOST_OTHERS} frames that are no part of the response")));
        }
        self.skip_left = length;
        Ok(())
    }

    fn head(&mut self, section: &[u8]) -> Result<()> {
        if self.reply.done {
            return Err(malformed("the response has two trailers"));
        }
        // Nothing but the stream's end may follow a trailer, which is the second head.
        let trailer = self.reply.status != 0;
        let room = &mut self.room;
        self.reply.head(trailer, |see| qpack::decode(section, room, see))
    }

    /// The response's stream has ended.
    pub(super) fn end_stream(&mut self) -> Result<()> {
        if self.data_left > 0 || self.skip_left > 0 || !self.partial.is_empty() {
            return Err(closed_early("the stream ended within a frame"));
        }
        if self.reply.status == 0 {
            return Err(closed_early("the stream ended before the response's head"));
        }
        if self.reply.done { Ok(()) } else { self.reply.data(&[], true) }
    }
}

/// Splits off as many bytes as are left of something.
#[inline]
fn first<'a>(bytes: &mut &'a [u8], left: &mut u64) -> &'a [u8] {
    let take = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
    let (part, rest) = bytes.split_at(take);
    *left -= take as u64;
    *bytes = rest;
    part
}
