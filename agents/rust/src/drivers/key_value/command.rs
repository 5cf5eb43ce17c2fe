//! Parses a statement's text into a command.

use crate::failure::{Failure, Result};
use crate::program::{Operation, Room, Statement};

/// A command with placeholders for an operation's values: `SET row-$1 "two words"`.
#[derive(Debug, PartialEq)]
pub struct Command {
    words: Vec<Vec<Piece>>,
}

#[derive(Debug, PartialEq)]
enum Piece {
    Literal(Vec<u8>),
    /// A variable's value.
    Value(usize),
}

impl Command {
    pub fn read(statement: &Statement) -> Result<Command> {
        let words = words(statement.sql.trim())?;
        if words.iter().any(|word| word.ends) {
            return Err(Failure::statement("a statement is one command on one line"));
        }
        if words.is_empty() {
            return Err(Failure::statement("an empty command"));
        }
        let read = |word: &Word| pieces(&word.text, &statement.parameters);
        Ok(Command { words: words.iter().map(read).collect::<Result<_>>()? })
    }

    /// A command of fixed words.
    pub fn fixed(words: Vec<Vec<u8>>) -> Command {
        Command { words: words.into_iter().map(|word| vec![Piece::Literal(word)]).collect() }
    }

    /// Number of its words.
    pub fn words(&self) -> usize {
        self.words.len()
    }

    /// Bytes of one word with an operation's values in place.
    #[inline]
    pub fn size(&self, word: usize, operation: &Operation) -> usize {
        let mut digits = Room::default();
        self.words[word].iter().map(|piece| bytes(piece, operation, &mut digits).len()).sum()
    }

    /// Appends one word with an operation's values in place.
    #[inline]
    pub fn put_word(&self, word: usize, operation: &Operation, into: &mut Vec<u8>) {
        let mut digits = Room::default();
        for piece in &self.words[word] {
            into.extend_from_slice(bytes(piece, operation, &mut digits));
        }
    }
}

/// The commands of a text, separated by `;` or by line ends outside quotes, each as its words.
pub fn commands(text: &str) -> Result<Vec<Vec<Vec<u8>>>> {
    let mut found = vec![Vec::new()];
    for word in words(text)? {
        if word.ends {
            found.push(Vec::new());
        } else if let Some(last) = found.last_mut() {
            last.push(word.text.into_bytes());
        }
    }
    found.retain(|words: &Vec<Vec<u8>>| !words.is_empty());
    Ok(found)
}

/// The commands of a text, each as its text. Malformed text stays in one piece, which the server refuses.
pub fn statements(text: &str) -> Vec<&str> {
    let Ok(words) = words(text) else { return vec![text] };
    let mut from = 0;
    let ends = words.iter().filter(|word| word.ends).map(|word| word.at).chain([text.len()]);
    let pieces = ends.map(|at| text[std::mem::replace(&mut from, at + 1)..at].trim());
    pieces.filter(|piece| !piece.is_empty()).collect()
}

struct Word {
    text: String,
    /// Where it begins.
    at: usize,
    /// The end of a command, not a word.
    ends: bool,
}

/// Words are separated by white space; one that begins with a quote (`"` or `'`) extends to the next such quote.
fn words(text: &str) -> Result<Vec<Word>> {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|letter: char| letter.is_whitespace() && letter != '\n');
        let Some(first) = rest.chars().next() else { return Ok(found) };
        let at = text.len() - rest.len();
        let (word, after) = match first {
            ';' | '\n' => {
                found.push(Word { text: String::new(), at, ends: true });
                rest = &rest[1..];
                continue;
            }
            '"' | '\'' => {
                let unclosed = || Failure::statement("a quote is never closed");
                rest[1..].split_once(first).ok_or_else(unclosed)?
            }
            _ => rest.split_at(rest.find([' ', '\t', '\r', '\n', ';']).unwrap_or(rest.len())),
        };
        found.push(Word { text: word.into(), at, ends: false });
        rest = after;
    }
}

/// A word's literal stretches and its `$1`, `$2`…
fn pieces(word: &str, parameters: &[usize]) -> Result<Vec<Piece>> {
    let (mut found, mut literal, mut rest) = (Vec::new(), String::new(), word);
    while let Some(at) = rest.find('$') {
        let digits = rest[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        let (before, after) = rest.split_at(at + 1 + digits);
        rest = after;
        if digits == 0 {
            literal.push_str(before);
            continue;
        }
        let number: usize = before[at + 1..].parse().unwrap_or(0);
        let variable = number.checked_sub(1).and_then(|at| parameters.get(at));
        let missing = || Failure::statement(format!("${number}: the statement has {} values", parameters.len()));
        literal.push_str(&before[..at]);
        if !literal.is_empty() {
            found.push(Piece::Literal(std::mem::take(&mut literal).into_bytes()));
        }
        found.push(Piece::Value(*variable.ok_or_else(missing)?));
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        found.push(Piece::Literal(literal.into_bytes()));
    }
    Ok(found)
}

fn bytes<'a>(piece: &'a Piece, operation: &'a Operation, digits: &'a mut Room) -> &'a [u8] {
    match piece {
        Piece::Literal(text) => text,
        Piece::Value(variable) => operation.parameter(*variable).text(digits).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(sql: &str, parameters: &[usize]) -> Statement {
        Statement { sql: sql.into(), parameters: parameters.to_vec(), ..Statement::default() }
    }

    #[test]
    fn commands_end_at_semicolons_and_lines_outside_quotes() {
        let found = commands(" PING;\nECHO 'a; b'\n\nGET k;").unwrap();
        let words: Vec<Vec<&[u8]>> = found.iter().map(|each| each.iter().map(Vec::as_slice).collect()).collect();
        assert_eq!(words, [vec![&b"PING"[..]], vec![b"ECHO", b"a; b"], vec![b"GET", b"k"]]);
        assert!(commands("ECHO 'a").is_err());
        assert_eq!(statements(" PING ;\nECHO 'a; b'\n\nGET k;"), ["PING", "ECHO 'a; b'", "GET k"]);
        assert_eq!(statements("PING; ECHO 'a"), ["PING; ECHO 'a"]);
        assert!(statements(" ;\n").is_empty());
    }

    #[test]
    fn malformed_commands_are_refused() {
        assert!(Command::read(&statement("", &[])).is_err());
        assert!(Command::read(&statement("GET $2", &[0])).unwrap_err().text.contains("$2: the statement has 1 values"));
        assert!(Command::read(&statement("PING; PING", &[])).is_err());
    }
}
