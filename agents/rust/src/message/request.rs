//! Parses a line into a request and checks its fields. Anything that PROTOCOL.md does not name is refused.

use super::connect::{Connect, DRIVERS, Pool};
use super::flat::Flat;
use crate::draw_mode::Draw;
use crate::failure::{Failure, Result};
use crate::query_mode::QueryMode;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fmt;

/// A request with checked fields.
#[derive(Debug)]
pub enum Request {
    Hello(Hello),
    Program(Named),
    Variable(Variable),
    Transaction(Transaction),
    Statement(Statement),
    Step(Step),
    Cipher(Cipher),
    Connect(Connect),
    Query(Query),
    Slice(Slice),
    Floor(Floor),
    Disconnect(Disconnect),
    Bye(Nothing),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    pub protocol: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    pub name: String,
    #[serde(default)]
    pub mode: QueryMode,
    #[serde(default)]
    pub tries: u64,
    #[serde(default)]
    pub draw: Draw,
}

/// The fields of every kind of variable; `session` refuses those that a kind does not have.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variable {
    pub name: String,
    pub kind: String,
    pub low: Option<i64>,
    pub high: Option<i64>,
    pub skew: Option<f64>,
    pub length: Option<usize>,
    pub value: Option<String>,
    pub of: Option<String>,
    pub bits: Option<usize>,
}

/// The cipher for sealed values. It has no `Debug`, which would show the key.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cipher {
    pub name: String,
    pub key: String,
    /// The key of the blind index; None: there is none.
    pub blind: Option<String>,
}

impl fmt::Debug for Cipher {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Cipher({})", self.name)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transaction {
    pub name: String,
    pub weight: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    pub transaction: String,
    pub sql: String,
    pub parameters: String,
    pub arm: Option<String>,
    #[serde(default)]
    pub open: bool,
    /// Of a request.
    #[serde(default)]
    pub headers: String,
    pub body: Option<String>,
    /// Precedes the name of a column in that of the variable that takes its value.
    pub into: Option<String>,
    /// The last row's values are taken, if there is one.
    #[serde(default)]
    pub every: bool,
    /// The variable whose value an opened value must have for its row to count; empty: all rows count.
    #[serde(default)]
    pub keep: String,
}

/// A step of a transaction that is no statement.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub transaction: String,
    pub arm: Option<String>,
    #[serde(rename = "do")]
    pub what: String,
    pub variable: Option<String>,
    pub expression: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    pub arm: String,
    pub sql: String,
    #[serde(default)]
    pub all: bool,
    /// Time limit for the whole query in seconds.
    pub timeout: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slice {
    pub arm: String,
    pub seconds: Option<f64>,
    #[serde(default)]
    pub discard: f64,
    #[serde(default)]
    pub seed: u64,
    #[serde(default)]
    pub rate: f64,
    #[serde(default)]
    pub operations: u64,
    pub arrivals: Option<Arrivals>,
    /// When the requests of an open loop are due: microseconds from the slice's start to the first, from it to the next …,
    /// separated by spaces.
    pub gaps_us: Option<String>,
    /// Time limit in seconds for preparing, for the server's silence, and for exceeding the slice's length.
    pub timeout: Option<f64>,
}

/// When the requests of an open loop are due.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// At equal intervals by the rate.
    #[default]
    Even,
    /// As a Poisson process of that rate.
    Random,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floor {
    pub cipher: String,
    pub bytes: u64,
    /// What authenticates each unit, for a cipher that does not; None: nothing.
    pub mac: Option<String>,
    /// Bytes that are sealed at a time: a page, or a part of it. None: a TLS record.
    pub unit: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disconnect {
    pub arm: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// The `type` of every message, in the order of PROTOCOL.md.
const TYPES: [&str; 13] = [
    "hello",
    "program",
    "cipher",
    "variable",
    "transaction",
    "statement",
    "step",
    "connect",
    "query",
    "slice",
    "floor",
    "disconnect",
    "bye",
];

/// A line with valid JSON and `type`, whose other fields are not parsed yet.
pub struct Line {
    pub kind: String,
    fields: Map<String, Value>,
}

impl Line {
    pub fn read(line: &[u8]) -> Result<Line> {
        let Flat(mut fields) = serde_json::from_slice(line)
            .map_err(|error| Failure::bad_message(format!("not a flat JSON object: {error}")))?;
        match fields.remove("type") {
            Some(Value::String(kind)) if TYPES.contains(&kind.as_str()) => Ok(Line { kind, fields }),
            Some(Value::String(kind)) => Err(Failure::unknown_message(&kind)),
            Some(_) => Err(Failure::bad_message("type: must be a string")),
            None => Err(Failure::bad_message("type: missing")),
        }
    }

    pub fn request(self) -> Result<Request> {
        let Line { kind, mut fields } = self;
        Ok(match kind.as_str() {
            "hello" => Request::Hello(read(fields)?),
            "program" => Request::Program(read(fields)?),
            "cipher" => Request::Cipher(read(fields)?),
            "variable" => Request::Variable(read(fields)?),
            "transaction" => Request::Transaction(read(fields)?),
            "statement" => Request::Statement(read(fields)?),
            "step" => Request::Step(read(fields)?),
            "query" => Request::Query(read(fields)?),
            "slice" => Request::Slice(read(fields)?),
            "floor" => Request::Floor(read(fields)?),
            "disconnect" => Request::Disconnect(read(fields)?),
            "bye" => Request::Bye(read(fields)?),
            _ => {
                let mut pool = Map::new();
                for name in ["arm", "connections", "threads", "per_request", "timeout"] {
                    if let Some(value) = fields.remove(name) {
                        pool.insert(name.to_string(), value);
                    }
                }
                let pool: Pool = read(pool)?;
                Request::Connect(match fields.remove("driver") {
                    Some(Value::String(driver)) => match driver.as_str() {
                        "null" => Connect::Null(pool, read(fields)?),
                        "postgres" => Connect::Postgres(pool, Box::new(read(fields)?)),
                        "mysql" => Connect::Mysql(pool, Box::new(read(fields)?)),
                        "resp" => Connect::Resp(pool, Box::new(read(fields)?)),
                        "memcached" => Connect::Memcached(pool, Box::new(read(fields)?)),
                        "sqlite" => Connect::Sqlite(pool, read(fields)?),
                        "duckdb" => Connect::DuckDb(pool, read(fields)?),
                        "turso" => Connect::Turso(pool, read(fields)?),
                        "firebird" => Connect::Firebird(pool, Box::new(read(fields)?)),
                        "http" => Connect::Http(pool, Box::new(read(fields)?)),
                        _ => {
                            let known = DRIVERS.replace(' ', ", ");
                            return Err(Failure::bad_message(format!("driver: {driver:?} is not one of {known}")));
                        }
                    },
                    Some(_) => return Err(Failure::bad_message("driver: must be a string")),
                    None => return Err(Failure::bad_message("driver: missing")),
                })
            }
        })
    }
}

fn read<T: DeserializeOwned>(fields: Map<String, Value>) -> Result<T> {
    serde_json::from_value(Value::Object(fields)).map_err(|error| Failure::bad_message(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(line: &str) -> String {
        match Line::read(line.as_bytes()).and_then(Line::request) {
            Ok(request) => format!("{request:?}").split(['(', ' ']).next().unwrap().to_string(),
            Err(failure) => failure.code,
        }
    }

    #[test]
    fn valid_messages_are_parsed() {
        assert_eq!(code(r#"{"type":"hello","protocol":1}"#), "Hello");
        assert_eq!(code(r#"{"type":"slice","arm":"plain","seconds":1,"seed":42}"#), "Slice");
        assert_eq!(code(r#"{"type":"connect","arm":"a","driver":"null","connections":1}"#), "Connect");
        assert_eq!(code(r#"{"protocol":1,"type":"hello"}"#), "Hello");
    }

    #[test]
    fn an_unknown_type_is_refused() {
        assert_eq!(code(r#"{"type":"dance"}"#), "unknown-message");
    }

    #[test]
    fn an_unknown_missing_mistyped_nested_or_doubled_field_is_refused() {
        for line in [
            r#"{"type":"hello","protocol":1,"more":1}"#,
            r#"{"type":"bye","more":1}"#,
            r#"{"type":"hello"}"#,
            r#"{"type":"hello","protocol":"1"}"#,
            r#"{"type":"hello","protocol":1.5}"#,
            r#"{"type":"hello","protocol":null}"#,
            r#"{"type":"hello","protocol":[1]}"#,
            r#"{"type":"hello","protocol":1,"protocol":1}"#,
            r#"{"type":"connect","arm":"a","driver":"null","connections":1,"port":1}"#,
            r#"{"type":"connect","arm":"a","driver":"oracle","connections":1}"#,
            r#"{"type":"connect","arm":"a","connections":1}"#,
            r#"{"type":1}"#,
            r#"{}"#,
            r#"[]"#,
            r#"{"type":"bye"} {"type":"bye"}"#,
            r#"{"type":"bye""#,
            "",
        ] {
            assert_eq!(code(line), "bad-message", "{line}");
        }
    }
}
