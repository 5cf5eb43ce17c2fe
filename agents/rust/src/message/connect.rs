//! The fields of `connect`, driver by driver.

use super::embedded::{DuckDb, Sqlite, Turso};
use super::http::Http;
use super::server::{ChannelBinding, Server, Tls};
use crate::deadline;
use crate::failure::{Failure, Result};
use serde::Deserialize;

/// Every driver, as `hello` and error messages list them.
pub const DRIVERS: &str = "null postgres mysql firebird sqlite duckdb turso http resp memcached";

const FEW_CONNECTIONS: usize = 64;

#[derive(Debug)]
pub enum Connect {
    Null(Pool, Null),
    Postgres(Pool, Box<Server>),
    Mysql(Pool, Box<Server>),
    Resp(Pool, Box<Server>),
    Memcached(Pool, Box<Server>),
    Sqlite(Pool, Sqlite),
    DuckDb(Pool, DuckDb),
    Turso(Pool, Turso),
    Firebird(Pool, Box<Firebird>),
    Http(Pool, Box<Http>),
}

/// Fields that every driver's `connect` has.
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
    /// Seconds until a connection must be usable.
    pub timeout: Option<f64>,
}

impl Pool {
    /// Runs the code that opens one connection, within that time.
    pub fn opening<T>(&self, open: impl FnOnce() -> Result<T>) -> Result<T> {
        deadline::within(self.seconds(), "finish the login", open)
    }

    /// Whether it has so many connections that what an idle one holds counts for more than the time to get it back.
    pub fn is_crowd(&self) -> bool {
        self.connections > FEW_CONNECTIONS
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

/// Firebird's wire encryption plugins in the agent, the preferred one first.
pub const WIRE_CRYPT_PLUGINS: [&str; 3] = ["ChaCha64", "ChaCha", "Arc4"];

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
    /// As in `Server`. It has no effect here: SRP never sends the password.
    #[serde(default)]
    #[expect(dead_code)]
    pub relayed: bool,
    /// The same.
    #[serde(default)]
    #[expect(dead_code)]
    pub trusted: bool,
}

impl Firebird {
    /// Allowed wire encryption plugins, the preferred one first.
    pub fn plugins(&self) -> impl Iterator<Item = &str> {
        let named = self.wire_crypt_plugins.as_deref().unwrap_or(WIRE_CRYPT_PLUGINS[0]);
        named.split([',', ' ']).filter(|name| !name.is_empty())
    }
}

impl Connect {
    pub fn pool(&self) -> &Pool {
        match self {
            Connect::Null(pool, _) => pool,
            Connect::Sqlite(pool, _) => pool,
            Connect::DuckDb(pool, _) => pool,
            Connect::Turso(pool, _) => pool,
            Connect::Postgres(pool, _) | Connect::Mysql(pool, _) => pool,
            Connect::Resp(pool, _) | Connect::Memcached(pool, _) => pool,
            Connect::Firebird(pool, _) => pool,
            Connect::Http(pool, _) => pool,
        }
    }

    /// The most files that its arm has open at once.
    pub fn files(&self) -> usize {
        // An embedded database has its file, its log and the log's index. A connection for one operation opens while the last
        // one still waits for its server's close.
        let lines = match self {
            Connect::Null(..) => 0,
            Connect::Sqlite(..) | Connect::DuckDb(..) | Connect::Turso(..) => 3,
            Connect::Http(_, asked) if asked.clear_port.is_some() => 2,
            _ => 1,
        };
        let pool = self.pool();
        let ends = if pool.per_request { 2 } else { 1 };
        pool.connections * lines * ends + pool.threads.min(pool.connections)
    }

    /// Refuses values out of bounds before anything changes.
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
            Connect::Postgres(_, asked) | Connect::Resp(_, asked) | Connect::Memcached(_, asked)
                if asked.socket.is_some() =>
            {
                Err(Failure::bad_message("socket: only for mysql"))
            }
            Connect::Mysql(_, asked) if asked.socket.is_some() && asked.tls != Tls::Off => Err(Failure::bad_message(
                "socket: connections by a Unix socket are unencrypted here; leave out tls or socket",
            )),
            Connect::Mysql(_, asked) | Connect::Resp(_, asked) | Connect::Memcached(_, asked) if asked.tls_at_once => {
                Err(Failure::bad_message("tls_at_once: only for postgres; where TLS can begin at once, it always does"))
            }
            Connect::Mysql(_, asked) | Connect::Resp(_, asked) | Connect::Memcached(_, asked)
                if asked.channel_binding != ChannelBinding::Disable =>
            {
                Err(Failure::bad_message("channel_binding: only for postgres"))
            }
            Connect::Postgres(_, asked)
                if asked.channel_binding == ChannelBinding::Require && asked.tls == Tls::Off =>
            {
                Err(Failure::bad_message("channel_binding: require needs tls"))
            }
            Connect::Mysql(_, asked) if asked.search_path.is_some() => {
                Err(Failure::bad_message("unknown field `search_path`: MySQL's schemas are its databases"))
            }
            Connect::Resp(_, asked) | Connect::Memcached(_, asked)
                if asked.database.is_some() || asked.search_path.is_some() =>
            {
                Err(Failure::bad_message("unknown fields `database`, `search_path`: a key-value store has neither"))
            }
            Connect::Sqlite(_, Sqlite { key: Some(key), passphrase, reserve, .. }) => {
                let raw = key.len() == 64 && key.bytes().all(|byte| byte.is_ascii_hexdigit());
                match passphrase {
                    false if !raw => return Err(Failure::bad_message("key: must be 64 hexadecimal digits")),
                    // SQLCipher would treat it as a raw key.
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
            Connect::Firebird(_, asked) => match asked.plugins().find(|name| !WIRE_CRYPT_PLUGINS.contains(name)) {
                None if asked.plugins().next().is_some() => Ok(()),
                unknown => Err(Failure::bad_message(format!(
                    "wire_crypt_plugins: {:?} is not one of {}",
                    unknown.unwrap_or_default(),
                    WIRE_CRYPT_PLUGINS.join(", ")
                ))),
            },
            _ => Ok(()),
        }
    }
}

/// A `timeout`, or its default.
pub fn seconds(timeout: Option<f64>, otherwise: f64) -> Result<f64> {
    match timeout.unwrap_or(otherwise) {
        seconds if seconds > 0.0 && seconds <= deadline::LONGEST_SECONDS => Ok(seconds),
        _ => Err(Failure::bad_message("timeout: must be above 0 and at most 86400")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Line, Request};

    fn files(fields: &str) -> usize {
        let line = format!(r#"{{"type":"connect","arm":"a",{fields}}}"#);
        match Line::read(line.as_bytes()).and_then(Line::request).unwrap() {
            Request::Connect(connect) => connect.files(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_arm_needs_a_file_for_each_line_of_each_connection_and_for_each_thread() {
        let postgres = r#""driver":"postgres","host":"h","port":1,"user":"u","database":"d""#;
        assert_eq!(files(&format!(r#"{postgres},"connections":1000,"threads":8"#)), 1008);
        assert_eq!(files(&format!(r#"{postgres},"connections":1000,"per_request":true"#)), 2001);
        let http = r#""driver":"http","host":"h","port":1,"connections":10000"#;
        assert_eq!((files(http), files(&format!(r#"{http},"clear_port":2"#))), (10_001, 20_001));
        assert_eq!(files(r#""driver":"sqlite","path":"p","connections":2,"threads":5"#), 8);
        assert_eq!(files(r#""driver":"null","connections":10000"#), 1);
    }

    #[test]
    fn early_data_needs_quic_and_a_session_to_resume() {
        for (more, fits) in [
            (r#""http":"3","resumption":true"#, true),
            (r#""http":"3""#, false),
            (r#""http":"2","resumption":true"#, false),
            (r#""resumption":true"#, false),
        ] {
            let fields = format!(r#"{{"host":"h","port":1,"tls":"require","early_data":true,{more}}}"#);
            let asked: Http = serde_json::from_str(&fields).unwrap();
            assert_eq!(asked.check().is_ok(), fits, "{fields}");
        }
        assert!(serde_json::from_str::<Server>(r#"{"host":"h","port":1,"user":"u","early_data":true}"#).is_err());
    }

    #[test]
    fn a_server_is_exposed_unless_it_is_here_encrypted_or_on_a_trusted_network() {
        for (host, more, exposed) in [
            ("127.0.0.1", "", false),
            ("127.0.0.2", "", false),
            ("127.0.0.1", r#", "relayed": true"#, true),
            ("127.0.0.1", r#", "relayed": true, "trusted": true"#, false),
            ("10.77.0.1", "", true),
            ("10.77.0.1", r#", "trusted": true"#, false),
            ("10.77.0.1", r#", "tls": "require""#, false),
            ("localhost", "", true),
        ] {
            let fields = format!(r#"{{"host": "{host}", "port": 1, "user": "u"{more}}}"#);
            let server: Server = serde_json::from_str(&fields).unwrap();
            assert_eq!(server.exposed(), exposed, "{fields}");
        }
    }

    #[test]
    fn a_unix_socket_is_for_mysql_and_without_tls() {
        for (driver, more, fits) in [
            ("mysql", "", true),
            ("mysql", r#","tls":"require""#, false),
            ("postgres", r#","database":"d""#, false),
            ("resp", "", false),
            ("memcached", "", false),
        ] {
            let line = format!(
                r#"{{"type":"connect","arm":"a","driver":"{driver}","host":"h","port":1,"user":"u","socket":"/s"{more}}}"#
            );
            match Line::read(line.as_bytes()).and_then(Line::request).unwrap() {
                Request::Connect(connect) => assert_eq!(connect.check().is_ok(), fits, "{line}"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_server_elsewhere_is_verified_by_its_certificate_only() {
        for (host, more, unverified) in [
            ("127.0.0.1", "", false),
            ("127.0.0.1", r#", "relayed": true"#, true),
            ("10.77.0.1", "", true),
            ("10.77.0.1", r#", "trusted": true"#, false),
            ("10.77.0.1", r#", "tls": "require""#, true),
            ("10.77.0.1", r#", "tls": "verify-ca""#, false),
            ("10.77.0.1", r#", "tls": "verify-full""#, false),
        ] {
            let fields = format!(r#"{{"host": "{host}", "port": 1, "user": "u"{more}}}"#);
            let server: Server = serde_json::from_str(&fields).unwrap();
            assert_eq!(server.unverified(), unverified, "{fields}");
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
}
