//! When the requests of an open loop are due.

use crate::draw::Random;
use std::sync::Arc;

/// Generators of operations count up from 0; those of arrivals, one per thread, count down from here.
const ARRIVALS: u64 = u64::MAX;

/// Open loop: when requests are due.
pub enum Due {
    /// At equal intervals in nanoseconds; any thread may claim the next.
    Even(f64),
    /// Each thread has its own process, so threads never wait for each other.
    Random(Process),
    /// At these times in microseconds since the slice's start, ascending; any thread may claim the next.
    Given(Arc<[u64]>),
}

/// The requests of a Poisson process: their numbers, and when they are due, in nanoseconds since the slice's start.
pub struct Process {
    random: Random,
    mean_ns: f64,
    at_ns: f64,
    number: u64,
    /// Thread i of n runs operations i, i + n, …
    stride: u64,
}

impl Process {
    pub fn new(seed: u64, mean_ns: f64, thread: usize, threads: usize) -> Process {
        let random = Random::of_operation(seed, ARRIVALS - thread as u64);
        Process { random, mean_ns, at_ns: 0.0, number: thread as u64, stride: threads as u64 }
    }

    #[inline]
    pub fn next(&mut self) -> (u64, u64) {
        self.at_ns += self.mean_ns * self.random.exponential();
        let number = self.number;
        self.number += self.stride;
        (number, self.at_ns as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_its_rate_and_exponential_gaps_and_is_the_same_for_the_same_seed() {
        let times = |seed, thread, threads: usize| {
            let mut process = Process::new(seed, 1000.0, thread, threads);
            (0..50_000).map(|_| process.next()).collect::<Vec<_>>()
        };
        let found = times(3, 0, 1);
        let gaps: Vec<f64> = found.windows(2).map(|pair| (pair[1].1 - pair[0].1) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((970.0..1030.0).contains(&mean), "{mean}");
        assert!((0.9..1.1).contains(&(variance / mean.powi(2))), "{variance}");
        let following =
            gaps.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>() / gaps.len() as f64;
        assert!((following / variance).abs() < 0.03, "a gap says nothing of the next");
        assert_eq!(found, times(3, 0, 1));
        assert_ne!(found, times(4, 0, 1));
        assert_ne!(found[0].1, times(3, 1, 2)[0].1, "each thread has its own");
        assert_eq!(times(3, 1, 2)[..3].iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 3, 5]);
    }
}
