//! Measures what a cipher alone costs per byte on this CPU, used like a TLS record layer. No network, no server.

use crate::clock::CpuTime;
use crate::failure::{Failure, Result};
use openssl::cipher::{Cipher, CipherRef};
use openssl::cipher_ctx::CipherCtx;
use openssl::error::ErrorStack;

/// The largest TLS record: bulk transfers consist of these.
const RECORD_BYTES: usize = 16 * 1024;
const TAG_BYTES: usize = 16;
/// A record's header is authenticated with it.
const HEADER: [u8; 5] = [0x17, 3, 3, 0x40, 0x11];
/// Number of passes over which the bytes are spread; the fastest counts, since other work on the machine only adds time.
const PASSES: u64 = 5;
pub const MOST_BYTES: u64 = 1 << 32;

#[derive(Debug, Clone, Copy)]
pub struct Floor {
    /// Bytes sealed and opened in all passes.
    pub bytes: u64,
    pub seal_ns_per_byte: f64,
    pub open_ns_per_byte: f64,
}

/// Seals and opens records of 16 KiB under one key until at least `bytes` have passed.
pub fn measure(cipher: &str, bytes: u64) -> Result<Floor> {
    let cipher = match cipher {
        "aes256-gcm" => Cipher::aes_256_gcm(),
        "aes128-gcm" => Cipher::aes_128_gcm(),
        "chacha20" => Cipher::chacha20_poly1305(),
        other => {
            let text = format!("cipher: {other:?} is not one of aes256-gcm, aes128-gcm, chacha20");
            return Err(Failure::bad_message(text));
        }
    };
    if !(1..=MOST_BYTES).contains(&bytes) {
        return Err(Failure::bad_message(format!("bytes: must lie between 1 and {MOST_BYTES}")));
    }
    let records = bytes.div_ceil(PASSES * RECORD_BYTES as u64);
    passes(cipher, records).map_err(|error| Failure::internal(format!("the cipher failed: {error}")))
}

fn passes(cipher: &CipherRef, records: u64) -> std::result::Result<Floor, ErrorStack> {
    let key = vec![0x5a; cipher.key_length()];
    let (mut sealing, mut opening) = (CipherCtx::new()?, CipherCtx::new()?);
    sealing.encrypt_init(Some(cipher), Some(&key), None)?;
    opening.decrypt_init(Some(cipher), Some(&key), None)?;
    let clear = vec![0xa5; RECORD_BYTES];
    let (mut sealed, mut opened) = (vec![0; RECORD_BYTES], vec![0; RECORD_BYTES]);
    let (mut seal_ns, mut open_ns) = (u64::MAX, u64::MAX);
    let mut tag = [0; TAG_BYTES];
    for pass in 0..PASSES {
        let start = CpuTime::of_this_thread();
        for record in 0..records {
            seal(&mut sealing, &nonce(pass, record), &clear, &mut sealed, &mut tag)?;
        }
        let middle = CpuTime::of_this_thread();
        // All records have one length, so opening the last one repeatedly costs the same as opening each.
        for _ in 0..records {
            open(&mut opening, &nonce(pass, records - 1), &sealed, &mut opened, &tag)?;
        }
        let end = CpuTime::of_this_thread();
        seal_ns = seal_ns.min(middle.since(start).total_ns());
        open_ns = open_ns.min(end.since(middle).total_ns());
    }
    let per_byte = |ns: u64| ns as f64 / (records * RECORD_BYTES as u64) as f64;
    Ok(Floor {
        bytes: PASSES * records * RECORD_BYTES as u64,
        seal_ns_per_byte: per_byte(seal_ns),
        open_ns_per_byte: per_byte(open_ns),
    })
}

fn seal(
    context: &mut CipherCtx,
    nonce: &[u8],
    clear: &[u8],
    sealed: &mut [u8],
    tag: &mut [u8],
) -> std::result::Result<(), ErrorStack> {
    context.encrypt_init(None, None, Some(nonce))?;
    context.cipher_update(&HEADER, None)?;
    context.cipher_update(clear, Some(sealed))?;
    context.cipher_final(&mut [])?;
    context.tag(tag)
}

fn open(
    context: &mut CipherCtx,
    nonce: &[u8],
    sealed: &[u8],
    opened: &mut [u8],
    tag: &[u8],
) -> std::result::Result<(), ErrorStack> {
    context.decrypt_init(None, None, Some(nonce))?;
    context.set_tag(tag)?;
    context.cipher_update(&HEADER, None)?;
    context.cipher_update(sealed, Some(opened))?;
    context.cipher_final(&mut []).map(|_| ())
}

/// Each record has its own nonce, the record's number, as in TLS.
fn nonce(pass: u64, record: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[..4].copy_from_slice(&(pass as u32).to_be_bytes());
    nonce[4..].copy_from_slice(&record.to_be_bytes());
    nonce
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_records_open_and_changed_ones_do_not() {
        for cipher in [Cipher::aes_256_gcm(), Cipher::chacha20_poly1305()] {
            let key = vec![7; cipher.key_length()];
            let (mut sealing, mut opening) = (CipherCtx::new().unwrap(), CipherCtx::new().unwrap());
            sealing.encrypt_init(Some(cipher), Some(&key), None).unwrap();
            opening.decrypt_init(Some(cipher), Some(&key), None).unwrap();
            let (clear, mut sealed, mut opened, mut tag) = ([3; 64], [0; 64], [0; 64], [0; TAG_BYTES]);
            seal(&mut sealing, &nonce(1, 2), &clear, &mut sealed, &mut tag).unwrap();
            assert_ne!(clear, sealed);
            open(&mut opening, &nonce(1, 2), &sealed, &mut opened, &tag).unwrap();
            assert_eq!(clear, opened);
            sealed[5] ^= 1;
            assert!(open(&mut opening, &nonce(1, 2), &sealed, &mut opened, &tag).is_err());
        }
    }

    #[test]
    fn every_cipher_has_a_floor_and_others_are_refused() {
        for cipher in ["aes256-gcm", "aes128-gcm", "chacha20"] {
            let floor = measure(cipher, 1 << 20).unwrap();
            assert!(floor.bytes >= 1 << 20);
            assert!(floor.seal_ns_per_byte > 0.0 && floor.open_ns_per_byte > 0.0);
        }
        assert_eq!(measure("rot13", 1).unwrap_err().code, "bad-message");
        assert_eq!(measure("chacha20", 0).unwrap_err().code, "bad-message");
    }
}
