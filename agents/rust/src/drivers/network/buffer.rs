//! Received bytes that are still unread. Connections that are idle have no memory for them: each thread has a few blocks, which
//! whoever receives uses.

use super::block::Block;
use crate::connection::QUERY_LIMIT_BYTES;
use crate::failure::Result;
use std::cell::RefCell;
use std::io;

pub const BUFFER_BYTES: usize = 64 * 1024;
/// Unused blocks that a thread keeps, and the largest that it keeps: one that a long message has enlarged.
const MOST_SPARE: usize = 16;
const LARGEST_SPARE: usize = 4 << 20;

thread_local! {
    /// The last one was used last.
    static SPARE: RefCell<Vec<Block>> = const { RefCell::new(Vec::new()) };
}

pub struct Buffer {
    /// Empty while there is nothing unread.
    bytes: Block,
    start: usize,
    end: usize,
    /// Its size, unless a message enlarges it.
    room: usize,
}

impl Default for Buffer {
    fn default() -> Buffer {
        Buffer::with_room(BUFFER_BYTES)
    }
}

impl Buffer {
    pub const fn with_room(bytes: usize) -> Buffer {
        Buffer { bytes: Block::EMPTY, start: 0, end: 0, room: bytes }
    }

    pub fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    /// Gives its memory back if there is nothing unread.
    #[inline]
    pub fn rest(&mut self) {
        if self.start == self.end && !self.bytes.is_empty() {
            self.clear();
            give(std::mem::replace(&mut self.bytes, Block::EMPTY));
        }
    }

    /// Fills the buffer with one call of `receive`. The end of the connection is an error.
    #[inline]
    pub fn fill(&mut self, receive: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> io::Result<()> {
        if self.bytes.is_empty() {
            self.bytes = block(self.room);
        }
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
        if self.bytes.is_empty() { self.room } else { self.bytes.len() }
    }

    /// Doubles its capacity.
    pub fn grow(&mut self) {
        self.bytes.grow();
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

/// Memory of at least this size.
#[inline]
fn block(size: usize) -> Block {
    let spare = if size == BUFFER_BYTES { SPARE.with_borrow_mut(Vec::pop) } else { None };
    spare.unwrap_or_else(|| Block::new(size))
}

#[inline]
fn give(block: Block) {
    if (BUFFER_BYTES..=LARGEST_SPARE).contains(&block.len()) {
        // A thread that ends keeps none.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < MOST_SPARE {
                spare.push(block);
            }
        });
    }
}

/// Maximum length of a message that an agent keeps.
pub const KEEP_BYTES: usize = QUERY_LIMIT_BYTES + (1 << 20);

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(buffer: &mut Buffer, bytes: &[u8]) {
        let result = buffer.fill(|into| {
            into[..bytes.len()].copy_from_slice(bytes);
            Ok(bytes.len())
        });
        result.unwrap();
    }

    fn spare() -> Vec<usize> {
        SPARE.with_borrow(|spare| spare.iter().map(|block| block.len()).collect())
    }

    #[test]
    fn idle_connections_share_one_block() {
        let mut buffers: Vec<Buffer> = (0..100).map(|_| Buffer::default()).collect();
        for buffer in &mut buffers {
            fill(buffer, b"answer");
            assert_eq!(buffer.take(6), b"answer");
            buffer.rest();
        }
        assert_eq!(spare(), [BUFFER_BYTES]);
        assert!(buffers.iter().all(|buffer| buffer.bytes.is_empty() && buffer.size() == BUFFER_BYTES));
    }

    #[test]
    fn a_part_of_a_message_stays_and_a_failed_receive_leaves_nothing() {
        let mut buffer = Buffer::default();
        fill(&mut buffer, b"whole, par");
        buffer.take(7);
        buffer.rest();
        fill(&mut buffer, b"t");
        assert_eq!(buffer.unread(), b"part");
        buffer.take(4);
        assert!(buffer.fill(|_| Err(io::ErrorKind::WouldBlock.into())).is_err());
        buffer.rest();
        assert_eq!((buffer.unread(), spare().len()), (&b""[..], 1));
    }

    #[test]
    fn a_thread_keeps_few_blocks_and_none_that_a_huge_message_enlarged() {
        let mut buffers: Vec<Buffer> = (0..2 * MOST_SPARE).map(|_| Buffer::default()).collect();
        buffers.iter_mut().for_each(|buffer| fill(buffer, b"x"));
        for buffer in &mut buffers {
            buffer.take(1);
            buffer.rest();
        }
        assert_eq!(spare(), [BUFFER_BYTES; MOST_SPARE]);
        let mut large = Buffer::default();
        fill(&mut large, b"x");
        while large.size() <= LARGEST_SPARE {
            large.grow();
        }
        large.take(1);
        large.rest();
        assert_eq!((spare().len(), large.size()), (MOST_SPARE - 1, BUFFER_BYTES));
        let mut other = Buffer::with_room(100);
        fill(&mut other, b"x");
        assert_eq!((other.size(), spare().len()), (100, MOST_SPARE - 1));
    }
}
