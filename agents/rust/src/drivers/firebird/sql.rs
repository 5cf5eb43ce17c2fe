//! Splits text into statements, with `?` for `$1`, and recognises those that the driver handles itself. Pure.

/// How the driver handles a statement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verb {
    Begin,
    Commit,
    Rollback,
    DropDatabase,
    /// Run by the server.
    Other,
}

/// The relevant pieces of SQL: quoted text, comments, and each other byte.
fn pieces(sql: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = sql.get(at..).filter(|rest| !rest.is_empty())?;
        let end = |from: usize, mark: &str| rest[from..].find(mark).map_or(rest.len(), |end| from + end + mark.len());
        let length = match rest.as_bytes()[0] {
            b'\'' => end(1, "'"),
            b'"' => end(1, "\""),
            b'-' if rest.starts_with("--") => end(2, "\n"),
            b'/' if rest.starts_with("/*") => end(2, "*/"),
            _ => rest.chars().next().map_or(1, char::len_utf8),
        };
        at += length;
        Some((at - length, &rest[..length]))
    })
}

/// The statements of a text without the `;` between them. One that defines code takes the rest of the text, since it has
/// `;` of its own.
pub fn split(sql: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    for end in pieces(sql).filter(|(_, piece)| *piece == ";").map(|(at, _)| at).chain([sql.len()]) {
        let statement = sql[start..end].trim();
        if defines_code(statement) {
            found.push(sql[start..].trim_start().trim_end_matches(|last: char| last == ';' || last.is_whitespace()));
            break;
        }
        if !words(statement, 1).is_empty() {
            found.push(statement);
        }
        start = end + 1;
    }
    found
}

/// The first words, in upper case.
fn words(sql: &str, count: usize) -> Vec<String> {
    let bare: String = pieces(sql)
        .map(|(_, piece)| if piece.starts_with(['-', '/']) && piece.len() > 1 { " " } else { piece })
        .collect();
    bare.split_whitespace().take(count).map(str::to_uppercase).collect()
}

/// Whether `;` is part of it.
fn defines_code(sql: &str) -> bool {
    let words = words(sql, 4);
    match words.first().map(String::as_str) {
        Some("EXECUTE") => words.get(1).is_some_and(|word| word.starts_with("BLOCK")),
        Some("CREATE" | "ALTER" | "RECREATE") => {
            let code = ["PROCEDURE", "FUNCTION", "TRIGGER", "PACKAGE"];
            words[1..].iter().any(|word| code.contains(&word.as_str()))
        }
        _ => false,
    }
}

pub fn verb(sql: &str) -> Verb {
    let words = words(sql, 3);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["BEGIN" | "BEGIN;"] | ["BEGIN", "TRANSACTION" | "WORK"] | ["START", "TRANSACTION"] => Verb::Begin,
        ["COMMIT" | "END"] | ["COMMIT" | "END", "TRANSACTION" | "WORK"] => Verb::Commit,
        ["ROLLBACK"] | ["ROLLBACK", "TRANSACTION" | "WORK"] => Verb::Rollback,
        ["DROP", "DATABASE"] => Verb::DropDatabase,
        _ => Verb::Other,
    }
}

/// Whether a statement only reads, judged by its words.
pub fn reads(sql: &str) -> bool {
    let words = words(sql, usize::MAX);
    let last: Vec<&str> = words.iter().rev().take(2).map(String::as_str).collect();
    words.first().is_some_and(|first| first == "SELECT" || first == "WITH") && last != ["LOCK", "WITH"]
}

/// The statement with `?` in place of `$1`, `$2` …, and the number of each `?`.
pub fn translate(sql: &str) -> (String, Vec<usize>) {
    let (mut text, mut order) = (String::with_capacity(sql.len()), Vec::new());
    let mut skip_to = 0;
    for (at, piece) in pieces(sql) {
        if at < skip_to {
            continue;
        }
        let digits = sql[at + piece.len()..].bytes().take_while(u8::is_ascii_digit).count();
        // Within a name (MON$1) it is not a placeholder.
        let name = sql[..at].ends_with(|last: char| last.is_alphanumeric() || last == '_' || last == '$');
        match sql[at + piece.len()..][..digits].parse::<usize>() {
            Ok(number @ 1..) if piece == "$" && !name => {
                text.push('?');
                order.push(number - 1);
                skip_to = at + 1 + digits;
            }
            _ => text.push_str(piece),
        }
    }
    (text, order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_become_question_marks_in_their_order() {
        let (text, order) = translate("UPDATE t SET a = $2 WHERE b = $1 AND c = $2 AND d = '$3' AND MON$1 = $12");
        assert_eq!(text, "UPDATE t SET a = ? WHERE b = ? AND c = ? AND d = '$3' AND MON$1 = ?");
        assert_eq!(order, [1, 0, 1, 11]);
        assert_eq!(translate("SELECT 'ä', RDB$N -- $1\n").0, "SELECT 'ä', RDB$N -- $1\n");
    }

    #[test]
    fn statements_are_split_where_a_semicolon_is_neither_quoted_nor_commented_out() {
        assert_eq!(
            split("SELECT ';' ; ;/* ; */ SELECT \"a;b\" -- ;\n;"),
            ["SELECT ';'", "/* ; */ SELECT \"a;b\" -- ;"]
        );
        assert!(split(" ; -- nothing\n").is_empty());
        assert_eq!(split("it's one"), ["it's one"]);
    }

    #[test]
    fn a_statement_that_defines_code_is_not_split() {
        for code in ["EXECUTE BLOCK AS BEGIN a; b; END", "CREATE OR ALTER PROCEDURE p AS BEGIN a; END"] {
            assert_eq!(split(&format!("{code};")), [code]);
            assert_eq!(split(&format!("{code} ;\n; ")), [code]);
        }
        assert_eq!(split("CREATE TABLE a; CREATE TABLE b").len(), 2);
    }

    #[test]
    fn code_may_be_defined_after_other_statements() {
        let code = "CREATE TRIGGER b FOR a AS BEGIN c; d; END -- ;\n x; y";
        assert_eq!(split(&format!("CREATE TABLE a; {code};\n;")), ["CREATE TABLE a", code]);
    }

    #[test]
    fn read_only_statements_are_recognised_by_their_words() {
        assert!(reads("-- so\nselect 1 from t") && reads("WITH a AS (SELECT 1) SELECT * FROM a"));
        assert!(!reads("SELECT * FROM t WITH LOCK") && !reads("INSERT INTO t SELECT 1") && !reads(""));
    }

    #[test]
    fn the_driver_handles_transactions_and_drop_database() {
        for (sql, wanted) in [
            ("BEGIN", Verb::Begin),
            ("start transaction", Verb::Begin),
            ("END", Verb::Commit),
            ("/* so */ commit work", Verb::Commit),
            ("ROLLBACK", Verb::Rollback),
            ("DROP DATABASE", Verb::DropDatabase),
            ("DROP TABLE t", Verb::Other),
            ("SELECT 1", Verb::Other),
        ] {
            assert_eq!(verb(sql), wanted, "{sql}");
        }
    }
}
