//! Rewrites a row with its sealed values opened, as the row that would hold their texts.

use super::outbox::put_length;
use super::packets::Fields;
use crate::envelope::{Vault, opened_length};
use crate::failure::Result;

/// A row of the text protocol.
pub fn text(body: &[u8], vault: &mut Vault, row: &mut Vec<u8>) -> Result<()> {
    let mut fields = Fields(body);
    while !fields.0.is_empty() {
        match fields.value()? {
            None => row.push(NULL),
            Some(value) => put(value, vault, row)?,
        }
    }
    Ok(())
}

/// A row of the binary protocol with columns of these types.
pub fn binary(body: &[u8], types: &[u8], vault: &mut Vault, row: &mut Vec<u8>) -> Result<()> {
    let mut fields = Fields(body);
    row.extend_from_slice(fields.bytes(1)?);
    let nulls = fields.bytes((types.len() + 2).div_ceil(8))?;
    row.extend_from_slice(nulls);
    for (at, kind) in types.iter().enumerate() {
        let bit = at + 2;
        if nulls[bit / 8] & (1 << (bit % 8)) != 0 {
            continue;
        }
        let size = match kind {
            6 => 0,
            1 => 1,
            2 | 13 => 2,
            3 | 4 | 9 => 4,
            5 | 8 => 8,
            // Dates and times start with their length.
            7 | 10 | 11 | 12 => 1 + usize::from(*fields.0.first().unwrap_or(&0)),
            _ => {
                put(fields.value()?.unwrap_or_default(), vault, row)?;
                continue;
            }
        };
        row.extend_from_slice(fields.bytes(size)?);
    }
    Ok(())
}

const NULL: u8 = 0xfb;

#[inline]
fn put(value: &[u8], vault: &mut Vault, row: &mut Vec<u8>) -> Result<()> {
    put_length(opened_length(value), row);
    vault.put(value, row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::Key;

    fn vault() -> Vault {
        Vault::new(&Key::read("aes256-gcm", &"5a".repeat(32), None).unwrap()).unwrap()
    }

    /// A sealed value after its length.
    fn sealed(vault: &mut Vault, text: &[u8]) -> Vec<u8> {
        let (mut texts, mut value) = (text.to_vec(), Vec::new());
        vault.seal(&mut texts, 0, text.len()).unwrap();
        put_length(texts.len() - text.len(), &mut value);
        value.extend_from_slice(&texts[text.len()..]);
        value
    }

    #[test]
    fn a_text_row_is_rewritten_with_its_opened_values() {
        let (mut vault, long) = (vault(), vec![b'x'; 240]);
        let body = [&b"\x011\xfb"[..], &sealed(&mut vault, b"secret"), &sealed(&mut vault, &long), b"\0"].concat();
        let mut row = Vec::new();
        text(&body, &mut vault, &mut row).unwrap();
        assert_eq!(row, [&b"\x011\xfb\x06secret\xf0"[..], &long, b"\0"].concat());
        assert_eq!(vault.opened, 2);
    }

    #[test]
    fn a_binary_row_is_walked_by_its_types() {
        let mut vault = vault();
        // Every type with a length of its own, a NULL, and a sealed value after them.
        let types = [1, 2, 13, 3, 9, 4, 8, 5, 12, 11, 6, 253, 252];
        let fixed = [&[7; 1 + 2 + 2 + 4 + 4 + 4 + 8 + 8][..], b"\x04\xe8\x07\x01\x01", b"\0"].concat();
        let nulls = [0, 0b0010_0000];
        let value = sealed(&mut vault, b"secret");
        let body = [&[0][..], &nulls, &fixed, &value].concat();
        let mut row = Vec::new();
        binary(&body, &types, &mut vault, &mut row).unwrap();
        assert_eq!(row, [&[0][..], &nulls, &fixed, b"\x06secret"].concat());
        for end in 0..body.len() {
            row.clear();
            assert!(binary(&body[..end], &types, &mut vault, &mut row).is_err(), "cut to {end}");
        }
    }
}
