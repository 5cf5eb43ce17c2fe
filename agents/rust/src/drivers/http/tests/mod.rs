//! Clients against servers on real sockets, correct and faulty ones.

mod clients;
mod one;
mod parts;
mod requests;
pub mod servers;
mod two;
