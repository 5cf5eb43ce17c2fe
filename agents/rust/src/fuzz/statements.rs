//! Texts that a user may give as statements: where each driver ends them, and what it makes of their `$1`, `$2` ….

use crate::drivers::key_value::command::{Command, commands, statements};
use crate::drivers::{firebird, http, memcached, mysql, postgres, resp};
use crate::program::{Operation, Statement};
use crate::think::Think;

/// An input is the number of values, and a text.
pub fn parse(data: &[u8]) {
    let [values, text @ ..] = data else { return };
    let text = String::from_utf8_lossy(text);
    for backslash in [false, true] {
        check_cuts(&text, |text| postgres::sql::statements(text, backslash));
        check_cuts(&text, |text| mysql::sql::statements(text, backslash));
    }
    check_cuts(&text, statements);
    check_cuts(&text, firebird::sql::split);
    let statement =
        Statement { sql: text.to_string(), parameters: vec![0; usize::from(values % 4)], ..Statement::default() };
    let operation = Operation::of_text("a 'value' \\ \"of\"\r\n\0 any ? $1 kind");
    for backslash in [false, true] {
        let _ = mysql::placeholders::with_marks(&statement, backslash);
        mysql::outbox::Outbox(&mut Vec::new()).query_with_values(&statement, &operation, backslash);
    }
    firebird::sql::verb(&text);
    firebird::sql::reads(&text);
    firebird::sql::translate(&text);
    let _ = Think::read(&statement);
    if let Ok(asked) = http::statement::Asked::read(&statement, "/", "") {
        let _ = asked.label(&operation);
        let mut path = Vec::new();
        asked.path.put(&operation, &mut path);
        assert!(path.iter().all(u8::is_ascii_graphic), "a space or a line end would end the path: {path:?}");
        if let Some(body) = &asked.body {
            let mut bytes = Vec::new();
            body.put(&operation, &mut bytes);
            assert_eq!(bytes.len(), body.length(&operation), "the length that the request states");
        }
    }
    let _ = commands(&text);
    if let Ok(command) = Command::read(&statement) {
        resp::command::put(&command, &operation, &mut Vec::new());
        memcached::command::put(&command, &operation, &mut Vec::new());
    }
}

/// The statements of a text are in it, in this order, and each is one statement.
fn check_cuts(text: &str, cut: impl Fn(&str) -> Vec<&str>) {
    let mut rest = text;
    for statement in cut(text) {
        let (_, after) = rest.split_once(statement).unwrap_or_else(|| panic!("{statement:?} is not in {rest:?}"));
        rest = after;
        // In MySQL `--` is a comment before a space or the end, so a cut can make it one.
        if !statement.ends_with("--") {
            assert_eq!(cut(statement), [statement], "cut once more");
        }
    }
}
