//! failure: what went wrong -> the code and the one line of text of an `error` answer.

use std::fmt;

/// An `error` answer in the making.
#[derive(Debug, Clone)]
pub struct Failure {
    pub code: String,
    pub text: String,
    /// The connection is gone: nothing more can be done on it.
    pub lost: bool,
}

pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub fn new(code: &str, text: impl Into<String>) -> Failure {
        let text = text.into().replace(['\n', '\r'], " ");
        Failure { code: code.to_string(), text, lost: false }
    }

    pub fn protocol(text: impl Into<String>) -> Failure {
        Failure::new("protocol", text)
    }

    pub fn unknown_message(kind: &str) -> Failure {
        Failure::new("unknown-message", format!("no message has the type {kind:?}"))
    }

    pub fn bad_message(text: impl Into<String>) -> Failure {
        Failure::new("bad-message", text)
    }

    pub fn no_arm(arm: &str) -> Failure {
        Failure::new("no-arm", format!("arm {arm:?} is not connected; send `connect` first"))
    }

    pub fn no_program(text: impl Into<String>) -> Failure {
        Failure::new("no-program", text)
    }

    pub fn connect(text: impl Into<String>) -> Failure {
        Failure { lost: true, ..Failure::new("connect", text) }
    }

    pub fn tls(text: impl Into<String>) -> Failure {
        Failure { lost: true, ..Failure::new("tls", text) }
    }

    pub fn statement(text: impl Into<String>) -> Failure {
        Failure::new("statement", text)
    }

    pub fn internal(text: impl Into<String>) -> Failure {
        Failure::new("internal", text)
    }

    pub fn lost(self) -> Failure {
        Failure { lost: true, ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.code, self.text)
    }
}

/// Why one operation failed: what `error_kinds` counts it under, and what `first_error` says.
#[derive(Debug, Clone)]
pub struct Fault {
    /// One word.
    pub kind: String,
    pub text: String,
}

impl From<&Failure> for Fault {
    fn from(failure: &Failure) -> Fault {
        // A server's code is its own to choose; in a list of `CODE=COUNT` it must stay one word.
        let word = |letter: char| if letter.is_alphanumeric() || "-_.".contains(letter) { letter } else { '-' };
        let kind: String = failure.code.chars().map(word).collect();
        Fault { kind: if kind.is_empty() { "unknown".into() } else { kind }, text: failure.to_string() }
    }
}

impl From<std::io::Error> for Failure {
    /// An I/O error on a connection always means that the connection is lost.
    fn from(error: std::io::Error) -> Failure {
        Failure::new("connect", format!("connection lost: {error}")).lost()
    }
}
