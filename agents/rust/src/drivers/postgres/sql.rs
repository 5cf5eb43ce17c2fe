//! Splits text into statements where psql would, by the rules of psql's own lexer.

use crate::drivers::network::statements::{Piece, cut};

/// Kind of a piece of SQL, as far as the end of a statement depends on it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Space,
    Comment,
    Quoted,
    /// A name, a key word or a number.
    Word,
    /// One byte of anything else.
    Sign,
}

/// The statements of a text without the `;` between them. Pieces without a statement are left out. `backslash`: the
/// server treats `\` as an escape in every string (`standard_conforming_strings` is off).
pub fn statements(sql: &str, backslash: bool) -> Vec<&str> {
    let (mut body, mut escapes) = (Body::default(), Escapes::No);
    // Every byte that ends a piece is ASCII, so all cuts lie between characters.
    cut(sql, |rest| {
        let (kind, length) = piece(rest.as_bytes(), backslash || escapes == Escapes::Next);
        let text = &rest[..length];
        escapes = escapes.after(kind, text);
        match kind {
            Kind::Space | Kind::Comment => return (Piece::Nothing, length),
            Kind::Sign if text == ";" && body.is_closed() => {
                body = Body::default();
                return (Piece::End, length);
            }
            Kind::Word => body.word(text),
            Kind::Sign => body.sign(text),
            Kind::Quoted => {}
        }
        (Piece::Text, length)
    })
}

/// Passes the parts of a statement between its placeholders to `text`, and the number of each `$1`, `$2` … to `value`, counted from 0.
/// Those in strings, names and comments are text.
pub fn fill<T>(sql: &str, backslash: bool, to: &mut T, text: impl Fn(&mut T, &str), value: impl Fn(&mut T, usize)) {
    let (mut escapes, mut start, mut at) = (Escapes::No, 0, 0);
    while at < sql.len() {
        let rest = &sql[at..];
        let (kind, length) = piece(rest.as_bytes(), backslash || escapes == Escapes::Next);
        escapes = escapes.after(kind, &rest[..length]);
        let digits = rest[1..].bytes().take_while(u8::is_ascii_digit).count();
        match rest[1..=digits].parse::<usize>() {
            Ok(number @ 1..) if kind == Kind::Sign && rest.starts_with('$') => {
                text(to, &sql[start..at]);
                value(to, number - 1);
                at += 1 + digits;
                start = at;
            }
            _ => at += length,
        }
    }
    text(to, &sql[start..]);
}

/// The first piece of a non-empty text, and its length. `escapes`: whether `\` escapes in a string that begins here.
fn piece(rest: &[u8], escapes: bool) -> (Kind, usize) {
    match rest[0] {
        b'\'' => (Kind::Quoted, quoted(rest, b'\'', escapes)),
        b'"' => (Kind::Quoted, quoted(rest, b'"', false)),
        b'$' => match dollar_quoted(rest) {
            Some(length) => (Kind::Quoted, length),
            None => (Kind::Sign, 1),
        },
        b'-' if rest.starts_with(b"--") => {
            (Kind::Comment, rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()))
        }
        b'/' if rest.starts_with(b"/*") => (Kind::Comment, comment(rest)),
        byte if byte.is_ascii_whitespace() => (Kind::Space, 1),
        byte if in_word(byte) => {
            // A `$` within a name doesn't begin a string.
            (Kind::Word, rest.iter().take_while(|byte| in_word(**byte) || **byte == b'$').count())
        }
        _ => (Kind::Sign, 1),
    }
}

fn in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Whether `\` escapes in strings, as after an `E`.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Escapes {
    No,
    /// It escapes in the next string, if that begins right here.
    Next,
    /// Such a string has ended. A string that follows on another line continues it.
    Ended,
}

impl Escapes {
    fn after(self, kind: Kind, text: &str) -> Escapes {
        match (kind, self) {
            (Kind::Word, _) if text.eq_ignore_ascii_case("e") => Escapes::Next,
            (Kind::Quoted, Escapes::Next) if text.starts_with('\'') => Escapes::Ended,
            (Kind::Space, Escapes::Ended) if text == "\n" => Escapes::Next,
            (Kind::Space, Escapes::Ended) => Escapes::Ended,
            _ => Escapes::No,
        }
    }
}

/// The length of a quoted text with its quotes. Quotes in it are doubled.
fn quoted(text: &[u8], quote: u8, escapes: bool) -> usize {
    let mut at = 1;
    while at < text.len() {
        match text[at] {
            b'\\' if escapes => at += 2,
            byte if byte == quote && text.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// The length of `$$…$$` or `$tag$…$tag$`. None: no such string begins here.
fn dollar_quoted(text: &[u8]) -> Option<usize> {
    let letters = text[1..].iter().take_while(|byte| in_word(**byte)).count();
    if text.get(1 + letters) != Some(&b'$') || text[1].is_ascii_digit() {
        return None;
    }
    let (tag, rest) = text.split_at(letters + 2);
    let end = rest.windows(tag.len()).position(|part| part == tag);
    Some(end.map_or(text.len(), |end| end + 2 * tag.len()))
}

/// The length of a comment, which may be nested.
fn comment(text: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < text.len() {
        match &text[at..] {
            [b'/', b'*', ..] => (at, depth) = (at + 2, depth + 1),
            [b'*', b'/', ..] => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// Nesting in a statement: a `;` within parentheses or in a BEGIN ATOMIC … END body does not end it.
#[derive(Default)]
struct Body {
    /// The first words, in upper case.
    head: Vec<String>,
    parentheses: usize,
    blocks: usize,
}

impl Body {
    fn word(&mut self, word: &str) {
        let word = word.to_ascii_uppercase();
        if self.defines_routine() {
            match word.as_str() {
                "BEGIN" => self.blocks += 1,
                "CASE" if self.blocks > 0 => self.blocks += 1,
                "END" => self.blocks = self.blocks.saturating_sub(1),
                _ => {}
            }
        }
        if self.head.len() < 4 {
            self.head.push(word);
        }
    }

    fn sign(&mut self, sign: &str) {
        match sign {
            "(" => self.parentheses += 1,
            ")" => self.parentheses = self.parentheses.saturating_sub(1),
            _ => {}
        }
    }

    fn is_closed(&self) -> bool {
        self.parentheses == 0 && self.blocks == 0
    }

    fn defines_routine(&self) -> bool {
        let head: Vec<&str> = self.head.iter().map(String::as_str).collect();
        matches!(
            head.as_slice(),
            ["CREATE", "FUNCTION" | "PROCEDURE", ..] | ["CREATE", "OR", "REPLACE", "FUNCTION" | "PROCEDURE"]
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Random;

    fn cut(sql: &str) -> Vec<&str> {
        statements(sql, false)
    }

    #[test]
    fn a_semicolon_ends_a_statement_unless_it_is_quoted_or_in_a_comment() {
        assert_eq!(cut("SELECT 1;SELECT 2 ; "), ["SELECT 1", "SELECT 2"]);
        for one in [
            "SELECT ';'",
            "SELECT 'it''s; one'",
            r"SELECT E'it\'s; one'",
            r"SELECT e'\\\'; one'",
            r"SELECT E'it''s\'; one'",
            "SELECT E'it' \n'\\'; one'",
            r"SELECT U&'\0041;'",
            "SELECT \"a;b\"\"c;\"",
            "SELECT $$a; 'b;$$",
            "SELECT $tag$a; $$ $other$ ; $tag$",
            "SELECT $é$;$é$",
            "SELECT 1 -- ; none\n + 1",
            "SELECT 1 /* ; /* ; */ ; */ + 1",
            "SELECT (1; 2)",
        ] {
            assert_eq!(cut(&format!("{one}; SELECT 2")), [one, "SELECT 2"]);
        }
    }

    #[test]
    fn a_backslash_is_an_ordinary_character_in_a_string_that_has_no_e_before_it() {
        assert_eq!(cut(r"SELECT '\'; SELECT ';\'"), [r"SELECT '\'", r"SELECT ';\'"]);
        assert_eq!(cut(r"SELECT the'\'; SELECT 2"), [r"SELECT the'\'", "SELECT 2"]);
        assert_eq!(cut(r"SELECT e '\'; SELECT 2"), [r"SELECT e '\'", "SELECT 2"]);
        assert_eq!(cut(r"SELECT E'' '\'; SELECT 2"), [r"SELECT E'' '\'", "SELECT 2"]);
        assert_eq!(statements(r"SELECT '\'; one'; SELECT 2", true), [r"SELECT '\'; one'", "SELECT 2"]);
    }

    #[test]
    fn a_dollar_within_a_name_or_before_a_number_begins_no_string() {
        assert_eq!(cut("SELECT a$b$ ; SELECT $b$ ; $b$"), ["SELECT a$b$", "SELECT $b$ ; $b$"]);
        assert_eq!(cut("SELECT $1;$2"), ["SELECT $1", "$2"]);
    }

    #[test]
    fn the_body_of_a_routine_is_one_statement() {
        let body = "BEGIN ATOMIC SELECT 1; SELECT CASE a WHEN 1 THEN 2 END; END";
        let code = &*format!("CREATE OR REPLACE FUNCTION f(a int) RETURNS int {body}");
        assert_eq!(cut(&format!("{code}; SELECT 1")), [code, "SELECT 1"]);
        let rule = "CREATE RULE r AS ON INSERT TO t DO (DELETE FROM a; DELETE FROM b)";
        assert_eq!(cut(&format!("{rule}; BEGIN; END")), [rule, "BEGIN", "END"]);
        let block = "DO $do$BEGIN PERFORM 1; END$do$";
        assert_eq!(cut(&format!("{block};{block}")), [block, block]);
    }

    #[test]
    fn empty_text_has_no_statements() {
        for nothing in ["", " ; ;\n;", "-- ;\n", "/* ; */;"] {
            assert!(cut(nothing).is_empty(), "{nothing:?}");
        }
        assert_eq!(cut("'"), ["'"]);
        assert_eq!(cut("$a$ ;"), ["$a$ ;"]);
        assert_eq!(cut("/* a */ SELECT 1 -- b"), ["/* a */ SELECT 1 -- b"]);
    }

    /// Statements that end properly, joined, are split again; and any text can be split.
    #[test]
    fn joined_statements_are_split_again() {
        let mut random = Random::of_operation(3, 1);
        let whole = ["';'", r"E'\';'", "\";\"", "$$;'$$", "$t$;$$;$t$", "/*;*/ 1", "x", "é$1", "(;)", "E", "'\\'"];
        let letters = ["'", "\"", "\\", "$", "t", "E", "-", "\n", "/", "*", "(", ")", ";", " ", "é", "BEGIN", "END"];
        for _ in 0..20_000 {
            let statement = |random: &mut Random| {
                let parts = 1 + random.below(4);
                (0..parts).map(|_| whole[random.below(whole.len() as u64) as usize]).collect::<Vec<_>>().join(" ")
            };
            let all: Vec<String> = (0..random.below(4)).map(|_| statement(&mut random)).collect();
            assert_eq!(cut(&all.join(";")), all);
            let odd: String = (0..12).map(|_| letters[random.below(letters.len() as u64) as usize]).collect();
            let cut = statements(&odd, random.below(2) == 0);
            let mut rest = odd.as_str();
            for statement in cut {
                let at = rest.find(statement).expect("each statement is a part of the text, in its order");
                rest = &rest[at + statement.len()..];
            }
        }
    }
}
