//! Encodes statements and values as messages in one buffer, which is sent at once.

use crate::decimal::{DIGITS, decimal};
use crate::program::{Operation, Parameter, Statement};

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
        self.0.extend_from_slice(b"S\0\0\0\x04");
    }

    /// Bind, Execute and Sync: one run of a prepared statement with the given formats of its values and rows.
    #[inline]
    pub fn run(&mut self, name: &[u8], formats: &[u8], results: &[u8], statement: &Statement, operation: &Operation) {
        let at = self.begin(b'B');
        self.0.push(0);
        self.0.extend_from_slice(name);
        self.0.push(0);
        self.0.extend_from_slice(formats);
        self.0.extend_from_slice(&(statement.parameters.len() as u16).to_be_bytes());
        for &variable in &statement.parameters {
            match operation.parameter(variable) {
                Parameter::Integer(value) => self.integer(value),
                Parameter::Text(text) | Parameter::Bytes(text) => {
                    self.0.extend_from_slice(&(text.len() as u32).to_be_bytes());
                    self.0.extend_from_slice(text);
                }
            }
        }
        self.0.extend_from_slice(results);
        self.end(at);
        self.0.extend_from_slice(b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04");
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
