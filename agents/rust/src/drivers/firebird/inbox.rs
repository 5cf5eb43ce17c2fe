//! Parses bytes from the server into packets. A packet has no length: it ends where its parts end.

use super::errors;
use super::format::Format;
use super::xdr::Reader;
use crate::drivers::network::buffer::Buffer;
use crate::drivers::network::wire;
use crate::failure::{Failure, Result};
use std::io;

/// Maximum length of a packet that the driver understands.
const PACKET_BYTES: usize = 64 << 20;

const OP_ACCEPT: i32 = 3;
const OP_REJECT: i32 = 4;
const OP_RESPONSE: i32 = 9;
const OP_FETCH_RESPONSE: i32 = 66;
const OP_DUMMY: i32 = 71;
const OP_SQL_RESPONSE: i32 = 78;
const OP_CONT_AUTH: i32 = 92;
const OP_ACCEPT_DATA: i32 = 94;
const OP_COND_ACCEPT: i32 = 98;

/// A message from the server.
#[derive(Debug)]
pub enum Packet<'a> {
    Response {
        object: i32,
        data: &'a [u8],
        /// The most specific code, and the complete error text.
        failure: Option<(i32, Failure)>,
    },
    /// A row of a cursor: the message, to be parsed with the statement's format.
    Row(&'a [u8]),
    /// The end of a batch of rows, and whether it is the last.
    Batch {
        last: bool,
    },
    /// The one row of a statement without a cursor, or none.
    Single(Option<&'a [u8]>),
    Accept(Accept<'a>),
    /// The login continues.
    Continue {
        plugin: &'a [u8],
        data: &'a [u8],
        keys: &'a [u8],
    },
    Reject,
}

/// The negotiated protocol.
#[derive(Debug, Default)]
pub struct Accept<'a> {
    pub protocol: i32,
    pub compressed: bool,
    pub plugin: &'a [u8],
    pub data: &'a [u8],
    pub keys: &'a [u8],
    pub authenticated: bool,
    /// The login must finish, and may start encryption, before the database is attached.
    pub conditional: bool,
}

#[derive(Default)]
pub struct Inbox {
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

    /// Grows the buffer first if a packet is longer.
    #[inline]
    fn fill(&mut self, receive: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> io::Result<()> {
        if self.buffer.unread().len() == self.buffer.size() {
            if self.buffer.size() >= PACKET_BYTES {
                return Err(io::Error::other("the server does not speak Firebird's protocol"));
            }
            self.buffer.grow();
        }
        self.buffer.fill(receive)
    }
}

impl Inbox {
    /// Whether the next packet is still incomplete.
    pub fn next_is_missing(&self, format: &Format) -> Result<bool> {
        let mut reader = Reader::new(self.buffer.unread());
        Ok(read(&mut reader, format)?.is_none())
    }

    /// The next complete packet; rows have this format.
    #[inline]
    pub fn next(&mut self, format: &Format) -> Result<Option<Packet<'_>>> {
        self.buffer.take_found(|unread| {
            let mut reader = Reader::new(unread);
            Ok(read(&mut reader, format)?.map(|packet| (packet, reader.at())))
        })
    }
}

fn read<'a>(reader: &mut Reader<'a>, format: &Format) -> Result<Option<Packet<'a>>> {
    let mut operation = OP_DUMMY;
    // A keep-alive between packets.
    while operation == OP_DUMMY {
        let Some(next) = reader.int() else { return Ok(None) };
        operation = next;
    }
    Ok(match operation {
        OP_FETCH_RESPONSE => fetched(reader, format),
        OP_RESPONSE => response(reader),
        OP_SQL_RESPONSE => single(reader, format),
        OP_ACCEPT => agreed(reader).map(Packet::Accept),
        OP_ACCEPT_DATA => accept(reader, false),
        OP_COND_ACCEPT => accept(reader, true),
        OP_CONT_AUTH => go_on(reader),
        OP_REJECT => Some(Packet::Reject),
        other => {
            let text = format!(
                "the server does not speak Firebird's protocol, or not the negotiated version (packet {other})"
            );
            return Err(Failure::connect(text));
        }
    })
}

#[inline]
fn fetched<'a>(reader: &mut Reader<'a>, format: &Format) -> Option<Packet<'a>> {
    let status = reader.int()?;
    if reader.int()? == 0 {
        return Some(Packet::Batch { last: status == 100 });
    }
    row(reader, format).map(Packet::Row)
}

#[inline]
fn row<'a>(reader: &mut Reader<'a>, format: &Format) -> Option<&'a [u8]> {
    let rest = reader.rest();
    let mut walker = Reader::new(rest);
    format.walk(&mut walker, |_, _| {})?;
    reader.opaque(walker.at())
}

fn response<'a>(reader: &mut Reader<'a>) -> Option<Packet<'a>> {
    let object = reader.int()? & 0xffff;
    reader.opaque(8)?;
    let data = reader.bytes()?;
    Some(Packet::Response { object, data, failure: errors::read(reader)? })
}

fn single<'a>(reader: &mut Reader<'a>, format: &Format) -> Option<Packet<'a>> {
    if reader.int()? == 0 {
        return Some(Packet::Single(None));
    }
    row(reader, format).map(|row| Packet::Single(Some(row)))
}

fn agreed<'a>(reader: &mut Reader<'a>) -> Option<Accept<'a>> {
    let protocol = reader.int()? & 0x7fff;
    reader.int()?; // architecture
    let kind = reader.int()?;
    Some(Accept { protocol, compressed: kind & 0x100 != 0, ..Accept::default() })
}

fn accept<'a>(reader: &mut Reader<'a>, conditional: bool) -> Option<Packet<'a>> {
    let agreed = agreed(reader)?;
    let (data, plugin) = (reader.bytes()?, reader.bytes()?);
    let authenticated = reader.int()? != 0;
    Some(Packet::Accept(Accept { data, plugin, authenticated, keys: reader.bytes()?, conditional, ..agreed }))
}

fn go_on<'a>(reader: &mut Reader<'a>) -> Option<Packet<'a>> {
    let (data, plugin) = (reader.bytes()?, reader.bytes()?);
    reader.bytes()?; // plugins
    Some(Packet::Continue { plugin, data, keys: reader.bytes()? })
}

#[cfg(test)]
mod tests {
    use super::super::format::Described;
    use super::super::xdr::Put;
    use super::*;
    use crate::drivers::network::buffer::BUFFER_BYTES;
    use crate::drivers::network::wire::Inbox as _;

    fn format() -> Format {
        Format::native(&[Described { sql_type: 448, length: 32_000, ..Described::default() }])
    }

    fn bytes() -> Vec<u8> {
        let mut outbox = Vec::new();
        let row = |outbox: &mut Vec<u8>, text: &[u8]| {
            outbox.int(OP_FETCH_RESPONSE);
            outbox.int(0);
            outbox.int(1);
            outbox.opaque(&[0]);
            outbox.bytes(text);
        };
        row(&mut outbox, b"small");
        outbox.int(OP_DUMMY);
        row(&mut outbox, &vec![b'x'; 31_999]);
        row(&mut outbox, &vec![b'y'; 100_000]);
        outbox.int(OP_FETCH_RESPONSE);
        outbox.int(100);
        outbox.int(0);
        outbox.int(OP_RESPONSE);
        outbox.int(3);
        outbox.long(0);
        outbox.bytes(b"data");
        outbox.int(1);
        outbox.int(0);
        outbox.int(0);
        outbox
    }

    #[test]
    fn however_the_bytes_are_cut_the_packets_are_the_same() {
        let (format, bytes) = (format(), bytes());
        for size in [1, 7, 1000, BUFFER_BYTES, usize::MAX] {
            let (mut inbox, mut seen, mut rest) = (Inbox::default(), Vec::new(), &bytes[..]);
            while !rest.is_empty() {
                inbox
                    .fill(|into| {
                        let take = size.min(rest.len()).min(into.len());
                        into[..take].copy_from_slice(&rest[..take]);
                        rest = &rest[take..];
                        Ok(take)
                    })
                    .unwrap();
                while let Some(packet) = inbox.next(&format).unwrap() {
                    seen.push(match packet {
                        Packet::Row(row) => format!("row {}", row.len()),
                        Packet::Batch { last } => format!("batch {last}"),
                        Packet::Response { object, data, failure } => {
                            format!("response {object} {} {}", data.len(), failure.is_some())
                        }
                        other => format!("{other:?}"),
                    });
                }
            }
            let wanted = ["row 16", "row 32008", "row 100008", "batch true", "response 3 4 false"];
            assert_eq!(seen, wanted, "in pieces of {size}");
            assert!(inbox.buffer().unread().is_empty());
        }
    }

    #[test]
    fn input_that_is_not_the_protocol_is_refused() {
        let mut inbox = Inbox::default();
        inbox
            .fill(|into| {
                into[..8].copy_from_slice(b"HTTP/1.1");
                Ok(8)
            })
            .unwrap();
        assert!(inbox.next(&Format::default()).is_err());
    }
}
