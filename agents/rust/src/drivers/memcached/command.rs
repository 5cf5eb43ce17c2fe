//! Writes a command line in memcached's text protocol. `SET key value` gets the flags, expiry time and length that the protocol needs.

use crate::decimal::{DIGITS, decimal};
use crate::drivers::key_value::command::Command;
use crate::program::Operation;

/// The longest key that memcached accepts.
const LONGEST_KEY: usize = 250;
/// Sent in place of a command that can't be written in this protocol. The server answers `ERROR`.
const INVALID: &[u8] = b"get\r\n";

/// Appends a command with an operation's values in place.
#[inline]
pub fn put(command: &Command, operation: &Operation, into: &mut Vec<u8>) {
    let start = into.len();
    for word in 0..command.words() {
        let from = into.len();
        if word == 2 && command.words() == 3 && into[start..].starts_with(b"set ") {
            into.extend_from_slice(b" 0 0 ");
            into.extend_from_slice(decimal(command.size(word, operation) as i64, &mut [0; DIGITS]));
            into.extend_from_slice(b"\r\n");
            command.put_word(word, operation, into);
            break;
        }
        if word > 0 {
            into.push(b' ');
        }
        let from = from + usize::from(word > 0);
        command.put_word(word, operation, into);
        if !fits(&into[from..]) {
            into.truncate(start);
            into.extend_from_slice(INVALID);
            return;
        }
        if word == 0 {
            // Workloads use verbs in capitals; memcached accepts small letters only.
            into[from..].make_ascii_lowercase();
        }
    }
    into.extend_from_slice(b"\r\n");
}

/// Whether a word can be part of a command line: a space or a line end in it would begin another word or command.
fn fits(word: &[u8]) -> bool {
    (1..=LONGEST_KEY).contains(&word.len()) && word.iter().all(|&byte| byte > b' ' && byte != 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(words: &[&str]) -> String {
        let words = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        let mut into = b"version\r\n".to_vec();
        put(&Command::fixed(words), &Operation::default(), &mut into);
        String::from_utf8(into).unwrap().strip_prefix("version\r\n").unwrap().into()
    }

    #[test]
    fn a_value_follows_its_length_on_a_line_of_its_own() {
        assert_eq!(sent(&["SET", "k", "two words\r\n"]), "set k 0 0 11\r\ntwo words\r\n\r\n");
        assert_eq!(sent(&["set", "k", ""]), "set k 0 0 0\r\n\r\n");
        assert_eq!(sent(&["GET", "Key-1"]), "get Key-1\r\n");
        assert_eq!(sent(&["VERSION"]), "version\r\n");
        assert_eq!(sent(&["INCR", "n", "5"]), "incr n 5\r\n");
    }

    #[test]
    fn a_word_that_would_break_the_line_is_never_sent() {
        let long = "k".repeat(LONGEST_KEY + 1);
        for key in ["a b", "a\r\nflush_all", "", "\0", "\x7f", &long] {
            assert_eq!(sent(&["GET", key]), "get\r\n", "{key:?}");
            assert_eq!(sent(&["SET", key, "value"]), "get\r\n", "{key:?}");
        }
        assert_eq!(sent(&["GET", &long[1..]]), format!("get {}\r\n", &long[1..]));
    }
}
