//! Parses bytes from the server into parts of replies.

use crate::drivers::key_value::replies::{END, Part, Replies, line, value};
use crate::drivers::network::buffer::{Buffer, KEEP_BYTES};
use crate::drivers::network::wire;
use crate::failure::{Failure, Result};

#[derive(Default)]
pub struct Inbox {
    /// Holds a whole value and grows for a longer one.
    buffer: Buffer,
}

impl wire::Inbox for Inbox {
    #[inline]
    fn buffer(&mut self) -> &mut Buffer {
        &mut self.buffer
    }

    fn clear(&mut self) {
        self.buffer.clear();
    }
}

impl Replies for Inbox {
    #[inline]
    fn next(&mut self, hash: bool) -> Result<Option<(Part<'_>, bool)>> {
        let unread = self.buffer.unread();
        let Some(line) = line(unread, foreign)? else { return Ok(None) };
        let past = line + END.len();
        let text = &unread[..line];
        if text.starts_with(b"VALUE ") {
            let size = value_size(text)?;
            let whole = past + size + END.len();
            if unread.len() < whole {
                while self.buffer.size() < whole {
                    self.buffer.grow();
                }
                return Ok(None);
            }
            if &unread[past + size..whole] != END {
                return Err(foreign());
            }
            return Ok(Some((value(&self.buffer.take(whole)[past..past + size], hash), false)));
        }
        let verb = text.split(|&byte| byte == b' ').next().unwrap_or(text);
        let status = verb.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_');
        let number = text.iter().all(u8::is_ascii_digit);
        if verb.is_empty() || !(status || number) {
            return Err(foreign());
        }
        let (error, end, more) = (verb.ends_with(b"ERROR"), text == b"END", verb == b"STAT");
        let text = &self.buffer.take(past)[..line];
        Ok(Some(match (error, end) {
            (true, _) => (Part::Error(text), true),
            (_, true) => (Part::End, true),
            _ => (value(text, hash), !more),
        }))
    }
}

/// The length in `VALUE key flags length`.
fn value_size(header: &[u8]) -> Result<usize> {
    let size = header.split(|&byte| byte == b' ').nth(3);
    let size = size.and_then(|word| std::str::from_utf8(word).ok()).and_then(|word| word.parse().ok());
    size.filter(|&size: &usize| size <= KEEP_BYTES).ok_or_else(foreign)
}

/// An error reply: `SERVER_ERROR out of memory storing object`. Its first word is its code.
pub fn error_of(text: &[u8]) -> Failure {
    let text = String::from_utf8_lossy(text);
    let (code, words) = text.split_once(' ').unwrap_or((&text, "the server does not know this command"));
    Failure::new(code, words)
}

fn foreign() -> Failure {
    Failure::connect("the server does not speak memcached's text protocol")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::key_value::replies::tests::{check, check_refused, read};
    use crate::drivers::network::buffer::BUFFER_BYTES;

    const REPLIES: &[(&[u8], &[&str])] = &[
        (b"STORED\r\n", &["value STORED ."]),
        (b"VERSION 1.6.38\r\n", &["value VERSION 1.6.38 ."]),
        (b"107\r\n", &["value 107 ."]),
        (b"END\r\n", &["End ."]),
        (b"VALUE k 0 5\r\nhello\r\nEND\r\n", &["value hello", "End ."]),
        (b"VALUE k 0 6 17\r\nEND\r\n\n\r\nEND\r\n", &["value END\r\n\n", "End ."]),
        (b"VALUE k 0 0\r\n\r\nEND\r\n", &["value ", "End ."]),
        (b"STAT pid 1\r\nEND\r\n", &["value STAT pid 1", "End ."]),
        (b"ERROR\r\n", &["error ERROR ."]),
        (b"SERVER_ERROR out of memory\r\n", &["error SERVER_ERROR out of memory ."]),
    ];

    #[test]
    fn replies_are_read_however_their_bytes_are_cut() {
        check::<Inbox>(REPLIES);
    }

    #[test]
    fn a_value_longer_than_the_buffer_is_read_whole() {
        for size in [BUFFER_BYTES - 20, BUFFER_BYTES, 1_000_000] {
            let body: Vec<u8> = (0..size).map(|at| b'a' + (at % 26) as u8).collect();
            let bytes = [format!("VALUE k 0 {size}\r\n").as_bytes(), &body, b"\r\nEND\r\n"].concat();
            for piece in [1000, BUFFER_BYTES, bytes.len()] {
                let pieces: Vec<&[u8]> = bytes.chunks(piece).collect();
                let expected = [format!("value {}", String::from_utf8_lossy(&body)), "End .".into()];
                assert_eq!(read::<Inbox>(&pieces, false).unwrap(), expected, "{size} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn input_that_is_not_the_protocol_is_refused() {
        let long = [b'A'; BUFFER_BYTES];
        let huge = format!("VALUE k 0 {}\r\n", KEEP_BYTES + 1);
        check_refused::<Inbox>(&[
            b"HTTP/1.1 400\r\n",
            b"\r\n",
            b"+OK\r\n",
            b"VALUE k 0 x\r\n",
            b"VALUE k 0 1\r\nabc\r\n",
            &long,
            huge.as_bytes(),
        ]);
    }

    #[test]
    fn an_error_has_its_code_in_front() {
        let failure = error_of(b"CLIENT_ERROR bad command line format");
        assert_eq!((failure.code.as_str(), failure.text.as_str()), ("CLIENT_ERROR", "bad command line format"));
        assert_eq!(error_of(b"ERROR").code, "ERROR");
    }
}
