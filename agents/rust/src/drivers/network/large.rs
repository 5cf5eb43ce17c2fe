//! A message that is larger than the buffer: it passes through in parts, and is hashed, kept or dropped.

use super::buffer::{Buffer, KEEP_BYTES};
use crate::xxh3::Xxh3;

/// At most one such message at a time, and the last one that was kept.
#[derive(Default)]
pub struct Large {
    /// The message that passes.
    body: Option<Passing>,
    /// Its missing bytes.
    left: usize,
    kept: Vec<u8>,
}

enum Passing {
    Hashed(Box<Xxh3>),
    Kept(Vec<u8>),
    /// Too long to keep: it passes unread.
    Dropped,
}

/// A message that has passed.
pub enum Passed<'a> {
    Hash(u64),
    Kept(&'a [u8]),
    /// It was too long to keep.
    Dropped,
}

impl Large {
    /// Begins a message of `bytes`. `hashed`: hash it instead of keeping it.
    pub fn begin(&mut self, bytes: usize, hashed: bool) {
        self.left = bytes;
        self.body = Some(if hashed { Passing::Hashed(Box::new(Xxh3::new())) } else { Passing::Kept(Vec::new()) });
    }

    /// Whether a message is passing.
    #[inline]
    pub fn passes(&self) -> bool {
        self.body.is_some()
    }

    /// Adds `bytes` to the length of the message that is passing.
    pub fn extend(&mut self, bytes: usize) {
        self.left += bytes;
    }

    /// Takes what has come of it from the buffer. Returns whether all of it has passed.
    pub fn take(&mut self, buffer: &mut Buffer) -> bool {
        let part = self.left.min(buffer.unread().len());
        let part = buffer.take(part);
        self.left -= part.len();
        match &mut self.body {
            Some(Passing::Hashed(hash)) => hash.update(part),
            Some(Passing::Kept(kept)) if kept.len() + part.len() > KEEP_BYTES => self.body = Some(Passing::Dropped),
            Some(Passing::Kept(kept)) => kept.extend_from_slice(part),
            Some(Passing::Dropped) | None => {}
        }
        self.left == 0
    }

    /// Ends the message. None: there was none.
    pub fn end(&mut self) -> Option<Passed<'_>> {
        Some(match self.body.take()? {
            Passing::Hashed(hash) => Passed::Hash(hash.digest()),
            Passing::Dropped => Passed::Dropped,
            Passing::Kept(kept) => {
                self.kept = kept;
                Passed::Kept(&self.kept)
            }
        })
    }

    /// Forgets the message that was passing.
    pub fn clear(&mut self) {
        self.body = None;
    }

    /// Gives back the memory of the last message that was kept.
    #[inline]
    pub fn rest(&mut self) {
        if !self.kept.is_empty() {
            self.kept = Vec::new();
        }
    }
}
