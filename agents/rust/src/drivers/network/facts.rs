//! facts: what a connection's encryption turned out to be -> the answer to `connect`.

use crate::message::Connected;
use crate::transport::tls::{self, Facts};

/// Notes what was negotiated on a connection that was opened; None: it is in clear.
pub fn note(facts: Option<Facts>, connected: &mut Connected) {
    connected.encrypted &= facts.is_some();
    let facts = facts.unwrap_or_default();
    connected.resumed += u64::from(facts.resumed);
    connected.verified = facts.verified;
    (connected.protocol, connected.cipher, connected.group) = (facts.protocol, facts.cipher, facts.group);
    (connected.peer, connected.peer_key) = (facts.peer, facts.peer_key);
    connected.library = if connected.encrypted { tls::library() } else { String::new() };
}
