//! tests: clients against servers on real sockets that behave, and that do not.

mod clients;
mod one;
mod servers;
mod two;
