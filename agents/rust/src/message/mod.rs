//! Requests and answers, one line each. PROTOCOL.md describes them.

mod answer;
mod connect;
mod flat;
mod request;

pub use answer::{Answer, Connected, SliceAnswer};
pub use connect::{
    Connect, DRIVERS, DuckDb, Firebird, Http, HttpVersion, Null, Pool, Server, Sqlite, Tls, TlsVersion, WireCrypt,
    seconds,
};
pub use request::{Arrivals, Hello, Line, Request, Slice, Variable};
