//! What the kernel counts of a TCP connection.

use super::traffic::Traffic;

/// `struct tcp_info` of linux/tcp.h as 32-bit words; an older kernel fills fewer of them.
pub struct TcpInfo([u32; 58]);

impl Default for TcpInfo {
    fn default() -> TcpInfo {
        TcpInfo([0; 58])
    }
}

const BYTES_RECEIVED: usize = 128 / 4;
const SEGS_OUT: usize = 136 / 4;
const SEGS_IN: usize = 140 / 4;
const BYTES_SENT: usize = 200 / 4;
const BYTES_RETRANS: usize = 208 / 4;

impl TcpInfo {
    pub fn traffic(&self) -> Traffic {
        Traffic {
            bytes_sent: self.wide(BYTES_SENT) - self.wide(BYTES_RETRANS),
            bytes_received: self.wide(BYTES_RECEIVED),
            segments_sent: self.0[SEGS_OUT].into(),
            segments_received: self.0[SEGS_IN].into(),
            ..Traffic::default()
        }
    }

    /// The 64 bits whose lower half is word `at`.
    fn wide(&self, at: usize) -> u64 {
        u64::from(self.0[at]) | u64::from(self.0[at + 1]) << 32
    }
}

#[cfg(test)]
mod tests {
    use crate::transport::socket::Mode;
    use crate::transport::socket::tests::connected;
    use std::io::{Read, Write};

    #[test]
    fn traffic_counts_the_bytes_of_both_directions() {
        let (socket, mut peer) = connected(Mode::Blocking);
        let before = socket.traffic();
        socket.send_all(&[1; 1000]).unwrap();
        peer.read_exact(&mut [0; 1000]).unwrap();
        peer.write_all(&[2; 300]).unwrap();
        let mut answer = [0; 300];
        let mut read = 0;
        while read < 300 {
            read += socket.receive(&mut answer[read..]).unwrap();
        }
        let traffic = socket.traffic().since(before);
        assert_eq!((traffic.bytes_sent, traffic.bytes_received), (1000, 300));
        assert!(traffic.segments_sent >= 1 && traffic.segments_received >= 1);
    }
}
