//! Counts received rows.

use super::format::{Format, Kind};
use super::statement::Prepared;
use super::xdr::{Reader, padding};
use crate::connection::Outcome;
use crate::envelope::{Vault, opened_length};
use crate::failure::Result;
use crate::program::Operation;
use crate::xxh3::{Xxh3, xxh3_64};

/// Puts a row's values into variables.
#[cold]
pub fn capture_row(row: &[u8], prepared: &mut Prepared, operation: &mut Operation) {
    let Some(captured) = &mut prepared.captured else { return };
    captured.row();
    let (captured, mut column) = (&*captured, 0);
    prepared.columns.walk(&mut Reader::new(row), |_, value| {
        captured.value(operation, column, value);
        column += 1;
    });
}

/// Counts a row. It excludes BLOBs: their content is hashed when it is read.
#[inline]
pub fn add_row(row: &[u8], prepared: &Prepared, outcome: &mut Outcome, blobs: &mut Vec<i64>) {
    let format = &prepared.columns;
    if prepared.open {
        return outcome.opened_row(|vault, opened| open_row(row, format, vault, opened, blobs));
    }
    if !format.has_blobs {
        outcome.row(xxh3_64(row));
        return;
    }
    let mut hash = Xxh3::new();
    format.walk(&mut Reader::new(row), |kind, value| match (kind, value) {
        (Kind::Blob, Some(id)) => blobs.push(id.try_into().map_or(0, i64::from_be_bytes)),
        (_, Some(value)) => hash.update(value),
        (_, None) => hash.update(&[0]),
    });
    outcome.row(hash.digest());
}

/// A row with its sealed values opened: the row that would hold their texts, or its hash input.
fn open_row(row: &[u8], format: &Format, vault: &mut Vault, opened: &mut Vec<u8>, blobs: &mut Vec<i64>) -> Result<()> {
    let mut done = Ok(());
    let pad = |opened: &mut Vec<u8>, length: usize| opened.extend_from_slice(&[0; 3][..padding(length)]);
    if !format.has_blobs {
        let nulls = format.kinds.len().div_ceil(8);
        opened.extend_from_slice(&row[..nulls]);
        pad(opened, nulls);
    }
    format.walk(&mut Reader::new(row), |kind, value| match (kind, value) {
        (Kind::Blob, Some(id)) => blobs.push(id.try_into().map_or(0, i64::from_be_bytes)),
        (_, None) if format.has_blobs => opened.push(0),
        (_, None) => {}
        (kind, Some(value)) => {
            let whole = !format.has_blobs;
            if whole && kind == Kind::Varying {
                opened.extend_from_slice(&(opened_length(value) as u32).to_be_bytes());
            }
            let at = opened.len();
            match kind {
                Kind::Varying if done.is_ok() => done = vault.put(value, opened),
                _ => opened.extend_from_slice(value),
            }
            if whole {
                pad(opened, opened.len() - at);
            }
        }
    });
    done
}
