//! Every answer of the agent, one line each.

use crate::failure::{Failure, one_line};
use serde::Serialize;

/// Every answer of the agent.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Answer {
    Hello {
        protocol: u64,
        agent: &'static str,
        version: &'static str,
        drivers: &'static str,
        tls_library: String,
        aes: bool,
    },
    Ok {},
    Error {
        code: String,
        text: String,
    },
    Connected(Box<Connected>),
    Rows {
        rows: u64,
        columns: String,
        text: String,
    },
    Counting {
        arm: String,
    },
    Slice(Box<SliceAnswer>),
    Floor {
        cipher: String,
        bytes: u64,
        ns_per_byte_seal: f64,
        ns_per_byte_open: f64,
        library: String,
    },
}

impl From<Failure> for Answer {
    fn from(failure: Failure) -> Answer {
        Answer::Error { code: failure.code, text: failure.text }
    }
}

impl Connected {
    /// Limits names from a server: people see them, and results store them.
    pub fn bounded(mut self) -> Connected {
        let Connected { protocol, cipher, group, peer, peer_key, server_version, auth, application, .. } = &mut self;
        for text in [protocol, cipher, group, peer, peer_key, server_version, auth, application] {
            *text = one_line(text, LONGEST_NAME);
        }
        self
    }
}

/// Maximum letters of a name from a server.
const LONGEST_NAME: usize = 300;

/// Result of `connect`.
#[derive(Debug, Default, Clone, Serialize)]
pub struct Connected {
    pub arm: String,
    pub connections: usize,
    pub encrypted: bool,
    pub protocol: String,
    pub cipher: String,
    pub group: String,
    pub resumed: u64,
    pub verified: bool,
    /// `certificate` or `password`; empty if it was not verified.
    pub verified_by: String,
    pub peer: String,
    pub peer_key: String,
    pub server_version: String,
    /// How the last connection authenticated.
    pub auth: String,
    pub library: String,
    /// The negotiated protocol, if there is a choice.
    pub application: String,
}

#[derive(Debug, Serialize)]
pub struct SliceAnswer {
    pub arm: String,
    pub seconds: f64,
    pub operations: u64,
    pub work: f64,
    pub errors: u64,
    pub error_kinds: String,
    pub rows: u64,
    pub sealed: u64,
    pub opened: u64,
    pub retries: u64,
    pub checksum: String,
    pub cpu_user_ns: u64,
    pub cpu_system_ns: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub segments_sent: u64,
    pub segments_received: u64,
    pub connects: u64,
    pub resumed: u64,
    pub early: u64,
    pub late: u64,
    pub threads: usize,
    pub histogram: String,
    pub first_error: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_name_is_bounded_and_one_line() {
        let named = Connected { server_version: "9\x1b[2J\n".repeat(1000), ..Connected::default() }.bounded();
        assert!(named.server_version.chars().count() <= LONGEST_NAME + 1);
        assert!(!named.server_version.contains(char::is_control));
    }

    #[test]
    fn an_answer_is_one_flat_line() {
        let answer = Answer::from(Failure::statement("two\nlines"));
        let line = serde_json::to_string(&answer).unwrap();
        assert_eq!(line, r#"{"type":"error","code":"statement","text":"two lines"}"#);
    }
}
