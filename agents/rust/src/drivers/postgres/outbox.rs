//! outbox: statements and values -> messages to the server, in one buffer that is sent at once.

use crate::program::{Operation, Parameter, Statement};

/// Messages that wait to be sent. Reused, so that encoding allocates nothing.
#[derive(Debug, Default)]
pub struct Outbox(pub Vec<u8>);

impl Outbox {
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

    /// The server tells the parameters' types; values travel as text.
    pub fn parse(&mut self, name: &str, sql: &str) {
        let at = self.begin(b'P');
        self.string(name);
        self.string(sql);
        self.0.extend_from_slice(&[0, 0]);
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

    pub fn terminate(&mut self) {
        self.0.extend_from_slice(b"X\0\0\0\x04");
    }

    /// Bind, Execute and Sync: one run of a prepared statement.
    #[inline]
    pub fn run(&mut self, name: &[u8], statement: &Statement, operation: &Operation) {
        let at = self.begin(b'B');
        self.0.push(0);
        self.0.extend_from_slice(name);
        self.0.extend_from_slice(&[0, 0, 0]);
        self.0.extend_from_slice(&(statement.parameters.len() as u16).to_be_bytes());
        for &variable in &statement.parameters {
            match operation.parameter(variable) {
                Parameter::Integer(value) => self.integer(value),
                Parameter::Text(text) => {
                    self.0.extend_from_slice(&(text.len() as u32).to_be_bytes());
                    self.0.extend_from_slice(text);
                }
            }
        }
        self.0.extend_from_slice(&[0, 0]);
        self.end(at);
        self.0.extend_from_slice(b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04");
    }

    /// A parameter's length and its decimal digits.
    #[inline]
    fn integer(&mut self, value: i64) {
        let (mut digits, mut at, mut left) = ([0u8; 20], 20, value.unsigned_abs());
        loop {
            at -= 1;
            digits[at] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        if value < 0 {
            at -= 1;
            digits[at] = b'-';
        }
        self.0.extend_from_slice(&((20 - at) as u32).to_be_bytes());
        self.0.extend_from_slice(&digits[at..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_travel_as_their_decimal_digits() {
        for value in [0, 7, -1, 1234567890, i64::MAX, i64::MIN] {
            let mut outbox = Outbox::default();
            outbox.integer(value);
            assert_eq!(outbox.0[..4], (value.to_string().len() as u32).to_be_bytes());
            assert_eq!(outbox.0[4..], *value.to_string().as_bytes());
        }
    }

    #[test]
    fn a_message_bears_its_length() {
        let mut outbox = Outbox::default();
        outbox.query("SELECT 1");
        outbox.sync();
        assert_eq!(outbox.0, b"Q\0\0\0\x0dSELECT 1\0S\0\0\0\x04");
    }
}
