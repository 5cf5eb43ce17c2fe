//! How far a connection has come, from its socket to its login.

use crate::transport::Transport;
use crate::transport::quic::Quic;
use crate::transport::socket::Socket;
use openssl::ssl::SslStream;

/// State of a connection.
#[derive(Default)]
pub enum Phase {
    #[default]
    Closed,
    Connecting(Socket),
    /// The protocol's unencrypted exchange before TLS or the login.
    Greeting(Socket),
    Handshake(SslStream<Socket>),
    QuicHandshake(Box<Quic>),
    Login(Transport),
    Open(Transport),
}

impl Phase {
    #[inline]
    pub fn socket(&self) -> Option<&Socket> {
        match self {
            Phase::Closed => None,
            Phase::Connecting(socket) | Phase::Greeting(socket) => Some(socket),
            Phase::Handshake(stream) => Some(stream.get_ref()),
            Phase::QuicHandshake(quic) => Some(quic.socket()),
            Phase::Login(transport) | Phase::Open(transport) => Some(transport.socket()),
        }
    }

    /// When the connection has something to do although nothing arrives (monotonic clock).
    #[inline]
    pub fn timer_ns(&self) -> Option<u64> {
        match self {
            Phase::QuicHandshake(quic) => quic.timer_ns(),
            Phase::Open(transport) => transport.timer_ns(),
            _ => None,
        }
    }

    /// What to wait for when a request can't be sent any further.
    #[inline]
    pub fn waits_to_send_for(&self) -> i32 {
        match self {
            Phase::Open(transport) => transport.waits_to_send_for(),
            _ => libc::EPOLLOUT,
        }
    }
}
