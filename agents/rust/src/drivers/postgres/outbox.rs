//! Encodes statements and values as messages in one buffer, which is sent at once.

use super::sql;
use crate::decimal::{DIGITS, decimal};
use crate::program::{Operation, Parameter, Room, Statement};

const EXECUTE: &[u8] = b"E\0\0\0\x09\0\0\0\0\0";
const SYNC: &[u8] = b"S\0\0\0\x04";

/// Whether a text is a decimal number as SQL writes it.
fn is_number(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let point = digits.iter().position(|byte| *byte == b'.').unwrap_or(digits.len());
    let (whole, fraction) = (&digits[..point], digits.get(point + 1..).unwrap_or(b"0"));
    !whole.is_empty() && !fraction.is_empty() && whole.iter().chain(fraction).all(u8::is_ascii_digit)
}

/// Appends messages to the pending output.
pub struct Outbox<'a>(pub &'a mut Vec<u8>);

impl Outbox<'_> {
    fn begin(&mut self, tag: u8) -> usize {
        self.0.push(tag);
        self.0.extend_from_slice(&[0; 4]);
        self.0.len() - 4
    }

    fn end(&mut self, at: usize) {
        let length = (self.0.len() - at) as u32;
        self.0[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }

    fn string(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
        self.0.push(0);
    }

    /// The server infers the parameters' types; values travel as text.
    pub fn parse(&mut self, name: &str, sql: &str) {
        let at = self.begin(b'P');
        self.string(name);
        self.string(sql);
        self.0.extend_from_slice(&[0, 0]);
        self.end(at);
    }

    pub fn describe_statement(&mut self, name: &str) {
        let at = self.begin(b'D');
        self.0.push(b'S');
        self.string(name);
        self.end(at);
    }

    pub fn close_statement(&mut self, name: &str) {
        let at = self.begin(b'C');
        self.0.push(b'S');
        self.string(name);
        self.end(at);
    }

    pub fn query(&mut self, sql: &str) {
        let at = self.begin(b'Q');
        self.string(sql);
        self.end(at);
    }

    pub fn copy_fail(&mut self) {
        let at = self.begin(b'f');
        self.string("an agent has no data to copy");
        self.end(at);
    }

    pub fn sync(&mut self) {
        self.0.extend_from_slice(SYNC);
    }

    /// Takes away the Sync at the end.
    pub fn without_sync(&mut self) {
        debug_assert!(self.0.ends_with(SYNC));
        self.0.truncate(self.0.len() - SYNC.len());
    }

    /// Bind, Execute and Sync: one run of a prepared statement with the given formats of its values and rows.
    #[inline]
    pub fn run(&mut self, name: &[u8], formats: &[u8], results: &[u8], statement: &Statement, operation: &Operation) {
        self.bind(name, formats, results, statement, operation);
        self.0.extend_from_slice(EXECUTE);
        self.0.extend_from_slice(SYNC);
    }

    /// The same, but its rows are described before they come.
    pub fn run_described(&mut self, formats: &[u8], results: &[u8], statement: &Statement, operation: &Operation) {
        self.bind(b"", formats, results, statement, operation);
        let at = self.begin(b'D');
        self.0.push(b'P');
        self.string("");
        self.end(at);
        self.0.extend_from_slice(EXECUTE);
        self.0.extend_from_slice(SYNC);
    }

    #[inline]
    fn bind(&mut self, name: &[u8], formats: &[u8], results: &[u8], statement: &Statement, operation: &Operation) {
        let at = self.begin(b'B');
        self.0.push(0);
        self.0.extend_from_slice(name);
        self.0.push(0);
        self.0.extend_from_slice(formats);
        self.0.extend_from_slice(&(statement.parameters.len() as u16).to_be_bytes());
        for &variable in &statement.parameters {
            match operation.parameter(variable) {
                Parameter::Integer(value) => self.integer(value),
                Parameter::Text(text) | Parameter::Bytes(text) => self.value(text),
                Parameter::Null => self.0.extend_from_slice(&u32::MAX.to_be_bytes()),
                other => self.value(other.text(&mut Room::default()).unwrap_or_default()),
            }
        }
        self.0.extend_from_slice(results);
        self.end(at);
    }

    /// A query with its values in its text. `backslash`: the server treats `\` as an escape in every string.
    pub fn query_with_values(&mut self, statement: &Statement, operation: &Operation, backslash: bool) {
        let at = self.begin(b'Q');
        let text = |outbox: &mut Self, text: &str| outbox.0.extend_from_slice(text.as_bytes());
        sql::fill(&statement.sql, backslash, self, text, |outbox, number| {
            let value = statement.parameters.get(number).map(|variable| operation.parameter(*variable));
            outbox.literal(value.unwrap_or(Parameter::Null), backslash);
        });
        self.0.push(0);
        self.end(at);
    }

    /// A number as it is, as pgbench writes it; any other text in quotes.
    fn literal(&mut self, value: Parameter<'_>, backslash: bool) {
        if let Parameter::Bytes(bytes) = value {
            self.0.extend_from_slice(b"'\\x");
            for byte in bytes {
                self.0.extend_from_slice(format!("{byte:02x}").as_bytes());
            }
            return self.0.extend_from_slice(b"'::bytea");
        }
        let mut room = Room::default();
        let Some(text) = value.text(&mut room) else { return self.0.extend_from_slice(b"NULL") };
        if !matches!(value, Parameter::Text(_)) || is_number(text) {
            return self.0.extend_from_slice(text);
        }
        self.0.push(b'\'');
        for &byte in text {
            if byte == b'\'' || (byte == b'\\' && backslash) {
                self.0.push(byte);
            }
            self.0.push(byte);
        }
        self.0.push(b'\'');
    }

    #[inline]
    fn value(&mut self, text: &[u8]) {
        self.0.extend_from_slice(&(text.len() as u32).to_be_bytes());
        self.0.extend_from_slice(text);
    }

    /// A parameter's length and its decimal digits.
    #[inline]
    fn integer(&mut self, value: i64) {
        let mut digits = [0; DIGITS];
        let digits = decimal(value, &mut digits);
        self.0.extend_from_slice(&(digits.len() as u32).to_be_bytes());
        self.0.extend_from_slice(digits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_travel_as_their_decimal_digits() {
        let mut bytes = Vec::new();
        Outbox(&mut bytes).integer(-107);
        assert_eq!(bytes, b"\0\0\0\x04-107");
    }

    #[test]
    fn a_message_bears_its_length() {
        let mut bytes = Vec::new();
        Outbox(&mut bytes).query("SELECT 1");
        Outbox(&mut bytes).sync();
        assert_eq!(bytes, b"Q\0\0\0\x0dSELECT 1\0S\0\0\0\x04");
    }
}
