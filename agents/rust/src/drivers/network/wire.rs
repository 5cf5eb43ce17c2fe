//! wire: what a protocol tells a link: how a connection to its server begins, what encrypts it, and how it ends.

use super::buffer::Buffer;
use crate::connection::Step;
use crate::failure::Result;
use crate::message;
use crate::transport::socket::{Socket, Traffic};
use crate::transport::tls::TlsClient;
use crate::transport::wirecrypt;
use std::io;

/// How a connection to a server begins and ends, whatever is said on it.
pub trait Wire: Sized + Send + 'static {
    /// What `connect` was asked for.
    type Asked: Send + Sync;
    type Inbox: Inbox;
    type Login: Login<Self::Inbox, Self::Asked>;
    /// What a client says before it closes the connection.
    const GOODBYE: &'static [u8];

    /// Waits for the peer to close a connection that we have taken leave of. Gives all that it ever moved.
    fn part(socket: Socket) -> Traffic {
        socket.finish()
    }
}

/// What must encrypt a connection before it can be used.
pub enum Protection {
    Clear,
    /// TLS, before the login.
    Tls(TlsClient),
    /// Firebird's wire encryption, which begins within the login: its key comes from there.
    WireCrypt,
}

impl From<Option<TlsClient>> for Protection {
    fn from(tls: Option<TlsClient>) -> Protection {
        tls.map_or(Protection::Clear, Protection::Tls)
    }
}

/// Received bytes, and how far they were read.
pub trait Inbox: Default + Send {
    fn buffer(&mut self) -> &mut Buffer;

    /// Makes it new, for a new connection.
    fn clear(&mut self);

    /// Receives once. The end of the connection is an error.
    #[inline]
    fn fill(&mut self, receive: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> io::Result<()> {
        self.buffer().fill(receive)
    }
}

/// One login.
pub trait Login<I, A = message::Server>: Default + Send {
    /// What is said before TLS and before the login, in clear. `Pending`: the server's part has not come yet.
    fn greet(&mut self, _socket: &Socket, _asked: &A) -> Result<Step> {
        Ok(Step::Done)
    }

    /// The login's first message.
    fn first(&mut self, asked: &A) -> Result<Vec<u8>>;

    fn hear(&mut self, inbox: &mut I, asked: &A) -> Result<Turn>;

    /// What is said before the goodbye where nobody waits for an answer to it.
    fn farewell(&self) -> Vec<u8> {
        Vec::new()
    }

    /// The server's version, without its packager's name.
    fn server_version(&self) -> String {
        String::new()
    }

    /// How we were let in.
    fn auth(&self) -> String {
        String::new()
    }
}

/// What a login does next.
pub enum Turn {
    /// More must come.
    Wait,
    Send(Vec<u8>),
    /// Sends this in clear; whatever follows, the answer too, is encrypted by these ciphers.
    Encrypt(Vec<u8>, wirecrypt::Ciphers),
    /// The server has let us in.
    Ready,
}
