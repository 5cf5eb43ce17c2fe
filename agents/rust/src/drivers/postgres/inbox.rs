//! Parses bytes from the server into messages. Small ones are kept whole; rows of any size pass through bounded memory.

use crate::drivers::network::buffer::{BUFFER_BYTES, Buffer};
use crate::drivers::network::large::{Large, Passed};
use crate::drivers::network::wire;
use crate::failure::{Failure, Result};
use crate::xxh3::xxh3_64;

const HEADER_BYTES: usize = 5;

#[derive(Default)]
pub struct Inbox {
    buffer: Buffer,
    large: Large,
    /// Its tag.
    tag: u8,
}

/// A message from the server.
pub enum Message<'a> {
    /// A row whose payload was hashed.
    Row(u64),
    Other {
        tag: u8,
        body: &'a [u8],
    },
    /// A message that was too long to keep.
    TooLong,
}

impl wire::Inbox for Inbox {
    #[inline]
    fn buffer(&mut self) -> &mut Buffer {
        &mut self.buffer
    }

    fn clear(&mut self) {
        self.buffer.clear();
        self.large.clear();
    }

    #[inline]
    fn rest(&mut self) {
        self.buffer.rest();
        self.large.rest();
    }
}

impl Inbox {
    /// The next complete message. `hash_rows`: hash rows instead of keeping them.
    #[inline]
    pub fn next(&mut self, hash_rows: bool) -> Result<Option<Message<'_>>> {
        if self.large.passes() {
            return self.go_on();
        }
        let unread = self.buffer.unread();
        let &[tag, a, b, c, d, ..] = unread else { return Ok(None) };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if !(4..0x4000_0000).contains(&length) {
            return Err(Failure::connect("the server does not speak PostgreSQL's protocol"));
        }
        let size = length + 1;
        let hashed = hash_rows && tag == b'D';
        if unread.len() < size {
            if size > BUFFER_BYTES {
                self.buffer.take(HEADER_BYTES);
                self.large.begin(size - HEADER_BYTES, hashed);
                self.tag = tag;
                return self.go_on();
            }
            return Ok(None);
        }
        let body = &self.buffer.take(size)[HEADER_BYTES..];
        Ok(Some(if hashed { Message::Row(xxh3_64(body)) } else { Message::Other { tag, body } }))
    }

    /// Continues a large message.
    fn go_on(&mut self) -> Result<Option<Message<'_>>> {
        if !self.large.take(&mut self.buffer) {
            return Ok(None);
        }
        Ok(self.large.end().map(|passed| match passed {
            Passed::Hash(hash) => Message::Row(hash),
            Passed::Dropped => Message::TooLong,
            Passed::Kept(body) => Message::Other { tag: self.tag, body },
        }))
    }
}

/// Parses a message's body. Truncated input reads as zero or empty.
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    pub fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    pub fn u8(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    pub fn i16(&mut self) -> i16 {
        self.bytes(2).try_into().map_or(0, i16::from_be_bytes)
    }

    pub fn i32(&mut self) -> i32 {
        self.bytes(4).try_into().map_or(0, i32::from_be_bytes)
    }

    /// A string that ends with a zero byte.
    pub fn string(&mut self) -> String {
        let length = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        let text = String::from_utf8_lossy(self.bytes(length)).into_owned();
        self.bytes(1);
        text
    }
}

/// An ErrorResponse's SQLSTATE and message.
pub fn error_of(body: &[u8]) -> Failure {
    let (mut fields, mut code, mut text) = (Fields(body), String::new(), String::new());
    loop {
        match fields.u8() {
            0 => return Failure::new(if code.is_empty() { "statement" } else { &code }, text),
            b'C' => code = fields.string(),
            b'M' => text = fields.string(),
            _ => drop(fields.string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::network::buffer::KEEP_BYTES;
    use crate::drivers::network::wire::Inbox as _;

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = (body.len() as u32 + 4).to_be_bytes();
        [&[tag], &length[..], body].concat()
    }

    /// Result of parsing the bytes in pieces of `size`.
    fn read(bytes: &[u8], size: usize, hash_rows: bool) -> Vec<String> {
        let (mut inbox, mut seen) = (Inbox::default(), Vec::new());
        let mut rest = bytes;
        while !rest.is_empty() {
            let result = inbox.buffer().fill(|into| {
                let take = size.min(rest.len()).min(into.len());
                into[..take].copy_from_slice(&rest[..take]);
                rest = &rest[take..];
                Ok(take)
            });
            result.unwrap();
            while let Some(message) = inbox.next(hash_rows).unwrap() {
                seen.push(match message {
                    Message::Row(hash) => format!("row {hash:016x}"),
                    Message::Other { tag, body } => format!("{} {:016x}", tag as char, xxh3_64(body)),
                    Message::TooLong => "too long".to_string(),
                });
            }
        }
        seen
    }

    #[test]
    fn however_the_bytes_are_cut_the_messages_are_the_same() {
        let large: Vec<u8> = (0..300_000u32).map(|at| (at * 7) as u8).collect();
        let fits: Vec<u8> = vec![3; BUFFER_BYTES - HEADER_BYTES];
        let bodies: [&[u8]; 5] = [b"", b"small", &large, &fits, b"last"];
        let bytes: Vec<u8> = bodies.iter().flat_map(|body| message(b'D', body)).collect();
        let hashed: Vec<String> = bodies.iter().map(|body| format!("row {:016x}", xxh3_64(body))).collect();
        let kept: Vec<String> = bodies.iter().map(|body| format!("D {:016x}", xxh3_64(body))).collect();
        for size in [1, 7, 1000, BUFFER_BYTES, usize::MAX] {
            assert_eq!(read(&bytes, size, true), hashed, "in pieces of {size}");
            assert_eq!(read(&bytes, size, false), kept, "in pieces of {size}");
        }
    }

    #[test]
    fn a_message_too_long_to_keep_is_skipped() {
        let bytes = [message(b'D', &vec![0; KEEP_BYTES + 1]), message(b'Z', b"I")].concat();
        let seen = read(&bytes, usize::MAX, false);
        assert_eq!(seen[0], "too long");
        assert!(seen[1].starts_with('Z'));
    }

    #[test]
    fn input_that_is_not_the_protocol_is_refused() {
        let mut inbox = Inbox::default();
        inbox
            .buffer()
            .fill(|into| {
                into[..8].copy_from_slice(b"HTTP/1.1");
                Ok(8)
            })
            .unwrap();
        assert!(inbox.next(true).is_err());
    }
}
