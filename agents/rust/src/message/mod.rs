//! Requests and answers, one line each. PROTOCOL.md describes them.

mod answer;
mod connect;
mod embedded;
mod flat;
pub mod header_lines;
mod http;
mod request;
mod secret;
mod server;

pub use answer::{Answer, Connected, SliceAnswer};
pub use connect::{Connect, DRIVERS, Firebird, Null, Pool, WireCrypt, seconds};
pub use embedded::{DuckDb, Sqlite, Turso};
pub use http::{Http, HttpVersion};
pub use request::{Arrivals, Floor, Hello, Line, Request, Slice, Step, Variable};
pub use server::{ChannelBinding, Server, Tls, TlsVersion};
