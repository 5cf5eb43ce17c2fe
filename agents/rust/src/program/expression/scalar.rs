//! A value of an expression, and its text in a statement.

use crate::decimal::{DIGITS, decimal};
use crate::failure::{Failure, Result};
use std::io::Write;

/// A value of an expression.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar {
    Null,
    Boolean(bool),
    Integer(i64),
    Real(f64),
}

/// Room for the text of a number.
pub type Room = [u8; 32];

impl Scalar {
    /// Whether a condition holds: as in pgbench, numbers other than zero are true, and NULL is not.
    pub fn is_true(self) -> bool {
        match self {
            Scalar::Null => false,
            Scalar::Boolean(value) => value,
            Scalar::Integer(value) => value != 0,
            Scalar::Real(value) => value != 0.0,
        }
    }

    pub fn boolean(self) -> Result<bool> {
        match self {
            Scalar::Boolean(value) => Ok(value),
            other => Err(Failure::statement(format!("cannot coerce {} to boolean", other.kind()))),
        }
    }

    /// A number as an integer; one with a fraction is rounded to the nearest, halves to even.
    pub fn integer(self) -> Result<i64> {
        match self {
            Scalar::Integer(value) => Ok(value),
            Scalar::Real(value) => {
                let rounded = value.round_ties_even();
                if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&rounded) {
                    return Err(Failure::statement(format!("double to int overflow for {value}")));
                }
                Ok(rounded as i64)
            }
            other => Err(Failure::statement(format!("cannot coerce {} to int", other.kind()))),
        }
    }

    pub fn real(self) -> Result<f64> {
        match self {
            Scalar::Integer(value) => Ok(value as f64),
            Scalar::Real(value) => Ok(value),
            other => Err(Failure::statement(format!("cannot coerce {} to double", other.kind()))),
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Scalar::Null => "null",
            Scalar::Boolean(_) => "boolean",
            Scalar::Integer(_) => "int",
            Scalar::Real(_) => "double",
        }
    }

    /// Reads what a server's row contained, as pgbench does: NULL, a boolean, an integer or a number. None: a text.
    pub fn of_text(text: &[u8]) -> Option<Scalar> {
        let text = std::str::from_utf8(text).ok()?.trim();
        let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
        match text {
            "" => None,
            _ if is(&["null"]) => Some(Scalar::Null),
            _ if is(&["true", "t", "yes", "y", "on"]) => Some(Scalar::Boolean(true)),
            _ if is(&["false", "f", "no", "n", "off"]) => Some(Scalar::Boolean(false)),
            _ => text.parse().map(Scalar::Integer).or_else(|_| text.parse().map(Scalar::Real)).ok(),
        }
    }
}

/// A real number as C's `%.15g` writes it, which is how pgbench puts it into a statement.
pub fn put_real(value: f64, room: &mut Room) -> &[u8] {
    const PRECISION: i32 = 15;
    let mut left = &mut room[..];
    let size = left.len();
    // Never more than 1 + 1 + 14 + 5 letters, so writing does not fail.
    let written = if value.is_nan() {
        left.write_all(b"NaN")
    } else if value.is_infinite() {
        left.write_all(if value > 0.0 { b"Infinity" } else { b"-Infinity" })
    } else {
        let scientific = format!("{value:.*e}", PRECISION as usize - 1);
        let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        if (-4..PRECISION).contains(&exponent) {
            let fixed = format!("{value:.*}", (PRECISION - 1 - exponent) as usize);
            left.write_all(without_zeros(&fixed).as_bytes())
        } else {
            let sign = if exponent < 0 { '-' } else { '+' };
            write!(left, "{}e{sign}{:02}", without_zeros(digits), exponent.abs())
        }
    };
    debug_assert!(written.is_ok());
    let length = size - left.len();
    &room[..length]
}

fn without_zeros(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

/// An integer's decimal digits.
pub fn put_integer(value: i64, room: &mut Room) -> &[u8] {
    let mut digits = [0; DIGITS];
    let digits = decimal(value, &mut digits);
    room[..digits.len()].copy_from_slice(digits);
    &room[..digits.len()]
}
