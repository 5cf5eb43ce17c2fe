//! The code and the one-line text of an `error` answer.

use std::fmt;

/// An `error` answer in the making.
#[derive(Debug, Clone)]
pub struct Failure {
    pub code: String,
    pub text: String,
    /// The connection is lost.
    pub lost: bool,
}

/// Maximum letters of an error's text and code, which may come from a server.
const LONGEST_TEXT: usize = 2000;
const LONGEST_CODE: usize = 60;

/// A server's text as one line of at most this many letters, without control characters: terminals will show it.
pub fn one_line(text: &str, most: usize) -> String {
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    let cut = text.chars().nth(most).map(|_| '…');
    text.chars().take(most).map(plain).chain(cut).collect()
}

pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub fn new(code: &str, text: impl Into<String>) -> Failure {
        Failure { code: one_line(code, LONGEST_CODE), text: one_line(&text.into(), LONGEST_TEXT), lost: false }
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

    /// A server that owes answers has sent nothing for so long.
    pub fn silent(ns: u64, silent: usize, owed: usize) -> Failure {
        let seconds = ns as f64 / 1e9;
        Failure::connect(format!(
            "nothing has come from the server for {seconds} s, though it owes the answers of {silent} of {owed} operations: it \
             hangs, or what is between has lost the connections"
        ))
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

/// Why one operation failed: its code in `error_kinds` and its text in `first_error`.
#[derive(Debug, Clone)]
pub struct Fault {
    /// One word.
    pub kind: String,
    pub text: String,
}

impl Fault {
    /// Whether the operation may succeed if it is begun again: a serialization failure (SQLSTATE 40001) or a deadlock (40P01).
    pub fn may_be_retried(&self) -> bool {
        self.kind.split('-').any(|word| word == "40001" || word == "40P01")
    }
}

impl From<&Failure> for Fault {
    fn from(failure: &Failure) -> Fault {
        // A server chooses its codes freely; in a list of `CODE=COUNT` a code must be one word.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_serialized_may_be_retried() {
        for (code, wanted) in
            [("40001", true), ("40P01", true), ("1213 (40001)", true), ("23505", false), ("1205 (HY000)", false)]
        {
            assert_eq!(Fault::from(&Failure::new(code, "x")).may_be_retried(), wanted, "{code}");
        }
    }

    #[test]
    fn a_servers_text_is_one_bounded_line_without_control_characters() {
        let failure = Failure::new(&"4".repeat(100), format!("a\r\n\x1b]0;title\x07{}", "b".repeat(1 << 20)));
        assert!(failure.text.starts_with("a   ]0;title bbb") && failure.text.ends_with("b…"), "{failure}");
        assert_eq!(failure.text.chars().count(), LONGEST_TEXT + 1);
        assert_eq!(failure.code.chars().count(), LONGEST_CODE + 1);
    }
}
