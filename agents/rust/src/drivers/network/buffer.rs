//! Received bytes that are still unread. Its memory is bounded and reused.

use crate::connection::QUERY_LIMIT_BYTES;
use crate::failure::Result;
use std::io;
use xxhash_rust::xxh3::Xxh3;

pub const BUFFER_BYTES: usize = 64 * 1024;

pub struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Default for Buffer {
    fn default() -> Buffer {
        Buffer::with_room(BUFFER_BYTES)
    }
}

impl Buffer {
    pub fn with_room(bytes: usize) -> Buffer {
        Buffer { bytes: vec![0; bytes], start: 0, end: 0 }
    }

    pub fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    /// Fills the buffer with one call of `receive`. The end of the connection is an error.
    #[inline]
    pub fn fill(&mut self, receive: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> io::Result<()> {
        if self.start == self.end {
            self.clear();
        } else if self.end == self.bytes.len() || self.start > self.bytes.len() / 2 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        match receive(&mut self.bytes[self.end..])? {
            0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")),
            read => {
                self.end += read;
                Ok(())
            }
        }
    }

    /// Its capacity in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Doubles its capacity.
    pub fn grow(&mut self) {
        self.bytes.resize(2 * self.bytes.len(), 0);
    }

    /// The unread bytes.
    #[inline]
    pub fn unread(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Consumes `count` unread bytes, which must exist.
    #[inline]
    pub fn take(&mut self, count: usize) -> &[u8] {
        let from = self.start;
        self.start += count;
        assert!(self.start <= self.end, "more was read than has come");
        &self.bytes[from..self.start]
    }

    /// Consumes what `read` finds at the beginning of the unread bytes, with its length. None: it is incomplete.
    #[inline]
    pub fn take_found<'a, T>(
        &'a mut self,
        read: impl FnOnce(&'a [u8]) -> Result<Option<(T, usize)>>,
    ) -> Result<Option<T>> {
        let Some((found, length)) = read(&self.bytes[self.start..self.end])? else { return Ok(None) };
        self.start += length;
        Ok(Some(found))
    }
}

/// A message that is larger than the buffer, while it passes through.
pub enum Passing {
    Hashed(Box<Xxh3>),
    Kept(Vec<u8>),
    /// Too long to keep: it passes unread.
    Dropped,
}

/// Maximum length of a message that an agent keeps.
pub const KEEP_BYTES: usize = QUERY_LIMIT_BYTES + (1 << 20);

impl Passing {
    pub fn new(hashed: bool) -> Passing {
        if hashed { Passing::Hashed(Box::new(Xxh3::new())) } else { Passing::Kept(Vec::new()) }
    }

    pub fn add(&mut self, part: &[u8]) {
        match self {
            Passing::Hashed(hash) => hash.update(part),
            Passing::Kept(kept) if kept.len() + part.len() > KEEP_BYTES => *self = Passing::Dropped,
            Passing::Kept(kept) => kept.extend_from_slice(part),
            Passing::Dropped => {}
        }
    }
}
