//! Writes a command as an array of bulk strings.

use crate::decimal::{DIGITS, decimal};
use crate::drivers::key_value::command::Command;
use crate::program::Operation;

/// Appends a command with an operation's values in place.
#[inline]
pub fn put(command: &Command, operation: &Operation, into: &mut Vec<u8>) {
    header(b'*', command.words(), into);
    for word in 0..command.words() {
        header(b'$', command.size(word, operation), into);
        command.put_word(word, operation, into);
        into.extend_from_slice(b"\r\n");
    }
}

/// `*3` or `$12`, and a line end.
#[inline]
fn header(kind: u8, count: usize, into: &mut Vec<u8>) {
    into.push(kind);
    into.extend_from_slice(decimal(count as i64, &mut [0; DIGITS]));
    into.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Kind;
    use crate::program::Program;

    #[test]
    fn a_command_is_an_array_of_bulk_strings_with_the_values_in_place() {
        let mut program = Program::new("kv".into());
        program.add_variable("id".into(), Kind::Uniform { low: -42, high: -42 }).unwrap();
        program.add_transaction("set".into(), 1).unwrap();
        program.add_statement("set", None, "SET row$1-$1 'a \"b' $ \"\"".into(), "id", false).unwrap();
        let script = program.script("plain").unwrap();
        let mut operation = Operation::default();
        script.draw(1, 1, &mut operation);
        let mut sent = Vec::new();
        put(&Command::read(&script.statements[0]).unwrap(), &operation, &mut sent);
        let expected = "*5\r\n$3\r\nSET\r\n$10\r\nrow-42--42\r\n$4\r\na \"b\r\n$1\r\n$\r\n$0\r\n\r\n";
        assert_eq!(String::from_utf8(sent).unwrap(), expected);
    }

    #[test]
    fn fixed_words_are_sent_as_they_are() {
        let mut sent = Vec::new();
        let words = vec![b"ECHO".to_vec(), b"a\r\nb".to_vec()];
        put(&Command::fixed(words), &Operation::default(), &mut sent);
        assert_eq!(sent, b"*2\r\n$4\r\nECHO\r\n$4\r\na\r\nb\r\n");
    }
}
