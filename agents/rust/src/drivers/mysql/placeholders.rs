//! Splits SQL at $1, $2 … as MySQL reads it: quoted text and comments stay untouched.

use super::lexer::piece;
use crate::failure::{Failure, Result};
use crate::program::Statement;

/// A piece of SQL.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Piece<'a> {
    Text(&'a str),
    /// `$1` is 0. The SQL may end with an empty Text.
    Placeholder(usize),
}

/// Iterates over the pieces of SQL in order. Doesn't allocate.
pub struct Pieces<'a> {
    sql: &'a str,
    /// Whether a backslash in a string escapes the next character.
    backslash: bool,
    /// A placeholder found after the last text.
    found: Option<usize>,
}

pub fn pieces(sql: &str, backslash: bool) -> Pieces<'_> {
    Pieces { sql, backslash, found: None }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        if let Some(number) = self.found.take() {
            return Some(Piece::Placeholder(number));
        }
        if self.sql.is_empty() {
            return None;
        }
        let bytes = self.sql.as_bytes();
        let mut at = 0;
        // Every byte searched for is ASCII, so all cuts lie between characters.
        while at < bytes.len() {
            let rest = &bytes[at..];
            if let Some((number, length)) = number(rest) {
                self.found = Some(number);
                let (text, rest) = (&self.sql[..at], &self.sql[at + length..]);
                self.sql = rest;
                return Some(Piece::Text(text));
            }
            at += piece(rest, self.backslash).1;
        }
        let text = self.sql;
        self.sql = "";
        Some(Piece::Text(text))
    }
}

/// `$12 …` -> (11, 3).
#[inline]
fn number(text: &[u8]) -> Option<(usize, usize)> {
    if text[0] != b'$' {
        return None;
    }
    let digits = text[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = std::str::from_utf8(&text[1..=digits]).ok()?.parse::<usize>().ok()?;
    Some((number.checked_sub(1)?, digits + 1))
}

/// SQL with `?` for each placeholder, and the variable at each.
pub fn with_marks(statement: &Statement, backslash: bool) -> Result<(String, Vec<usize>)> {
    let (mut sql, mut variables) = (String::with_capacity(statement.sql.len()), Vec::new());
    let given = statement.parameters.len();
    let mut used = vec![false; given];
    for piece in pieces(&statement.sql, backslash) {
        match piece {
            Piece::Text(text) => sql.push_str(text),
            Piece::Placeholder(number) => {
                let Some(variable) = statement.parameters.get(number) else {
                    let text = format!("{}: has a parameter ${}, {given} given", statement.sql, number + 1);
                    return Err(Failure::statement(text));
                };
                used[number] = true;
                variables.push(*variable);
                sql.push('?');
            }
        }
    }
    match used.iter().position(|used| !used) {
        Some(number) => Err(Failure::statement(format!("{}: has no parameter ${}", statement.sql, number + 1))),
        None => Ok((sql, variables)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(sql: &str, parameters: usize) -> Result<(String, Vec<usize>)> {
        // Variable 10 is the first parameter, 11 the second, …
        with_marks(
            &Statement { sql: sql.into(), parameters: (10..10 + parameters).collect(), ..Statement::default() },
            true,
        )
    }

    fn same(sql: &str) {
        assert_eq!(marked(sql, 0).unwrap(), (sql.to_string(), vec![]));
    }

    #[test]
    fn placeholders_become_marks_in_their_order() {
        let (sql, variables) = marked("UPDATE t SET a = a + $2 WHERE b=$1 OR c IN($2,$1)", 2).unwrap();
        assert_eq!(sql, "UPDATE t SET a = a + ? WHERE b=? OR c IN(?,?)");
        assert_eq!(variables, [11, 10, 11, 10]);
        let all: String = (1..=12).map(|number| format!("${number},")).collect();
        assert_eq!(marked(&all, 12).unwrap(), ("?,".repeat(12), (10..22).collect()));
        assert_eq!(marked("ü=$1€", 1).unwrap().0, "ü=?€");
    }

    #[test]
    fn what_is_quoted_or_a_comment_or_a_name_is_left_alone() {
        for sql in [
            "'$1'",
            "'it''s $1'",
            r"'it\'s $1'",
            r#""a\"$1""#,
            "`a$1`",
            "`\\` + 1 -- $1",
            "a$1",
            "ä$1",
            "$a",
            "$",
            "1 -- $1",
            "1 --\t$1",
            "1 # $1",
            "/* $1 */ 1",
            "/*$1",
            "'$1",
            "'\\",
            "",
        ] {
            same(sql);
        }
        assert_eq!(marked("5--$1", 1).unwrap().0, "5--?");
        assert_eq!(marked("1 -- '\n+$1", 1).unwrap().0, "1 -- '\n+?");
        assert_eq!(marked("'a'/**/$1", 1).unwrap().0, "'a'/**/?");
    }

    #[test]
    fn a_backslash_is_an_ordinary_character_where_the_server_says_so() {
        let statement = Statement { sql: r"'\' + $1".into(), parameters: vec![3], ..Statement::default() };
        assert_eq!(with_marks(&statement, false).unwrap(), (r"'\' + ?".into(), vec![3]));
        assert_eq!(with_marks(&statement, true).unwrap_err().code, "statement");
    }

    #[test]
    fn parameters_and_placeholders_must_be_the_same() {
        for (sql, parameters) in [("$1", 0), ("$3, $1", 2), ("$2", 2), ("1", 1), ("'$1'", 1)] {
            assert_eq!(marked(sql, parameters).unwrap_err().code, "statement", "{sql}");
        }
        same("$0");
    }

    #[test]
    fn the_pieces_of_any_text_are_the_text() {
        let mut random = crate::draw::Random::of_operation(1, 2);
        let letters = ["'", "\"", "`", "\\", "$", "1", "2", "-", " ", "#", "\n", "/", "*", "a", "é", ";"];
        for _ in 0..50_000 {
            let sql: String = (0..12).map(|_| letters[random.below(16) as usize]).collect();
            let whole: String = pieces(&sql, random.below(2) == 0)
                .map(|piece| match piece {
                    Piece::Text(text) => text.to_string(),
                    Piece::Placeholder(number) => format!("${}", number + 1),
                })
                .collect();
            assert_eq!(whole, sql);
        }
    }
}
