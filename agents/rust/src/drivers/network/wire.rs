//! The interface between a protocol and its link: how a connection begins, what encrypts it, and how it ends.

use super::buffer::Buffer;
use crate::connection::Step;
use crate::failure::Result;
use crate::message;
use crate::transport::quic::QuicClient;
use crate::transport::self_signed::SelfSigned;
use crate::transport::socket::Socket;
use crate::transport::tls::TlsClient;
use crate::transport::traffic::Traffic;
use crate::transport::wirecrypt;
use openssl::ssl::SslRef;
use std::io;

/// How a connection to a server begins and ends, whatever runs on it.
pub trait Wire: Sized + Send + 'static {
    /// The request of `connect`.
    type Asked: Send + Sync;
    type Inbox: Inbox;
    type Login: Login<Self::Inbox, Self::Asked>;
    /// The client's message before it closes the connection.
    const GOODBYE: &'static [u8];
    /// The protocol's name in ALPN, for a server that takes TLS without being asked for it.
    const APPLICATION: Option<&'static str> = None;
    /// Whether its login can verify a self-signed certificate by the password.
    const PROVES_CERTIFICATE: bool = false;

    /// Waits for the peer to close a connection after our goodbye. Returns all of its traffic.
    fn part(socket: Socket) -> Traffic {
        socket.finish()
    }
}

/// Required encryption of a connection.
pub enum Protection {
    Clear,
    /// TLS before the login.
    Tls(TlsClient),
    /// Firebird's wire encryption, which begins within the login that provides its key.
    WireCrypt,
    /// QUIC over UDP, which is always encrypted.
    Quic(QuicClient),
}

impl From<Option<TlsClient>> for Protection {
    fn from(tls: Option<TlsClient>) -> Protection {
        tls.map_or(Protection::Clear, Protection::Tls)
    }
}

/// Received bytes, and how far they were read.
pub trait Inbox: Default + Send {
    fn buffer(&mut self) -> &mut Buffer;

    /// Resets it for a new connection.
    fn clear(&mut self);

    /// Gives back memory that it does not need while the connection is idle.
    #[inline]
    fn rest(&mut self) {
        self.buffer().rest();
    }

    /// Receives once. The end of the connection is an error.
    #[inline]
    fn fill(&mut self, receive: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> io::Result<()> {
        self.buffer().fill(receive)
    }
}

/// One login.
pub trait Login<I, A = message::Server>: Default + Send {
    /// The unencrypted exchange before TLS and the login. `Pending`: the server's part has not arrived yet.
    fn greet(&mut self, _socket: &Socket, _asked: &A) -> Result<Step> {
        Ok(Step::Done)
    }

    /// Before the login: TLS protects it, with this session.
    fn protected_by(&mut self, _session: &SslRef, _asked: &A) {}

    /// Before the login: it must verify this certificate, which no authority has signed.
    fn must_prove(&mut self, _certificate: SelfSigned) {}

    /// By what the login has verified the server's certificate, if it has.
    fn verified_by(&self) -> Option<&'static str> {
        None
    }

    /// The login's first message.
    fn first(&mut self, asked: &A) -> Result<Vec<u8>>;

    fn hear(&mut self, inbox: &mut I, asked: &A) -> Result<Turn>;

    /// A message before the goodbye, if nobody waits for its response.
    fn farewell(&self) -> Vec<u8> {
        Vec::new()
    }

    /// The server's version without its packager's name.
    fn server_version(&self) -> String {
        String::new()
    }

    /// How the login authenticated.
    fn auth(&self) -> String {
        String::new()
    }
}

/// The next step of a login.
pub enum Turn {
    /// Wait for more bytes.
    Wait,
    Send(Vec<u8>),
    /// Send this unencrypted; everything after it, including the response, is encrypted by these ciphers.
    Encrypt(Vec<u8>, wirecrypt::Ciphers),
    /// The login is complete.
    Ready,
}
