//! QUIC's packet and header protection (RFC 9001, 5), by the agent's own OpenSSL.

use crate::failure::{Failure, Result};
use bytes::BytesMut;
use openssl::cipher::{Cipher, CipherRef};
use openssl::cipher_ctx::CipherCtx;
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::pkey::PKey;
use openssl::sign::Signer;
use quinn_proto::crypto::{CryptoError, HeaderKey, KeyPair, Keys, PacketKey};
use quinn_proto::{ConnectionId, Side};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub const TAG_BYTES: usize = 16;
const NONCE_BYTES: usize = 12;
const SAMPLE_BYTES: usize = 16;
/// The salt of QUIC version 1 (RFC 9001, 5.2).
const INITIAL_SALT: [u8; 20] = [
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad, 0xcc, 0xbb, 0x7f,
    0x0a,
];
/// Key and nonce of a Retry packet's tag (RFC 9001, 5.8).
const RETRY_KEY: [u8; 16] =
    [0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e];
const RETRY_NONCE: [u8; NONCE_BYTES] = [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb];

/// A cipher suite of TLS 1.3 that QUIC can use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Suite {
    Aes128,
    Aes256,
    ChaCha20,
}

impl Suite {
    /// By its number in TLS.
    pub fn of(number: u16) -> Option<Suite> {
        match number {
            0x1301 => Some(Suite::Aes128),
            0x1302 => Some(Suite::Aes256),
            0x1303 => Some(Suite::ChaCha20),
            _ => None,
        }
    }

    fn digest(self) -> MessageDigest {
        if self == Suite::Aes256 { MessageDigest::sha384() } else { MessageDigest::sha256() }
    }

    fn key_bytes(self) -> usize {
        if self == Suite::Aes128 { 16 } else { 32 }
    }

    fn aead(self) -> &'static CipherRef {
        match self {
            Suite::Aes128 => Cipher::aes_128_gcm(),
            Suite::Aes256 => Cipher::aes_256_gcm(),
            Suite::ChaCha20 => Cipher::chacha20_poly1305(),
        }
    }

    fn mask(self) -> &'static CipherRef {
        match self {
            Suite::Aes128 => Cipher::aes_128_ecb(),
            Suite::Aes256 => Cipher::aes_256_ecb(),
            Suite::ChaCha20 => Cipher::chacha20(),
        }
    }

    /// HKDF-Expand-Label (RFC 8446, 7.1) without a context, for at most as many bytes as the hash has.
    fn expand(self, secret: &[u8], label: &str, bytes: usize) -> std::result::Result<Vec<u8>, ErrorStack> {
        let label = format!("tls13 {label}");
        let mut info = vec![0, bytes as u8, label.len() as u8];
        info.extend_from_slice(label.as_bytes());
        info.extend_from_slice(&[0, 1]);
        let mut key = hmac(self.digest(), secret, &info)?;
        key.truncate(bytes);
        Ok(key)
    }
}

fn hmac(digest: MessageDigest, key: &[u8], data: &[u8]) -> std::result::Result<Vec<u8>, ErrorStack> {
    let key = PKey::hmac(key)?;
    let mut signer = Signer::new(digest, &key)?;
    signer.sign_oneshot_to_vec(data)
}

fn unusable(error: ErrorStack) -> Failure {
    Failure::tls(format!("QUIC's keys can't be made: {error}"))
}

/// The secrets of one encryption level, of both directions.
pub struct Secrets {
    pub suite: Suite,
    pub local: Vec<u8>,
    pub remote: Vec<u8>,
}

impl Secrets {
    pub fn keys(&self) -> Result<Keys> {
        let header = |secret: &[u8]| HeaderProtection::new(self.suite, secret).map(|key| Box::new(key) as Box<_>);
        let make = || -> std::result::Result<Keys, ErrorStack> {
            Ok(Keys {
                header: KeyPair { local: header(&self.local)?, remote: header(&self.remote)? },
                packet: self.packet_keys()?,
            })
        };
        make().map_err(unusable)
    }

    fn packet_keys(&self) -> std::result::Result<KeyPair<Box<dyn PacketKey>>, ErrorStack> {
        Ok(KeyPair {
            local: Box::new(PacketProtection::new(self.suite, &self.local, true)?),
            remote: Box::new(PacketProtection::new(self.suite, &self.remote, false)?),
        })
    }

    /// Moves on to the next generation of secrets (RFC 9001, 6.1). Returns its packet keys.
    pub fn update(&mut self) -> Result<KeyPair<Box<dyn PacketKey>>> {
        let next = |secret: &[u8]| self.suite.expand(secret, "quic ku", secret.len()).map_err(unusable);
        (self.local, self.remote) = (next(&self.local)?, next(&self.remote)?);
        self.packet_keys().map_err(unusable)
    }
}

/// The keys of Initial packets, which follow from the client's first choice of the server's connection id.
pub fn initial(id: &ConnectionId, side: Side) -> Result<Keys> {
    let secrets = || -> std::result::Result<Secrets, ErrorStack> {
        let suite = Suite::Aes128;
        let first = hmac(suite.digest(), &INITIAL_SALT, id)?;
        let (client, server) = (suite.expand(&first, "client in", 32)?, suite.expand(&first, "server in", 32)?);
        let (local, remote) = if side.is_client() { (client, server) } else { (server, client) };
        Ok(Secrets { suite, local, remote })
    };
    secrets().map_err(unusable)?.keys()
}

/// The keys of what this side sends before the handshake is complete.
pub fn early(suite: Suite, secret: &[u8]) -> Result<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
    let header = HeaderProtection::new(suite, secret).map_err(unusable)?;
    let packet = PacketProtection::new(suite, secret, true).map_err(unusable)?;
    Ok((Box::new(header), Box::new(packet)))
}

/// Whether a Retry packet is the answer to our first packet: its last 16 bytes are its tag.
pub fn is_valid_retry(id: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
    let Some((text, tag)) = payload.split_last_chunk::<TAG_BYTES>() else { return false };
    let covered = [&[id.len() as u8], &id[..], header, text].concat();
    let check = || -> std::result::Result<(), ErrorStack> {
        let mut context = CipherCtx::new()?;
        context.decrypt_init(Some(Cipher::aes_128_gcm()), Some(&RETRY_KEY), Some(&RETRY_NONCE))?;
        context.set_tag(tag)?;
        context.cipher_update(&covered, None)?;
        context.cipher_final(&mut []).map(drop)
    };
    check().is_ok()
}

/// A cipher with its key. quinn-proto shares keys by reference, so a lock guards what OpenSSL changes; nobody else ever holds it.
struct Keyed(Mutex<CipherCtx>);

impl Keyed {
    fn new(cipher: &CipherRef, key: &[u8], seals: bool) -> std::result::Result<Keyed, ErrorStack> {
        let mut context = CipherCtx::new()?;
        if seals {
            context.encrypt_init(Some(cipher), Some(key), None)?;
        } else {
            context.decrypt_init(Some(cipher), Some(key), None)?;
        }
        context.set_padding(false);
        Ok(Keyed(Mutex::new(context)))
    }

    fn lock(&self) -> MutexGuard<'_, CipherCtx> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Protects the payloads of packets in one direction.
struct PacketProtection {
    suite: Suite,
    cipher: Keyed,
    nonce: [u8; NONCE_BYTES],
}

impl PacketProtection {
    fn new(suite: Suite, secret: &[u8], seals: bool) -> std::result::Result<PacketProtection, ErrorStack> {
        let key = suite.expand(secret, "quic key", suite.key_bytes())?;
        let mut nonce = [0; NONCE_BYTES];
        nonce.copy_from_slice(&suite.expand(secret, "quic iv", NONCE_BYTES)?);
        Ok(PacketProtection { suite, cipher: Keyed::new(suite.aead(), &key, seals)?, nonce })
    }

    fn nonce(&self, packet: u64) -> [u8; NONCE_BYTES] {
        let mut nonce = self.nonce;
        for (byte, number) in nonce[NONCE_BYTES - 8..].iter_mut().zip(packet.to_be_bytes()) {
            *byte ^= number;
        }
        nonce
    }

    fn seal(&self, packet: u64, header: &[u8], payload: &mut [u8]) -> std::result::Result<(), ErrorStack> {
        let length = payload.len() - TAG_BYTES;
        let (text, tag) = payload.split_at_mut(length);
        let mut context = self.cipher.lock();
        context.encrypt_init(None, None, Some(&self.nonce(packet)))?;
        context.cipher_update(header, None)?;
        context.cipher_update_inplace(text, length)?;
        context.cipher_final(&mut [])?;
        context.tag(tag)
    }

    fn open(&self, packet: u64, header: &[u8], payload: &mut [u8]) -> std::result::Result<(), ErrorStack> {
        let length = payload.len() - TAG_BYTES;
        let (text, tag) = payload.split_at_mut(length);
        let mut context = self.cipher.lock();
        context.decrypt_init(None, None, Some(&self.nonce(packet)))?;
        context.set_tag(tag)?;
        context.cipher_update(header, None)?;
        context.cipher_update_inplace(text, length)?;
        context.cipher_final(&mut []).map(drop)
    }
}

impl PacketKey for PacketProtection {
    fn encrypt(&self, packet: u64, buffer: &mut [u8], header_bytes: usize) {
        let (header, payload) = buffer.split_at_mut(header_bytes);
        // Without memory for OpenSSL there is nothing sound to send.
        self.seal(packet, header, payload).expect("OpenSSL seals a packet");
    }

    fn decrypt(&self, packet: u64, header: &[u8], payload: &mut BytesMut) -> std::result::Result<(), CryptoError> {
        if payload.len() < TAG_BYTES {
            return Err(CryptoError);
        }
        self.open(packet, header, payload).map_err(|_| CryptoError)?;
        payload.truncate(payload.len() - TAG_BYTES);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG_BYTES
    }

    /// RFC 9001, 6.6.
    fn confidentiality_limit(&self) -> u64 {
        if self.suite == Suite::ChaCha20 { u64::MAX } else { 1 << 23 }
    }

    fn integrity_limit(&self) -> u64 {
        if self.suite == Suite::ChaCha20 { 1 << 36 } else { 1 << 52 }
    }
}

/// Protects the headers of packets in one direction (RFC 9001, 5.4).
struct HeaderProtection {
    suite: Suite,
    cipher: Keyed,
}

impl HeaderProtection {
    fn new(suite: Suite, secret: &[u8]) -> std::result::Result<HeaderProtection, ErrorStack> {
        let key = suite.expand(secret, "quic hp", suite.key_bytes())?;
        Ok(HeaderProtection { suite, cipher: Keyed::new(suite.mask(), &key, true)? })
    }

    /// The mask that a sample of the packet's payload yields.
    fn mask(&self, sample: &[u8]) -> std::result::Result<[u8; 5], ErrorStack> {
        let mut room = [0; 2 * SAMPLE_BYTES];
        let mut context = self.cipher.lock();
        if self.suite == Suite::ChaCha20 {
            context.encrypt_init(None, None, Some(sample))?;
            context.cipher_update(&[0; 5], Some(&mut room))?;
        } else {
            context.cipher_update(sample, Some(&mut room))?;
        }
        let mut mask = [0; 5];
        mask.copy_from_slice(&room[..5]);
        Ok(mask)
    }

    /// `first`: the bits of the first byte that are protected, and of the packet number. Its length is in the unprotected byte.
    fn apply(&self, at: usize, packet: &mut [u8], seals: bool) {
        let sample = &packet[at + 4..at + 4 + SAMPLE_BYTES];
        let mask = self.mask(sample).expect("OpenSSL masks a header");
        let protected = if packet[0] & 0x80 != 0 { 0x0f } else { 0x1f };
        let plain = if seals { packet[0] } else { packet[0] ^ mask[0] & protected };
        let length = usize::from(plain & 3) + 1;
        packet[0] ^= mask[0] & protected;
        for (byte, mask) in packet[at..at + length].iter_mut().zip(&mask[1..]) {
            *byte ^= mask;
        }
    }
}

impl HeaderKey for HeaderProtection {
    fn decrypt(&self, at: usize, packet: &mut [u8]) {
        self.apply(at, packet, false);
    }

    fn encrypt(&self, at: usize, packet: &mut [u8]) {
        self.apply(at, packet, true);
    }

    fn sample_size(&self) -> usize {
        SAMPLE_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect()
    }

    #[test]
    fn keys_follow_from_the_connection_id_as_in_the_standard() {
        // RFC 9001, A.1.
        let suite = Suite::Aes128;
        let first = hmac(suite.digest(), &INITIAL_SALT, &bytes("8394c8f03e515708")).unwrap();
        let client = suite.expand(&first, "client in", 32).unwrap();
        assert_eq!(client, bytes("c00cf151ca5be075ed0ebfb5c80323c42d6b7db67881289af4008f1f6c357aea"));
        assert_eq!(suite.expand(&client, "quic key", 16).unwrap(), bytes("1f369613dd76d5467730efcbe3b1a22d"));
        assert_eq!(suite.expand(&client, "quic iv", 12).unwrap(), bytes("fa044b2f42a3fd3b46fb255c"));
        assert_eq!(suite.expand(&client, "quic hp", 16).unwrap(), bytes("9f50449e04a0e810283a1e9933adedd2"));
    }

    #[test]
    fn a_servers_initial_packet_of_the_standard_is_opened_and_sealed_again() {
        // RFC 9001, A.3.
        let sealed = bytes(concat!(
            "cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a5816b6394100f37a1c69797554780bb38cc5a99f",
            "5ede4cf73c3ec2493a1839b3dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84022f8ef4cdd93795",
            "d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc42158407dd074ee",
        ));
        let id = ConnectionId::new(&bytes("8394c8f03e515708"));
        let keys = initial(&id, Side::Client).unwrap();
        let mut packet = sealed.clone();
        keys.header.remote.decrypt(18, &mut packet);
        assert_eq!(packet[..20], bytes("c1000000010008f067a5502a4262b50040750001"));
        let mut payload = BytesMut::from(&packet[20..]);
        keys.packet.remote.decrypt(1, &packet[..20], &mut payload).unwrap();
        assert!(payload.starts_with(&bytes("02000000000600405a020000560303eefce7f7")), "{payload:02x?}");
        let mut again = [&packet[..20], &payload, &[0; TAG_BYTES]].concat();
        let server = initial(&id, Side::Server).unwrap();
        server.packet.local.encrypt(1, &mut again, 20);
        server.header.local.encrypt(18, &mut again);
        assert_eq!(again, sealed);
    }

    #[test]
    fn a_chacha20_packet_of_the_standard_is_sealed_and_its_next_secret_follows() {
        // RFC 9001, A.5.
        let secret = bytes("9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b");
        let mut secrets = Secrets { suite: Suite::ChaCha20, local: secret.clone(), remote: secret };
        let keys = secrets.keys().unwrap();
        let mut packet = [&bytes("4200bff401")[..], &[0; TAG_BYTES]].concat();
        keys.packet.local.encrypt(654_360_564, &mut packet, 4);
        keys.header.local.encrypt(1, &mut packet);
        assert_eq!(packet, bytes("4cfe4189655e5cd55c41f69080575d7999c25a5bfb"));
        keys.header.remote.decrypt(1, &mut packet);
        let mut payload = BytesMut::from(&packet[4..]);
        keys.packet.remote.decrypt(654_360_564, &packet[..4], &mut payload).unwrap();
        assert_eq!(payload[..], [1]);
        secrets.update().unwrap();
        assert_eq!(secrets.local, bytes("1223504755036d556342ee9361d253421a826c9ecdf3c7148684b36b714881f9"));
    }

    #[test]
    fn a_changed_packet_is_refused_whatever_the_suite() {
        for (suite, length) in [(Suite::Aes128, 32), (Suite::Aes256, 48), (Suite::ChaCha20, 32)] {
            let secrets = Secrets { suite, local: vec![7; length], remote: vec![7; length] };
            let keys = secrets.keys().unwrap();
            let mut packet = [&b"head"[..], b"payload", &[0; TAG_BYTES]].concat();
            keys.packet.local.encrypt(9, &mut packet, 4);
            let opened = |packet: &[u8], number| {
                let mut payload = BytesMut::from(&packet[4..]);
                keys.packet.remote.decrypt(number, &packet[..4], &mut payload).map(|()| payload)
            };
            assert_eq!(opened(&packet, 9).unwrap()[..], b"payload"[..]);
            assert!(opened(&packet, 8).is_err() && opened(&packet[..10], 9).is_err());
            for at in 0..packet.len() {
                let mut changed = packet.clone();
                changed[at] ^= 1;
                assert!(opened(&changed, 9).is_err(), "{suite:?}, byte {at}");
            }
        }
    }

    #[test]
    fn a_retry_of_the_standard_is_valid_and_a_changed_one_is_not() {
        // RFC 9001, A.4.
        let id = ConnectionId::new(&bytes("8394c8f03e515708"));
        let (header, payload) =
            (bytes("ff000000010008f067a5502a4262b5"), bytes("746f6b656e04a265ba2eff4d829058fb3f0f2496ba"));
        assert!(is_valid_retry(&id, &header, &payload));
        assert!(!is_valid_retry(&id, &header, &payload[1..]) && !is_valid_retry(&id, &header, b"short"));
    }
}
