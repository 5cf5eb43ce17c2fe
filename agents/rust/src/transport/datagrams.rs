//! A UDP socket for one peer: whole datagrams, each counted as it moves. No call here waits for the peer.

use super::socket::{Kind, Mode, Socket};
use super::traffic::{self, Traffic};
use crate::deadline;
use crate::failure::Result;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;

/// Bytes that may wait for this thread, if the kernel allows so many (`net.core.rmem_max`): a burst that does not fit is lost.
const RECEIVE_BUFFER: i32 = 1 << 20;

impl Socket {
    /// A socket that sends to this address and hears nobody else.
    pub fn open_datagrams(address: SocketAddr, mode: Mode) -> Result<Socket> {
        let socket = Socket::open_as(Kind::Datagrams, address, mode)?;
        socket.set(libc::SOL_SOCKET, libc::SO_RCVBUF, &RECEIVE_BUFFER)?;
        // A datagram that is too long for the path is lost and not cut up, so that QUIC can find out what fits.
        match address {
            SocketAddr::V4(_) => socket.set(libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, &libc::IP_PMTUDISC_PROBE)?,
            SocketAddr::V6(_) => socket.set(libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, &libc::IPV6_PMTUDISC_PROBE)?,
        }
        Ok(socket)
    }

    /// The next datagram's length; `WouldBlock` if none has arrived.
    #[inline]
    pub fn receive_datagram(&self, into: &mut [u8]) -> io::Result<usize> {
        deadline::check()?;
        let received = again(|| {
            // SAFETY: the kernel writes at most `into.len()` bytes into `into`.
            unsafe { libc::recv(self.as_raw_fd(), into.as_mut_ptr().cast(), into.len(), libc::MSG_DONTWAIT) }
        })?;
        self.count(Traffic { bytes_received: received as u64, segments_received: 1, ..Traffic::default() });
        Ok(received)
    }

    /// Sends one datagram. If the socket is full, this thread waits for it.
    #[inline]
    pub fn send_datagram(&self, bytes: &[u8]) -> io::Result<()> {
        loop {
            let sent = again(|| {
                let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
                // SAFETY: the kernel reads at most `bytes.len()` bytes of `bytes`.
                unsafe { libc::send(self.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) }
            });
            match sent {
                Ok(sent) => {
                    self.count(Traffic { bytes_sent: sent as u64, segments_sent: 1, ..Traffic::default() });
                    return Ok(());
                }
                // A probe for a longer path: it counts as lost.
                Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(libc::POLLOUT)?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Counts a datagram for the socket, and its bytes for the thread.
    #[inline]
    fn count(&self, moved: Traffic) {
        let mut sum = self.moved.get();
        sum.add(moved);
        self.moved.set(sum);
        if self.counts.get() {
            traffic::sent(moved.bytes_sent as usize);
            traffic::received(moved.bytes_received as usize);
        }
    }
}

/// One system call, once more if a signal interrupted it.
#[inline]
fn again(mut call: impl FnMut() -> isize) -> io::Result<usize> {
    loop {
        let moved = call();
        if moved >= 0 {
            return Ok(moved as usize);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn datagrams_and_their_bytes_are_counted_in_both_directions() {
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = Socket::open_datagrams(peer.local_addr().unwrap(), Mode::Blocking).unwrap();
        let before = traffic::of_this_thread();
        socket.send_datagram(&[1; 1000]).unwrap();
        socket.send_datagram(&[1; 200]).unwrap();
        let (length, from) = peer.recv_from(&mut [0; 2000]).unwrap();
        peer.send_to(&[2; 300], from).unwrap();
        socket.wait(libc::POLLIN).unwrap();
        assert_eq!((length, socket.receive_datagram(&mut [0; 2000]).unwrap()), (1000, 300));
        let wanted = Traffic { bytes_sent: 1200, bytes_received: 300, ..Traffic::default() };
        assert_eq!(traffic::of_this_thread().since(before), wanted);
        assert_eq!(socket.traffic(), Traffic { segments_sent: 2, segments_received: 1, ..wanted });
        assert_eq!(socket.receive_datagram(&mut [0; 8]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_port_where_nobody_listens_refuses() {
        let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let socket = Socket::open_datagrams(address, Mode::Blocking).unwrap();
        socket.send_datagram(b"hello").unwrap();
        socket.wait(libc::POLLIN).unwrap();
        let refused = socket.receive_datagram(&mut [0; 8]).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }
}
