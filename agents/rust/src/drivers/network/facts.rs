//! Writes a connection's negotiated encryption into the answer to `connect`.

use crate::message::Connected;
use crate::transport::tls::{self, Facts};

/// Notes what an opened connection negotiated; None: it is unencrypted.
pub fn note(facts: Option<Facts>, connected: &mut Connected) {
    connected.encrypted &= facts.is_some();
    let facts = facts.unwrap_or_default();
    connected.resumed += u64::from(facts.resumed);
    connected.verified = !facts.verified_by.is_empty();
    connected.verified_by = facts.verified_by.to_string();
    (connected.protocol, connected.cipher, connected.group) = (facts.protocol, facts.cipher, facts.group);
    (connected.peer, connected.peer_key) = (facts.peer, facts.peer_key);
    if connected.application.is_empty() {
        connected.application = facts.application;
    }
    connected.library = if connected.encrypted { tls::library() } else { String::new() };
}
