//! One module per protocol, and what the drivers of servers share (`network`), and those of databases in this process (`embedded`, `statements`, `cells`,
//! `loaded`).

pub mod cells;
pub mod duckdb;
pub mod embedded;
pub mod firebird;
pub mod http;
pub mod key_value;
pub mod loaded;
pub mod memcached;
pub mod mysql;
pub mod network;
pub mod null;
pub mod postgres;
pub mod resp;
pub mod sqlite;
pub mod statements;
pub mod turso;
