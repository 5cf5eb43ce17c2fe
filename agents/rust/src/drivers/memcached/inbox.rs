//! Parses bytes from the server into parts of replies.

use crate::drivers::network::buffer::{BUFFER_BYTES, Buffer, KEEP_BYTES};
use crate::drivers::network::wire;
use crate::failure::{Failure, Result};

/// The longest status line or value header.
const LONGEST_LINE: usize = BUFFER_BYTES / 2;
const END: &[u8] = b"\r\n";

#[derive(Default)]
pub struct Inbox {
    /// Holds a whole value and grows for a longer one.
    buffer: Buffer,
}

/// A part of a reply.
#[derive(Debug, PartialEq)]
pub enum Part<'a> {
    /// A value, or a status line such as `STORED` or `VERSION 1.6.38`.
    Value(&'a [u8]),
    Error(&'a [u8]),
    /// The end of a `get`'s values.
    End,
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

impl Inbox {
    /// The next complete part, and whether its reply ends with it.
    #[inline]
    pub fn next(&mut self) -> Result<Option<(Part<'_>, bool)>> {
        let unread = self.buffer.unread();
        let Some(line) = unread.windows(2).take(LONGEST_LINE).position(|pair| pair == END) else {
            return if unread.len() > LONGEST_LINE { Err(foreign()) } else { Ok(None) };
        };
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
            return Ok(Some((Part::Value(&self.buffer.take(whole)[past..past + size]), false)));
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
            _ => (Part::Value(text), !more),
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
    use crate::drivers::network::wire::Inbox as _;

    /// Result of parsing the bytes in these pieces.
    fn read(pieces: &[&[u8]]) -> Result<Vec<String>> {
        let (mut inbox, mut seen) = (Inbox::default(), Vec::new());
        for mut rest in pieces.iter().copied() {
            while !rest.is_empty() {
                let fill = inbox.buffer().fill(|into| {
                    let take = rest.len().min(into.len());
                    into[..take].copy_from_slice(&rest[..take]);
                    rest = &rest[take..];
                    Ok(take)
                });
                fill.unwrap();
                while let Some((part, last)) = inbox.next()? {
                    let words = match part {
                        Part::Value(text) => format!("value {}", String::from_utf8_lossy(text)),
                        Part::Error(text) => format!("error {}", String::from_utf8_lossy(text)),
                        Part::End => "end".into(),
                    };
                    seen.push(if last { format!("{words} .") } else { words });
                }
            }
        }
        Ok(seen)
    }

    const REPLIES: &[(&[u8], &[&str])] = &[
        (b"STORED\r\n", &["value STORED ."]),
        (b"VERSION 1.6.38\r\n", &["value VERSION 1.6.38 ."]),
        (b"107\r\n", &["value 107 ."]),
        (b"END\r\n", &["end ."]),
        (b"VALUE k 0 5\r\nhello\r\nEND\r\n", &["value hello", "end ."]),
        (b"VALUE k 0 6 17\r\nEND\r\n\n\r\nEND\r\n", &["value END\r\n\n", "end ."]),
        (b"VALUE k 0 0\r\n\r\nEND\r\n", &["value ", "end ."]),
        (b"STAT pid 1\r\nEND\r\n", &["value STAT pid 1", "end ."]),
        (b"ERROR\r\n", &["error ERROR ."]),
        (b"SERVER_ERROR out of memory\r\n", &["error SERVER_ERROR out of memory ."]),
    ];

    #[test]
    fn replies_are_read_however_their_bytes_are_cut() {
        let all: Vec<u8> = REPLIES.iter().flat_map(|(bytes, _)| bytes.to_vec()).collect();
        let expected: Vec<&str> = REPLIES.iter().flat_map(|(_, parts)| parts.to_vec()).collect();
        for (bytes, parts) in REPLIES {
            assert_eq!(read(&[bytes]).unwrap(), *parts);
        }
        for at in 0..=all.len() {
            assert_eq!(read(&[&all[..at], &all[at..]]).unwrap(), expected, "cut at {at}");
        }
        let bytes: Vec<&[u8]> = all.chunks(1).collect();
        assert_eq!(read(&bytes).unwrap(), expected, "byte by byte");
    }

    #[test]
    fn a_value_longer_than_the_buffer_is_read_whole() {
        for size in [BUFFER_BYTES - 20, BUFFER_BYTES, 1_000_000] {
            let body: Vec<u8> = (0..size).map(|at| b'a' + (at % 26) as u8).collect();
            let bytes = [format!("VALUE k 0 {size}\r\n").as_bytes(), &body, b"\r\nEND\r\n"].concat();
            for piece in [1000, BUFFER_BYTES, bytes.len()] {
                let pieces: Vec<&[u8]> = bytes.chunks(piece).collect();
                let expected = [format!("value {}", String::from_utf8_lossy(&body)), "end .".into()];
                assert_eq!(read(&pieces).unwrap(), expected, "{size} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn input_that_is_not_the_protocol_is_refused() {
        let long = [b'A'; BUFFER_BYTES];
        let huge = format!("VALUE k 0 {}\r\n", KEEP_BYTES + 1);
        let others: [&[u8]; 7] = [
            b"HTTP/1.1 400\r\n",
            b"\r\n",
            b"+OK\r\n",
            b"VALUE k 0 x\r\n",
            b"VALUE k 0 1\r\nabc\r\n",
            &long,
            huge.as_bytes(),
        ];
        for bytes in others {
            assert!(read(&[bytes]).is_err(), "{:?}", String::from_utf8_lossy(&bytes[..bytes.len().min(20)]));
        }
    }

    #[test]
    fn an_error_has_its_code_in_front() {
        let failure = error_of(b"CLIENT_ERROR bad command line format");
        assert_eq!((failure.code.as_str(), failure.text.as_str()), ("CLIENT_ERROR", "bad command line format"));
        assert_eq!(error_of(b"ERROR").code, "ERROR");
    }
}
