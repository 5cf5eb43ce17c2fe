//! What a login over TLS can be bound to.

use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::ssl::SslRef;

/// The hash of the server's certificate to which a login can be bound (RFC 5929, tls-server-end-point): by the hash function of its
/// signature, but SHA-256 for MD5 and SHA-1. None: its signature has no hash function of its own, as Ed25519's.
pub fn end_point(ssl: &SslRef) -> Option<Vec<u8>> {
    let certificate = ssl.peer_certificate()?;
    let digest = match certificate.signature_algorithm().object().nid().signature_algorithms()?.digest {
        Nid::MD5 | Nid::SHA1 => MessageDigest::sha256(),
        Nid::UNDEF => return None,
        other => MessageDigest::from_nid(other)?,
    };
    certificate.digest(digest).ok().map(|hash| hash.to_vec())
}
