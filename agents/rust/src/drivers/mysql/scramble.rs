//! The client's response to the server's nonce, by authentication plugin, and what a server stores of a password.

use crate::failure::{Failure, Result};
use curve25519_dalek::edwards::EdwardsPoint;
use curve25519_dalek::scalar::{Scalar, clamp_integer};
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::pkcs5::pbkdf2_hmac;
use openssl::pkey::{Id, PKey};
use openssl::rand::rand_bytes;
use openssl::rsa::{Padding, Rsa};
use openssl::sha::{sha1, sha256, sha512};
use openssl::sign::Signer;

/// 2^10 times more iterations than the fewest, 1024; the same limit as MariaDB's own clients have.
const MOST_PARSEC: u8 = 10;

/// SHA1(password) XOR SHA1(nonce, SHA1(SHA1(password))).
pub fn native(password: &[u8], nonce: &[u8]) -> [u8; 20] {
    let once = sha1(password);
    let mask = sha1(&[nonce, &sha1(&once)].concat());
    std::array::from_fn(|at| once[at] ^ mask[at])
}

/// SHA256(password) XOR SHA256(SHA256(SHA256(password)), nonce).
pub fn caching_sha2(password: &[u8], nonce: &[u8]) -> [u8; 32] {
    let once = sha256(password);
    let mask = sha256(&[&sha256(&once), nonce].concat());
    std::array::from_fn(|at| once[at] ^ mask[at])
}

/// The password as caching_sha2_password expects it over an unencrypted connection: masked by the nonce, encrypted with
/// the server's public key (PEM) by OAEP.
pub fn by_public_key(password: &[u8], nonce: &[u8], key: &[u8]) -> Result<Vec<u8>> {
    let failed = |error| Failure::connect(format!("the server's public key cannot be used: {error}"));
    let key = Rsa::public_key_from_pem(key).map_err(failed)?;
    let mask = nonce.iter().cycle();
    let masked: Vec<u8> = password.iter().chain(&[0]).zip(mask).map(|(byte, mask)| byte ^ mask).collect();
    let mut encrypted = vec![0; key.size() as usize];
    let length = key.public_encrypt(&masked, &mut encrypted, Padding::PKCS1_OAEP).map_err(failed)?;
    encrypted.truncate(length);
    Ok(encrypted)
}

/// What MariaDB's server stores for `native`.
pub fn native_stored(password: &[u8]) -> [u8; 20] {
    sha1(&sha1(password))
}

/// What it stores for `ed25519`: the public key.
pub fn ed25519_stored(password: &[u8]) -> [u8; 32] {
    EdwardsPoint::mul_base(&ed25519_secret(&sha512(password))).compress().to_bytes()
}

fn ed25519_secret(expanded: &[u8; 64]) -> Scalar {
    Scalar::from_bytes_mod_order(clamp_integer(std::array::from_fn(|at| expanded[at])))
}

/// MariaDB's ed25519: the nonce signed as in RFC 8032, section 5.1.6, with the password instead of the 32-byte seed.
/// OpenSSL accepts no seed of another length.
pub fn ed25519(password: &[u8], nonce: &[u8]) -> [u8; 64] {
    let expanded = sha512(password);
    let prefix = &expanded[32..];
    let secret = ed25519_secret(&expanded);
    let public = EdwardsPoint::mul_base(&secret).compress();
    let reduced = |parts: &[&[u8]]| Scalar::from_bytes_mod_order_wide(&sha512(&parts.concat()));
    let random = reduced(&[prefix, nonce]);
    let point = EdwardsPoint::mul_base(&random).compress();
    let signed = random + reduced(&[point.as_bytes(), public.as_bytes(), nonce]) * secret;
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(point.as_bytes());
    signature[32..].copy_from_slice(signed.as_bytes());
    signature
}

/// MariaDB's parsec: PBKDF2 makes a key of the password, by the server's salt and number of iterations (`P`, their logarithm, the
/// salt), and that key signs both sides' nonces. Returns our answer, and what the server stores.
pub fn parsec(password: &[u8], nonce: &[u8], said: &[u8]) -> Result<(Vec<u8>, Vec<u8>)> {
    let [b'P', logarithm @ 0..=MOST_PARSEC, salt @ ..] = said else {
        return Err(Failure::connect("a salt of parsec that is not one"));
    };
    let failed = |error: ErrorStack| Failure::connect(format!("parsec: {error}"));
    let mut seed = [0; 32];
    pbkdf2_hmac(password, salt, 1024 << logarithm, MessageDigest::sha512(), &mut seed).map_err(failed)?;
    let key = PKey::private_key_from_raw_bytes(&seed, Id::ED25519).map_err(failed)?;
    let mut ours = [0; 32];
    rand_bytes(&mut ours).map_err(failed)?;
    let signed = Signer::new_without_digest(&key)
        .and_then(|mut signer| signer.sign_oneshot_to_vec(&[nonce, &ours].concat()))
        .map_err(failed)?;
    let public = key.raw_public_key().map_err(failed)?;
    Ok(([&ours[..], &signed].concat(), [said, &public].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use openssl::sign::Verifier;

    #[test]
    fn a_server_that_knows_only_the_double_hash_recognises_the_password() {
        let nonce: Vec<u8> = (1..=20).collect();
        // The server removes the mask and hashes once more.
        let stored = sha1(&sha1(b"secret"));
        let mask = sha1(&[&nonce[..], &stored].concat());
        let once: Vec<u8> = native(b"secret", &nonce).iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect();
        assert_eq!(sha1(&once), stored);
        let stored = sha256(&sha256(b"secret"));
        let mask = sha256(&[&stored[..], &nonce].concat());
        let once: Vec<u8> = caching_sha2(b"secret", &nonce).iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect();
        assert_eq!(sha256(&once), stored);
    }

    #[test]
    fn the_password_comes_out_of_the_servers_private_key() {
        let key = Rsa::generate(2048).unwrap();
        let nonce: Vec<u8> = (1..=20).collect();
        let password = b"a password that is longer than the nonce";
        let sent = by_public_key(password, &nonce, &key.public_key_to_pem().unwrap()).unwrap();
        let mut masked = vec![0; 256];
        let length = key.private_decrypt(&sent, &mut masked, Padding::PKCS1_OAEP).unwrap();
        let plain: Vec<u8> =
            masked[..length].iter().zip(nonce.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
        assert_eq!(plain, [&password[..], b"\0"].concat());
        assert_eq!(by_public_key(password, &nonce, b"no key").unwrap_err().code, "connect");
    }

    #[test]
    fn what_is_stored_for_ed25519_verifies_its_signature() {
        let (password, nonce) = (b"a password", [9; 32]);
        let key = PKey::public_key_from_raw_bytes(&ed25519_stored(password), Id::ED25519).unwrap();
        let mut verifier = Verifier::new_without_digest(&key).unwrap();
        assert!(verifier.verify_oneshot(&ed25519(password, &nonce), &nonce).unwrap());
    }

    #[test]
    fn parsec_signs_both_nonces_and_refuses_an_odd_salt() {
        let (salt, nonce) = (b"P\0eighteen bytes: ok", [9; 32]);
        let (sent, stored) = parsec(b"a password", &nonce, salt).unwrap();
        let key = PKey::public_key_from_raw_bytes(&stored[salt.len()..], Id::ED25519).unwrap();
        let mut verifier = Verifier::new_without_digest(&key).unwrap();
        assert!(verifier.verify_oneshot(&sent[32..], &[&nonce, &sent[..32]].concat()).unwrap());
        for odd in [&b""[..], b"P", b"Q\0salt", b"P\xffsalt"] {
            assert!(parsec(b"a password", &nonce, odd).is_err());
        }
    }

    #[test]
    fn ed25519_with_a_password_of_32_bytes_is_openssls() {
        let (seed, nonce) = ([7; 32], [9; 32]);
        let key = PKey::private_key_from_raw_bytes(&seed, Id::ED25519).unwrap();
        let signature = Signer::new_without_digest(&key).unwrap().sign_oneshot_to_vec(&nonce).unwrap();
        assert_eq!(ed25519(&seed, &nonce).to_vec(), signature);
    }
}
