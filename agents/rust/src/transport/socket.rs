//! A socket whose every call is one system call, and what it has moved: by TCP_INFO, or counted (`datagrams`).

#[cfg(any(test, fuzzing))]
use super::scripted;
use super::tcp_info::TcpInfo;
use super::traffic::{self, Traffic};
use crate::deadline;
use crate::failure::{Failure, Result};
use std::cell::Cell;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// What a socket carries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// TCP.
    Stream,
    /// UDP.
    Datagrams,
    /// A Unix-domain socket.
    Local,
}

/// A socket. It closes itself when it is dropped.
#[derive(Debug)]
pub struct Socket {
    fd: Option<OwnedFd>,
    pub(super) kind: Kind,
    /// Calls never wait.
    polled: Cell<bool>,
    /// How long a blocking call waits, in milliseconds; -1: no limit.
    patience_ms: Cell<i32>,
    /// A poll reports it as readable once this many bytes are there, or its end.
    readable_from: Cell<i32>,
    /// Its bytes count for its thread as they move.
    pub(super) counts: Cell<bool>,
    /// What it has moved, if the kernel does not count that (TCP_INFO).
    pub(super) moved: Cell<Traffic>,
}

/// How a socket waits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    /// Calls wait for the peer: ten seconds, until `set_timeout` removes the limit.
    Blocking,
    /// Calls never wait; the caller polls.
    Polled,
}

pub(super) const TIMEOUT_SECONDS: i64 = 10;
/// How long a peer that was told to close, and doesn't, is waited for where others wait too.
pub const MOMENT_MS: i32 = 50;

impl Socket {
    /// Begins a connection. A blocking socket is connected on return; for a polled one `connected` returns the outcome.
    pub fn open(address: SocketAddr, mode: Mode) -> Result<Socket> {
        Socket::open_as(Kind::Stream, address, mode)
    }

    pub(super) fn open_as(kind: Kind, address: SocketAddr, mode: Mode) -> Result<Socket> {
        let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let polled = if mode == Mode::Polled { libc::SOCK_NONBLOCK } else { 0 };
        let carries = if kind == Kind::Stream { libc::SOCK_STREAM } else { libc::SOCK_DGRAM };
        // SAFETY: socket takes no pointers; a non-negative descriptor belongs to us alone.
        let fd = unsafe {
            let fd = libc::socket(family, carries | libc::SOCK_CLOEXEC | polled, 0);
            if fd < 0 {
                return Err(refused(address, io::Error::last_os_error()));
            }
            OwnedFd::from_raw_fd(fd)
        };
        let socket = Socket { kind, ..Socket::from(fd) };
        socket.polled.set(mode == Mode::Polled);
        if kind == Kind::Stream {
            // Requests and responses alternate: Nagle's algorithm could only delay them.
            socket.set(libc::IPPROTO_TCP, libc::TCP_NODELAY, &1i32)?;
        }
        if mode == Mode::Blocking {
            deadline::check()?;
            // The kernel's own timeout, since `connect` can't be polled here.
            socket.set_patience_ms(deadline::left_ms(TIMEOUT_SECONDS as i32 * 1000).max(1))?;
        }
        socket.connect(address, mode).map_err(|error| refused(address, error))?;
        Ok(socket)
    }

    fn connect(&self, address: SocketAddr, mode: Mode) -> io::Result<()> {
        #[cfg(any(test, fuzzing))]
        if scripted::accept(self.as_raw_fd()) {
            return Ok(());
        }
        // SAFETY: each sockaddr is fully initialised and passed with its own length.
        let result = unsafe {
            match address {
                SocketAddr::V4(v4) => {
                    let mut raw: libc::sockaddr_in = std::mem::zeroed();
                    raw.sin_family = libc::AF_INET as u16;
                    raw.sin_port = v4.port().to_be();
                    raw.sin_addr.s_addr = u32::from_ne_bytes(v4.ip().octets());
                    libc::connect(self.as_raw_fd(), (&raw const raw).cast(), size_of_val(&raw) as u32)
                }
                SocketAddr::V6(v6) => {
                    let mut raw: libc::sockaddr_in6 = std::mem::zeroed();
                    raw.sin6_family = libc::AF_INET6 as u16;
                    raw.sin6_port = v6.port().to_be();
                    raw.sin6_addr.s6_addr = v6.ip().octets();
                    raw.sin6_scope_id = v6.scope_id();
                    libc::connect(self.as_raw_fd(), (&raw const raw).cast(), size_of_val(&raw) as u32)
                }
            }
        };
        match result {
            0 => Ok(()),
            _ => match io::Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::EINPROGRESS) => match mode {
                    Mode::Polled => Ok(()),
                    Mode::Blocking => Err(io::Error::from(io::ErrorKind::TimedOut)),
                },
                error => Err(error),
            },
        }
    }

    /// The outcome of a connection that a polled socket began, once it is writable.
    pub fn connected(&self, address: SocketAddr) -> Result<()> {
        match self.get::<i32>(libc::SOL_SOCKET, libc::SO_ERROR)? {
            0 => Ok(()),
            code => Err(refused(address, io::Error::from_raw_os_error(code))),
        }
    }

    /// Sets whether to give up on a silent peer (during login), or never.
    pub fn set_timeout(&self, on: bool) -> Result<()> {
        self.set_patience(if on { TIMEOUT_SECONDS } else { 0 })
    }

    /// Calls that wait give up with `WouldBlock` after this many seconds; 0: never.
    pub fn set_patience(&self, seconds: i64) -> Result<()> {
        self.set_patience_ms(if seconds == 0 { -1 } else { i32::try_from(seconds * 1000).unwrap_or(i32::MAX) })
    }

    pub(super) fn set_patience_ms(&self, ms: i32) -> Result<()> {
        self.patience_ms.set(ms);
        let most = i64::from(ms.max(0));
        let time = libc::timeval { tv_sec: most / 1000, tv_usec: most % 1000 * 1000 };
        self.set(libc::SOL_SOCKET, libc::SO_RCVTIMEO, &time)?;
        self.set(libc::SOL_SOCKET, libc::SO_SNDTIMEO, &time)
    }

    /// Polls report the socket as readable only once this many bytes are there, or its end, or where its memory is full. They must be
    /// sure to come: a silent peer's fewer bytes are not reported.
    #[inline]
    pub fn set_readable_from(&self, bytes: i32) {
        if bytes != self.readable_from.get() && self.set(libc::SOL_SOCKET, libc::SO_RCVLOWAT, &bytes).is_ok() {
            self.readable_from.set(bytes);
        }
    }

    /// Whether calls never wait.
    pub fn is_polled(&self) -> bool {
        self.polled.get()
    }

    /// How long calls wait; None: without limit.
    pub fn patience(&self) -> Option<Duration> {
        u64::try_from(self.patience_ms.get()).ok().map(Duration::from_millis)
    }

    /// Its bytes count when its owner counts them, and not as they move.
    pub fn count_later(&self) {
        self.counts.set(false);
    }

    pub fn set_mode(&self, mode: Mode) -> Result<()> {
        self.polled.set(mode == Mode::Polled);
        // SAFETY: fcntl on our own descriptor, with an integer argument.
        let result = unsafe {
            let flags = libc::fcntl(self.as_raw_fd(), libc::F_GETFL);
            let polled = if mode == Mode::Polled { flags | libc::O_NONBLOCK } else { flags & !libc::O_NONBLOCK };
            libc::fcntl(self.as_raw_fd(), libc::F_SETFL, polled)
        };
        if result < 0 { Err(io::Error::last_os_error().into()) } else { Ok(()) }
    }

    /// Reads what the peer still sends until it closes, then closes: returns all traffic of this connection. A polled
    /// socket shares its thread with others: it waits a moment only.
    pub fn finish(self) -> Traffic {
        if self.polled.get() || self.kind == Kind::Datagrams {
            return self.finish_within(MOMENT_MS);
        }
        let mut rest = [0; 1024];
        // Until the end, a reset, or a peer that does not close in time.
        while self.receive(&mut rest).is_ok_and(|received| received > 0) {}
        self.reset()
    }

    /// The same, but waits at most this many milliseconds for the peer to close. A peer of datagrams closes nothing.
    pub fn finish_within(self, ms: i32) -> Traffic {
        if self.kind == Kind::Datagrams {
            return self.traffic();
        }
        let mut rest = [0; 1024];
        let _ = self.set_mode(Mode::Polled);
        loop {
            match self.receive(&mut rest) {
                Ok(1..) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !self.wait_for(libc::POLLIN, ms).is_ok_and(|came| came) {
                        break;
                    }
                }
                _ => break,
            }
        }
        self.reset()
    }

    fn reset(self) -> Traffic {
        // Closing then sends a reset, so no port of this host stays in TIME_WAIT.
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        let _ = self.set(libc::SOL_SOCKET, libc::SO_LINGER, &linger);
        self.traffic()
    }

    #[inline]
    pub fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        deadline::check()?;
        #[cfg(any(test, fuzzing))]
        if let Some(received) = scripted::receive(self.as_raw_fd(), self.polled.get(), into) {
            return received;
        }
        let received = self.call(libc::POLLIN, |flags| {
            // SAFETY: the kernel writes at most `into.len()` bytes into `into`.
            unsafe { libc::recv(self.as_raw_fd(), into.as_mut_ptr().cast(), into.len(), flags) }
        })?;
        if self.counts.get() {
            traffic::received(received);
        }
        self.count_local(0, received);
        Ok(received)
    }

    #[inline]
    pub fn send_some(&self, bytes: &[u8]) -> io::Result<usize> {
        #[cfg(any(test, fuzzing))]
        if let Some(sent) = scripted::send(self.as_raw_fd(), bytes) {
            return Ok(sent);
        }
        let sent = self.call(libc::POLLOUT, |flags| {
            // SAFETY: the kernel reads at most `bytes.len()` bytes of `bytes`.
            unsafe { libc::send(self.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags | libc::MSG_NOSIGNAL) }
        })?;
        if self.counts.get() {
            traffic::sent(sent);
        }
        self.count_local(sent, 0);
        Ok(sent)
    }

    /// Receives or sends once. A blocking socket first waits for `events`: until the deadline, if this thread has one.
    #[inline]
    fn call(&self, events: i16, mut call: impl FnMut(i32) -> isize) -> io::Result<usize> {
        let flags = if deadline::wakes() { libc::MSG_DONTWAIT } else { 0 };
        loop {
            let moved = call(flags);
            if moved >= 0 {
                return Ok(moved as usize);
            }
            let error = io::Error::last_os_error();
            match error.kind() {
                io::ErrorKind::Interrupted => {}
                io::ErrorKind::WouldBlock if flags != 0 && !self.polled.get() => {
                    if !self.wait_for(events, self.patience_ms.get())? {
                        return Err(error);
                    }
                }
                _ => return Err(error),
            }
        }
    }

    pub fn send_all(&self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.send_some(rest) {
                Ok(sent) => rest = &rest[sent..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(libc::POLLOUT)?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits until the socket is readable or writable. An error once the thread's deadline has passed.
    pub fn wait(&self, events: i16) -> io::Result<()> {
        while !self.wait_for(events, -1)? {}
        Ok(())
    }

    /// The same, for at most this many milliseconds (-1: no limit). `false`: not ready yet.
    pub fn wait_for(&self, events: i16, ms: i32) -> io::Result<bool> {
        #[cfg(any(test, fuzzing))]
        if scripted::serves(self.as_raw_fd()) {
            return Ok(true);
        }
        let mut poll = libc::pollfd { fd: self.as_raw_fd(), events, revents: 0 };
        // SAFETY: one pollfd, which the kernel fills.
        match unsafe { libc::poll(&mut poll, 1, deadline::left_ms(ms)) } {
            -1 if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted => Err(io::Error::last_os_error()),
            0 => deadline::check().map(|()| false),
            _ => Ok(true),
        }
    }

    pub(super) fn set<T>(&self, level: i32, name: i32, value: &T) -> Result<()> {
        // SAFETY: the value is fully initialised and passed with its own length.
        let result = unsafe {
            libc::setsockopt(self.as_raw_fd(), level, name, (&raw const *value).cast(), size_of::<T>() as u32)
        };
        if result < 0 { Err(io::Error::last_os_error().into()) } else { Ok(()) }
    }

    fn get<T: Default>(&self, level: i32, name: i32) -> Result<T> {
        let (mut value, mut length) = (T::default(), size_of::<T>() as u32);
        // SAFETY: the kernel writes at most `length` bytes into the value, and every T used is plain integers.
        let result = unsafe { libc::getsockopt(self.as_raw_fd(), level, name, (&raw mut value).cast(), &mut length) };
        if result < 0 { Err(io::Error::last_os_error().into()) } else { Ok(value) }
    }

    /// Traffic of this connection so far.
    pub fn traffic(&self) -> Traffic {
        if self.kind != Kind::Stream {
            return self.moved.get();
        }
        self.get::<TcpInfo>(libc::IPPROTO_TCP, libc::TCP_INFO).unwrap_or_default().traffic()
    }

    /// Takes the socket out of a stream that is no longer needed.
    pub fn take(&mut self) -> Socket {
        Socket {
            fd: self.fd.take(),
            kind: self.kind,
            polled: self.polled.clone(),
            patience_ms: self.patience_ms.clone(),
            readable_from: self.readable_from.clone(),
            counts: self.counts.clone(),
            moved: self.moved.clone(),
        }
    }
}

/// A server's address: the first reachable one of several.
pub fn resolve(host: &str, port: u16) -> Result<SocketAddr> {
    let unknown = |why: String| Failure::connect(format!("host {host:?}: {why}"));
    let addresses = (host, port).to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
    let addresses: Vec<SocketAddr> = addresses.collect();
    let reached = |address: &&SocketAddr| addresses.len() == 1 || Socket::open(**address, Mode::Blocking).is_ok();
    match addresses.iter().find(reached).or(addresses.last()) {
        Some(address) => Ok(*address),
        None => Err(unknown("has no address".into())),
    }
}

impl AsRawFd for Socket {
    #[inline]
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }
}

impl From<OwnedFd> for Socket {
    /// Wraps a socket that someone else opened.
    fn from(fd: OwnedFd) -> Socket {
        Socket {
            fd: Some(fd),
            kind: Kind::Stream,
            polled: Cell::new(false),
            patience_ms: Cell::new(-1),
            readable_from: Cell::new(1),
            counts: Cell::new(true),
            moved: Cell::default(),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.receive(into)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send_some(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn refused(address: SocketAddr, error: io::Error) -> Failure {
    Failure::connect(format!("cannot connect to {address}: {error}"))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    /// A socket and its peer.
    pub fn connected(mode: Mode) -> (Socket, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = Socket::open(listener.local_addr().unwrap(), mode).unwrap();
        (socket, listener.accept().unwrap().0)
    }

    #[test]
    fn a_socket_is_reported_as_readable_once_enough_bytes_are_there_or_its_end() {
        let (socket, mut peer) = connected(Mode::Polled);
        let is_readable = || socket.wait_for(libc::POLLIN, 10_000).unwrap();
        let is_not_readable = || !socket.wait_for(libc::POLLIN, 50).unwrap();
        socket.set_readable_from(1000);
        peer.write_all(&[1; 999]).unwrap();
        assert!(is_not_readable());
        peer.write_all(&[1]).unwrap();
        assert!(is_readable());
        assert_eq!(socket.receive(&mut [0; 2000]).unwrap(), 1000);
        peer.write_all(&[1]).unwrap();
        assert!(is_not_readable());
        socket.set_readable_from(1);
        assert!(is_readable());
        socket.set_readable_from(1000);
        assert!(is_not_readable());
        drop(peer);
        assert!(is_readable());
    }

    #[test]
    fn a_polled_socket_never_waits() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = Socket::open(listener.local_addr().unwrap(), Mode::Polled).unwrap();
        socket.wait(libc::POLLOUT).unwrap();
        socket.connected(listener.local_addr().unwrap()).unwrap();
        assert_eq!(socket.receive(&mut [0; 8]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
