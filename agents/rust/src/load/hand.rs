//! The connections of one load thread. Only that thread touches them while a slice runs.

use super::slot::Slot;
use crate::connection::Connection;
use std::ops::Range;

/// The connections of one load thread.
pub struct Hand<C> {
    pub(super) slots: Vec<Slot<C>>,
}

impl<C: Connection> Hand<C> {
    /// `first`: the number of the first of these connections; the others follow.
    pub fn new(first: usize, connections: Vec<C>) -> Hand<C> {
        let slot = |(at, connection)| Slot::new(connection, (first + at) as u64);
        Hand { slots: connections.into_iter().enumerate().map(slot).collect() }
    }

    /// Which connections belong to a thread.
    pub fn range(thread: usize, threads: usize, connections: usize) -> Range<usize> {
        thread * connections / threads..(thread + 1) * connections / threads
    }

    /// The hands of so many threads, or of as many as there are connections.
    pub fn deal(connections: Vec<C>, threads: usize) -> Vec<Hand<C>> {
        let (all, mut rest) = (connections.len(), connections.into_iter());
        let threads = threads.min(all);
        let ranges = (0..threads).map(|thread| Hand::<C>::range(thread, threads, all));
        ranges.map(|range| Hand::new(range.start, rest.by_ref().take(range.len()).collect())).collect()
    }

    /// Puts connection 0 before the others.
    pub fn put_first(&mut self, connection: C) {
        self.slots.insert(0, Slot::new(connection, 0));
    }

    pub fn connections(&mut self) -> impl Iterator<Item = &mut C> {
        self.slots.iter_mut().map(|slot| &mut slot.connection)
    }
}
