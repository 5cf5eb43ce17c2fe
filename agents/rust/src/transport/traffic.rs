//! Traffic of a thread's connections. Bytes are counted as they move, without a system call, so a reading costs the same for
//! one connection as for ten thousand.

use std::cell::Cell;

/// Traffic of connections: payload bytes (without retransmissions), segments (including bare acknowledgements),
/// how many connections were opened, how many resumed a TLS session, and how many
/// requests the server took before the handshake was complete.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Traffic {
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub segments_sent: u64,
    pub segments_received: u64,
    pub connects: u64,
    pub resumed: u64,
    pub early: u64,
}

impl Traffic {
    pub fn add(&mut self, other: Traffic) {
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.segments_sent += other.segments_sent;
        self.segments_received += other.segments_received;
        self.connects += other.connects;
        self.resumed += other.resumed;
        self.early += other.early;
    }

    pub fn since(self, earlier: Traffic) -> Traffic {
        Traffic {
            bytes_sent: self.bytes_sent.saturating_sub(earlier.bytes_sent),
            bytes_received: self.bytes_received.saturating_sub(earlier.bytes_received),
            segments_sent: self.segments_sent.saturating_sub(earlier.segments_sent),
            segments_received: self.segments_received.saturating_sub(earlier.segments_received),
            connects: self.connects.saturating_sub(earlier.connects),
            resumed: self.resumed.saturating_sub(earlier.resumed),
            early: self.early.saturating_sub(earlier.early),
        }
    }

    pub fn segments(self) -> Segments {
        Segments { sent: self.segments_sent, received: self.segments_received }
    }

    /// Adds this part's share of the segments of a whole that it belongs to: as large as its share of the bytes.
    pub fn add_share_of(&mut self, segments: Segments, whole: Traffic) {
        let share = |segments: u64, bytes: u64, all: u64| {
            if all == 0 { 0 } else { (segments as f64 * bytes as f64 / all as f64).round() as u64 }
        };
        self.segments_sent += share(segments.sent, self.bytes_sent, whole.bytes_sent);
        self.segments_received += share(segments.received, self.bytes_received, whole.bytes_received);
    }
}

/// Segments of connections that stay open, as the kernel counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Segments {
    pub sent: u64,
    pub received: u64,
}

impl Segments {
    pub fn add(&mut self, other: Segments) {
        self.sent += other.sent;
        self.received += other.received;
    }

    pub fn since(self, earlier: Segments) -> Segments {
        Segments {
            sent: self.sent.saturating_sub(earlier.sent),
            received: self.received.saturating_sub(earlier.received),
        }
    }
}

/// Single cells, so that a system call's bytes cost one addition.
struct Counters {
    sent: Cell<u64>,
    received: Cell<u64>,
    rest: Cell<Traffic>,
}

const NOTHING: Traffic = Traffic {
    bytes_sent: 0,
    bytes_received: 0,
    segments_sent: 0,
    segments_received: 0,
    connects: 0,
    resumed: 0,
    early: 0,
};

thread_local! {
    static COUNTERS: Counters =
        const { Counters { sent: Cell::new(0), received: Cell::new(0), rest: Cell::new(NOTHING) } };
}

#[inline]
pub fn sent(bytes: usize) {
    COUNTERS.with(|counters| counters.sent.set(counters.sent.get() + bytes as u64));
}

#[inline]
pub fn received(bytes: usize) {
    COUNTERS.with(|counters| counters.received.set(counters.received.get() + bytes as u64));
}

/// Counts traffic that was not counted as it moved.
pub fn add(traffic: Traffic) {
    COUNTERS.with(|counters| {
        let mut rest = counters.rest.get();
        rest.add(traffic);
        counters.rest.set(rest);
    });
}

/// Counts an opened connection.
pub fn connected() {
    add(Traffic { connects: 1, ..Traffic::default() });
}

/// Everything that this thread has counted so far.
pub fn of_this_thread() -> Traffic {
    COUNTERS.with(|counters| {
        let mut sum = counters.rest.get();
        sum.bytes_sent += counters.sent.get();
        sum.bytes_received += counters.received.get();
        sum
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_counts_its_own_traffic() {
        let before = of_this_thread();
        sent(10);
        received(300);
        connected();
        add(Traffic { bytes_sent: 5, segments_received: 2, ..Traffic::default() });
        std::thread::spawn(|| sent(1000)).join().unwrap();
        let counted = of_this_thread().since(before);
        let wanted = Traffic { bytes_sent: 15, bytes_received: 300, segments_received: 2, connects: 1, ..counted };
        assert_eq!((counted, counted.segments_sent, counted.resumed), (wanted, 0, 0));
    }

    #[test]
    fn a_part_has_its_bytes_share_of_the_segments_and_the_whole_has_all() {
        let whole = Traffic { bytes_sent: 1000, bytes_received: 300, ..Traffic::default() };
        let segments = Segments { sent: 41, received: 40 };
        let mut part = Traffic { bytes_sent: 500, bytes_received: 75, ..Traffic::default() };
        part.add_share_of(segments, whole);
        assert_eq!(part.segments(), Segments { sent: 21, received: 10 });
        let mut all = whole;
        all.add_share_of(segments, whole);
        assert_eq!(all.segments(), segments);
        let mut none = Traffic::default();
        none.add_share_of(segments, Traffic::default());
        assert_eq!(none, Traffic::default());
    }
}
