//! A connection, unencrypted, under TLS, under Firebird's wire encryption or by QUIC, with as few system calls as there are flights.

pub mod binding;
mod datagrams;
mod local;
mod naming;
pub mod quic;
#[cfg(any(test, fuzzing))]
pub mod scripted;
pub mod self_signed;
mod sessions;
pub mod socket;
mod tcp_info;
pub mod tls;
pub mod traffic;
pub mod wirecrypt;

use bytes::Bytes;
use foreign_types_shared::ForeignTypeRef;
use openssl::ssl::{ErrorCode, SslStream};
use quic::Quic;
use socket::Socket;
use std::io;

/// The longest TLS record (RFC 5246, 6.2.3: header, plaintext, expansion).
const RECORD_BYTES: u64 = 5 + (1 << 14) + 2048;

/// A connection's bytes. `receive` fails with `WouldBlock` if the socket does not block and no bytes are there.
#[derive(Debug)]
pub enum Transport {
    Clear(Socket),
    Tls(SslStream<Socket>),
    WireCrypt(wirecrypt::WireCrypt),
    /// Each message to the server and the one back is a stream of its own.
    Quic(Box<Quic>),
}

impl Transport {
    pub fn socket(&self) -> &Socket {
        match self {
            Transport::Clear(socket) => socket,
            Transport::Tls(stream) => stream.get_ref(),
            Transport::WireCrypt(stream) => stream.socket(),
            Transport::Quic(quic) => quic.socket(),
        }
    }

    /// Reads available bytes, at most `into.len()`; 0 is the end of the connection or, by QUIC, of the message.
    #[inline]
    pub fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Transport::Clear(socket) => socket.receive(into),
            Transport::WireCrypt(stream) => stream.receive(into),
            Transport::Quic(quic) => quic.receive(into),
            Transport::Tls(stream) => loop {
                match stream.ssl_read(into) {
                    Ok(read) => return Ok(read),
                    Err(error) => match error.code() {
                        ErrorCode::ZERO_RETURN => return Ok(0),
                        // A blocking socket read a record without data (a session ticket).
                        ErrorCode::WANT_READ if error.io_error().is_none() => continue,
                        _ => return Err(as_io(error)),
                    },
                }
            },
        }
    }

    /// Writes all of `bytes`. If the socket is full, this thread waits for it: requests are small.
    #[inline]
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Transport::Clear(socket) => socket.send_all(bytes),
            Transport::WireCrypt(stream) => stream.send(bytes),
            // Only an HTTP version that must send in parts is used with QUIC: whatever sends whole has nothing to say.
            Transport::Quic(_) if bytes.is_empty() => Ok(()),
            Transport::Quic(_) => Err(io::Error::other("a message by QUIC is sent in parts")),
            Transport::Tls(stream) => {
                let mut rest = bytes;
                while !rest.is_empty() {
                    match stream.ssl_write(rest) {
                        Ok(written) => rest = &rest[written..],
                        Err(error) => match error.code() {
                            ErrorCode::WANT_WRITE => stream.get_ref().wait(libc::POLLOUT)?,
                            ErrorCode::WANT_READ => stream.get_ref().wait(libc::POLLIN)?,
                            _ => return Err(as_io(error)),
                        },
                    }
                }
                Ok(())
            }
        }
    }

    /// Writes what the socket has room for; `WouldBlock` if it has none. Offer the rest again unchanged; more may follow it.
    #[inline]
    pub fn send_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Transport::Clear(socket) => socket.send_some(bytes),
            Transport::WireCrypt(stream) => stream.send_some(bytes),
            Transport::Tls(stream) => stream.ssl_write(bytes).map_err(as_io),
            Transport::Quic(quic) => quic.send_some(bytes),
        }
    }

    /// The request is complete: whatever still waits for that goes out.
    #[inline]
    pub fn conclude(&mut self) -> io::Result<()> {
        match self {
            Transport::Quic(quic) => quic.conclude(),
            _ => Ok(()),
        }
    }

    /// What to wait for when a request can't be sent any further.
    #[inline]
    pub fn waits_to_send_for(&self) -> i32 {
        match self {
            // The server says how much more it takes.
            Transport::Quic(_) => libc::EPOLLIN,
            _ => libc::EPOLLOUT,
        }
    }

    /// `bytes` are still to come: polls report the socket once all are there, or `at_once`, and not for each part. To be called
    /// again after each read, with 1 once all were read.
    #[inline]
    pub fn expect(&self, bytes: u64, at_once: usize) {
        // The session may hold the beginning of a record: only the rest of it will come.
        let held = if bytes > 1 && matches!(self, Transport::Tls(_)) && self.holds_more() { RECORD_BYTES } else { 0 };
        self.socket().set_readable_from(bytes.saturating_sub(held).clamp(1, at_once as u64) as i32);
    }

    /// When it has something to do although nothing arrives (monotonic clock).
    #[inline]
    pub fn timer_ns(&self) -> Option<u64> {
        match self {
            Transport::Quic(quic) => quic.timer_ns(),
            _ => None,
        }
    }

    /// What the server has said on streams of its own: the stream's number, bytes, and whether it has ended.
    #[inline]
    pub fn aside(&mut self) -> Option<(u64, Bytes, bool)> {
        match self {
            Transport::Quic(quic) if quic.has_aside() => quic.take_aside(),
            _ => None,
        }
    }

    /// Whether bytes are available without the socket: already received, and not yet decrypted or read.
    #[inline]
    pub fn holds_more(&self) -> bool {
        match self {
            // SAFETY: the session is valid, and the call only reads it.
            Transport::Tls(stream) => unsafe { SSL_has_pending(stream.ssl().as_ptr()) == 1 },
            Transport::Quic(quic) => quic.holds_more(),
            _ => false,
        }
    }

    /// Says goodbye like a driver: TLS's close_notify, QUIC's CONNECTION_CLOSE. The socket stays open for the peer's close.
    pub fn say_goodbye(&mut self) {
        match self {
            Transport::Tls(stream) => drop(stream.shutdown()),
            Transport::Quic(quic) => quic.say_goodbye(),
            _ => {}
        }
    }

    pub fn into_socket(self) -> Socket {
        match self {
            Transport::Clear(socket) => socket,
            Transport::Tls(mut stream) => stream.get_mut().take(),
            Transport::WireCrypt(stream) => stream.into_socket(),
            Transport::Quic(quic) => (*quic).into_socket(),
        }
    }
}

unsafe extern "C" {
    fn SSL_has_pending(session: *const openssl_sys::SSL) -> std::ffi::c_int;
}

fn as_io(error: openssl::ssl::Error) -> io::Error {
    if let Some(text) = error.ssl_error().and_then(tls::about_ours) {
        return io::Error::new(io::ErrorKind::PermissionDenied, text);
    }
    let text = error.to_string();
    error.into_io_error().unwrap_or_else(|_| io::Error::other(text))
}
