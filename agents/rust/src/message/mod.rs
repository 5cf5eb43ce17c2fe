//! Requests and answers, one line each. PROTOCOL.md describes them.

mod answer;
mod connect;
mod embedded;
mod flat;
mod request;

pub use answer::{Answer, Connected, SliceAnswer};
pub use connect::{
    Connect, DRIVERS, Firebird, Http, HttpVersion, Null, Pool, Server, Tls, TlsVersion, WireCrypt, seconds,
};
pub use embedded::{DuckDb, Sqlite};
pub use request::{Arrivals, Hello, Line, Request, Slice, Variable};
