//! network: what the drivers of servers have in common.

pub mod buffer;
mod client;
pub mod facts;
pub mod link;
pub mod protocol;
mod setup;
pub mod statements;
pub mod wire;

pub use client::connect;
