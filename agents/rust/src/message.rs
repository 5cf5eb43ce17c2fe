//! message: one line -> one request; one answer -> one line. Whatever PROTOCOL.md does not name is refused.

use crate::deadline;
use crate::failure::{Failure, Result, one_line};
use crate::transport::wirecrypt;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// A request, its fields checked.
#[derive(Debug)]
pub enum Request {
    Hello(Hello),
    Program(Named),
    Variable(Variable),
    Transaction(Transaction),
    Statement(Statement),
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
}

/// The fields of every kind of variable; `session` refuses those that the kind does not have.
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
}

/// What a program's values are sealed with. It has no `Debug` that would show the key.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cipher {
    pub name: String,
    pub key: String,
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
}

#[derive(Debug)]
pub enum Connect {
    Null(Pool, Null),
    Postgres(Pool, Box<Server>),
    Mysql(Pool, Box<Server>),
    Resp(Pool, Box<Server>),
    Sqlite(Pool, Sqlite),
    Firebird(Pool, Box<Firebird>),
    Http(Pool, Box<Http>),
}

/// What every driver's `connect` has.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    pub arm: String,
    #[serde(default = "one")]
    pub connections: usize,
    #[serde(default = "one")]
    pub threads: usize,
    #[serde(default)]
    pub per_request: bool,
    /// Seconds that one connection may take until it can be used.
    pub timeout: Option<f64>,
}

impl Pool {
    /// Runs what makes one connection ready for use.
    pub fn opening<T>(&self, open: impl FnOnce() -> Result<T>) -> Result<T> {
        deadline::within(self.seconds(), "finish the login", open)
    }

    pub fn seconds(&self) -> f64 {
        self.timeout.unwrap_or(deadline::CONNECT_SECONDS)
    }
}

fn one() -> usize {
    1
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Null {
    #[serde(default)]
    pub busy_ns: u64,
    #[serde(default)]
    pub jitter: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tls {
    #[default]
    Off,
    Require,
    VerifyCa,
    VerifyFull,
}

impl Server {
    /// Whether another machine could pose as the server and read what is sent: no TLS, and the address that was connected
    /// to is not loopback, or is that of a relay to another machine. A name is no address: it may resolve to anything.
    pub fn exposed(&self) -> bool {
        let address = self.address.or_else(|| self.host.parse().ok());
        let loopback = address.is_some_and(|address| address.to_canonical().is_loopback());
        self.tls == Tls::Off && (self.relayed || !loopback)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Deserialize)]
pub enum TlsVersion {
    #[serde(rename = "1.0")]
    V10,
    #[serde(rename = "1.1")]
    V11,
    #[serde(rename = "1.2")]
    V12,
    #[serde(rename = "1.3")]
    V13,
}

/// A server reached over TCP; `check` refuses the fields that its driver does not have.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub database: Option<String>,
    pub password: Option<String>,
    pub search_path: Option<String>,
    /// Statements that each connection begins with, before any other.
    pub setup: Option<String>,
    /// The address is that of a relay, and the server behind it is on another machine.
    #[serde(default)]
    pub relayed: bool,
    /// What `host` has been resolved to.
    #[serde(skip)]
    pub address: Option<std::net::IpAddr>,
    #[serde(default)]
    pub tls: Tls,
    pub tls_ca: Option<String>,
    pub tls_server_name: Option<String>,
    pub tls_min: Option<TlsVersion>,
    pub tls_max: Option<TlsVersion>,
    pub tls_ciphers: Option<String>,
    pub tls_groups: Option<String>,
    /// OpenSSL's security level, 0 to 5. Absent: the library's own.
    pub tls_security_level: Option<u8>,
    /// PEM files: the client's certificate, and its key. Shown to a server that asks for one.
    pub tls_certificate: Option<String>,
    pub tls_key: Option<String>,
    #[serde(default)]
    pub resumption: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sqlite {
    pub path: String,
    pub key: Option<String>,
    /// The key is a passphrase, from which SQLCipher derives the key whenever a database is opened.
    #[serde(default)]
    pub passphrase: bool,
    pub reserve: Option<u8>,
    pub pragmas: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WireCrypt {
    #[default]
    Off,
    Require,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Firebird {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub database: String,
    pub password: Option<String>,
    #[serde(default)]
    pub wire_crypt: WireCrypt,
    pub wire_crypt_plugins: Option<String>,
    #[serde(default)]
    pub create: bool,
    /// As a server's. Nothing follows from it here: SRP never sends the password.
    #[serde(default)]
    #[expect(dead_code)]
    pub relayed: bool,
}

impl Firebird {
    /// The wire encryption plugins that may be used, the preferred one first.
    pub fn plugins(&self) -> impl Iterator<Item = &str> {
        let named = self.wire_crypt_plugins.as_deref().unwrap_or(wirecrypt::PLUGINS[0]);
        named.split([',', ' ']).filter(|name| !name.is_empty())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
pub enum HttpVersion {
    #[default]
    #[serde(rename = "1.1")]
    V11,
    #[serde(rename = "2")]
    V2,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Http {
    pub host: String,
    pub port: u16,
    #[serde(default)]
    pub http: HttpVersion,
    pub authority: Option<String>,
    /// What a request asks for that names no path.
    #[serde(default = "root")]
    pub path: String,
    pub clear_host: Option<String>,
    pub clear_port: Option<u16>,
    pub clear_authority: Option<String>,
    #[serde(default)]
    pub tls: Tls,
    pub tls_ca: Option<String>,
    pub tls_server_name: Option<String>,
    pub tls_min: Option<TlsVersion>,
    pub tls_max: Option<TlsVersion>,
    pub tls_ciphers: Option<String>,
    pub tls_groups: Option<String>,
    /// OpenSSL's security level, 0 to 5. Absent: the library's own.
    pub tls_security_level: Option<u8>,
    /// PEM files: the client's certificate, and its key. Shown to a server that asks for one.
    pub tls_certificate: Option<String>,
    pub tls_key: Option<String>,
    #[serde(default)]
    pub resumption: bool,
}

fn root() -> String {
    "/".to_string()
}

impl Http {
    /// The server that requests go to.
    pub fn server(&self) -> Server {
        Server {
            host: self.host.clone(),
            port: self.port,
            user: String::new(),
            database: None,
            password: None,
            search_path: None,
            setup: None,
            relayed: false,
            address: None,
            tls: self.tls,
            tls_ca: self.tls_ca.clone(),
            tls_server_name: self.tls_server_name.clone(),
            tls_min: self.tls_min,
            tls_max: self.tls_max,
            tls_ciphers: self.tls_ciphers.clone(),
            tls_groups: self.tls_groups.clone(),
            tls_security_level: self.tls_security_level,
            tls_certificate: self.tls_certificate.clone(),
            tls_key: self.tls_key.clone(),
            resumption: self.resumption,
        }
    }

    /// The server that `CLEAR` requests go to, if there is one.
    pub fn clear_server(&self) -> Option<Server> {
        let host = self.clear_host.as_ref().unwrap_or(&self.host).clone();
        self.clear_port.map(|port| Server { host, port, tls: Tls::Off, ..self.server() })
    }

    fn check(&self) -> Result<()> {
        if !self.path.starts_with('/') || self.path.contains(|letter: char| letter.is_whitespace() || letter == '#') {
            return Err(Failure::bad_message("path: must begin with / and hold no space and no #"));
        }
        for (name, value) in [("authority", &self.authority), ("clear_authority", &self.clear_authority)] {
            let word = |value: &String| !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic());
            if !value.as_ref().is_none_or(word) {
                return Err(Failure::bad_message(format!("{name}: must be one word of ASCII")));
            }
        }
        if self.clear_port.is_none() && (self.clear_host.is_some() || self.clear_authority.is_some()) {
            return Err(Failure::bad_message("clear_host, clear_authority: only with clear_port"));
        }
        Ok(())
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    pub arm: String,
    pub sql: String,
    #[serde(default)]
    pub all: bool,
    /// Seconds that all of it may take.
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
    /// Seconds that preparing may take, that the server may be silent, and that the slice may outlast its length.
    pub timeout: Option<f64>,
}

/// When the requests of an open loop are due.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// As far from each other as the rate says.
    #[default]
    Even,
    /// As a Poisson process of that rate has it.
    Random,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floor {
    pub cipher: String,
    pub bytes: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disconnect {
    pub arm: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

impl Connect {
    pub fn pool(&self) -> &Pool {
        match self {
            Connect::Null(pool, _) | Connect::Sqlite(pool, _) => pool,
            Connect::Postgres(pool, _) | Connect::Mysql(pool, _) | Connect::Resp(pool, _) => pool,
            Connect::Firebird(pool, _) => pool,
            Connect::Http(pool, _) => pool,
        }
    }

    /// Refuses values out of bounds, before anything changes.
    pub fn check(&self) -> Result<()> {
        let pool = self.pool();
        for (name, value, most) in [("connections", pool.connections, 10_000), ("threads", pool.threads, 1_000)] {
            if !(1..=most).contains(&value) {
                return Err(Failure::bad_message(format!("{name}: must lie between 1 and {most}")));
            }
        }
        seconds(pool.timeout, deadline::CONNECT_SECONDS)?;
        match self {
            Connect::Null(_, asked) if !(0.0..=1.0).contains(&asked.jitter) => {
                Err(Failure::bad_message("jitter: must lie between 0 and 1"))
            }
            Connect::Postgres(_, asked) if asked.database.is_none() => {
                Err(Failure::bad_message("missing field `database`"))
            }
            Connect::Mysql(_, asked) if asked.search_path.is_some() => {
                Err(Failure::bad_message("unknown field `search_path`: MySQL's schemas are its databases"))
            }
            Connect::Sqlite(_, Sqlite { key: Some(key), passphrase, reserve, .. }) => {
                let raw = key.len() == 64 && key.bytes().all(|byte| byte.is_ascii_hexdigit());
                match passphrase {
                    false if !raw => return Err(Failure::bad_message("key: must be 64 hexadecimal digits")),
                    // SQLCipher would take it for a raw key.
                    true if key.is_empty() || key.starts_with("x'") => {
                        return Err(Failure::bad_message("key: must be a passphrase, and not begin with x'"));
                    }
                    _ => (),
                }
                match reserve {
                    Some(_) => Err(Failure::bad_message("reserve: only without key; SQLCipher reserves by itself")),
                    None => Ok(()),
                }
            }
            Connect::Sqlite(_, Sqlite { passphrase: true, .. }) => Err(Failure::bad_message("missing field `key`")),
            Connect::Http(_, asked) => asked.check(),
            Connect::Firebird(_, asked) => match asked.plugins().find(|name| !wirecrypt::PLUGINS.contains(name)) {
                None if asked.plugins().next().is_some() => Ok(()),
                unknown => Err(Failure::bad_message(format!(
                    "wire_crypt_plugins: {:?} is none of {}",
                    unknown.unwrap_or_default(),
                    wirecrypt::PLUGINS.join(", ")
                ))),
            },
            _ => Ok(()),
        }
    }
}

/// A `timeout`, or what it is where there is none.
pub fn seconds(timeout: Option<f64>, otherwise: f64) -> Result<f64> {
    match timeout.unwrap_or(otherwise) {
        seconds if seconds > 0.0 && seconds <= deadline::LONGEST_SECONDS => Ok(seconds),
        _ => Err(Failure::bad_message("timeout: must be above 0 and at most 86400")),
    }
}

/// The `type` of every message, in the order of PROTOCOL.md.
const TYPES: [&str; 12] = [
    "hello",
    "program",
    "cipher",
    "variable",
    "transaction",
    "statement",
    "connect",
    "query",
    "slice",
    "floor",
    "disconnect",
    "bye",
];

/// A line whose JSON and `type` are sound, its other fields not looked at yet.
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
                        "sqlite" => Connect::Sqlite(pool, read(fields)?),
                        "firebird" => Connect::Firebird(pool, Box::new(read(fields)?)),
                        "http" => Connect::Http(pool, Box::new(read(fields)?)),
                        _ => {
                            return Err(Failure::bad_message(format!(
                                "driver: {driver:?} is none of null, postgres, mysql, firebird, sqlite, http, resp"
                            )));
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

/// A JSON object whose values are strings, numbers or booleans, and no name of which occurs twice.
struct Flat(Map<String, Value>);

impl<'de> Deserialize<'de> for Flat {
    fn deserialize<D: Deserializer<'de>>(source: D) -> std::result::Result<Flat, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Flat;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, "an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> std::result::Result<Flat, A::Error> {
                let mut fields = Map::new();
                while let Some((name, value)) = source.next_entry::<String, Value>()? {
                    if !matches!(value, Value::String(_) | Value::Number(_) | Value::Bool(_)) {
                        let text = format!("{name}: must be a string, a number or a boolean");
                        return Err(serde::de::Error::custom(text));
                    }
                    if fields.contains_key(&name) {
                        return Err(serde::de::Error::custom(format!("{name}: given twice")));
                    }
                    fields.insert(name, value);
                }
                Ok(Flat(fields))
            }
        }
        source.deserialize_map(Fields)
    }
}

/// Everything that an agent says.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Answer {
    Hello {
        protocol: u64,
        agent: &'static str,
        version: &'static str,
        drivers: &'static str,
        tls_library: String,
        aes: bool,
    },
    Ok {},
    Error {
        code: String,
        text: String,
    },
    Connected(Box<Connected>),
    Rows {
        rows: u64,
        columns: String,
        text: String,
    },
    Counting {
        arm: String,
    },
    Slice(Box<SliceAnswer>),
    Floor {
        cipher: String,
        bytes: u64,
        ns_per_byte_seal: f64,
        ns_per_byte_open: f64,
        library: String,
    },
}

impl From<Failure> for Answer {
    fn from(failure: Failure) -> Answer {
        Answer::Error { code: failure.code, text: failure.text }
    }
}

impl Connected {
    /// Bounds what the server has named: it is shown to people, and goes into results.
    pub fn bounded(mut self) -> Connected {
        let Connected { protocol, cipher, group, peer, peer_key, server_version, auth, application, .. } = &mut self;
        for text in [protocol, cipher, group, peer, peer_key, server_version, auth, application] {
            *text = one_line(text, LONGEST_NAME);
        }
        self
    }
}

/// Letters of a name that a server gives.
const LONGEST_NAME: usize = 300;

/// What `connect` achieved.
#[derive(Debug, Default, Clone, Serialize)]
pub struct Connected {
    pub arm: String,
    pub connections: usize,
    pub encrypted: bool,
    pub protocol: String,
    pub cipher: String,
    pub group: String,
    pub resumed: u64,
    pub verified: bool,
    pub peer: String,
    pub peer_key: String,
    pub server_version: String,
    /// How the last connection was let in.
    pub auth: String,
    pub library: String,
    /// What both sides speak, where there is a choice.
    pub application: String,
}

#[derive(Debug, Serialize)]
pub struct SliceAnswer {
    pub arm: String,
    pub seconds: f64,
    pub operations: u64,
    pub work: f64,
    pub errors: u64,
    pub error_kinds: String,
    pub rows: u64,
    pub sealed: u64,
    pub opened: u64,
    pub checksum: String,
    pub cpu_user_ns: u64,
    pub cpu_system_ns: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub segments_sent: u64,
    pub segments_received: u64,
    pub connects: u64,
    pub resumed: u64,
    pub late: u64,
    pub threads: usize,
    pub histogram: String,
    pub first_error: String,
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
    fn what_the_protocol_names_is_read() {
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

    #[test]
    fn a_timeout_is_a_number_of_seconds_above_0() {
        assert_eq!(seconds(None, 30.0).unwrap(), 30.0);
        assert_eq!(seconds(Some(0.5), 30.0).unwrap(), 0.5);
        for wrong in [0.0, -1.0, 86_401.0, f64::NAN, f64::INFINITY] {
            assert_eq!(seconds(Some(wrong), 30.0).unwrap_err().code, "bad-message", "{wrong}");
        }
    }

    #[test]
    fn what_a_server_calls_itself_is_bounded_and_one_line() {
        let named = Connected { server_version: "9\x1b[2J\n".repeat(1000), ..Connected::default() }.bounded();
        assert!(named.server_version.chars().count() <= LONGEST_NAME + 1);
        assert!(!named.server_version.contains(char::is_control));
    }

    #[test]
    fn an_answer_is_one_flat_line() {
        let answer = Answer::from(Failure::statement("two\nlines"));
        let line = serde_json::to_string(&answer).unwrap();
        assert_eq!(line, r#"{"type":"error","code":"statement","text":"two lines"}"#);
    }
}
