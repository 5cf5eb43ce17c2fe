//! Encodes commands and values as packets in one buffer, which is sent at once.

use super::packets::{FULL_BYTES, HEADER_BYTES};
use super::placeholders::{Piece, pieces};
use crate::decimal::{DIGITS, decimal};
use crate::program::{Operation, Parameter, Room, Statement};

const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
const CLOSE: u8 = 0x19;
const SET_OPTION: u8 = 0x1b;

const LONGLONG: [u8; 2] = [0x08, 0];
const DOUBLE: [u8; 2] = [0x05, 0];
const VAR_STRING: [u8; 2] = [0xfd, 0];
/// Bytes without a character set.
const BLOB: [u8; 2] = [0xfc, 0];

/// A statement that the server has prepared.
#[derive(Debug)]
pub struct Prepared {
    pub id: u32,
    /// The variable at each `?`.
    pub variables: Vec<usize>,
    /// The server knows the types of its parameters.
    pub typed: bool,
    /// Their types may change from run to run.
    pub varies: bool,
    /// Types of its result's columns, as the server described them last.
    pub types: Vec<u8>,
}

/// Appends packets to the pending output. Each command returns the number of the response's first packet.
pub struct Outbox<'a>(pub &'a mut Vec<u8>);

impl Outbox<'_> {
    /// Begins a packet with this number in its dialogue.
    #[inline]
    pub fn begin(&mut self, number: u8) -> usize {
        self.0.extend_from_slice(&[0, 0, 0, number]);
        self.0.len() - HEADER_BYTES
    }

    /// Ends the packet that began at `at`. Returns the next packet number.
    #[inline]
    pub fn end(&mut self, at: usize) -> u8 {
        let length = self.0.len() - at - HEADER_BYTES;
        if length >= FULL_BYTES {
            return self.split(at);
        }
        self.0[at..at + 3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
        self.0[at + 3].wrapping_add(1)
    }

    /// Splits a packet that is too long into several; the last one isn't full, even if it is empty.
    #[cold]
    fn split(&mut self, at: usize) -> u8 {
        let body = self.0.split_off(at + HEADER_BYTES);
        let mut number = self.0[at + 3];
        self.0.truncate(at);
        let mut rest = body.as_slice();
        loop {
            let (part, left) = rest.split_at(rest.len().min(FULL_BYTES));
            self.0.extend_from_slice(&(part.len() as u32).to_le_bytes()[..3]);
            self.0.push(number);
            self.0.extend_from_slice(part);
            number = number.wrapping_add(1);
            rest = left;
            if part.len() < FULL_BYTES {
                return number;
            }
        }
    }

    fn command(&mut self, command: u8, body: &[u8]) -> u8 {
        let at = self.begin(0);
        self.0.push(command);
        self.0.extend_from_slice(body);
        self.end(at)
    }

    pub fn query(&mut self, sql: &str) -> u8 {
        self.command(QUERY, sql.as_bytes())
    }

    pub fn prepare(&mut self, sql: &str) -> u8 {
        self.command(PREPARE, sql.as_bytes())
    }

    /// Has no response.
    pub fn close(&mut self, id: u32) {
        self.command(CLOSE, &id.to_le_bytes());
    }

    /// Whether a query may contain several statements.
    pub fn allow_several(&mut self, allowed: bool) -> u8 {
        self.command(SET_OPTION, &[u8::from(!allowed), 0])
    }

    /// Runs a prepared statement. Types are sent once, as in the server's own client library.
    #[inline]
    pub fn execute(&mut self, prepared: &mut Prepared, operation: &Operation) -> u8 {
        let at = self.begin(0);
        self.0.push(EXECUTE);
        self.0.extend_from_slice(&prepared.id.to_le_bytes());
        // No cursor; run once.
        self.0.extend_from_slice(&[0, 1, 0, 0, 0]);
        let variables = prepared.variables.as_slice();
        if !variables.is_empty() {
            let nulls = self.0.len();
            self.0.resize(nulls + variables.len().div_ceil(8), 0);
            self.0.push(u8::from(!prepared.typed));
            if !prepared.typed {
                prepared.typed = !prepared.varies;
                for &variable in variables {
                    self.0.extend_from_slice(&match value(operation, variable) {
                        Parameter::Integer(_) | Parameter::Boolean(_) => LONGLONG,
                        Parameter::Real(_) => DOUBLE,
                        Parameter::Text(_) | Parameter::Null => VAR_STRING,
                        Parameter::Bytes(_) => BLOB,
                    });
                }
            }
            for (at, &variable) in variables.iter().enumerate() {
                match value(operation, variable) {
                    Parameter::Integer(value) => self.0.extend_from_slice(&value.to_le_bytes()),
                    Parameter::Boolean(value) => self.0.extend_from_slice(&i64::from(value).to_le_bytes()),
                    Parameter::Real(value) => self.0.extend_from_slice(&value.to_le_bytes()),
                    Parameter::Null => self.0[nulls + at / 8] |= 1 << (at % 8),
                    Parameter::Text(text) | Parameter::Bytes(text) => {
                        put_length(text.len(), self.0);
                        self.0.extend_from_slice(text);
                    }
                }
            }
        }
        self.end(at)
    }

    /// A query with its values as literals. `backslash`: whether the server treats it as an escape.
    pub fn query_with_values(&mut self, statement: &Statement, operation: &Operation, backslash: bool) -> u8 {
        let at = self.begin(0);
        self.0.push(QUERY);
        for piece in pieces(&statement.sql, backslash) {
            match piece {
                Piece::Text(text) => self.0.extend_from_slice(text.as_bytes()),
                Piece::Placeholder(number) => match statement.parameters.get(number) {
                    Some(variable) => self.literal(value(operation, *variable), backslash),
                    None => self.0.extend_from_slice(b"NULL"),
                },
            }
        }
        self.end(at)
    }

    /// A literal of bytes.
    fn bytes(&mut self, bytes: &[u8]) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        self.0.extend_from_slice(b"X'");
        for byte in bytes {
            self.0.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        self.0.push(b'\'');
    }

    fn literal(&mut self, value: Parameter<'_>, backslash: bool) {
        let text = match value {
            Parameter::Integer(value) => return self.0.extend_from_slice(decimal(value, &mut [0; DIGITS])),
            Parameter::Text(text) => text,
            Parameter::Bytes(bytes) => return self.bytes(bytes),
            other => {
                return self.0.extend_from_slice(other.text(&mut Room::default()).unwrap_or(b"NULL"));
            }
        };
        self.0.push(b'\'');
        for &byte in text {
            match byte {
                b'\'' => self.0.extend_from_slice(b"''"),
                b'\\' if backslash => self.0.extend_from_slice(b"\\\\"),
                0 if backslash => self.0.extend_from_slice(b"\\0"),
                _ => self.0.push(byte),
            }
        }
        self.0.push(b'\'');
    }
}

/// A value's length, which precedes it.
#[inline]
pub fn put_length(length: usize, into: &mut Vec<u8>) {
    let bytes = (length as u64).to_le_bytes();
    match length {
        0..=0xfa => into.push(bytes[0]),
        0xfb..=0xffff => into.extend_from_slice(&[0xfc, bytes[0], bytes[1]]),
        0x1_0000..=0xff_ffff => into.extend_from_slice(&[0xfd, bytes[0], bytes[1], bytes[2]]),
        _ => {
            into.push(0xfe);
            into.extend_from_slice(&bytes);
        }
    }
}

/// A variable's value. A constant written as an integer is sent as one: the server would treat a string differently in
/// comparisons with numbers and after LIMIT.
#[inline]
fn value(operation: &Operation, variable: usize) -> Parameter<'_> {
    let value = operation.parameter(variable);
    match value {
        Parameter::Text(text @ [b'0'..=b'9' | b'-', ..]) => integer(text).map_or(value, Parameter::Integer),
        _ => value,
    }
}

fn integer(text: &[u8]) -> Option<i64> {
    let value = std::str::from_utf8(text).ok()?.parse().ok()?;
    (decimal(value, &mut [0; DIGITS]) == text).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Kind;
    use crate::program::Program;

    /// The first operation of a program with one statement, and that statement.
    fn drawn(sql: &str, constants: &[&str]) -> (Statement, Operation) {
        let mut program = Program::new("p".into());
        program.add_transaction("t".into(), 1).unwrap();
        let names: Vec<String> = (0..constants.len()).map(|number| format!("v{number}")).collect();
        for (name, value) in names.iter().zip(constants) {
            program.add_variable(name.clone(), Kind::Constant { value: value.to_string() }).unwrap();
        }
        program.add_statement("t", None, sql.into(), &names.join(" "), false).unwrap();
        let (mut script, mut operation) = (program.script("plain").unwrap(), Operation::default());
        script.draw(0, 0, &mut operation);
        (script.statements.remove(0), operation)
    }

    fn written(sql: &str, constants: &[&str], backslash: bool) -> String {
        let (statement, operation) = drawn(sql, constants);
        let mut bytes = Vec::new();
        Outbox(&mut bytes).query_with_values(&statement, &operation, backslash);
        String::from_utf8(bytes[HEADER_BYTES + 1..].to_vec()).unwrap()
    }

    #[test]
    fn values_are_written_as_literals_that_mean_nothing_else() {
        assert_eq!(written("SELECT $2, $1, '$1'", &["a", "-5"], true), "SELECT -5, 'a', '$1'");
        assert_eq!(written("$1", &["it's"], true), "'it''s'");
        assert_eq!(written("$1", &["\\'; DROP"], true), r"'\\''; DROP'");
        assert_eq!(written("$1", &["\\'; DROP"], false), r"'\''; DROP'");
        for text in ["007", "-", "-0", "1e3", "1 OR 1", "99999999999999999999"] {
            assert_eq!(written("$1", &[text], true), format!("'{text}'"));
        }
    }

    #[test]
    fn types_travel_once_and_values_every_time() {
        let (_, operation) = drawn("$1 $2", &["-2", "ab"]);
        let mut prepared = Prepared { id: 7, variables: vec![1, 0, 1], typed: false, varies: false, types: vec![] };
        let mut bytes = Vec::new();
        assert_eq!(Outbox(&mut bytes).execute(&mut prepared, &operation), 1);
        let head = b"\x17\x07\0\0\0\0\x01\0\0\0";
        let values = b"\x02ab\xfe\xff\xff\xff\xff\xff\xff\xff\x02ab";
        assert_eq!(bytes, [b"\x20\0\0\0", &head[..], b"\0\x01\xfd\0\x08\0\xfd\0", values].concat());
        bytes.clear();
        Outbox(&mut bytes).execute(&mut prepared, &operation);
        assert_eq!(bytes, [b"\x1a\0\0\0", &head[..], b"\0\0", values].concat());
    }

    #[test]
    fn a_long_command_becomes_several_packets_the_last_of_which_is_not_full() {
        for (length, ends) in [(FULL_BYTES - 2, vec![]), (FULL_BYTES - 1, vec![0]), (FULL_BYTES + 9, vec![10])] {
            let mut bytes = b"before".to_vec();
            let next = Outbox(&mut bytes).query(&"x".repeat(length));
            assert_eq!(usize::from(next), 1 + ends.len());
            let mut rest = &bytes[6..];
            let mut lengths = Vec::new();
            while let [a, b, c, number, ..] = *rest {
                assert_eq!(usize::from(number), lengths.len());
                lengths.push(super::super::packets::length(a, b, c));
                rest = &rest[HEADER_BYTES + lengths.last().unwrap()..];
            }
            let first = if ends.is_empty() { length + 1 } else { FULL_BYTES };
            assert_eq!(lengths, [vec![first], ends].concat());
        }
    }

    #[test]
    fn a_text_follows_its_length() {
        for (length, head) in [
            (0, &b"\0"[..]),
            (250, b"\xfa"),
            (251, b"\xfc\xfb\0"),
            (65536, b"\xfd\0\0\x01"),
            (1 << 24, b"\xfe\0\0\0\x01\0\0\0\0"),
        ] {
            let (mut bytes, text) = (Vec::new(), vec![b'x'; length]);
            put_length(length, &mut bytes);
            bytes.extend_from_slice(&text);
            assert_eq!(bytes, [head, &text].concat());
            assert_eq!(super::super::packets::Fields(&bytes).value().unwrap(), Some(&text[..]));
        }
    }
}
