//! A Unix-domain socket of a server on this machine: a connection that no network sees. Its bytes are counted as they move, because
//! TCP_INFO does not exist for it, and it has no segments.

use super::socket::{Kind, Mode, Socket, TIMEOUT_SECONDS};
use crate::deadline;
use crate::failure::{Failure, Result};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

impl Socket {
    /// Connects to the socket that is this file, or, after an `@`, has this abstract name. It is connected on return, whatever the mode.
    pub fn open_local(path: &str, mode: Mode) -> Result<Socket> {
        let refused = |error| Failure::connect(format!("cannot connect to the Unix socket {path}: {error}"));
        // SAFETY: socket takes no pointers; a non-negative descriptor belongs to us alone.
        let fd = unsafe {
            let fd = libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
            if fd < 0 {
                return Err(refused(io::Error::last_os_error()));
            }
            OwnedFd::from_raw_fd(fd)
        };
        let mut socket = Socket::from(fd);
        socket.kind = Kind::Local;
        deadline::check()?;
        // The kernel connects at once, unless too many wait for the server's accept. A socket that never waits would be refused then,
        // and no poll reports when there is room again.
        socket.set_patience_ms(deadline::left_ms(TIMEOUT_SECONDS as i32 * 1000).max(1))?;
        socket.connect_to(path).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => refused(io::Error::from(io::ErrorKind::TimedOut)),
            _ => refused(error),
        })?;
        if mode == Mode::Polled {
            socket.set_patience_ms(-1)?;
            socket.set_mode(mode)?;
        }
        Ok(socket)
    }

    fn connect_to(&self, path: &str) -> io::Result<()> {
        // SAFETY: all bytes 0 are a valid value of this plain structure.
        let mut raw: libc::sockaddr_un = unsafe { std::mem::zeroed() };
        raw.sun_family = libc::AF_UNIX as u16;
        // A path ends with a zero byte, an abstract name begins with one.
        if path.is_empty() || path.len() >= raw.sun_path.len() || path.contains('\0') {
            let text = format!("its path must have 1 to {} bytes", raw.sun_path.len() - 1);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        for (into, byte) in raw.sun_path.iter_mut().zip(path.bytes()) {
            *into = byte as libc::c_char;
        }
        let mut length = size_of_val(&raw);
        if path.starts_with('@') {
            raw.sun_path[0] = 0;
            length = std::mem::offset_of!(libc::sockaddr_un, sun_path) + path.len();
        }
        // SAFETY: the address is fully initialised, and no length passed is above its own.
        match unsafe { libc::connect(self.as_raw_fd(), (&raw const raw).cast(), length as u32) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Counts the bytes of a Unix-domain socket.
    #[inline]
    pub(super) fn count_local(&self, sent: usize, received: usize) {
        if self.kind == Kind::Local {
            let mut sum = self.moved.get();
            sum.bytes_sent += sent as u64;
            sum.bytes_received += received as u64;
            self.moved.set(sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::traffic::{self, Traffic};
    use std::io::{Read, Write};
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};

    fn path(name: &str) -> String {
        let file = std::env::temp_dir().join(format!("ciphercost-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&file);
        file.to_str().unwrap().to_string()
    }

    #[test]
    fn the_bytes_of_a_local_socket_are_counted_in_both_directions() {
        for mode in [Mode::Blocking, Mode::Polled] {
            let file = path(&format!("counted-{mode:?}"));
            let listener = UnixListener::bind(&file).unwrap();
            let socket = Socket::open_local(&file, mode).unwrap();
            let (mut peer, _) = listener.accept().unwrap();
            std::fs::remove_file(&file).unwrap();
            let before = traffic::of_this_thread();
            socket.send_all(&[1; 1000]).unwrap();
            peer.read_exact(&mut [0; 1000]).unwrap();
            peer.write_all(&[2; 300]).unwrap();
            assert!(socket.wait_for(libc::POLLIN, 10_000).unwrap());
            assert_eq!(socket.receive(&mut [0; 2000]).unwrap(), 300);
            let wanted = Traffic { bytes_sent: 1000, bytes_received: 300, ..Traffic::default() };
            assert_eq!((socket.traffic(), traffic::of_this_thread().since(before)), (wanted, wanted));
            if mode == Mode::Polled {
                assert_eq!(socket.receive(&mut [0; 8]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
            }
            drop(peer);
            assert_eq!(socket.finish(), wanted);
        }
    }

    #[test]
    fn an_abstract_name_has_no_file() {
        let name = format!("ciphercost-abstract-{}", std::process::id());
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let socket = Socket::open_local(&format!("@{name}"), Mode::Blocking).unwrap();
        socket.send_all(b"x").unwrap();
        assert_eq!(listener.accept().unwrap().0.read(&mut [0; 2]).unwrap(), 1);
    }

    #[test]
    fn a_socket_that_is_not_there_or_has_a_long_path_is_refused_by_its_name() {
        for (file, why) in [(path("nobody"), "No such file"), (format!("/{}", "x".repeat(107)), "1 to 107 bytes")] {
            let failure = Socket::open_local(&file, Mode::Blocking).unwrap_err();
            assert_eq!(failure.code, "connect");
            assert!(failure.text.contains(&file) && failure.text.contains(why), "{failure:?}");
        }
    }
}
