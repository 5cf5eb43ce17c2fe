//! Texts of requests with places for an operation's values.

use crate::failure::{Failure, Result};
use crate::program::{Operation, Parameter, Room};
use std::ops::Range;

/// A text with `$1`, `$2`…: literal pieces and values.
#[derive(Debug, Default)]
pub struct Text {
    literals: Vec<u8>,
    pieces: Vec<Piece>,
    /// It is part of the request's first line, which doesn't allow every byte.
    path: bool,
}

#[derive(Debug)]
enum Piece {
    /// A stretch of the literals.
    Literal(Range<usize>),
    /// A variable's value.
    Value(usize),
}

impl Text {
    /// A text without values, whatever is in it.
    pub fn literally(text: &str) -> Text {
        let mut found = Text::default();
        found.literal(text.as_bytes());
        found
    }

    /// A path without values.
    pub fn of_path(text: &str) -> Text {
        let mut found = Text { path: true, ..Text::default() };
        found.literal(text.as_bytes());
        found
    }

    pub fn read(text: &str, parameters: &[usize], path: bool) -> Result<Text> {
        let mut found = Text { path, ..Text::default() };
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            let digits = rest[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
            let (before, after) = rest.split_at(at + 1 + digits);
            if digits == 0 {
                found.literal(before.as_bytes());
            } else {
                let number: usize = before[at + 1..].parse().unwrap_or(0);
                let variable = number.checked_sub(1).and_then(|at| parameters.get(at));
                let missing =
                    || Failure::statement(format!("${number}: the statement has {} values", parameters.len()));
                found.literal(&before.as_bytes()[..at]);
                found.pieces.push(Piece::Value(*variable.ok_or_else(missing)?));
            }
            rest = after;
        }
        found.literal(rest.as_bytes());
        Ok(found)
    }

    fn literal(&mut self, bytes: &[u8]) {
        let from = self.literals.len();
        if self.path {
            put_path(bytes, &mut self.literals);
        } else {
            self.literals.extend_from_slice(bytes);
        }
        let to = self.literals.len();
        match self.pieces.last_mut() {
            Some(Piece::Literal(range)) => range.end = to,
            _ if to > from => self.pieces.push(Piece::Literal(from..to)),
            _ => {}
        }
    }

    /// The text itself, if it has no values.
    pub fn fixed(&self) -> Option<&[u8]> {
        self.pieces.iter().all(|piece| matches!(piece, Piece::Literal(_))).then_some(&self.literals)
    }

    pub fn put(&self, operation: &Operation, into: &mut Vec<u8>) {
        let mut digits = Room::default();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(range) => into.extend_from_slice(&self.literals[range.clone()]),
                Piece::Value(variable) => {
                    let value = bytes(operation.parameter(*variable), &mut digits);
                    if self.path { put_path(value, into) } else { into.extend_from_slice(value) }
                }
            }
        }
    }

    /// Length of the text that `put` writes; not for paths, whose values may grow by encoding.
    pub fn length(&self, operation: &Operation) -> usize {
        let mut digits = Room::default();
        let length = |piece: &Piece| match piece {
            Piece::Literal(range) => range.len(),
            Piece::Value(variable) => bytes(operation.parameter(*variable), &mut digits).len(),
        };
        self.pieces.iter().map(length).sum()
    }
}

fn bytes<'a>(value: Parameter<'a>, digits: &'a mut Room) -> &'a [u8] {
    value.text(digits).unwrap_or_default()
}

/// Bytes for a request's first line: percent-encoded where necessary.
fn put_path(bytes: &[u8], into: &mut Vec<u8>) {
    for &byte in bytes {
        if byte.is_ascii_graphic() && byte != b'#' {
            into.push(byte);
        } else {
            let digit = |half: u8| b"0123456789ABCDEF"[usize::from(half)];
            into.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}
