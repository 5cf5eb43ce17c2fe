//! One drawn operation: its values, and how far it has come.

use super::expression::{Scalar, scalar};
use crate::decimal::{DIGITS, decimal};
use crate::draw::{Kind, Random, Value};
use crate::envelope;
use std::cell::Cell;

/// No statement has run yet.
pub(super) const BEFORE: usize = usize::MAX;

/// One drawn operation: its statements and values. Reused, so that drawing doesn't allocate.
#[derive(Debug, Default)]
pub struct Operation {
    /// Its statements in the script: `first..last`.
    pub first: usize,
    pub last: usize,
    /// Number of its sealed values.
    pub sealed: u64,
    /// The variable whose value the rows that it opens must have.
    pub keep: Option<usize>,
    /// Connections of its arm.
    pub clients: u64,
    /// Whether its statements are part of a pipeline.
    pub piped: bool,
    pub(super) values: Vec<Value>,
    pub(super) texts: Vec<u8>,
    /// In a loop: the current value.
    pub(super) turn: Cell<i64>,
    /// What it was drawn from.
    pub(super) seed: u64,
    pub(super) number: u64,
    /// Its running statement, or the last one.
    pub(super) current: usize,
    /// Whether it has steps that decide; the next ones are only set if it does.
    pub(super) decides: bool,
    pub(super) transaction: usize,
    /// Its next step.
    pub(super) act: usize,
    /// Continues after what was drawn.
    pub(super) random: Random,
}

/// A value as a driver sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Parameter<'a> {
    Null,
    Boolean(bool),
    Integer(i64),
    Real(f64),
    Text(&'a [u8]),
    /// Not text: a sealed value.
    Bytes(&'a [u8]),
}

impl<'a> Parameter<'a> {
    /// Its text in a message: None for NULL.
    #[inline]
    pub fn text<'r>(self, room: &'r mut scalar::Room) -> Option<&'r [u8]>
    where
        'a: 'r,
    {
        Some(match self {
            Parameter::Text(text) | Parameter::Bytes(text) => text,
            Parameter::Integer(value) => scalar::put_integer(value, room),
            Parameter::Real(value) => scalar::put_real(value, room),
            Parameter::Boolean(value) => {
                if value {
                    b"true"
                } else {
                    b"false"
                }
            }
            Parameter::Null => return None,
        })
    }
}

impl Operation {
    /// An operation whose only value is this text.
    #[cfg(any(test, fuzzing))]
    pub fn of_text(text: &str) -> Operation {
        let values = vec![Value::Text { start: 0, end: text.len() }];
        Operation { values, texts: text.into(), ..Operation::default() }
    }

    /// Makes these variables of others: seals their values, each with its own nonce, or computes their entries in a blind index.
    /// Numbers count as their decimal digits.
    pub(super) fn make(&mut self, made: &[usize], kinds: &[Kind]) {
        envelope::with(|vault, _| {
            for &variable in made {
                let (of, bytes) = match kinds[variable] {
                    Kind::Sealed { of } => (of, None),
                    Kind::Blind { of, bytes } => (of, Some(bytes)),
                    _ => continue,
                };
                let (start, end) = match self.values[of] {
                    Value::Integer(value) => {
                        let start = self.texts.len();
                        self.texts.extend_from_slice(decimal(value, &mut [0; DIGITS]));
                        (start, self.texts.len())
                    }
                    Value::Text { start, end } | Value::Bytes { start, end } => (start, end),
                    Value::Unset | Value::Turn | Value::Null | Value::Boolean(_) | Value::Real(_) => (0, 0),
                };
                let at = self.texts.len();
                match bytes {
                    None => vault.seal(&mut self.texts, start, end).expect("AES-GCM seals whatever it is given"),
                    Some(bytes) => {
                        vault.blind(&mut self.texts, (start, end), bytes).expect("HMAC takes whatever it is given");
                    }
                }
                self.values[variable] = Value::Bytes { start: at, end: self.texts.len() };
            }
        });
    }

    /// Forgets its values, and gives back the memory of large ones.
    pub fn clear(&mut self) {
        const FEW_BYTES: usize = 4096;
        self.values.clear();
        self.texts.clear();
        if self.texts.capacity() > FEW_BYTES {
            self.texts = Vec::new();
        }
    }

    #[inline]
    pub fn parameter(&self, variable: usize) -> Parameter<'_> {
        match self.values[variable] {
            Value::Integer(value) => Parameter::Integer(value),
            Value::Text { start, end } => Parameter::Text(&self.texts[start..end]),
            Value::Bytes { start, end } => Parameter::Bytes(&self.texts[start..end]),
            Value::Turn => Parameter::Integer(self.turn.get()),
            Value::Null => Parameter::Null,
            Value::Boolean(value) => Parameter::Boolean(value),
            Value::Real(value) => Parameter::Real(value),
            Value::Unset => Parameter::Text(&[]),
        }
    }

    pub(super) fn is_unset(&self, variable: usize) -> bool {
        self.values[variable] == Value::Unset
    }

    pub(super) fn set(&mut self, variable: usize, value: Scalar) {
        self.values[variable] = match value {
            Scalar::Null => Value::Null,
            Scalar::Boolean(value) => Value::Boolean(value),
            Scalar::Integer(value) => Value::Integer(value),
            Scalar::Real(value) => Value::Real(value),
        };
    }

    /// Sets a variable to a text, or to NULL.
    pub(super) fn set_text(&mut self, variable: usize, text: Option<&[u8]>) {
        self.values[variable] = match text {
            None => Value::Null,
            Some(text) => {
                let start = self.texts.len();
                self.texts.extend_from_slice(text);
                Value::Text { start, end: self.texts.len() }
            }
        };
    }

    /// A variable's value in an expression. None: it has none; an error: it is no scalar.
    pub(super) fn scalar(&self, variable: usize) -> Option<Result<Scalar, ()>> {
        Some(match self.values[variable] {
            Value::Unset => return None,
            Value::Null => Ok(Scalar::Null),
            Value::Boolean(value) => Ok(Scalar::Boolean(value)),
            Value::Integer(value) => Ok(Scalar::Integer(value)),
            Value::Real(value) => Ok(Scalar::Real(value)),
            Value::Turn => Ok(Scalar::Integer(self.turn.get())),
            Value::Text { start, end } | Value::Bytes { start, end } => {
                Scalar::of_text(&self.texts[start..end]).ok_or(())
            }
        })
    }
}
