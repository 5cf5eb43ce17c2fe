//! inbox: bytes from the server -> messages. Small ones are seen whole; rows of any size pass through bounded memory.

use crate::drivers::QUERY_LIMIT_BYTES;
use crate::failure::{Failure, Result};
use std::io;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

const BUFFER_BYTES: usize = 64 * 1024;
const HEADER_BYTES: usize = 5;
/// No message that an agent keeps whole is longer than this.
const KEEP_BYTES: usize = QUERY_LIMIT_BYTES + (1 << 20);

pub struct Inbox {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    large: Option<Large>,
    /// The last large message that was kept.
    kept: Vec<u8>,
}

/// A message that does not fit into the buffer, on its way through.
struct Large {
    tag: u8,
    left: usize,
    body: Body,
}

enum Body {
    Hashed(Box<Xxh3>),
    Kept(Vec<u8>),
    /// Too long to be kept: passes unseen.
    Dropped,
}

/// What the server said.
pub enum Message<'a> {
    /// A row whose payload was hashed.
    Row(u64),
    Other {
        tag: u8,
        body: &'a [u8],
    },
    /// A message that was too long to be kept.
    TooLong,
}

impl Inbox {
    pub fn new() -> Inbox {
        Inbox { buffer: vec![0; BUFFER_BYTES].into_boxed_slice(), start: 0, end: 0, large: None, kept: Vec::new() }
    }

    /// Fills the buffer by one call of `receive`. The end of the connection is an error.
    #[inline]
    pub fn fill(&mut self, receive: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> io::Result<()> {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        } else if self.end == self.buffer.len() || self.start > BUFFER_BYTES / 2 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        match receive(&mut self.buffer[self.end..])? {
            0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")),
            read => {
                self.end += read;
                Ok(())
            }
        }
    }

    /// The next message that has come in full. `hash_rows`: rows are hashed, not kept.
    #[inline]
    pub fn next(&mut self, hash_rows: bool) -> Result<Option<Message<'_>>> {
        if self.large.is_some() {
            return self.go_on();
        }
        let there = self.end - self.start;
        if there < HEADER_BYTES {
            return Ok(None);
        }
        let head = &self.buffer[self.start..self.start + HEADER_BYTES];
        let tag = head[0];
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        if !(4..0x4000_0000).contains(&length) {
            return Err(Failure::connect("the server does not speak PostgreSQL's protocol"));
        }
        let size = length + 1;
        if there < size {
            if size > self.buffer.len() {
                let body = match (hash_rows && tag == b'D', size > KEEP_BYTES) {
                    (true, _) => Body::Hashed(Box::new(Xxh3::new())),
                    (false, false) => Body::Kept(Vec::with_capacity(size)),
                    (false, true) => Body::Dropped,
                };
                self.start += HEADER_BYTES;
                self.large = Some(Large { tag, left: size - HEADER_BYTES, body });
                return self.go_on();
            }
            return Ok(None);
        }
        let at = self.start + HEADER_BYTES;
        self.start += size;
        let body = &self.buffer[at..self.start];
        Ok(Some(if hash_rows && tag == b'D' { Message::Row(xxh3_64(body)) } else { Message::Other { tag, body } }))
    }

    /// Goes on with a large message.
    fn go_on(&mut self) -> Result<Option<Message<'_>>> {
        let Some(large) = &mut self.large else { return Ok(None) };
        let take = large.left.min(self.end - self.start);
        let part = &self.buffer[self.start..self.start + take];
        match &mut large.body {
            Body::Hashed(hash) => hash.update(part),
            Body::Kept(kept) => kept.extend_from_slice(part),
            Body::Dropped => {}
        }
        self.start += take;
        large.left -= take;
        if large.left > 0 {
            return Ok(None);
        }
        let Some(Large { tag, body, .. }) = self.large.take() else { return Ok(None) };
        Ok(Some(match body {
            Body::Hashed(hash) => Message::Row(hash.digest()),
            Body::Dropped => Message::TooLong,
            Body::Kept(kept) => {
                self.kept = kept;
                Message::Other { tag, body: &self.kept }
            }
        }))
    }
}

/// A reader of a message's body. Whatever is cut short reads as zero or empty.
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

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = (body.len() as u32 + 4).to_be_bytes();
        [&[tag], &length[..], body].concat()
    }

    /// What is read when the bytes come in pieces of `size`.
    fn read(bytes: &[u8], size: usize, hash_rows: bool) -> Vec<String> {
        let (mut inbox, mut seen) = (Inbox::new(), Vec::new());
        let mut rest = bytes;
        while !rest.is_empty() {
            let result = inbox.fill(|into| {
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
    fn what_is_too_long_to_be_kept_passes_and_the_next_message_is_read() {
        let bytes = [message(b'D', &vec![0; KEEP_BYTES]), message(b'Z', b"I")].concat();
        let seen = read(&bytes, usize::MAX, false);
        assert_eq!(seen[0], "too long");
        assert!(seen[1].starts_with('Z'));
    }

    #[test]
    fn what_is_not_the_protocol_is_refused() {
        let mut inbox = Inbox::new();
        inbox
            .fill(|into| {
                into[..8].copy_from_slice(b"HTTP/1.1");
                Ok(8)
            })
            .unwrap();
        assert!(inbox.next(true).is_err());
    }
}
