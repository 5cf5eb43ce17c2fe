//! Clients against servers on real sockets, correct and faulty ones.

mod clients;
mod one;
mod parts;
pub mod servers;
mod two;
