//! What the drivers of servers share.

pub mod block;
pub mod buffer;
mod client;
pub mod facts;
pub mod large;
pub mod link;
mod phase;
pub mod protocol;
mod setup;
pub mod statements;
pub mod target;
pub mod wire;

pub use client::connect;
