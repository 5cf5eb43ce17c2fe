//! Seals and opens values with AES-256-GCM, as an application would store them, and computes their entries in a blind index with
//! HMAC-SHA-256. One set of contexts per load thread.
//!
//! mark (2 bytes) · nonce (12, random) · ciphertext · tag (16). No UTF-8 text begins with the mark's first byte.

use crate::failure::{Failure, Result};
use crate::floor::mac::Mac;
use openssl::cipher::Cipher;
use openssl::cipher_ctx::CipherCtx;
use openssl::error::ErrorStack;
use openssl::rand::rand_bytes;
use std::cell::RefCell;
use std::fmt;
use std::ops::Range;

/// The second byte is the envelope's version.
pub const MARK: [u8; 2] = [0xc1, 0x01];
const NONCE_BYTES: usize = 12;
const TAG_BYTES: usize = 16;
const HEAD_BYTES: usize = MARK.len() + NONCE_BYTES;
/// How much longer a sealed value is than its text.
pub const OVERHEAD: usize = HEAD_BYTES + TAG_BYTES;
/// Number of nonces drawn at a time: one call for twelve bytes would cost more than the cipher.
const NONCES: usize = 256;
/// A row's buffer that has grown beyond this is freed.
const ROW_BYTES: usize = 1 << 20;
const KEY_BYTES: usize = 32;

/// Bytes of an HMAC-SHA-256.
pub const MAC_BYTES: usize = 32;

/// The keys of a program's: of its cipher and, if it has one, of its blind index.
#[derive(Clone, PartialEq)]
pub struct Key {
    cipher: [u8; KEY_BYTES],
    blind: Option<[u8; KEY_BYTES]>,
}

/// Hides the secret.
impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Key")
    }
}

impl Key {
    pub fn read(cipher: &str, digits: &str, blind: Option<&str>) -> Result<Key> {
        if cipher != "aes256-gcm" {
            return Err(Failure::bad_message(format!("name: {cipher:?} is not aes256-gcm")));
        }
        let blind = blind.map(|digits| bytes_of(digits, "blind")).transpose()?;
        Ok(Key { cipher: bytes_of(digits, "key")?, blind })
    }

    pub fn has_blind(&self) -> bool {
        self.blind.is_some()
    }
}

/// A key from its digits; `field`: where they were.
fn bytes_of(digits: &str, field: &str) -> Result<[u8; KEY_BYTES]> {
    let refused = || Failure::bad_message(format!("{field}: must be 64 hexadecimal digits"));
    let mut bytes = Vec::with_capacity(KEY_BYTES);
    if !from_hex(digits.as_bytes(), &mut bytes) {
        return Err(refused());
    }
    bytes.try_into().map_err(|_| refused())
}

/// Appends the bytes of hexadecimal digits. `false`: they are not hexadecimal.
fn from_hex(digits: &[u8], into: &mut Vec<u8>) -> bool {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    digits.len() % 2 == 0
        && digits.chunks_exact(2).all(|pair| match (digit(pair[0]), digit(pair[1])) {
            (Some(high), Some(low)) => {
                into.push(high << 4 | low);
                true
            }
            _ => false,
        })
}

/// Whether a value bears the mark of sealed values.
#[inline]
pub fn is_sealed(value: &[u8]) -> bool {
    value.starts_with(&MARK)
}

/// Length of a sealed value's text; None if it isn't sealed.
#[inline]
pub fn opened_length(value: &[u8]) -> usize {
    if is_sealed(value) { value.len().saturating_sub(OVERHEAD) } else { value.len() }
}

/// Seals and opens values without allocating per value.
pub struct Vault {
    sealing: CipherCtx,
    opening: CipherCtx,
    nonces: Box<[u8; NONCE_BYTES * NONCES]>,
    next_nonce: usize,
    digits: Vec<u8>,
    mac: Option<Mac>,
    tag: Vec<u8>,
    /// Values opened since this was last set to 0.
    pub opened: u64,
    /// Where the value that was opened last is in its row.
    pub last: Range<usize>,
}

impl Vault {
    pub fn new(key: &Key) -> Result<Vault> {
        let mac = key.blind.as_ref().map(|key| Mac::new("hmac-sha256", key)).transpose()?;
        Vault::with_mac(key, mac).map_err(|error| Failure::internal(format!("the cipher failed: {error}")))
    }

    fn with_mac(key: &Key, mac: Option<Mac>) -> std::result::Result<Vault, ErrorStack> {
        let cipher = Cipher::aes_256_gcm();
        let (mut sealing, mut opening) = (CipherCtx::new()?, CipherCtx::new()?);
        sealing.encrypt_init(Some(cipher), Some(&key.cipher), None)?;
        opening.decrypt_init(Some(cipher), Some(&key.cipher), None)?;
        let nonces = Box::new([0; NONCE_BYTES * NONCES]);
        let (next_nonce, digits, tag) = (NONCES, Vec::new(), Vec::new());
        Ok(Vault { sealing, opening, nonces, next_nonce, digits, mac, tag, opened: 0, last: 0..0 })
    }

    /// Appends the first `bytes` of the HMAC of the bytes `start..end` of `texts` to it.
    #[inline]
    pub fn blind(
        &mut self,
        texts: &mut Vec<u8>,
        (start, end): (usize, usize),
        bytes: usize,
    ) -> std::result::Result<(), ErrorStack> {
        let mac = self.mac.as_mut().expect("a program with a blind index has a key for it");
        mac.of(&texts[start..end], &[], &mut self.tag)?;
        texts.extend_from_slice(&self.tag[..bytes]);
        Ok(())
    }

    /// Seals the bytes `start..end` of `texts`, and appends the envelope to it.
    #[inline]
    pub fn seal(&mut self, texts: &mut Vec<u8>, start: usize, end: usize) -> std::result::Result<(), ErrorStack> {
        if self.next_nonce == NONCES {
            rand_bytes(&mut self.nonces[..])?;
            self.next_nonce = 0;
        }
        let nonce = &self.nonces[NONCE_BYTES * self.next_nonce..][..NONCE_BYTES];
        self.next_nonce += 1;
        let at = texts.len();
        texts.extend_from_slice(&MARK);
        texts.extend_from_slice(nonce);
        texts.resize(at + end - start + OVERHEAD, 0);
        let (before, envelope) = texts.split_at_mut(at);
        let (sealed, tag) = envelope[HEAD_BYTES..].split_at_mut(end - start);
        self.sealing.encrypt_init(None, None, Some(nonce))?;
        self.sealing.cipher_update(&before[start..end], Some(sealed))?;
        self.sealing.cipher_final(&mut [])?;
        self.sealing.tag(tag)
    }

    /// Appends a value to a row: opened if it bears the mark, unchanged otherwise.
    #[inline]
    pub fn put(&mut self, value: &[u8], row: &mut Vec<u8>) -> Result<()> {
        if !is_sealed(value) {
            row.extend_from_slice(value);
            return Ok(());
        }
        if value.len() < OVERHEAD {
            return Err(shut("it is too short"));
        }
        let (head, rest) = value.split_at(HEAD_BYTES);
        let (sealed, tag) = rest.split_at(rest.len() - TAG_BYTES);
        let at = row.len();
        row.resize(at + sealed.len(), 0);
        let opened = self.open(&head[MARK.len()..], sealed, tag, &mut row[at..]);
        if opened.is_err() {
            row.truncate(at);
            return Err(shut("it was changed, or sealed with another key"));
        }
        self.opened += 1;
        self.last = at..row.len();
        Ok(())
    }

    /// The same for a value that PostgreSQL has formatted as text: a sealed one as `\x` and digits.
    pub fn put_text(&mut self, value: &[u8], row: &mut Vec<u8>) -> Result<()> {
        let Some(digits) = value.strip_prefix(b"\\x") else { return self.put(value, row) };
        let mut bytes = std::mem::take(&mut self.digits);
        bytes.clear();
        let sealed = from_hex(digits, &mut bytes) && is_sealed(&bytes);
        let done = self.put(if sealed { &bytes } else { value }, row);
        self.digits = bytes;
        done
    }

    fn open(
        &mut self,
        nonce: &[u8],
        sealed: &[u8],
        tag: &[u8],
        opened: &mut [u8],
    ) -> std::result::Result<(), ErrorStack> {
        self.opening.decrypt_init(None, None, Some(nonce))?;
        self.opening.set_tag(tag)?;
        self.opening.cipher_update(sealed, Some(opened))?;
        self.opening.cipher_final(&mut []).map(|_| ())
    }
}

fn shut(why: &str) -> Failure {
    Failure::statement(format!("a sealed value does not open: {why}"))
}

thread_local! {
    /// The load thread's vault, and the row that it opens.
    static OWN: RefCell<Option<(Vault, Vec<u8>)>> = const { RefCell::new(None) };
}

/// Sets the key with which this thread seals and opens, if there is one.
pub fn enter(key: Option<&Key>) -> Result<()> {
    let vault = key.map(Vault::new).transpose()?;
    OWN.with_borrow_mut(|own| *own = vault.map(|vault| (vault, Vec::new())));
    Ok(())
}

/// Calls a function with this thread's vault and an empty row. A program without a cipher seals and opens nothing.
#[inline]
pub fn with<T>(act: impl FnOnce(&mut Vault, &mut Vec<u8>) -> T) -> T {
    OWN.with_borrow_mut(|own| {
        let (vault, row) = own.as_mut().expect("a program that seals or opens has a cipher");
        let done = act(vault, row);
        if row.capacity() > ROW_BYTES {
            *row = Vec::new();
        }
        row.clear();
        done
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn vault(byte: &str) -> Vault {
        Vault::new(&Key::read("aes256-gcm", &byte.repeat(32), None).unwrap()).unwrap()
    }

    fn sealed(vault: &mut Vault, text: &[u8]) -> Vec<u8> {
        let mut texts = [b"before", text].concat();
        let end = texts.len();
        vault.seal(&mut texts, 6, end).unwrap();
        assert_eq!(texts[6..end], *text);
        texts.split_off(end)
    }

    fn opened(vault: &mut Vault, value: &[u8]) -> Result<Vec<u8>> {
        let mut row = b"row".to_vec();
        let done = vault.put(value, &mut row);
        assert!(row.starts_with(b"row"));
        done.map(|()| row.split_off(3))
    }

    #[test]
    fn sealed_values_of_any_length_open() {
        let mut vault = vault("5a");
        for length in [0, 1, 15, 16, 17, 4096, 100_000] {
            let text: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let value = sealed(&mut vault, &text);
            assert_eq!((value.len(), opened_length(&value)), (text.len() + OVERHEAD, text.len()));
            assert_eq!(opened(&mut vault, &value).unwrap(), text);
        }
        assert_eq!(vault.opened, 7);
    }

    #[test]
    fn a_known_envelope_opens() {
        // Made by another implementation (Python's cryptography): key 32 × 5a, nonce 00 … 0b, "Alagoas".
        let mut value = Vec::new();
        assert!(from_hex(KNOWN.as_bytes(), &mut value));
        assert_eq!(opened(&mut vault("5a"), &value).unwrap(), b"Alagoas");
    }
    const KNOWN: &str = "c101000102030405060708090a0b0ccd4c0251a2cddf2a9d615b8a0013a7b53e6595ec36b0";

    #[test]
    fn nonces_never_repeat() {
        let mut vault = vault("01");
        let nonces: HashSet<Vec<u8>> = (0..1000).map(|_| sealed(&mut vault, b"x")[2..14].to_vec()).collect();
        assert_eq!(nonces.len(), 1000);
    }

    #[test]
    fn a_changed_bit_prevents_opening() {
        let (mut vault, mut other) = (vault("5a"), vault("5b"));
        let value = sealed(&mut vault, b"a secret");
        for at in MARK.len()..value.len() {
            let mut changed = value.clone();
            changed[at] ^= 1;
            assert!(opened(&mut vault, &changed).unwrap_err().text.contains("changed"), "byte {at}");
        }
        assert!(opened(&mut other, &value).is_err());
        assert!(opened(&mut vault, &value[..OVERHEAD - 1]).unwrap_err().text.contains("short"));
        assert_eq!(opened(&mut vault, &value).unwrap(), b"a secret");
        assert_eq!(vault.opened, 1);
    }

    #[test]
    fn values_without_the_mark_stay_unchanged() {
        let mut vault = vault("5a");
        for value in [&b""[..], b"\xc1", b"text", "Áéü".as_bytes(), b"\\xc1", b"\\x41"] {
            assert_eq!(opened(&mut vault, value).unwrap(), value);
            let mut row = Vec::new();
            vault.put_text(value, &mut row).unwrap();
            assert_eq!(row, value);
        }
        assert_eq!(vault.opened, 0);
    }

    #[test]
    fn hexadecimal_text_is_opened_too() {
        let mut vault = vault("5a");
        let value = sealed(&mut vault, b"a secret");
        let text: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut row = Vec::new();
        vault.put_text(format!("\\x{text}").as_bytes(), &mut row).unwrap();
        assert_eq!(row, b"a secret");
    }

    #[test]
    fn a_key_is_64_digits_and_never_shown() {
        let digits = "5A".repeat(32);
        assert_eq!(format!("{:?}", Key::read("aes256-gcm", &digits, None).unwrap()), "Key");
        for bad in ["", "5a", &digits[1..], &format!("{digits}5a"), &digits.replace('A', "g")] {
            let failure = Key::read("aes256-gcm", bad, None).unwrap_err();
            assert!(failure.code == "bad-message" && (bad.is_empty() || !failure.text.contains(bad)), "{bad}");
        }
        assert!(Key::read("rot13", &digits, None).is_err());
    }
}
