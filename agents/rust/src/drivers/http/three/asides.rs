//! The server's own streams (RFC 9114, 6.2): its settings, its goodbye, and those of QPACK, which have nothing to say.

use super::frame::{header, kind, number};
use crate::drivers::http::exchange::malformed;
use crate::failure::Result;

/// The longest frame that is read here; real ones have a few bytes.
const FRAME_BYTES: u64 = 16 * 1024;
/// Types of streams.
const CONTROL: u64 = 0;
const PUSH: u64 = 1;
const ENCODER: u64 = 2;
const DECODER: u64 = 3;
/// QPACK's instruction to use a dynamic table of no bytes, the only one that this client allows.
const NO_TABLE: u8 = 0x20;
/// SETTINGS of HTTP/2 that HTTP/3 forbids.
const FORBIDDEN_SETTINGS: std::ops::RangeInclusive<u64> = 2..=5;

/// The streams that the server has opened on one connection.
#[derive(Debug, Default)]
pub struct Asides {
    streams: Vec<Aside>,
    /// The server accepts no more requests, from this stream's number on.
    pub leaving: bool,
}

#[derive(Debug)]
struct Aside {
    stream: u64,
    kind: Option<u64>,
    partial: Vec<u8>,
    /// The missing rest of a frame that nobody reads.
    skip: u64,
    settled: bool,
}

impl Asides {
    /// Takes bytes of a stream, by its number.
    pub fn take(&mut self, stream: u64, bytes: &[u8], ended: bool) -> Result<()> {
        let at = self.streams.iter().position(|aside| aside.stream == stream).unwrap_or_else(|| {
            self.streams.push(Aside { stream, kind: None, partial: Vec::new(), skip: 0, settled: false });
            self.streams.len() - 1
        });
        let aside = &mut self.streams[at];
        aside.partial.extend_from_slice(bytes);
        if aside.kind.is_none() {
            let mut rest = &aside.partial[..];
            aside.kind = number(&mut rest);
            let read = aside.partial.len() - rest.len();
            aside.partial.drain(..read);
            let known = aside.kind;
            let twice = |kind| self.streams.iter().filter(|aside| aside.kind == Some(kind)).count() > 1;
            match known {
                Some(PUSH) => return Err(malformed("the server pushes, which was never allowed")),
                Some(kind @ (CONTROL | ENCODER | DECODER)) if twice(kind) => {
                    return Err(malformed("the server opened a second control stream"));
                }
                _ => {}
            }
        }
        let aside = &mut self.streams[at];
        match aside.kind {
            Some(CONTROL) => self.leaving |= aside.control()?,
            Some(ENCODER) if aside.partial.iter().any(|byte| *byte != NO_TABLE) => {
                return Err(malformed("the server uses QPACK's dynamic table, which was never allowed"));
            }
            // The number of the type itself may be incomplete.
            None => {}
            // Streams of unknown types may say anything.
            _ => aside.partial.clear(),
        }
        let closed = self.streams[at].kind;
        if ended {
            self.streams.swap_remove(at);
            if matches!(closed, Some(CONTROL | ENCODER | DECODER)) {
                return Err(malformed("the server closed a stream that must stay open"));
            }
        }
        Ok(())
    }
}

impl Aside {
    /// Handles the control stream's complete frames. `true`: the server says goodbye.
    fn control(&mut self) -> Result<bool> {
        let mut leaving = false;
        let mut rest = &self.partial[..];
        loop {
            let skipped = rest.len().min(usize::try_from(self.skip).unwrap_or(usize::MAX));
            self.skip -= skipped as u64;
            rest = &rest[skipped..];
            let mut ahead = rest;
            let Some((kind, length)) = header(&mut ahead) else { break };
            if !self.settled && kind != kind::SETTINGS {
                return Err(malformed("the server's control stream does not begin with SETTINGS"));
            }
            match kind {
                kind::SETTINGS | kind::GOAWAY => {}
                kind::DATA | kind::HEADERS => return Err(malformed("a message on the server's control stream")),
                _ if kind::FORBIDDEN.contains(&kind) || kind::OF_PUSHES[1..].contains(&kind) => {
                    return Err(malformed(format!("the server's control stream has a frame of type {kind}")));
                }
                _ => {
                    self.skip = length;
                    rest = ahead;
                    continue;
                }
            }
            if length > FRAME_BYTES {
                return Err(malformed("a frame of the server's control stream is longer than 16 KiB"));
            }
            let Some((payload, more)) = ahead.split_at_checked(length as usize) else { break };
            rest = more;
            match kind {
                kind::SETTINGS if self.settled => return Err(malformed("the server sent SETTINGS twice")),
                kind::SETTINGS => {
                    settings(payload)?;
                    self.settled = true;
                }
                _ => {
                    let mut left = payload;
                    if number(&mut left).is_none() || !left.is_empty() {
                        return Err(malformed("the server's GOAWAY is malformed"));
                    }
                    leaving = true;
                }
            }
        }
        let read = self.partial.len() - rest.len();
        self.partial.drain(..read);
        Ok(leaving)
    }
}

/// Checks the server's settings. None of them limits what this client sends.
fn settings(mut payload: &[u8]) -> Result<()> {
    while !payload.is_empty() {
        match (number(&mut payload), number(&mut payload)) {
            (Some(name), Some(_)) if !FORBIDDEN_SETTINGS.contains(&name) => {}
            _ => return Err(malformed("the server's SETTINGS are malformed")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the server leaves after these bytes of stream 0, cut at `cut`.
    fn said(bytes: &[u8], cut: usize) -> Result<bool> {
        let mut asides = Asides::default();
        asides.take(0, &bytes[..cut], false)?;
        asides.take(0, &bytes[cut..], false)?;
        Ok(asides.leaving)
    }

    #[test]
    fn settings_and_goodbye_are_read_wherever_they_are_cut() {
        // QPACK_MAX_TABLE_CAPACITY and a reserved setting; a frame of a reserved type; GOAWAY of stream 8.
        let stay = b"\x00\x04\x06\x01\x50\x00\x40\x21\x07\x40\x21\x03abc";
        let go = [&stay[..], b"\x07\x01\x08"].concat();
        for cut in 0..=stay.len() {
            assert!(!said(stay, cut).unwrap(), "{cut}");
        }
        for cut in 0..=go.len() {
            assert!(said(&go, cut).unwrap(), "{cut}");
        }
    }

    #[test]
    fn a_stream_of_an_unknown_type_may_say_anything_wherever_its_type_is_cut() {
        for stream in [&b"\x54\x01\x00"[..], b"\x80\x00\x21\x01\x02", b"\x21\x01"] {
            for cut in 0..=stream.len() {
                assert!(!said(stream, cut).unwrap(), "{stream:02x?} at {cut}");
            }
        }
    }

    #[test]
    fn what_a_server_must_not_say_is_refused_wherever_it_is_cut() {
        for bad in [
            &b"\x01\x00"[..],
            b"\x02\x3f\xe1\x1f",
            b"\x00\x07\x01\x00",
            b"\x00\x04\x00\x04\x00",
            b"\x00\x04\x02\x03\x01",
            b"\x00\x04\x01\x06",
            b"\x00\x04\x00\x00\x01a",
            b"\x00\x04\x00\x08\x00",
            b"\x00\x04\x00\x0d\x01\x00",
            b"\x00\x04\x00\x07\x00",
            b"\x00\x04\x00\x07\x02\x00\x00",
            b"\x00\x04\x80\x00\x40\x01",
        ] {
            for cut in 0..=bad.len() {
                assert!(said(bad, cut).is_err(), "{bad:02x?} at {cut}");
            }
        }
    }

    #[test]
    fn a_critical_stream_must_stay_open_and_be_the_only_one_of_its_kind() {
        for kind in [CONTROL, ENCODER, DECODER] {
            let mut asides = Asides::default();
            asides.take(0, &[kind as u8], false).unwrap();
            assert!(asides.take(1, &[kind as u8], false).is_err());
            assert!(asides.take(0, &[], true).is_err());
        }
        let mut asides = Asides::default();
        asides.take(0, b"\x21whatever", true).unwrap();
        asides.take(1, b"\x21", false).unwrap();
        asides.take(2, b"\x02\x20", false).unwrap();
        assert!(!asides.leaving);
    }
}
