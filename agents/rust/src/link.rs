//! `ciphercost-agent link ONE_WAY_US LOSS NAME NAME`: carries packets between two TUN interfaces, each packet later by this
//! many microseconds, and loses each with this probability.
//!
//! A separate program, as `relay` is; one thread. Unlike the relay it sees packets, so that a lost one costs what it costs on
//! a real link: TCP and QUIC notice it, wait for a round trip and send it again. Interfaces count what enters and leaves, so
//! the number of lost packets is the kernel's, not this program's.

use crate::clock::{now_ns, timespec, wake_on_time};
use crate::draw::Random;
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

/// Of IPv4, and the highest MTU.
const LONGEST_PACKET: usize = 65_535;
/// Packets read from one side before the other gets its turn.
const TURN: usize = 64;
/// Bytes under way in one direction; more wait in the interface's queue.
const WINDOW: usize = 256 << 20;
const LONGEST_US: u64 = 10_000_000;
const NAME_BYTES: usize = 16;
const USAGE: &str = "usage: ciphercost-agent link ONE_WAY_US LOSS NAME NAME";

/// Runs until it is killed; returns the exit status if it can't continue.
pub fn run(arguments: &[String]) -> i32 {
    let Some((one_way_us, loss, names)) = read_arguments(arguments) else {
        eprintln!("{USAGE}");
        return 2;
    };
    match Link::new(one_way_us * 1000, loss, names).and_then(|mut link| {
        println!(r#"{{"type":"link"}}"#);
        loop {
            link.turn()?;
        }
    }) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("ciphercost-agent link: {error}");
            1
        }
    }
}

fn read_arguments(arguments: &[String]) -> Option<(u64, f64, [&str; 2])> {
    let [one_way_us, loss, one, other] = arguments else { return None };
    let one_way_us = one_way_us.parse().ok().filter(|us| *us <= LONGEST_US)?;
    let loss = loss.parse().ok().filter(|loss| (0.0..1.0).contains(loss))?;
    let names = [one.as_str(), other.as_str()];
    names.iter().all(|name| (1..NAME_BYTES).contains(&name.len())).then_some((one_way_us, loss, names))
}

/// Packets on their way in one direction, each with its due time. All wait equally long, so they stay in order.
#[derive(Default)]
struct Lane {
    packets: VecDeque<(u64, Vec<u8>)>,
    bytes: usize,
}

struct Link {
    one_way_ns: u64,
    loss: f64,
    /// Lane i carries what enters at end i.
    ends: [File; 2],
    lanes: [Lane; 2],
    random: Random,
    packet: Vec<u8>,
}

impl Link {
    fn new(one_way_ns: u64, loss: f64, names: [&str; 2]) -> io::Result<Link> {
        wake_on_time();
        let ends = [attach(names[0])?, attach(names[1])?];
        let random = Random::of_operation(now_ns(), u64::from(std::process::id()));
        Ok(Link { one_way_ns, loss, ends, lanes: Default::default(), random, packet: vec![0; LONGEST_PACKET] })
    }

    /// Waits for the next packet or due time, and handles it.
    fn turn(&mut self) -> io::Result<()> {
        let due = self.lanes.iter().filter_map(|lane| lane.packets.front()).map(|(due, _)| *due).min();
        let wait = due.map(|due| timespec(due.saturating_sub(now_ns())));
        let mut polled = [0, 1].map(|end: usize| {
            let wanted = if self.lanes[end].bytes < WINDOW { libc::POLLIN } else { 0 };
            libc::pollfd { fd: self.ends[end].as_raw_fd(), events: wanted, revents: 0 }
        });
        let wait = wait.as_ref().map_or(std::ptr::null(), |wait| wait as *const _);
        // SAFETY: the array and the time live through the call.
        if unsafe { libc::ppoll(polled.as_mut_ptr(), 2, wait, std::ptr::null()) } < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == ErrorKind::Interrupted { Ok(()) } else { Err(error) };
        }
        for (end, polled) in polled.iter().enumerate() {
            if polled.revents != 0 {
                self.collect(end)?;
            }
        }
        let now = now_ns();
        for lane in 0..2 {
            while self.lanes[lane].packets.front().is_some_and(|(due, _)| *due <= now) {
                if let Some((_, packet)) = self.lanes[lane].packets.pop_front() {
                    self.lanes[lane].bytes -= packet.len();
                    deliver(&mut self.ends[1 - lane], &packet)?;
                }
            }
        }
        Ok(())
    }

    /// Reads what has entered at an end.
    fn collect(&mut self, end: usize) -> io::Result<()> {
        let due = now_ns() + self.one_way_ns;
        for _ in 0..TURN {
            let length = match self.ends[end].read(&mut self.packet) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let packet = &self.packet[..length];
            if self.random.share() < self.loss {
                continue;
            }
            if self.one_way_ns == 0 {
                deliver(&mut self.ends[1 - end], packet)?;
            } else {
                self.lanes[end].bytes += length;
                self.lanes[end].packets.push_back((due, packet.to_vec()));
            }
        }
        Ok(())
    }
}

/// Hands a packet to the kernel, which takes it or, if it has no memory for it, loses it.
fn deliver(end: &mut File, packet: &[u8]) -> io::Result<()> {
    loop {
        match end.write(packet) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::ENOMEM | libc::EAGAIN)) => {
                return Ok(());
            }
            Err(error) => return Err(error),
            Ok(_) => return Ok(()),
        }
    }
}

/// A TUN interface that exists already.
fn attach(name: &str) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
    // SAFETY: an interface request is plain data, zero included.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the request lives through the call.
    match unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &request) } {
        0 => Ok(file),
        _ => Err(io::Error::other(format!("{name}: {}", io::Error::last_os_error()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(String::from).collect()
    }

    #[test]
    fn its_arguments_are_a_delay_a_probability_and_two_interfaces() {
        let given = words("5000 0.01 cc1 cc1n");
        assert_eq!(read_arguments(&given), Some((5000, 0.01, ["cc1", "cc1n"])));
        for wrong in ["", "1 0.1 a", "x 0.1 a b", "1 1.0 a b", "1 -0.1 a b", "1 NaN a b", "99999999 0 a b", "1 0 a b c"]
        {
            assert!(read_arguments(&words(wrong)).is_none(), "{wrong}");
        }
        assert!(read_arguments(&words("1 0 a sixteen_letters__")).is_none());
    }
}
