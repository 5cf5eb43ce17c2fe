//! Assembles packets from the server into messages. Rows of any size pass through bounded memory.

use crate::drivers::network::buffer::{BUFFER_BYTES, Buffer};
use crate::drivers::network::large::{Large, Passed};
use crate::failure::{Failure, Result};
use crate::xxh3::xxh3_64;

/// Length (three bytes, little-endian) and the packet's number.
pub const HEADER_BYTES: usize = 4;
/// A packet of this length is continued by the next one.
pub const FULL_BYTES: usize = 0xff_ffff;

pub const OK: u8 = 0x00;
pub const ERROR: u8 = 0xff;
/// Ends the rows of a result, if the packet isn't full.
pub const END: u8 = 0xfe;

pub struct Packets {
    pub buffer: Buffer,
    /// The expected number of the next packet.
    number: u8,
    large: Large,
    /// Whether its current packet is its last.
    last: bool,
}

/// A message from the server.
#[derive(Debug)]
pub enum Message<'a> {
    /// A row whose payload was hashed.
    Row(u64),
    Other(&'a [u8]),
    /// A message that was too long to keep.
    TooLong,
}

impl Packets {
    pub fn new() -> Packets {
        Packets { buffer: Buffer::default(), number: 0, large: Large::default(), last: false }
    }

    /// Sets the number of the next packet.
    #[inline]
    pub fn expect(&mut self, number: u8) {
        self.number = number;
    }

    /// The number of the next packet of a dialogue, whoever sends it.
    pub fn number(&self) -> u8 {
        self.number
    }

    /// The next complete message. `hash_rows`: it is a row, unless its first byte says otherwise, and is hashed instead of
    /// kept.
    #[inline]
    pub fn next(&mut self, hash_rows: bool) -> Result<Option<Message<'_>>> {
        if self.large.passes() {
            return self.go_on();
        }
        let unread = self.buffer.unread();
        let (length, number, first) = match *unread {
            [a, b, c, number, first, ..] => (length(a, b, c), number, first),
            [0, 0, 0, _] => return Err(stranger()),
            _ => return Ok(None),
        };
        // A server that ends the connection may announce it at any time.
        if number != self.number && first != ERROR || length == 0 {
            return Err(stranger());
        }
        let hashed = hash_rows && first != ERROR && (first != END || length == FULL_BYTES);
        let size = HEADER_BYTES + length;
        if unread.len() < size {
            if size > BUFFER_BYTES {
                self.number = number.wrapping_add(1);
                self.buffer.take(HEADER_BYTES);
                self.large.begin(length, hashed);
                self.last = length < FULL_BYTES;
                return self.go_on();
            }
            return Ok(None);
        }
        self.number = number.wrapping_add(1);
        let body = &self.buffer.take(size)[HEADER_BYTES..];
        Ok(Some(if hashed { Message::Row(xxh3_64(body)) } else { Message::Other(body) }))
    }

    /// Continues a large message.
    fn go_on(&mut self) -> Result<Option<Message<'_>>> {
        loop {
            if !self.large.take(&mut self.buffer) {
                return Ok(None);
            }
            if self.last {
                break;
            }
            let &[a, b, c, number, ..] = self.buffer.unread() else { return Ok(None) };
            if number != self.number {
                return Err(stranger());
            }
            self.number = number.wrapping_add(1);
            let more = length(a, b, c);
            self.large.extend(more);
            self.last = more < FULL_BYTES;
            self.buffer.take(HEADER_BYTES);
        }
        Ok(self.large.end().map(|passed| match passed {
            Passed::Hash(hash) => Message::Row(hash),
            Passed::Dropped => Message::TooLong,
            Passed::Kept(body) => Message::Other(body),
        }))
    }

    pub fn clear(&mut self) {
        self.buffer.clear();
        self.large.clear();
        self.number = 0;
    }

    #[inline]
    pub fn rest(&mut self) {
        self.buffer.rest();
        self.large.rest();
    }
}

#[inline]
pub fn length(a: u8, b: u8, c: u8) -> usize {
    u32::from_le_bytes([a, b, c, 0]) as usize
}

pub fn stranger() -> Failure {
    Failure::connect("the server does not speak MySQL's protocol")
}

/// Parses a message's body. Truncated input is an error.
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(stranger)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.bytes(N)?.try_into().map_err(|_| stranger())
    }

    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// A number of one to nine bytes; None is SQL's NULL.
    pub fn number_or_null(&mut self) -> Result<Option<u64>> {
        Ok(Some(match self.u8()? {
            small @ 0..=0xfa => small.into(),
            0xfb => return Ok(None),
            0xfc => self.u16()?.into(),
            0xfd => {
                let [a, b, c] = self.array()?;
                length(a, b, c) as u64
            }
            0xfe => u64::from_le_bytes(self.array()?),
            0xff => return Err(stranger()),
        }))
    }

    pub fn number(&mut self) -> Result<u64> {
        self.number_or_null()?.ok_or_else(stranger)
    }

    /// Bytes preceded by their length; None is SQL's NULL.
    pub fn value(&mut self) -> Result<Option<&'a [u8]>> {
        match self.number_or_null()? {
            None => Ok(None),
            Some(length) => self.bytes(usize::try_from(length).map_err(|_| stranger())?).map(Some),
        }
    }

    /// Bytes that end with a zero byte, or with the message.
    pub fn string(&mut self) -> &'a [u8] {
        let length = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        let (text, rest) = self.0.split_at(length);
        self.0 = rest.get(1..).unwrap_or_default();
        text
    }
}

/// The type in a column's description: after six names, the length of the rest, character set and display length.
pub fn column_type(body: &[u8]) -> Result<u8> {
    let mut fields = Fields(body);
    for _ in 0..6 {
        fields.value()?;
    }
    fields.bytes(7)?;
    fields.u8()
}

/// Errors that end the connection: the server shuts down, or the session was killed.
const LAST_WORDS: [u16; 4] = [1053, 1927, 3169, 4031];

/// The content of an ERR packet: code "1045 (28000)", or "1040" if the server gives no SQLSTATE.
pub fn error_of(body: &[u8]) -> Failure {
    let read = || -> Result<Failure> {
        let mut fields = Fields(body);
        fields.u8()?;
        let number = fields.u16()?;
        let mut code = number.to_string();
        if fields.0.first() == Some(&b'#') {
            let state = fields.bytes(6)?;
            code += &format!(" ({})", String::from_utf8_lossy(&state[1..]));
        }
        let failure = Failure::new(&code, String::from_utf8_lossy(fields.0));
        Ok(Failure { lost: LAST_WORDS.contains(&number), ..failure })
    };
    read().unwrap_or_else(|failure| failure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::network::buffer::KEEP_BYTES;

    /// A message as packets; the first has number `number`.
    fn packets(body: &[u8], number: &mut u8) -> Vec<u8> {
        let mut bytes = Vec::new();
        let full = body.len() / FULL_BYTES;
        for part in 0..=full {
            let part = &body[part * FULL_BYTES..((part + 1) * FULL_BYTES).min(body.len())];
            bytes.extend_from_slice(&(part.len() as u32).to_le_bytes()[..3]);
            bytes.push(*number);
            bytes.extend_from_slice(part);
            *number = number.wrapping_add(1);
        }
        bytes
    }

    fn feed(packets: &mut Packets, rest: &mut &[u8], size: usize) {
        let result = packets.buffer.fill(|into| {
            let take = size.min(rest.len()).min(into.len());
            into[..take].copy_from_slice(&rest[..take]);
            *rest = &rest[take..];
            Ok(take)
        });
        result.unwrap();
    }

    /// Result of parsing the bytes in pieces of `size`.
    fn read(bytes: &[u8], size: usize, hash_rows: bool) -> Result<Vec<String>> {
        let (mut packets, mut seen, mut rest) = (Packets::new(), Vec::new(), bytes);
        while !rest.is_empty() {
            feed(&mut packets, &mut rest, size);
            while let Some(message) = packets.next(hash_rows)? {
                seen.push(match message {
                    Message::Row(hash) => format!("row {hash:016x}"),
                    Message::Other(body) => format!("other {:016x}", xxh3_64(body)),
                    Message::TooLong => "too long".to_string(),
                });
            }
        }
        Ok(seen)
    }

    #[test]
    fn however_the_bytes_are_cut_the_messages_are_the_same() {
        let large: Vec<u8> = (0..300_000u32).map(|at| (at * 7) as u8).collect();
        let fits: Vec<u8> = vec![3; BUFFER_BYTES - HEADER_BYTES];
        let bodies: [&[u8]; 6] = [b"\0", b"small", &large, &fits, &[END; 5], b"last"];
        let mut number = 0;
        let bytes: Vec<u8> = bodies.iter().flat_map(|body| packets(body, &mut number)).collect();
        let seen = |kind: &str, body: &[u8]| format!("{kind} {:016x}", xxh3_64(body));
        let hashed: Vec<_> =
            bodies.iter().map(|body| seen(if body[0] == END { "other" } else { "row" }, body)).collect();
        let kept: Vec<_> = bodies.iter().map(|body| seen("other", body)).collect();
        for size in [1, 7, 1000, BUFFER_BYTES, usize::MAX] {
            assert_eq!(read(&bytes, size, true).unwrap(), hashed, "in pieces of {size}");
            assert_eq!(read(&bytes, size, false).unwrap(), kept, "in pieces of {size}");
        }
    }

    #[test]
    fn a_message_of_several_packets_is_one_row() {
        for (length, first) in [(FULL_BYTES, b'a'), (FULL_BYTES + 1, END), (2 * FULL_BYTES, b'a')] {
            let mut body: Vec<u8> = (0..length).map(|at| (at * 7) as u8).collect();
            body[0] = first;
            let mut number = 0;
            let bytes = [packets(&body, &mut number), packets(b"\xfeend", &mut number)].concat();
            let seen = read(&bytes, usize::MAX, true).unwrap();
            assert_eq!(seen[0], format!("row {:016x}", xxh3_64(&body)), "{length} bytes");
            assert!(seen[1].starts_with("other"));
        }
    }

    #[test]
    fn a_message_too_long_to_keep_is_skipped() {
        let mut number = 0;
        let bytes = [packets(&vec![1; KEEP_BYTES + 1], &mut number), packets(b"\0", &mut number)].concat();
        let seen = read(&bytes, usize::MAX, false).unwrap();
        assert_eq!(seen[0], "too long");
        assert!(seen[1].starts_with("other"));
    }

    #[test]
    fn input_that_is_not_the_protocol_is_refused() {
        for bytes in [&b"HTTP/1.1 400 Bad"[..], b"\0\0\0\0", b"\x01\0\0\x05\0", b"\0\0\0\0\0\0"] {
            assert!(read(bytes, usize::MAX, true).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn whatever_a_field_is_cut_to_it_is_an_error_and_no_panic() {
        let whole = b"\x05\xfc\x02\x01\xfd\x01\x02\x03\xfe\x01\0\0\0\0\0\0\0\xfb\x03abc";
        let all = |bytes: &[u8]| {
            let mut fields = Fields(bytes);
            let numbers = (0..5).map(|_| fields.number_or_null()).collect::<Result<Vec<_>>>()?;
            fields.value().map(|value| (numbers, value.map(<[u8]>::to_vec)))
        };
        let numbers = vec![Some(5), Some(0x102), Some(0x030201), Some(1), None];
        assert_eq!(all(whole).unwrap(), (numbers, Some(b"abc".to_vec())));
        for length in 0..whole.len() {
            assert!(all(&whole[..length]).is_err(), "cut to {length}");
        }
        assert!(Fields(b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff").value().is_err());
    }

    #[test]
    fn an_error_bears_its_number_and_its_sqlstate() {
        let said = |body: &[u8]| error_of(body).to_string();
        assert_eq!(said(b"\xff\x15\x04#28000Access denied"), "1045 (28000): Access denied");
        assert_eq!(said(b"\xff\x10\x04Too many connections"), "1040: Too many connections");
        assert!(said(b"\xff\x10").starts_with("connect"));
        assert!(said(b"\xff\x10\x04#28").starts_with("connect"));
    }
}
