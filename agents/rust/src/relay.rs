//! `ciphercost-agent relay ROUND_TRIP_US ADDRESS…`: forwards TCP connections, each byte half a round trip later.
//!
//! A separate program, so that its CPU time counts as neither the agent's nor the server's; one thread, epoll. It delays
//! but does not throttle: bytes under way wait in memory, up to `WINDOW` per direction and `ROOM` in total. A connection
//! costs TCP's round trip: the relay opens it to the server one and a half round trips after it arrived.

use crate::clock::now_ns;
use crate::transport::socket::{Mode, Socket};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Bytes under way in one direction of one connection: 10 ms of 25 Gbit/s.
const WINDOW: usize = 32 << 20;
const ROOM: usize = 512 << 20;
const CHUNK: usize = 128 << 10;
/// Chunks read from one connection before the others get their turn.
const TURN: usize = 8;
const LONGEST_US: u64 = 10_000_000;
const USAGE: &str = "usage: ciphercost-agent relay ROUND_TRIP_US ADDRESS:PORT…";

/// Runs until it is killed; returns the exit status if it can't continue.
pub fn run(arguments: &[String]) -> i32 {
    let Some((round_trip_us, targets)) = read_arguments(arguments) else {
        eprintln!("{USAGE}");
        return 2;
    };
    match Relay::new(round_trip_us * 1000, &targets).and_then(|mut relay| {
        let ports: Vec<String> = relay.ports()?.iter().map(u16::to_string).collect();
        println!(r#"{{"type":"relay","ports":"{}"}}"#, ports.join(" "));
        loop {
            relay.turn()?;
        }
    }) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("ciphercost-agent relay: {error}");
            1
        }
    }
}

fn read_arguments(arguments: &[String]) -> Option<(u64, Vec<SocketAddr>)> {
    let (first, rest) = arguments.split_first()?;
    let round_trip_us = first.parse().ok().filter(|us| (1..=LONGEST_US).contains(us))?;
    let targets: Vec<SocketAddr> = rest.iter().map(|each| each.parse().ok()).collect::<Option<_>>()?;
    (!targets.is_empty()).then_some((round_trip_us, targets))
}

/// One direction of a connection: bytes under way in order, each piece with its due time.
#[derive(Default)]
struct Lane {
    pieces: VecDeque<(u64, Vec<u8>)>,
    /// How much of the first piece was already written.
    written: usize,
    bytes: usize,
    /// When the end of this direction is due, once it arrived.
    end: Option<u64>,
    end_passed: bool,
}

impl Lane {
    fn next_due(&self) -> Option<u64> {
        match self.pieces.front() {
            Some((due, _)) => Some(*due),
            None => self.end.filter(|_| !self.end_passed),
        }
    }
}

/// One end of a connection, and the state of its socket since it last refused.
struct End {
    socket: Option<Socket>,
    readable: bool,
    writable: bool,
}

/// A connection: ends 0 (client) and 1 (server); lane i carries what end i sends.
struct Pair {
    ends: [End; 2],
    lanes: [Lane; 2],
    target: SocketAddr,
    /// When to open the server's end: nothing from the client is due before.
    opens: u64,
    /// Its earliest entry in the agenda.
    noted: Option<u64>,
    broken: bool,
}

struct Relay {
    half: u64,
    listeners: Vec<(TcpListener, SocketAddr)>,
    pairs: HashMap<u64, Pair>,
    /// When each connection has something to do.
    agenda: BinaryHeap<Reverse<(u64, u64)>>,
    /// Connections that wait for memory.
    starved: Vec<u64>,
    bytes: usize,
    next: u64,
    epoll: OwnedFd,
    timer: OwnedFd,
    pool: Pool,
}

/// Buffers of `CHUNK` bytes, reused so that a bulk transfer doesn't allocate continuously.
struct Pool {
    scratch: Vec<u8>,
    spare: Vec<Vec<u8>>,
}

const MOST_SPARE: usize = 64;

impl Pool {
    /// The first `read` bytes of the scratch buffer, which is then replaced. Small pieces are copied.
    fn take(&mut self, read: usize) -> Vec<u8> {
        if read < CHUNK / 2 {
            return self.scratch[..read].to_vec();
        }
        let fresh = self.spare.pop().unwrap_or_else(|| vec![0; CHUNK]);
        let mut full = std::mem::replace(&mut self.scratch, fresh);
        full.truncate(read);
        full
    }

    fn give_back(&mut self, mut piece: Vec<u8>) {
        if piece.capacity() >= CHUNK && self.spare.len() < MOST_SPARE {
            piece.resize(CHUNK, 0);
            self.spare.push(piece);
        }
    }
}

const TIMER: u64 = u64::MAX;
const FIRST_LISTENER: u64 = 1 << 62;

impl Relay {
    fn new(round_trip_ns: u64, targets: &[SocketAddr]) -> io::Result<Relay> {
        // SAFETY: neither call takes a pointer; non-negative descriptors belong to us alone.
        let (epoll, timer) = unsafe {
            (
                own(libc::epoll_create1(libc::EPOLL_CLOEXEC))?,
                own(libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK))?,
            )
        };
        let mut relay = Relay {
            half: round_trip_ns / 2,
            listeners: Vec::new(),
            pairs: HashMap::new(),
            agenda: BinaryHeap::new(),
            starved: Vec::new(),
            bytes: 0,
            next: 0,
            epoll,
            timer,
            pool: Pool { scratch: vec![0; CHUNK], spare: Vec::new() },
        };
        relay.watch(relay.timer.as_raw_fd(), TIMER, libc::EPOLLIN)?;
        for (target, number) in targets.iter().zip(FIRST_LISTENER..) {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            listener.set_nonblocking(true)?;
            relay.watch(listener.as_raw_fd(), number, libc::EPOLLIN)?;
            relay.listeners.push((listener, *target));
        }
        Ok(relay)
    }

    fn ports(&self) -> io::Result<Vec<u16>> {
        self.listeners.iter().map(|(listener, _)| Ok(listener.local_addr()?.port())).collect()
    }

    fn watch(&self, fd: RawFd, word: u64, events: i32) -> io::Result<()> {
        let mut event = libc::epoll_event { events: events as u32, u64: word };
        // SAFETY: the event lives through the call.
        match unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Waits for the next socket event or due time, and handles it.
    fn turn(&mut self) -> io::Result<()> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 128];
        self.set_timer();
        // SAFETY: the kernel writes at most as many events as there is room for.
        let count = unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), events.len() as i32, -1) };
        if count < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == ErrorKind::Interrupted { Ok(()) } else { Err(error) };
        }
        for event in &events[..count as usize] {
            let (word, came) = (event.u64, event.events);
            match word {
                TIMER => {
                    let mut expirations = [0u8; 8];
                    // SAFETY: the kernel writes eight bytes.
                    unsafe { libc::read(self.timer.as_raw_fd(), expirations.as_mut_ptr().cast(), 8) };
                }
                _ if word >= FIRST_LISTENER => self.accept((word - FIRST_LISTENER) as usize)?,
                _ => {
                    if let Some(pair) = self.pairs.get_mut(&(word >> 1)) {
                        let end = &mut pair.ends[(word & 1) as usize];
                        let any = |mask: i32| came & mask as u32 != 0;
                        end.readable |= any(libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR);
                        end.writable |= any(libc::EPOLLOUT | libc::EPOLLERR);
                        self.work(word >> 1);
                    }
                }
            }
        }
        let now = now_ns();
        while self.agenda.peek().is_some_and(|Reverse((due, _))| *due <= now) {
            if let Some(Reverse((due, number))) = self.agenda.pop() {
                if let Some(pair) = self.pairs.get_mut(&number) {
                    pair.noted = pair.noted.filter(|noted| *noted != due);
                }
                self.work(number);
            }
        }
        if self.bytes < ROOM {
            for number in std::mem::take(&mut self.starved) {
                self.work(number);
            }
        }
        Ok(())
    }

    fn set_timer(&self) {
        if let Some(Reverse((due, _))) = self.agenda.peek() {
            // SAFETY: a timer's specification is plain numbers, zero included; it lives through the call.
            unsafe {
                let mut time: libc::itimerspec = std::mem::zeroed();
                time.it_value = crate::clock::timespec((*due).max(1));
                libc::timerfd_settime(self.timer.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &time, std::ptr::null_mut());
            }
        }
    }

    fn accept(&mut self, listener: usize) -> io::Result<()> {
        loop {
            let (listener, target) = &self.listeners[listener];
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                // The peer is gone, or descriptors are exhausted: the next one may succeed.
                Err(_) => return Ok(()),
            };
            let (target, number, opens) = (*target, self.next, now_ns() + 3 * self.half);
            self.next += 1;
            if stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true)).is_err() {
                continue;
            }
            let socket = Socket::from(OwnedFd::from(stream));
            self.watch(socket.as_raw_fd(), number << 1, EDGES)?;
            let client = End { socket: Some(socket), readable: true, writable: true };
            let server = End { socket: None, readable: false, writable: false };
            let lanes = [Lane::default(), Lane::default()];
            let pair = Pair { ends: [client, server], lanes, target, opens, noted: Some(opens), broken: false };
            self.pairs.insert(number, pair);
            self.agenda.push(Reverse((opens, number)));
            self.work(number);
        }
    }

    /// Does everything due on one connection, and notes when it has more to do.
    fn work(&mut self, number: u64) {
        let Some(mut pair) = self.pairs.remove(&number) else { return };
        let now = now_ns();
        if pair.ends[1].socket.is_none() && now >= pair.opens {
            match Socket::open(pair.target, Mode::Polled) {
                Ok(socket) => {
                    pair.broken |= self.watch(socket.as_raw_fd(), number << 1 | 1, EDGES).is_err();
                    pair.ends[1].socket = Some(socket);
                }
                Err(_) => pair.broken = true,
            }
        }
        let mut again = None;
        for lane in 0..2 {
            self.bytes -= pair.deliver(lane, now, &mut self.pool);
            let (read, more) = pair.collect(lane, now + self.half, ROOM.saturating_sub(self.bytes), &mut self.pool);
            self.bytes += read;
            match more {
                More::Nothing => {}
                More::NextTurn => again = Some(now),
                More::Starved => self.starved.push(number),
            }
        }
        if pair.broken || pair.lanes.iter().all(|lane| lane.end_passed) {
            self.bytes -= pair.lanes.iter().map(|lane| lane.bytes).sum::<usize>();
            return;
        }
        // Due bytes that were not accepted wait for their socket, not for a time.
        let due = pair.lanes.iter().filter_map(Lane::next_due).filter(|due| *due > now).min();
        let next = [due, again].into_iter().flatten().min();
        if let Some(due) = next.filter(|due| pair.noted.is_none_or(|noted| *due < noted)) {
            pair.noted = Some(due);
            self.agenda.push(Reverse((due, number)));
        }
        self.pairs.insert(number, pair);
    }
}

const EDGES: i32 = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET;

enum More {
    Nothing,
    NextTurn,
    Starved,
}

impl Pair {
    /// Writes a lane's due bytes, and its end when that is due. Returns the number of bytes written.
    fn deliver(&mut self, lane: usize, now: u64, pool: &mut Pool) -> usize {
        let (from, to) = (&mut self.lanes[lane], &mut self.ends[1 - lane]);
        let Some(socket) = &mut to.socket else { return 0 };
        let mut left = 0;
        while let Some((due, piece)) = from.pieces.front() {
            if *due > now || !to.writable {
                break;
            }
            match socket.write(&piece[from.written..]) {
                Ok(written) => {
                    (from.written, left) = (from.written + written, left + written);
                    if from.written == piece.len() {
                        from.pieces.pop_front().into_iter().for_each(|(_, piece)| pool.give_back(piece));
                        from.written = 0;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => to.writable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.broken = true;
                    break;
                }
            }
        }
        from.bytes -= left;
        if from.pieces.is_empty() && !from.end_passed && from.end.is_some_and(|end| end <= now) {
            // SAFETY: shutdown on our own descriptor takes no pointer.
            unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_WR) };
            from.end_passed = true;
        }
        left
    }

    /// Reads what an end has sent, to be due at `due`. Returns the number of bytes, and whether there is more to do.
    fn collect(&mut self, lane: usize, due: u64, room: usize, pool: &mut Pool) -> (usize, More) {
        let (into, from) = (&mut self.lanes[lane], &mut self.ends[lane]);
        let Some(socket) = &mut from.socket else { return (0, More::Nothing) };
        // The client's first bytes wait until there is a connection to the server.
        let due = if lane == 0 { due.max(self.opens) } else { due };
        let mut came = 0;
        for _ in 0..TURN {
            if !from.readable || into.end.is_some() || into.bytes >= WINDOW {
                return (came, More::Nothing);
            }
            if came >= room {
                return (came, More::Starved);
            }
            match socket.read(&mut pool.scratch) {
                Ok(0) => into.end = Some(due),
                Ok(read) => {
                    into.pieces.push_back((due, pool.take(read)));
                    (into.bytes, came) = (into.bytes + read, came + read);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => from.readable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // A reset: earlier bytes are still forwarded.
                Err(_) => into.end = Some(due),
            }
        }
        (came, More::NextTurn)
    }
}

/// # Safety
/// `fd` is a new descriptor that nothing else owns, or negative.
unsafe fn own(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: not negative, so by the caller's contract a descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(String::from).collect()
    }

    #[test]
    fn its_arguments_are_a_round_trip_and_addresses() {
        let (round_trip, targets) = read_arguments(&words("10000 127.0.0.1:5432 [::1]:3306")).unwrap();
        assert_eq!((round_trip, targets.len()), (10_000, 2));
        for wrong in ["", "10000", "0 127.0.0.1:1", "ten 127.0.0.1:1", "10 localhost", "99999999999 127.0.0.1:1"] {
            assert!(read_arguments(&words(wrong)).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_lane_is_next_due_with_its_first_piece_and_then_with_its_end() {
        let mut lane = Lane { end: Some(30), ..Lane::default() };
        lane.pieces.extend([(10, vec![1]), (20, vec![2])]);
        assert_eq!(lane.next_due(), Some(10));
        lane.pieces.clear();
        assert_eq!(lane.next_due(), Some(30));
        lane.end_passed = true;
        assert_eq!(lane.next_due(), None);
    }
}
