//! Rows whose values have a type each, as SQLite and its relatives return them.

use crate::connection::{Outcome, Rows, escape};
use crate::failure::Result;
use crate::program::{Captured, Operation};
use crate::xxh3::xxh3_64;

/// A value of a row, valid until the next step.
#[derive(Debug, PartialEq)]
pub enum Cell<'a> {
    Null,
    Integer(i64),
    Real(f64),
    /// Text or a blob.
    Bytes(&'a [u8]),
}

/// A statement that is on a row.
pub trait Row {
    fn cell(&self, column: usize) -> Cell<'_>;
}

/// Puts a row's values into variables.
#[cold]
pub fn capture(statement: &impl Row, columns: usize, captured: &mut Captured, operation: &mut Operation) {
    captured.row();
    for column in 0..columns {
        match statement.cell(column) {
            Cell::Null => captured.value(operation, column, None),
            Cell::Integer(value) => captured.value(operation, column, Some(value.to_string().as_bytes())),
            Cell::Real(value) => captured.value(operation, column, Some(value.to_string().as_bytes())),
            Cell::Bytes(bytes) => captured.value(operation, column, Some(bytes)),
        }
    }
}

/// Hashes a row.
#[inline]
pub fn hash_row(statement: &impl Row, columns: usize, row: &mut Vec<u8>, outcome: &mut Outcome) {
    row.clear();
    let as_it_is = |value: &[u8], row: &mut Vec<u8>| {
        row.extend_from_slice(value);
        Ok(())
    };
    if put_row(statement, columns, row, as_it_is).is_ok() {
        outcome.row(xxh3_64(row));
    }
    if row.capacity() > 1 << 20 {
        *row = Vec::new();
    }
}

/// A row in the format of PostgreSQL's DataRow: the number of columns, then each value's length and text. `put` appends a value's bytes.
#[inline]
pub fn put_row(
    statement: &impl Row,
    columns: usize,
    row: &mut Vec<u8>,
    mut put: impl FnMut(&[u8], &mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    use std::io::Write;
    row.extend_from_slice(&(columns as u16).to_be_bytes());
    for column in 0..columns {
        let at = row.len();
        row.extend_from_slice(&[0; 4]);
        let length = match statement.cell(column) {
            Cell::Null => {
                row[at..].copy_from_slice(&u32::MAX.to_be_bytes());
                continue;
            }
            // Writing to a Vec can't fail.
            Cell::Integer(value) => write!(row, "{value}").map_or(0, |()| row.len() - at - 4),
            Cell::Real(value) => write!(row, "{value}").map_or(0, |()| row.len() - at - 4),
            Cell::Bytes(bytes) => {
                put(bytes, row)?;
                row.len() - at - 4
            }
        };
        row[at..at + 4].copy_from_slice(&(length as u32).to_be_bytes());
    }
    Ok(())
}

/// Adds a row to the text of an answer.
pub fn add_row(statement: &impl Row, columns: usize, rows: &mut Rows) {
    if rows.rows > 0 {
        rows.text.push('\n');
    }
    rows.rows += 1;
    for column in 0..columns {
        if column > 0 {
            rows.text.push('\t');
        }
        match statement.cell(column) {
            Cell::Null => rows.text.push_str("\\N"),
            Cell::Integer(value) => rows.text.push_str(&value.to_string()),
            Cell::Real(value) => rows.text.push_str(&value.to_string()),
            Cell::Bytes(bytes) => escape(&String::from_utf8_lossy(bytes), &mut rows.text),
        }
    }
}
