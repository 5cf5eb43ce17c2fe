//! Tracks when each slot of a load thread wants to wake up, and which is next. A tournament tree: setting an alarm costs log n.

/// Allocates only when the first alarm is set.
pub struct Alarms {
    slots: usize,
    /// A binary tree: its leaves are the slots' times, each node is the smaller of its children, the root is at 1.
    times: Vec<u64>,
}

/// The time of a slot without an alarm.
pub const NEVER: u64 = u64::MAX;

impl Alarms {
    pub fn new(slots: usize) -> Alarms {
        Alarms { slots: slots.next_power_of_two(), times: Vec::new() }
    }

    /// The earliest time, or NEVER.
    #[inline]
    pub fn next(&self) -> u64 {
        self.times.get(1).copied().unwrap_or(NEVER)
    }

    /// The slot with the earliest time.
    pub fn whose(&self) -> usize {
        let mut at = 1;
        while at < self.slots {
            at = 2 * at + usize::from(self.times[2 * at + 1] < self.times[2 * at]);
        }
        at - self.slots
    }

    /// Wakes slot `slot` at `ns` at the latest. An earlier alarm stays and may fire for nothing: so a deadline that every
    /// operation moves forward costs nothing.
    #[inline]
    pub fn no_later(&mut self, slot: usize, ns: u64) {
        if self.times.get(self.slots + slot).is_none_or(|known| ns < *known) {
            self.set(slot, ns);
        }
    }

    pub fn set(&mut self, slot: usize, ns: u64) {
        if self.times.is_empty() {
            self.times = vec![NEVER; 2 * self.slots];
        }
        let mut at = self.slots + slot;
        self.times[at] = ns;
        while at > 1 {
            let lesser = self.times[at].min(self.times[at ^ 1]);
            at /= 2;
            if self.times[at] == lesser {
                return;
            }
            self.times[at] = lesser;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Random;

    #[test]
    fn the_next_alarm_is_the_earliest_whatever_was_set() {
        for slots in [1, 2, 3, 7, 8, 100] {
            let (mut alarms, mut known) = (Alarms::new(slots), vec![NEVER; slots]);
            assert_eq!(alarms.next(), NEVER);
            let mut random = Random::of_operation(1, slots as u64);
            for _ in 0..2_000 {
                let slot = random.below(slots as u64) as usize;
                let ns = if random.below(4) == 0 { NEVER } else { random.below(50) };
                alarms.set(slot, ns);
                known[slot] = ns;
                assert_eq!(alarms.next(), *known.iter().min().unwrap());
                assert_eq!(known[alarms.whose()], alarms.next());
            }
        }
    }

    #[test]
    fn an_earlier_alarm_stays() {
        let mut alarms = Alarms::new(3);
        alarms.no_later(2, 100);
        alarms.no_later(2, 200);
        assert_eq!((alarms.next(), alarms.whose()), (100, 2));
        alarms.no_later(2, 50);
        assert_eq!(alarms.next(), 50);
    }
}
