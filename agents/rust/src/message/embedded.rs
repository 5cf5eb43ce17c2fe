//! Fields of `connect` for databases within the agent's own process.

use serde::Deserialize;

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

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DuckDb {
    pub path: String,
    /// A shared library with DuckDB's C interface.
    pub library: String,
    /// A file of an extension, which is loaded before the database is opened.
    pub extension: Option<String>,
    /// Statements that are run before the database is opened: settings of the instance.
    pub pragmas: Option<String>,
    pub key: Option<String>,
    /// Of an encrypted database: GCM or CTR.
    pub cipher: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turso {
    pub path: String,
    /// A shared library with Turso's C interface.
    pub library: String,
    /// A library that is loaded before, because the other one refers to its symbols.
    pub extension: Option<String>,
    /// Statements that each connection runs first.
    pub pragmas: Option<String>,
    /// Hexadecimal digits.
    pub key: Option<String>,
    /// Of an encrypted database, by Turso's name.
    pub cipher: Option<String>,
}
