//! Certificates that no authority has signed, and which the login verifies by the password.

use crate::failure::{Failure, Result};
use openssl::sha::sha256;
use openssl::x509::{X509Ref, X509VerifyResult};
use std::cell::Cell;

/// A certificate that is signed by its own key.
#[derive(Debug, Clone, PartialEq)]
pub struct SelfSigned {
    pub subject: String,
    /// SHA-256 of its DER form.
    pub fingerprint: [u8; 32],
}

impl SelfSigned {
    pub fn of(certificate: &X509Ref, subject: String) -> Result<SelfSigned> {
        let der = certificate.to_der().map_err(|error| Failure::tls(format!("the server's certificate: {error}")))?;
        Ok(SelfSigned { subject, fingerprint: sha256(&der) })
    }
}

thread_local! {
    /// Whether the certificate of this thread's running handshake is self-signed.
    static FOUND: Cell<bool> = const { Cell::new(false) };
}

/// A handshake goes on in this thread, and may verify a certificate.
pub fn begin() {
    FOUND.set(false);
}

/// Whether this error of a certificate may wait for the login: it is self-signed, and then its names mean nothing either.
pub fn is_left_to_login(error: X509VerifyResult) -> bool {
    match error.as_raw() {
        18 => {
            FOUND.set(true);
            true
        }
        62 | 64 => FOUND.get(),
        _ => false,
    }
}
