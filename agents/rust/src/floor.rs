//! Measures what a cipher alone costs per byte on this CPU: used like a TLS record layer, or page by page as at rest. No network,
//! no server.

pub mod mac;

use crate::clock::CpuTime;
use crate::failure::{Failure, Result};
use crate::message;
use mac::Mac;
use openssl::cipher::{Cipher, CipherRef};
use openssl::cipher_ctx::CipherCtx;
use openssl::error::ErrorStack;

/// The largest TLS record: bulk transfers consist of these.
pub const RECORD_BYTES: u64 = 16 * 1024;
const TAG_BYTES: usize = 16;
/// A record's header is authenticated with it.
const HEADER: [u8; 5] = [0x17, 3, 3, 0x40, 0x11];
/// Number of passes over which the bytes are spread; the fastest counts, since other work on the machine only adds time.
const PASSES: u64 = 5;
pub const MOST_BYTES: u64 = 1 << 32;
const MOST_UNIT: u64 = 1 << 20;
/// Ciphers that encrypt whole blocks of this many bytes.
const BLOCK_BYTES: u64 = 16;

#[derive(Debug, Clone, Copy)]
pub struct Floor {
    /// Bytes sealed and opened in all passes.
    pub bytes: u64,
    pub seal_ns_per_byte: f64,
    pub open_ns_per_byte: f64,
}

/// How a cipher protects what it encrypts.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// It authenticates by itself.
    Aead,
    /// It encrypts whole blocks.
    Blocks,
    Stream,
}

fn cipher_of(name: &str) -> Option<(&'static CipherRef, Kind)> {
    Some(match name {
        "aes256-gcm" => (Cipher::aes_256_gcm(), Kind::Aead),
        "aes128-gcm" => (Cipher::aes_128_gcm(), Kind::Aead),
        "chacha20" => (Cipher::chacha20_poly1305(), Kind::Aead),
        "aes128-cbc" => (Cipher::aes_128_cbc(), Kind::Blocks),
        "aes192-cbc" => (Cipher::aes_192_cbc(), Kind::Blocks),
        "aes256-cbc" => (Cipher::aes_256_cbc(), Kind::Blocks),
        "aes128-ctr" => (Cipher::aes_128_ctr(), Kind::Stream),
        "aes192-ctr" => (Cipher::aes_192_ctr(), Kind::Stream),
        "aes256-ctr" => (Cipher::aes_256_ctr(), Kind::Stream),
        _ => return None,
    })
}

/// Seals and opens units (records of 16 KiB by default) under one key until at least `bytes` have passed.
pub fn measure(asked: &message::Floor) -> Result<Floor> {
    let Some((cipher, kind)) = cipher_of(&asked.cipher) else {
        let text = format!(
            "cipher: {:?} is not one of aes256-gcm, aes128-gcm, chacha20, aes128-cbc, aes192-cbc, aes256-cbc, \
             aes128-ctr, aes192-ctr, aes256-ctr",
            asked.cipher
        );
        return Err(Failure::bad_message(text));
    };
    if !(1..=MOST_BYTES).contains(&asked.bytes) {
        return Err(Failure::bad_message(format!("bytes: must lie between 1 and {MOST_BYTES}")));
    }
    let unit = asked.unit.unwrap_or(RECORD_BYTES);
    if !(1..=MOST_UNIT).contains(&unit) {
        return Err(Failure::bad_message(format!("unit: must lie between 1 and {MOST_UNIT}")));
    }
    if kind == Kind::Blocks && unit % BLOCK_BYTES != 0 {
        let text = format!("unit: {} encrypts whole blocks, so it must be a multiple of {BLOCK_BYTES}", asked.cipher);
        return Err(Failure::bad_message(text));
    }
    if kind == Kind::Aead && asked.mac.is_some() {
        return Err(Failure::bad_message(format!("mac: {} authenticates by itself; leave it out", asked.cipher)));
    }
    let failed = |error| Failure::internal(format!("the cipher failed: {error}"));
    let mac = asked.mac.as_deref().map(|name| Mac::new(name, &[0x5b; 32])).transpose()?;
    let mut page = Page::new(cipher, kind, mac).map_err(failed)?;
    page.passes(unit as usize, asked.bytes.div_ceil(PASSES * unit)).map_err(failed)
}

/// Seals and opens units under one key, each with a nonce of its own.
struct Page {
    kind: Kind,
    sealing: CipherCtx,
    opening: CipherCtx,
    nonce_bytes: usize,
    mac: Option<Mac>,
}

impl Page {
    fn new(cipher: &CipherRef, kind: Kind, mac: Option<Mac>) -> std::result::Result<Page, ErrorStack> {
        let key = vec![0x5a; cipher.key_length()];
        let (mut sealing, mut opening) = (CipherCtx::new()?, CipherCtx::new()?);
        sealing.encrypt_init(Some(cipher), Some(&key), None)?;
        opening.decrypt_init(Some(cipher), Some(&key), None)?;
        sealing.set_padding(false);
        opening.set_padding(false);
        Ok(Page { kind, sealing, opening, nonce_bytes: cipher.iv_length(), mac })
    }

    fn passes(&mut self, unit: usize, units: u64) -> std::result::Result<Floor, ErrorStack> {
        let clear = vec![0xa5; unit];
        let (mut sealed, mut opened) = (vec![0; unit], vec![0; unit]);
        let (mut seal_ns, mut open_ns) = (u64::MAX, u64::MAX);
        let mut tag = Vec::new();
        for pass in 0..PASSES {
            let start = CpuTime::of_this_thread();
            for number in 0..units {
                self.seal(&nonce(pass, number), &clear, &mut sealed, &mut tag)?;
            }
            let middle = CpuTime::of_this_thread();
            // All units have one length, so opening the last one repeatedly costs the same as opening each.
            let last = nonce(pass, units - 1);
            let mut authentic = true;
            for _ in 0..units {
                authentic &= self.open(&last, &sealed, &mut opened, &tag)?;
            }
            let end = CpuTime::of_this_thread();
            debug_assert!(authentic && opened == clear);
            seal_ns = seal_ns.min(middle.since(start).total_ns());
            open_ns = open_ns.min(end.since(middle).total_ns());
        }
        let per_byte = |ns: u64| ns as f64 / (units * unit as u64) as f64;
        Ok(Floor {
            bytes: PASSES * units * unit as u64,
            seal_ns_per_byte: per_byte(seal_ns),
            open_ns_per_byte: per_byte(open_ns),
        })
    }

    /// Encrypts; a MAC covers the nonce and what was encrypted.
    fn seal(
        &mut self,
        nonce: &[u8; 16],
        clear: &[u8],
        sealed: &mut [u8],
        tag: &mut Vec<u8>,
    ) -> std::result::Result<(), ErrorStack> {
        let nonce = &nonce[..self.nonce_bytes];
        self.sealing.encrypt_init(None, None, Some(nonce))?;
        if self.kind == Kind::Aead {
            self.sealing.cipher_update(&HEADER, None)?;
        }
        update(&mut self.sealing, clear, sealed)?;
        if self.kind == Kind::Aead {
            tag.resize(TAG_BYTES, 0);
            self.sealing.tag(tag)?;
        } else if let Some(mac) = &mut self.mac {
            mac.of(nonce, sealed, tag)?;
        }
        Ok(())
    }

    /// Decrypts. Returns whether the MAC is right; an AEAD that is not authentic is an error.
    fn open(
        &mut self,
        nonce: &[u8; 16],
        sealed: &[u8],
        opened: &mut [u8],
        tag: &[u8],
    ) -> std::result::Result<bool, ErrorStack> {
        let nonce = &nonce[..self.nonce_bytes];
        let mut authentic = true;
        if let Some(mac) = &mut self.mac {
            let mut found = Vec::with_capacity(tag.len());
            mac.of(nonce, sealed, &mut found)?;
            authentic = openssl::memcmp::eq(&found, tag);
        }
        self.opening.decrypt_init(None, None, Some(nonce))?;
        if self.kind == Kind::Aead {
            self.opening.set_tag(tag)?;
            self.opening.cipher_update(&HEADER, None)?;
        }
        update(&mut self.opening, sealed, opened)?;
        Ok(authentic)
    }
}

fn update(context: &mut CipherCtx, from: &[u8], into: &mut [u8]) -> std::result::Result<(), ErrorStack> {
    let into = &mut into[..from.len()];
    // SAFETY: without padding a context writes no byte more than it gets, and there is room for as many.
    unsafe { context.cipher_update_unchecked(from, Some(into))? };
    // Whole blocks without padding leave no rest.
    context.cipher_final(&mut [0; BLOCK_BYTES as usize]).map(drop)
}

/// Each unit has its own nonce, the unit's number, as in TLS. Ciphers with shorter nonces take its beginning.
fn nonce(pass: u64, number: u64) -> [u8; 16] {
    let mut nonce = [0; 16];
    nonce[..4].copy_from_slice(&(pass as u32).to_be_bytes());
    nonce[4..12].copy_from_slice(&number.to_be_bytes());
    nonce
}

#[cfg(test)]
mod tests;
