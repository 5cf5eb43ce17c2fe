//! Parses bytes from the server into parts of replies. Short ones are kept whole; bulk strings of any size pass through bounded memory.

use crate::drivers::key_value::replies::{END, Part, Replies, line, value};
use crate::drivers::network::buffer::{BUFFER_BYTES, Buffer};
use crate::drivers::network::large::{Large, Passed};
use crate::drivers::network::wire;
use crate::failure::{Failure, Result};

/// Maximum nesting of arrays.
const DEEPEST: usize = 32;
/// The protocol's maximum length of a bulk string.
const LONGEST_BULK: usize = 512 << 20;

#[derive(Default)]
pub struct Inbox {
    buffer: Buffer,
    /// For each open array: the number of missing elements.
    open: Vec<usize>,
    /// A large bulk string, without its line end.
    large: Large,
}

impl wire::Inbox for Inbox {
    #[inline]
    fn buffer(&mut self) -> &mut Buffer {
        &mut self.buffer
    }

    fn clear(&mut self) {
        self.buffer.clear();
        self.open.clear();
        self.large.clear();
    }

    #[inline]
    fn rest(&mut self) {
        self.buffer.rest();
        self.large.rest();
    }
}

impl Replies for Inbox {
    #[inline]
    fn next(&mut self, hash: bool) -> Result<Option<(Part<'_>, bool)>> {
        if self.large.passes() {
            return self.go_on();
        }
        let unread = self.buffer.unread();
        let Some(line) = line(unread, foreign)? else { return Ok(None) };
        let Some((&kind, text)) = unread[..line].split_first() else { return Err(foreign()) };
        let past = line + END.len();
        match kind {
            b'+' | b':' => {
                let last = finish(&mut self.open);
                let text = &self.buffer.take(past)[1..line];
                Ok(Some((value(text, hash), last)))
            }
            b'-' => {
                let last = finish(&mut self.open);
                Ok(Some((Part::Error(&self.buffer.take(past)[1..line]), last)))
            }
            b'*' => {
                let Some(count) = length(text)? else {
                    self.buffer.take(past);
                    return Ok(Some((Part::Null, finish(&mut self.open))));
                };
                if self.open.len() >= DEEPEST {
                    return Err(Failure::connect("the server's reply is nested too deeply"));
                }
                self.buffer.take(past);
                let last = if count == 0 {
                    finish(&mut self.open)
                } else {
                    self.open.push(count);
                    false
                };
                Ok(Some((Part::Array(count), last)))
            }
            b'$' => {
                let Some(count) = length(text)? else {
                    self.buffer.take(past);
                    return Ok(Some((Part::Null, finish(&mut self.open))));
                };
                if count > LONGEST_BULK {
                    return Err(foreign());
                }
                let size = past + count + END.len();
                if size > BUFFER_BYTES {
                    self.buffer.take(past);
                    self.large.begin(count, hash);
                    return self.go_on();
                }
                if unread.len() < size {
                    return Ok(None);
                }
                if &unread[past + count..size] != END {
                    return Err(foreign());
                }
                let last = finish(&mut self.open);
                let text = &self.buffer.take(size)[past..past + count];
                Ok(Some((value(text, hash), last)))
            }
            _ => Err(foreign()),
        }
    }
}

impl Inbox {
    /// Continues a large bulk string.
    fn go_on(&mut self) -> Result<Option<(Part<'_>, bool)>> {
        if !self.large.take(&mut self.buffer) || self.buffer.unread().len() < END.len() {
            return Ok(None);
        }
        if self.buffer.take(END.len()) != END {
            return Err(foreign());
        }
        let last = finish(&mut self.open);
        Ok(self.large.end().map(|passed| match passed {
            Passed::Hash(hash) => (Part::Hash(hash), last),
            Passed::Dropped => (Part::TooLong, last),
            Passed::Kept(value) => (Part::Value(value), last),
        }))
    }
}

/// Completes an element, and with it every array that it ends. Returns whether the reply is complete.
fn finish(open: &mut Vec<usize>) -> bool {
    while let Some(left) = open.last_mut() {
        *left -= 1;
        if *left > 0 {
            return false;
        }
        open.pop();
    }
    true
}

/// A length in a header; None: a null (`-1`).
fn length(text: &[u8]) -> Result<Option<usize>> {
    if text == b"-1" {
        return Ok(None);
    }
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(text).ok().filter(|_| digits).and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(foreign)
}

fn foreign() -> Failure {
    Failure::connect("the server does not speak the Valkey protocol (RESP2)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::key_value::replies::tests::{check, check_refused, read};
    use crate::xxh3::xxh3_64;

    const REPLIES: &[(&[u8], &[&str])] = &[
        (b"+OK\r\n", &["value OK ."]),
        (b"+\r\n", &["value  ."]),
        (b"-ERR unknown command\r\n", &["error ERR unknown command ."]),
        (b":-107\r\n", &["value -107 ."]),
        (b"$5\r\nhello\r\n", &["value hello ."]),
        (b"$4\r\na\r\nb\r\n", &["value a\r\nb ."]),
        (b"$0\r\n\r\n", &["value  ."]),
        (b"$-1\r\n", &["Null ."]),
        (b"*-1\r\n", &["Null ."]),
        (b"*0\r\n", &["Array(0) ."]),
        (b"*2\r\n:1\r\n$1\r\nx\r\n", &["Array(2)", "value 1", "value x ."]),
        (
            b"*3\r\n*2\r\n+a\r\n*0\r\n$-1\r\n*1\r\n-ERR no\r\n",
            &["Array(3)", "Array(2)", "value a", "Array(0)", "Null", "Array(1)", "error ERR no ."],
        ),
    ];

    #[test]
    fn replies_are_read_however_their_bytes_are_cut() {
        check::<Inbox>(REPLIES);
    }

    #[test]
    fn a_large_bulk_string_passes_through_bounded_memory() {
        for size in [BUFFER_BYTES - 12, BUFFER_BYTES - 10, BUFFER_BYTES, 300_000] {
            let body: Vec<u8> = (0..size).map(|at| (at * 7) as u8).collect();
            let bytes = [format!("${size}\r\n").as_bytes(), &body, b"\r\n+OK\r\n"].concat();
            let hashed = vec![format!("Hash({}) .", xxh3_64(&body)), format!("Hash({}) .", xxh3_64(b"OK"))];
            for piece in [1, 1000, BUFFER_BYTES, bytes.len()] {
                let pieces: Vec<&[u8]> = bytes.chunks(piece).collect();
                assert_eq!(read::<Inbox>(&pieces, true).unwrap(), hashed, "{size} in pieces of {piece}");
                let kept = read::<Inbox>(&pieces, false).unwrap();
                assert_eq!(kept[0], format!("value {} .", String::from_utf8_lossy(&body)), "{size}");
            }
        }
    }

    #[test]
    fn input_that_is_not_the_protocol_is_refused() {
        let long = [b'+'; BUFFER_BYTES];
        let deep = b"*1\r\n".repeat(DEEPEST + 1);
        check_refused::<Inbox>(&[
            b"HTTP/1.1 400\r\n",
            b"\r\n",
            b"$x\r\n",
            b"$-2\r\n",
            b"*+1\r\n",
            b"$1\r\nabc\r\n",
            &long,
            &deep,
        ]);
    }
}
