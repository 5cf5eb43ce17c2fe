//! Converts a status vector into SQLSTATE and one line of text. The server sends codes and the arguments of their texts.

use super::xdr::Reader;
use crate::failure::Failure;

/// Kinds of a status vector's parts.
const END: i32 = 0;
const CODE: i32 = 1;
const STRING: i32 = 2;
const NUMBER: i32 = 4;
const INTERPRETED: i32 = 5;
const WARNING: i32 = 18;
const SQL_STATE: i32 = 19;

pub const WIRE_CRYPT: i32 = 335_545_064;

/// Codes that only introduce others.
const COVERS: [i32; 4] = [335_544_569, 335_544_436, 335_544_842, TEXT];
/// A text from the server itself.
const TEXT: i32 = 335_544_382;

/// Code, SQLSTATE, text; `@` stands for an argument that the server sends.
const KNOWN: [(i32, &str, &str); 63] = [
    (335_544_321, "22000", "arithmetic exception, numeric overflow or string truncation"),
    (335_544_333, "XX000", "internal consistency check failed: @"),
    (335_544_334, "22018", "can't convert from string @"),
    (335_544_335, "XX001", "database file @ is corrupt"),
    (335_544_336, "40001", "deadlock"),
    (335_544_344, "08001", "I/O error at @ of @"),
    (335_544_345, "40001", "lock conflict, and the transaction does not wait"),
    (335_544_347, "23000", "not a valid value for column @: @"),
    (335_544_349, "23000", "duplicate value in unique index @"),
    (335_544_351, "42000", "metadata can't be changed"),
    (335_544_352, "28000", "no permission for @ on @ @"),
    (335_544_356, "HY000", "the table's definition is in use or out of date"),
    (335_544_361, "25006", "the transaction is read-only"),
    (335_544_375, "08001", "the database is unavailable"),
    (335_544_381, "54000", "implementation limit exceeded"),
    (335_544_382, "HY000", "@"),
    (335_544_436, "42000", "SQL code @"),
    (335_544_451, "40001", "update conflict with a concurrent update"),
    (335_544_453, "42000", "@ is in use"),
    (335_544_466, "23000", "violation of foreign key @ on table @"),
    (335_544_472, "28000", "user name or password is wrong, or the user does not exist"),
    (335_544_510, "40001", "lock time-out"),
    (335_544_528, "08003", "database @ is shut down"),
    (335_544_569, "42000", "dynamic SQL error"),
    (335_544_573, "HY004", "data type unknown"),
    (335_544_578, "42S22", "column unknown"),
    (335_544_580, "42S02", "table unknown"),
    (335_544_581, "42000", "procedure unknown"),
    (335_544_584, "21S01", "number of columns and values differ"),
    (335_544_586, "39000", "function unknown"),
    (335_544_634, "42000", "token unknown at line @, column @"),
    (335_544_641, "42000", "domain unknown"),
    (335_544_646, "HY000", "database or file @ exists already"),
    (335_544_652, "21000", "more than one row where one is expected"),
    (335_544_665, "23000", "violation of primary or unique key @ on table @"),
    (335_544_721, "08006", "network error at host @"),
    (335_544_733, "08001", "error while creating the file"),
    (335_544_734, "08001", "error while opening the file"),
    (335_544_736, "HY000", "error while reading the file"),
    (335_544_744, "08001", "the most connections that the server takes are open"),
    (335_544_765, "25006", "the database is read-only"),
    (335_544_778, "22012", "division by zero"),
    (335_544_779, "22003", "integer overflow"),
    (335_544_831, "28000", "the server's configuration denies access to @ @"),
    (335_544_842, "HY000", "at @"),
    (335_544_851, "42000", "end of the statement unexpected at line @, column @"),
    (335_544_856, "08003", "the connection was shut down"),
    (335_544_878, "40001", "the concurrent transaction is @"),
    (335_544_914, "22001", "string right truncation"),
    (335_544_916, "22003", "numeric value out of range"),
    (335_545_029, "28000", "the server has no table of users: its security database is not made"),
    (335_545_033, "22001", "expected at most @ bytes, got @"),
    (335_545_064, "28000", "client and server ask for levels of wire encryption that exclude each other"),
    (335_545_066, "28000", "the server knows no key @ for wire encryption"),
    (335_545_067, "28000", "the server has no wire encryption plugin @"),
    (335_545_072, "23000", "the key is @"),
    (335_545_106, "08006", "the login failed at the server: its log says why"),
    (335_545_108, "08006", "the database is encrypted with another key @"),
    (335_545_204, "08004", "the database is encrypted, and its key is missing"),
    (335_545_210, "HY000", "plugin @: @"),
    (336_068_740, "42S01", "table @ exists already"),
    (336_397_208, "42000", "at line @, column @"),
    (336_397_286, "42000", "CREATE TABLE @ failed"),
];

/// Result of a status vector: nothing (success or a warning), or a failure with its most specific code.
pub fn read(reader: &mut Reader<'_>) -> Option<Option<(i32, Failure)>> {
    let (mut parts, mut given_state, mut warning) = (Vec::<(i32, Vec<String>)>::new(), String::new(), false);
    loop {
        match reader.int()? {
            END => break,
            CODE => {
                let code = reader.int()?;
                if code != 0 && !warning {
                    parts.push((code, Vec::new()));
                }
            }
            kind @ (STRING | INTERPRETED | SQL_STATE) => {
                let text = String::from_utf8_lossy(reader.bytes()?).into_owned();
                match (kind, parts.last_mut()) {
                    (SQL_STATE, _) => given_state = text,
                    (_, Some(part)) if !warning => part.1.push(text),
                    _ => {}
                }
            }
            kind => {
                let number = reader.int()?;
                warning |= kind == WARNING;
                if let (NUMBER, Some(part), false) = (kind, parts.last_mut(), warning) {
                    part.1.push(number.to_string());
                }
            }
        }
    }
    let Some(telling) = parts.iter().find(|(code, _)| !COVERS.contains(code)).or(parts.first()) else {
        return Some(None);
    };
    let code = telling.0;
    let known = KNOWN.iter().find(|known| known.0 == code);
    let state = if given_state.is_empty() { known.map_or("HY000", |known| known.1) } else { &given_state };
    // Omit parts without information: "dynamic SQL error; SQL code -204; table unknown T" becomes "table unknown T".
    let mut said = format!("{code}:");
    for part in parts.iter().filter(|(each, _)| *each == code || !COVERS[..3].contains(each)) {
        // A text without a code of its own belongs to the part before it.
        said.push_str(if said.ends_with(':') || part.0 == TEXT { " " } else { "; " });
        said.push_str(&words(part));
    }
    Some(Some((code, Failure::new(state, said))))
}

/// The text of one code.
fn words((code, values): &(i32, Vec<String>)) -> String {
    let mut values = values.iter();
    let known = KNOWN.iter().find(|known| known.0 == *code);
    let mut text = match known {
        None => format!("code {code}"),
        Some((_, _, known)) => known.chars().fold(String::new(), |mut text, letter| {
            match letter {
                '@' => text.push_str(values.next().map_or("?", String::as_str)),
                letter => text.push(letter),
            }
            text
        }),
    };
    let rest: Vec<&str> = values.map(String::as_str).collect();
    if !rest.is_empty() {
        text.push_str(": ");
        text.push_str(&rest.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::xdr::Put;
    use super::*;

    fn vector(parts: &[(i32, Result<i32, &str>)]) -> Vec<u8> {
        let mut outbox = Vec::new();
        for (kind, value) in parts {
            outbox.int(*kind);
            match value {
                Ok(number) => outbox.int(*number),
                Err(text) => outbox.bytes(text.as_bytes()),
            }
        }
        outbox.int(END);
        outbox
    }

    fn text(parts: &[(i32, Result<i32, &str>)]) -> String {
        let found = read(&mut Reader::new(&vector(parts))).unwrap();
        found.map(|(_, failure)| failure.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_code_becomes_its_sqlstate_and_text_with_arguments() {
        let parts = [
            (CODE, Ok(335_544_569)),
            (CODE, Ok(335_544_436)),
            (NUMBER, Ok(-204)),
            (CODE, Ok(335_544_580)),
            (CODE, Ok(TEXT)),
            (STRING, Err("NOBODY")),
            (CODE, Ok(336_397_208)),
            (NUMBER, Ok(1)),
            (NUMBER, Ok(15)),
        ];
        assert_eq!(text(&parts), "42S02: 335544580: table unknown NOBODY; at line 1, column 15");
        assert_eq!(text(&[(CODE, Ok(335_544_382)), (STRING, Err("said so"))]), "HY000: 335544382: said so");
        assert_eq!(text(&[(CODE, Ok(335_549_999)), (NUMBER, Ok(7))]), "HY000: 335549999: code 335549999: 7");
        assert_eq!(text(&[(CODE, Ok(335_549_999)), (SQL_STATE, Err("01XYZ"))]), "01XYZ: 335549999: code 335549999");
    }

    #[test]
    fn success_and_warnings_are_not_failures() {
        assert_eq!(text(&[(CODE, Ok(0))]), "");
        assert_eq!(text(&[(CODE, Ok(0)), (WARNING, Ok(335_544_357)), (STRING, Err("x"))]), "");
    }

    #[test]
    fn truncated_input_is_not_parsed() {
        let whole = vector(&[(CODE, Ok(335_544_580)), (STRING, Err("NOBODY"))]);
        for end in 0..whole.len() {
            assert!(read(&mut Reader::new(&whole[..end])).is_none(), "{end}");
        }
    }
}
