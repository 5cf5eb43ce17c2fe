//! Parses messages into the parts of a command's response: results, each with columns and rows, or an error.

use super::packets::{END, ERROR, FULL_BYTES, Fields, Message, OK, Packets, error_of, stranger};
use crate::drivers::network::buffer::Buffer;
use crate::drivers::network::wire;
use crate::failure::{Failure, Result};

/// Bits of the server's status.
pub const IN_TRANSACTION: u16 = 0x0001;
pub const AUTOCOMMIT: u16 = 0x0002;
const MORE_RESULTS: u16 = 0x0008;
pub const NO_BACKSLASH_ESCAPES: u16 = 0x0200;

/// The server's request for a local file, which no agent sends.
const LOCAL_FILE: u8 = 0xfb;

/// The servers' own limit is 4096.
const MOST_COLUMNS: u64 = 65_535;

pub struct Answers {
    pub packets: Packets,
    /// The server's last status.
    pub status: u16,
    /// Whether the head of a result says if descriptions of its columns follow.
    pub says_if_described: bool,
    next: Next,
}

/// What the next message is.
enum Next {
    Head,
    /// Number of column descriptions still to come.
    Columns(u64),
    Rows,
}

/// A part of a response.
#[derive(Debug)]
pub enum Part<'a> {
    /// A result with rows begins. `described`: with its columns; otherwise they are as at the last time.
    Result {
        described: bool,
    },
    Column(&'a [u8]),
    /// A row whose payload was hashed.
    Row(u64),
    KeptRow(&'a [u8]),
    /// A row that was too long to keep.
    LongRow,
    /// The end of a result that is not the last one.
    ResultEnd,
    /// The end of the response.
    End,
    /// Also the end of the response.
    Error(Failure),
}

impl Default for Answers {
    fn default() -> Answers {
        Answers { packets: Packets::new(), status: AUTOCOMMIT, says_if_described: false, next: Next::Head }
    }
}

impl wire::Inbox for Answers {
    #[inline]
    fn buffer(&mut self) -> &mut Buffer {
        &mut self.packets.buffer
    }

    fn clear(&mut self) {
        self.packets.clear();
        self.status = AUTOCOMMIT;
        self.says_if_described = false;
        self.next = Next::Head;
    }

    #[inline]
    fn rest(&mut self) {
        self.packets.rest();
    }
}

impl Answers {
    /// Prepares for the response to a new command; its first packet has this number.
    #[inline]
    pub fn expect(&mut self, number: u8) {
        self.packets.expect(number);
        self.next = Next::Head;
    }

    /// The next part of the response. `hash_rows`: hash rows instead of keeping them.
    #[inline]
    pub fn part(&mut self, hash_rows: bool) -> Result<Option<Part<'_>>> {
        let in_rows = matches!(self.next, Next::Rows);
        let Some(message) = self.packets.next(hash_rows && in_rows)? else { return Ok(None) };
        let body = match message {
            Message::Row(hash) => return Ok(Some(Part::Row(hash))),
            Message::TooLong if in_rows => return Ok(Some(Part::LongRow)),
            Message::TooLong => return Err(stranger()),
            Message::Other(body) => body,
        };
        let first = body[0];
        if first == ERROR {
            self.next = Next::Head;
            return Ok(Some(Part::Error(error_of(body))));
        }
        match &mut self.next {
            Next::Rows if first != END || body.len() >= FULL_BYTES => return Ok(Some(Part::KeptRow(body))),
            Next::Columns(left) => {
                *left -= 1;
                if *left == 0 {
                    self.next = Next::Rows;
                }
                return Ok(Some(Part::Column(body)));
            }
            Next::Head if first == LOCAL_FILE => {
                return Err(Failure::connect("the server asks for a file of this machine (LOCAL INFILE): refused"));
            }
            Next::Head if first != OK => {
                let mut fields = Fields(body);
                let columns @ 1..=MOST_COLUMNS = fields.number()? else { return Err(stranger()) };
                let described = match (self.says_if_described, fields.0) {
                    (false, []) | (true, [1]) => true,
                    (true, [0]) => false,
                    _ => return Err(stranger()),
                };
                self.next = if described { Next::Columns(columns) } else { Next::Rows };
                return Ok(Some(Part::Result { described }));
            }
            Next::Head | Next::Rows => {}
        }
        self.next = Next::Head;
        self.status = status_of(body)?;
        Ok(Some(if self.status & MORE_RESULTS == 0 { Part::End } else { Part::ResultEnd }))
    }
}

/// The status in an OK packet.
pub fn status_of(body: &[u8]) -> Result<u16> {
    Ok(read_ok(body)?.0)
}

/// The status in an OK packet, and its text.
pub fn read_ok(body: &[u8]) -> Result<(u16, &[u8])> {
    let mut fields = Fields(body);
    fields.u8()?;
    // Affected rows, and the last insert id.
    fields.number()?;
    fields.number()?;
    let status = fields.u16()?;
    // A number of warnings. A server that is old, or of another make, may end here.
    let text = fields.u16().and_then(|_| fields.value()).ok().flatten();
    Ok((status, text.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::network::wire::Inbox;

    fn heard(messages: &[&[u8]], hash_rows: bool) -> Result<Vec<String>> {
        heard_by(Answers::default(), messages, hash_rows)
    }

    fn heard_by(mut answers: Answers, messages: &[&[u8]], hash_rows: bool) -> Result<Vec<String>> {
        answers.expect(1);
        let mut bytes = Vec::new();
        for (number, body) in (1..).zip(messages) {
            bytes.extend_from_slice(&[body.len() as u8, 0, 0, number]);
            bytes.extend_from_slice(body);
        }
        let fill = |into: &mut [u8]| {
            into[..bytes.len()].copy_from_slice(&bytes);
            Ok(bytes.len())
        };
        answers.buffer().fill(fill).unwrap();
        let mut parts = Vec::new();
        while let Some(part) = answers.part(hash_rows)? {
            parts.push(format!("{part:?}").split(['(', ' ']).next().unwrap().to_string());
        }
        Ok(parts)
    }

    const DONE: &[u8] = b"\xfe\0\0\x02\0\0\0";
    const DONE_AND_MORE: &[u8] = b"\xfe\0\0\x0a\0\0\0";

    #[test]
    fn an_answer_is_results_of_columns_and_rows_or_an_error() {
        let column = b"\x03def";
        assert_eq!(heard(&[b"\0\0\0\x02\0\0\0"], true).unwrap(), ["End"]);
        let rows: &[&[u8]] = &[b"\x01", column, b"\x011", b"\xfb", DONE];
        assert_eq!(heard(rows, true).unwrap(), ["Result", "Column", "Row", "Row", "End"]);
        assert_eq!(heard(rows, false).unwrap(), ["Result", "Column", "KeptRow", "KeptRow", "End"]);
        let two: &[&[u8]] = &[b"\x01", column, DONE_AND_MORE, b"\0\0\0\x02\0\0\0"];
        assert_eq!(heard(two, true).unwrap(), ["Result", "Column", "ResultEnd", "End"]);
        let failed: &[&[u8]] = &[b"\x01", column, b"\x011", b"\xff\x15\x04#28000no"];
        assert_eq!(heard(failed, true).unwrap(), ["Result", "Column", "Row", "Error"]);
    }

    #[test]
    fn columns_may_be_as_at_the_last_time() {
        let heard = |head: &[u8], rest: &[&[u8]]| {
            let answers = Answers { says_if_described: true, ..Answers::default() };
            heard_by(answers, &[&[head], rest].concat(), true)
        };
        let column = b"\x03def";
        assert_eq!(heard(b"\x01\x01", &[column, b"\x011", DONE]).unwrap(), ["Result", "Column", "Row", "End"]);
        assert_eq!(heard(b"\x01\x00", &[b"\x011", DONE]).unwrap(), ["Result", "Row", "End"]);
        for bad in [&b"\x01"[..], b"\x01\x02", b"\x01\x01\0"] {
            assert!(heard(bad, &[]).is_err(), "{bad:?}");
        }
        assert!(heard_by(Answers::default(), &[b"\x01\x01"], true).is_err());
    }

    #[test]
    fn responses_that_no_server_sends_are_refused() {
        assert!(heard(&[b"\xfb/etc/passwd"], true).unwrap_err().text.contains("file"));
        for bad in [&b"\xfe\0\0\x02\0\0\0"[..], b"\0\0\0", b"\x01\x02", b"\xfc\x01", b"\xfd\0\0\x01"] {
            assert!(heard(&[bad], true).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn no_input_panics() {
        let mut random = crate::draw::Random::of_operation(5, 5);
        for _ in 0..20_000 {
            let messages: Vec<Vec<u8>> = (0..4)
                .map(|_| {
                    let length = 1 + random.below(12);
                    // Bytes with a meaning occur often.
                    let byte = |random: &mut crate::draw::Random| match random.below(3) {
                        0 => [0, 1, 2, 0xfb, 0xfc, 0xfd, 0xfe, 0xff][random.below(8) as usize],
                        _ => random.next() as u8,
                    };
                    (0..length).map(|_| byte(&mut random)).collect()
                })
                .collect();
            let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
            let _ = heard(&messages, random.below(2) == 0);
        }
    }
}
