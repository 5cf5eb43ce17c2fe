//! Splits text into statements where MySQL and MariaDB end them.

use super::lexer::{Kind, piece};
use crate::drivers::network::statements::{Piece, cut};

/// The statements of a text without the `;` between them. Pieces without a statement are left out. `backslash`: whether
/// it escapes the next character in a string.
pub fn statements(sql: &str, backslash: bool) -> Vec<&str> {
    let mut body = Body::default();
    cut(sql, |rest| {
        let (kind, length) = piece(rest.as_bytes(), backslash);
        let text = &rest[..length];
        if kind == Kind::Sign && text == ";" && body.is_closed() {
            body = Body::default();
            return (Piece::End, length);
        }
        if kind == Kind::Comment || text.trim_ascii().is_empty() {
            return (Piece::Nothing, length);
        }
        body.take(kind, text);
        (Piece::Text, length)
    })
}

/// Whether a statement defines a routine, and the depth of blocks in its body: a `;` in them does not end it. A body of
/// several statements lies between BEGIN and END, as in all of MySQL's documentation.
#[derive(Default)]
struct Body {
    /// The first words, in upper case.
    head: Vec<String>,
    /// Whether its kind of object is known, and whether that is a routine.
    decided: bool,
    defines_routine: bool,
    blocks: usize,
    /// END came last. The next word shows what it ends.
    after_end: bool,
}

impl Body {
    fn take(&mut self, kind: Kind, text: &str) {
        let word = if kind == Kind::Word { text.to_ascii_uppercase() } else { String::new() };
        if std::mem::take(&mut self.after_end) {
            match word.as_str() {
                // These blocks are not counted: they lie within counted ones.
                "IF" | "LOOP" | "REPEAT" | "WHILE" => return,
                "CASE" => return self.close(),
                _ => self.close(),
            }
        }
        match word.as_str() {
            "" => return,
            "BEGIN" | "CASE" if self.defines_routine => self.blocks += 1,
            "END" if self.blocks > 0 => self.after_end = true,
            _ => {}
        }
        self.remember(word);
    }

    fn close(&mut self) {
        self.blocks = self.blocks.saturating_sub(1);
    }

    fn remember(&mut self, word: String) {
        const ROUTINES: [&str; 5] = ["EVENT", "FUNCTION", "PACKAGE", "PROCEDURE", "TRIGGER"];
        // Their columns may have the names of routines.
        const OTHERS: [&str; 3] = ["INDEX", "TABLE", "VIEW"];
        let defines = self.head.first().is_some_and(|first| first == "CREATE" || first == "ALTER");
        if defines && !self.decided {
            self.defines_routine = ROUTINES.contains(&word.as_str());
            self.decided = self.defines_routine || OTHERS.contains(&word.as_str());
        }
        if self.head.len() < 3 {
            self.head.push(word);
            // MariaDB's block outside a routine.
            if self.head == ["BEGIN", "NOT", "ATOMIC"] {
                self.defines_routine = true;
                self.blocks = 1;
            }
        }
    }

    /// An END right before the `;` also ends a block.
    fn is_closed(&self) -> bool {
        self.blocks == usize::from(self.after_end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Random;

    fn cut(sql: &str) -> Vec<&str> {
        statements(sql, true)
    }

    #[test]
    fn a_semicolon_ends_a_statement_unless_it_is_quoted_or_in_a_comment() {
        assert_eq!(cut("SELECT 1;SELECT 2 ; "), ["SELECT 1", "SELECT 2"]);
        for one in [
            "SELECT ';'",
            "SELECT 'it''s; one'",
            r"SELECT 'it\'s; one'",
            r#"SELECT "a\";b", '\\'"#,
            r"SELECT `a;\`, 1",
            "SELECT 1 # ; none\n + 1",
            "SELECT 1 -- ; none\n + 1",
            "SELECT 1 /* ; */ + 1",
            "/*!40101 SET NAMES utf8mb4; */",
            "SET /*M!110200 a = 1; */ @b = 0",
        ] {
            assert_eq!(cut(&format!("{one}; SELECT 2")), [one, "SELECT 2"]);
        }
        assert_eq!(cut("SELECT 1--2; SELECT $$; SELECT 3"), ["SELECT 1--2", "SELECT $$", "SELECT 3"]);
    }

    #[test]
    fn a_backslash_is_an_ordinary_character_where_the_server_says_so() {
        assert_eq!(statements(r"SELECT '\'; SELECT ';\'", false), [r"SELECT '\'", r"SELECT ';\'"]);
    }

    #[test]
    fn the_body_of_a_routine_is_one_statement() {
        for code in [
            "CREATE PROCEDURE IF NOT EXISTS p() BEGIN SELECT 1; SELECT 2; END",
            "CREATE OR REPLACE DEFINER=`a;b`@`%` FUNCTION f() RETURNS INT BEGIN RETURN CASE 1 WHEN 1 THEN 2 END; END",
            "CREATE TRIGGER t BEFORE INSERT ON a FOR EACH ROW BEGIN IF NEW.b THEN SET NEW.c = 1; END IF; END",
            "CREATE PROCEDURE p() BEGIN w: WHILE 1 DO BEGIN LEAVE w; END; END WHILE w; SELECT 1; END",
            "CREATE PROCEDURE p() BEGIN CASE 1 WHEN 1 THEN SELECT 1; END CASE; SELECT 2; END",
            "CREATE PROCEDURE p() BEGIN REPEAT SET @a = 1; UNTIL 1 END REPEAT; END",
            "BEGIN NOT ATOMIC SELECT 1; SELECT 2; END",
        ] {
            assert_eq!(cut(&format!("{code}; SELECT 3")), [code, "SELECT 3"]);
        }
        assert_eq!(cut("BEGIN; SELECT CASE 1 WHEN 1 THEN 2 END; COMMIT").len(), 3);
        assert_eq!(cut("CREATE FUNCTION f() RETURNS INT RETURN 1; SELECT f()").len(), 2);
        assert_eq!(cut("CREATE TABLE a (event INT, begin INT); CREATE TABLE c (d INT)").len(), 2);
    }

    #[test]
    fn empty_text_has_no_statements() {
        for nothing in ["", " ; ;\n;", "-- ;\n", "# ;\n;", "/* ; */;"] {
            assert!(cut(nothing).is_empty(), "{nothing:?}");
        }
        assert_eq!(cut("'"), ["'"]);
        assert_eq!(cut("/* a */ SELECT 1 -- b"), ["/* a */ SELECT 1 -- b"]);
    }

    /// Statements that end properly, joined, are split again; and any text can be split.
    #[test]
    fn joined_statements_are_split_again() {
        let mut random = Random::of_operation(3, 2);
        let whole = ["';'", r"'\';'", r#""\";""#, "`;\\`", "/*;*/ 1", "/*!;*/", "x", "é$1", "#;\n1", "-- ;\n1", "CASE"];
        let letters =
            ["'", "\"", "`", "\\", "#", "-", "\n", "/", "*", "!", ";", " ", "é", "CREATE EVENT", "BEGIN", "END"];
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
