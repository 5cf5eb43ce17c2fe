//! A server, and how to log in.

use super::wire::Protection;
use crate::failure::Result;
use crate::transport::socket::{Mode, Socket};
use std::net::SocketAddr;

pub struct Target<A> {
    /// Of a server that is reached by `local`: loopback.
    pub address: SocketAddr,
    /// The file of its Unix-domain socket, if connections are to be made there.
    pub local: Option<String>,
    pub asked: A,
    pub protection: Protection,
}

impl<A> Target<A> {
    /// Begins a connection.
    pub fn open(&self, mode: Mode) -> Result<Socket> {
        match (&self.protection, &self.local) {
            (Protection::Quic(_), _) => Socket::open_datagrams(self.address, mode),
            (_, Some(path)) => Socket::open_local(path, mode),
            _ => Socket::open(self.address, mode),
        }
    }
}
