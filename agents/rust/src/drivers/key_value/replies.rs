//! Replies of a key-value store, part by part.

use crate::drivers::network::buffer::BUFFER_BYTES;
use crate::drivers::network::wire;
use crate::failure::{Failure, Result};
use crate::xxh3::xxh3_64;

/// Maximum length of a line: a status, an error, a number or a header.
pub const LONGEST_LINE: usize = BUFFER_BYTES / 2;
/// The end of a line.
pub const END: &[u8] = b"\r\n";

/// A part of a reply. An array is its length, then its elements.
#[derive(Debug, PartialEq)]
pub enum Part<'a> {
    /// A value, a number or a status line such as `STORED`.
    Value(&'a [u8]),
    /// One of these whose bytes were hashed.
    Hash(u64),
    Error(&'a [u8]),
    Null,
    Array(usize),
    /// The end of any number of values.
    End,
    /// A value that was too long to keep.
    TooLong,
}

/// An inbox that parses replies.
pub trait Replies: wire::Inbox {
    /// The next complete part, and whether its reply ends with it. `hash`: hash values instead of keeping them.
    fn next(&mut self, hash: bool) -> Result<Option<(Part<'_>, bool)>>;
}

#[inline]
pub fn value(text: &[u8], hash: bool) -> Part<'_> {
    if hash { Part::Hash(xxh3_64(text)) } else { Part::Value(text) }
}

/// Length of the first line without its end. None: it is incomplete. `foreign`: the error if it is too long.
#[inline]
pub fn line(unread: &[u8], foreign: fn() -> Failure) -> Result<Option<usize>> {
    match unread.windows(END.len()).take(LONGEST_LINE).position(|pair| pair == END) {
        None if unread.len() > LONGEST_LINE => Err(foreign()),
        found => Ok(found),
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Result of parsing bytes that arrive in these pieces.
    pub fn read<I: Replies>(pieces: &[&[u8]], hash: bool) -> Result<Vec<String>> {
        let (mut inbox, mut seen) = (I::default(), Vec::new());
        for mut rest in pieces.iter().copied() {
            while !rest.is_empty() {
                let fill = inbox.buffer().fill(|into| {
                    let take = rest.len().min(into.len());
                    into[..take].copy_from_slice(&rest[..take]);
                    rest = &rest[take..];
                    Ok(take)
                });
                fill.unwrap();
                while let Some((part, last)) = inbox.next(hash)? {
                    let words = match part {
                        Part::Value(text) => format!("value {}", String::from_utf8_lossy(text)),
                        Part::Error(text) => format!("error {}", String::from_utf8_lossy(text)),
                        other => format!("{other:?}"),
                    };
                    seen.push(if last { format!("{words} .") } else { words });
                }
            }
        }
        Ok(seen)
    }

    /// Checks that replies are parsed as expected, alone and in a row, however their bytes are cut.
    pub fn check<I: Replies>(replies: &[(&[u8], &[&str])]) {
        let all: Vec<u8> = replies.iter().flat_map(|(bytes, _)| bytes.to_vec()).collect();
        let expected: Vec<&str> = replies.iter().flat_map(|(_, parts)| parts.to_vec()).collect();
        for (bytes, parts) in replies {
            assert_eq!(read::<I>(&[bytes], false).unwrap(), *parts);
        }
        for at in 0..=all.len() {
            assert_eq!(read::<I>(&[&all[..at], &all[at..]], false).unwrap(), expected, "cut at {at}");
        }
        let bytes: Vec<&[u8]> = all.chunks(1).collect();
        assert_eq!(read::<I>(&bytes, false).unwrap(), expected, "byte by byte");
    }

    /// Checks that each of these inputs is an error.
    pub fn check_refused<I: Replies>(inputs: &[&[u8]]) {
        for bytes in inputs {
            let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(20)]);
            assert!(read::<I>(&[bytes], false).is_err(), "{shown:?}");
        }
    }
}
