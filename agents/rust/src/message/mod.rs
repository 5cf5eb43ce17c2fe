//! Requests and answers, one line each. PROTOCOL.md describes them.

mod answer;
mod connect;
mod flat;
mod http;
mod request;
mod server;

pub use answer::{Answer, Connected, SliceAnswer};
pub use connect::{Connect, DRIVERS, Firebird, Null, Pool, Sqlite, WireCrypt, seconds};
pub use http::{Http, HttpVersion};
pub use request::{Arrivals, Hello, Line, Request, Slice, Variable};
pub use server::{Server, Tls, TlsVersion};
