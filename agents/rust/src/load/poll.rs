//! Waits for a thread's polled connections: for their sockets or for the clock.

use super::slot::Slot;
use crate::alarms::{Alarms, NEVER};
use crate::clock::timespec;
use crate::connection::Connection;
use crate::failure::Result;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// What a thread's polled connections wait for.
pub struct Polling {
    pub poller: Poller,
    pub alarms: Alarms,
    pub idle: Vec<usize>,
    pub in_flight: usize,
    /// Slots whose first operation still opens its connection.
    opening: usize,
    /// When to look for connections that have been silent for too long.
    pub doubt_ns: u64,
}

impl Polling {
    pub fn new(slots: usize) -> Result<Polling> {
        let idle = (0..slots).rev().collect();
        let (poller, alarms) = (Poller::new()?, Alarms::new(slots));
        Ok(Polling { poller, alarms, idle, in_flight: 0, opening: 0, doubt_ns: NEVER })
    }

    /// Whether a slot may begin an operation: not its first one while too many others open their connections.
    #[inline]
    pub fn admits<C>(&self, slot: &Slot<C>, most: usize) -> bool {
        slot.begun || self.opening < most
    }

    /// An operation has begun and is pending. `silence_ns`: how long its connection may be silent.
    #[inline]
    pub fn begun<C: Connection>(&mut self, at: usize, slot: &mut Slot<C>, now: u64, silence_ns: u64) -> Result<()> {
        slot.pending = true;
        slot.heard_ns = now;
        if !slot.begun && slot.connection.is_opening() {
            slot.opening = true;
            self.opening += 1;
        }
        slot.begun = true;
        if self.doubt_ns == NEVER {
            self.doubt_ns = now.saturating_add(silence_ns);
        }
        self.in_flight += 1;
        self.watch(at, slot)
    }

    /// A slot's first operation no longer opens its connection.
    #[cold]
    pub fn opened<C>(&mut self, slot: &mut Slot<C>) {
        slot.opening = false;
        self.opening -= 1;
    }

    /// Registers what the pending operation of slot `at` waits for.
    #[inline]
    pub fn watch<C: Connection>(&mut self, at: usize, slot: &mut Slot<C>) -> Result<()> {
        if let Some(ns) = slot.connection.wakes() {
            self.alarms.no_later(at, ns);
        }
        self.poller.watch(at, slot)
    }
}

/// A level-triggered epoll: unread input is reported again.
pub struct Poller(OwnedFd);

impl Poller {
    fn new() -> Result<Poller> {
        // SAFETY: epoll_create1 takes no pointers; a non-negative descriptor belongs to us alone.
        unsafe {
            match libc::epoll_create1(libc::EPOLL_CLOEXEC) {
                -1 => Err(std::io::Error::last_os_error().into()),
                fd => Ok(Poller(OwnedFd::from_raw_fd(fd))),
            }
        }
    }

    /// Watches slot `at` for what its connection waits for, if that has changed.
    #[inline]
    pub fn watch<C: Connection>(&self, at: usize, slot: &mut Slot<C>) -> Result<()> {
        let wanted = slot.connection.interest();
        if wanted == slot.interest {
            return Ok(());
        }
        let Some(interest) = wanted else {
            self.forget(slot);
            return Ok(());
        };
        let same_socket = slot.interest.is_some_and(|known| known.opened == interest.opened);
        if !same_socket {
            self.forget(slot);
        }
        let action = if same_socket { libc::EPOLL_CTL_MOD } else { libc::EPOLL_CTL_ADD };
        let mut event = libc::epoll_event { events: interest.events, u64: at as u64 };
        slot.interest = wanted;
        // SAFETY: both descriptors are open and the event is read during the call only.
        match unsafe { libc::epoll_ctl(self.0.as_raw_fd(), action, interest.fd, &mut event) } {
            -1 => Err(std::io::Error::last_os_error().into()),
            _ => Ok(()),
        }
    }

    /// Stops watching a socket that its connection no longer needs, though it may stay open for its peer's goodbye.
    #[cold]
    fn forget<C: Connection>(&self, slot: &mut Slot<C>) {
        if let Some(interest) = slot.interest.take() {
            // SAFETY: removal takes no event; closing a descriptor already removed it.
            unsafe { libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_DEL, interest.fd, std::ptr::null_mut()) };
        }
    }

    /// Waits for events, at most `wait_ns`, by a clock of nanoseconds.
    pub fn wait(&self, events: &mut [libc::epoll_event], wait_ns: u64) -> Result<usize> {
        let time = timespec(wait_ns);
        let (poll, count) = (self.0.as_raw_fd(), events.len() as libc::c_long);
        let none = std::ptr::null::<libc::sigset_t>();
        // SAFETY: the kernel writes at most `events.len()` events; the timespec lives until the call returns.
        let ready = unsafe {
            libc::syscall(libc::SYS_epoll_pwait2, poll, events.as_mut_ptr(), count, &raw const time, none, 0)
        };
        found(ready as i32)
    }

    /// Waits for events, for about `most_ns`, when nothing is due.
    #[inline]
    pub fn wait_long(&self, events: &mut [libc::epoll_event], most_ns: u64) -> Result<usize> {
        let ms = i32::try_from(most_ns.div_ceil(1_000_000)).unwrap_or(-1);
        // SAFETY: the kernel writes at most `events.len()` events.
        found(unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), events.len() as i32, ms) })
    }
}

#[inline]
fn found(ready: i32) -> Result<usize> {
    match ready {
        -1 if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => Ok(0),
        -1 => Err(std::io::Error::last_os_error().into()),
        ready => Ok(ready as usize),
    }
}
