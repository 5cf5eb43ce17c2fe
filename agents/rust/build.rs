//! Compiles SQLCipher into the agent, against the vendored OpenSSL. Without a key SQLCipher is plain SQLite.
//!
//! The options are those with which the crate libsqlite3-sys builds SQLCipher. That crate needs a newer Rust than Debian 13 has.

use std::env;

const OPTIONS: &[(&str, Option<&str>)] = &[
    ("SQLITE_CORE", None),
    ("SQLITE_DEFAULT_FOREIGN_KEYS", Some("1")),
    ("SQLITE_ENABLE_API_ARMOR", None),
    ("SQLITE_ENABLE_COLUMN_METADATA", None),
    ("SQLITE_ENABLE_DBSTAT_VTAB", None),
    ("SQLITE_ENABLE_FTS3", None),
    ("SQLITE_ENABLE_FTS3_PARENTHESIS", None),
    ("SQLITE_ENABLE_FTS5", None),
    ("SQLITE_ENABLE_JSON1", None),
    ("SQLITE_ENABLE_LOAD_EXTENSION", Some("1")),
    ("SQLITE_ENABLE_RTREE", None),
    ("SQLITE_ENABLE_STAT4", None),
    ("SQLITE_SOUNDEX", None),
    ("SQLITE_THREADSAFE", Some("1")),
    ("SQLITE_USE_URI", None),
    ("HAVE_USLEEP", Some("1")),
    ("HAVE_ISNAN", None),
    ("HAVE_LOCALTIME_R", None),
    ("HAVE_STDINT_H", Some("1")),
    ("_POSIX_THREAD_SAFE_FUNCTIONS", None),
    ("SQLITE_HAS_CODEC", None),
    ("SQLITE_TEMP_STORE", Some("2")),
    ("SQLITE_EXTRA_INIT", Some("sqlcipher_extra_init")),
    ("SQLITE_EXTRA_SHUTDOWN", Some("sqlcipher_extra_shutdown")),
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let source = sqlcipher_src::source_dir().join(sqlcipher_src::SOURCE_FILE);
    let openssl =
        env::var_os("DEP_OPENSSL_INCLUDE").expect("openssl-sys names the headers of the OpenSSL that it built");
    let mut build = cc::Build::new();
    build.file(source).include(openssl).warnings(false);
    for (name, value) in OPTIONS {
        build.define(name, *value);
    }
    build.compile("sqlcipher");
}
