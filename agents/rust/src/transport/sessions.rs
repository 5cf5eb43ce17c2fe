//! TLS sessions of earlier connections, which later ones resume.

use foreign_types_shared::ForeignType;
use openssl::error::ErrorStack;
use openssl::ssl::{SslRef, SslSession, SslVersion};
use openssl_sys::SSL_SESSION;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Servers send more tickets than are used; the oldest are dropped first.
const MOST: usize = 1000;

unsafe extern "C" {
    fn SSL_SESSION_dup(session: *const SSL_SESSION) -> *mut SSL_SESSION;
}

/// Resumable sessions, the newest last.
pub struct Sessions {
    kept: Mutex<VecDeque<SslSession>>,
    /// A session is used again until there is a newer one. A connection whose response came before its handshake was complete (early
    /// data) may have got no ticket.
    again: bool,
}

impl Sessions {
    pub fn new(again: bool) -> Sessions {
        Sessions { kept: Mutex::default(), again }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<SslSession>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn keep(&self, new: SslSession) {
        let mut kept = self.lock();
        if kept.len() == MOST {
            kept.pop_front();
        }
        kept.push_back(new);
    }

    /// The session that the next connection resumes.
    pub fn take(&self) -> Result<Option<SslSession>, ErrorStack> {
        let mut kept = self.lock();
        let Some(session) = kept.pop_back() else { return Ok(None) };
        // A ticket of TLS 1.3 works once: OpenSSL invalidates it, and the server sends another. One of 1.2 works until there
        // is a newer one (`keep_renewed`).
        if session.protocol_version() != SslVersion::TLS1_3 {
            kept.push_back(session.clone());
        } else if self.again && kept.is_empty() {
            kept.push_back(copy(&session)?);
        }
        Ok(Some(session))
    }

    /// Keeps the session of TLS 1.2 whose ticket the server renewed in an abbreviated handshake, as Go's servers do. OpenSSL then
    /// invalidates the older session, and calls `new_session` for full handshakes only.
    pub fn keep_renewed(&self, ssl: &SslRef) {
        let Some(session) = ssl.session() else { return };
        if !ssl.session_reused() || session.protocol_version() == SslVersion::TLS1_3 {
            return;
        }
        if self.lock().back().is_none_or(|last| last.id() != session.id()) {
            self.keep(session.to_owned());
        }
    }

    /// The server takes its tickets no more: the next connections begin without.
    pub fn forget(&self) {
        self.lock().clear();
    }
}

/// A session of its own: OpenSSL invalidates the one that a connection has resumed.
fn copy(session: &SslSession) -> Result<SslSession, ErrorStack> {
    // SAFETY: the session is valid, and the new one is ours if there is one.
    unsafe {
        let copied = SSL_SESSION_dup(session.as_ptr());
        if copied.is_null() { Err(ErrorStack::get()) } else { Ok(SslSession::from_ptr(copied)) }
    }
}
