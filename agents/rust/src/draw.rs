//! Draws the values of variables from a seed. Two arms with the same seed draw the same values.

use std::sync::atomic::{AtomicI64, Ordering};

/// SplitMix64 (Steele, Lea, Flood 2014): one addition and three multiplications per number; any seed is a good one.
#[derive(Debug, Clone, Default)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The generator of one operation, independent of all other operations and of the connection that runs it.
    pub fn of_operation(seed: u64, number: u64) -> Random {
        let mut outer = Random(seed);
        Random(outer.next() ^ Random(number.wrapping_mul(0xd1b5_4a32_d192_ed03)).next())
    }

    #[inline]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    #[inline]
    pub fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Exponential with mean 1: the gaps of a Poisson process of rate 1.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.share()).ln()
    }

    /// Uniform in [0, below) without bias (Lemire 2019). `below` = 0 stands for 2⁶⁴.
    #[inline]
    pub fn below(&mut self, below: u64) -> u64 {
        if below == 0 {
            return self.next();
        }
        loop {
            let wide = u128::from(self.next()) * u128::from(below);
            let low = wide as u64;
            if low >= below || low >= below.wrapping_neg() % below {
                return (wide >> 64) as u64;
            }
        }
    }
}

/// Number `number` of a sequence in 0..below that reaches every part of it as often as its length says, in any stretch: the
/// additive recurrence by the golden ratio, whose discrepancy is as low as a sequence's can be (Niederreiter 1992, section 3.1).
#[inline]
pub fn even(start: u64, number: u64, below: u64) -> u64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let share = start.wrapping_add(number.wrapping_mul(GOLDEN));
    ((u128::from(share) * u128::from(below)) >> 64) as u64
}

/// How a variable's values are generated.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Uniform {
        low: i64,
        high: i64,
    },
    Zipfian {
        low: i64,
        high: i64,
        zipf: Zipf,
    },
    Sequence {
        low: i64,
    },
    Text {
        length: usize,
    },
    Constant {
        value: String,
    },
    /// Every value in turn: statements that use it run once per value.
    Each {
        low: i64,
        high: i64,
    },
    /// The value of another variable, sealed.
    Sealed {
        of: usize,
    },
    /// Whatever a step or a row sets it to.
    Computed,
    /// The number of the connection.
    Client,
    /// The entry of another variable's value in a blind index: so many bytes of its HMAC.
    Blind {
        of: usize,
        bytes: usize,
    },
}

/// A drawn value. Text lies in the operation's own buffer, so drawing doesn't allocate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    Unset,
    /// The current value of a `Kind::Each`.
    Turn,
    Integer(i64),
    Null,
    Boolean(bool),
    Real(f64),
    Text {
        start: usize,
        end: usize,
    },
    Bytes {
        start: usize,
        end: usize,
    },
}

impl Kind {
    /// Draws a value; `counter` is the arm's own count of this variable's draws (for sequences).
    #[inline]
    pub fn draw(&self, random: &mut Random, counter: &AtomicI64, texts: &mut Vec<u8>) -> Value {
        match self {
            Kind::Uniform { low, high } => {
                let values = (high.wrapping_sub(*low) as u64).wrapping_add(1);
                Value::Integer(low.wrapping_add(random.below(values) as i64))
            }
            Kind::Zipfian { low, high, zipf } => {
                let rank = zipf.draw(random) as i64;
                Value::Integer(low.wrapping_add(rank - 1).min(*high))
            }
            Kind::Sequence { low } => Value::Integer(low.wrapping_add(counter.fetch_add(1, Ordering::Relaxed))),
            Kind::Text { length } => {
                let start = texts.len();
                letters(random, *length, texts);
                Value::Text { start, end: texts.len() }
            }
            Kind::Constant { value } => {
                let start = texts.len();
                texts.extend_from_slice(value.as_bytes());
                Value::Text { start, end: texts.len() }
            }
            Kind::Each { .. } => Value::Turn,
            // Draw nothing: the operation makes the first two after drawing all others, sets the next in its steps, and knows the last.
            Kind::Sealed { .. } | Kind::Blind { .. } | Kind::Computed | Kind::Client => Value::Unset,
        }
    }
}

/// Appends `length` random lower-case letters.
fn letters(random: &mut Random, length: usize, into: &mut Vec<u8>) {
    into.reserve(length);
    let mut left = length;
    while left > 0 {
        let mut bits = random.next();
        for _ in 0..left.min(8) {
            // The product's high half is the letter; its low half is the randomness for the next one.
            let wide = u128::from(bits) * 26;
            into.push(b'a' + (wide >> 64) as u8);
            bits = wide as u64;
        }
        left -= left.min(8);
    }
}

/// Zipf's distribution over 1..=n by rejection-inversion (Hörmann and Derflinger 1996): constant time, no table.
#[derive(Debug, Clone, PartialEq)]
pub struct Zipf {
    n: f64,
    skew: f64,
    integral_first: f64,
    integral_last: f64,
    threshold: f64,
}

impl Zipf {
    pub fn new(n: u64, skew: f64) -> Zipf {
        let n = n as f64;
        let integral = |x: f64| (x.powf(1.0 - skew) - 1.0) / (1.0 - skew);
        let inverse = |x: f64| (1.0 + x * (1.0 - skew)).powf(1.0 / (1.0 - skew));
        Zipf {
            n,
            skew,
            integral_first: integral(1.5) - 1.0,
            integral_last: integral(n + 0.5),
            threshold: 2.0 - inverse(integral(2.5) - 2f64.powf(-skew)),
        }
    }

    pub fn draw(&self, random: &mut Random) -> u64 {
        let integral = |x: f64| (x.powf(1.0 - self.skew) - 1.0) / (1.0 - self.skew);
        let inverse = |x: f64| (1.0 + x * (1.0 - self.skew)).powf(1.0 / (1.0 - self.skew));
        loop {
            let u = self.integral_last + random.share() * (self.integral_first - self.integral_last);
            let x = inverse(u);
            let rank = x.round().clamp(1.0, self.n);
            if rank - x <= self.threshold || u >= integral(rank + 0.5) - rank.powf(-self.skew) {
                return rank as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn draws(kind: &Kind, count: usize) -> Vec<i64> {
        let (mut random, counter, mut texts) = (Random::of_operation(7, 0), AtomicI64::new(0), Vec::new());
        (0..count)
            .map(|_| match kind.draw(&mut random, &counter, &mut texts) {
                Value::Integer(value) => value,
                other => panic!("not an integer: {other:?}"),
            })
            .collect()
    }

    #[test]
    fn uniform_reaches_both_bounds_and_nothing_beyond() {
        let seen: HashSet<i64> = draws(&Kind::Uniform { low: -2, high: 3 }, 1000).into_iter().collect();
        assert_eq!(seen, (-2..=3).collect());
        assert_eq!(draws(&Kind::Uniform { low: 5, high: 5 }, 3), [5, 5, 5]);
        draws(&Kind::Uniform { low: i64::MIN, high: i64::MAX }, 10);
    }

    #[test]
    fn uniform_is_even() {
        let mut counts = [0u32; 10];
        for value in draws(&Kind::Uniform { low: 0, high: 9 }, 100_000) {
            counts[value as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
    }

    #[test]
    fn an_even_sequence_has_every_part_as_often_as_its_length_says_in_any_stretch() {
        for (start, first) in [(0, 0), (u64::MAX / 3, 1_000_000), (7, u64::MAX / 2)] {
            for (low, high) in [(0, 500), (500, 900), (900, 999), (999, 1000)] {
                for length in [100, 2_000, 50_000u64] {
                    let inside = |number| (low..high).contains(&even(start, first + number, 1000));
                    let count = (0..length).filter(|number| inside(*number)).count() as f64;
                    let expected = length as f64 * (high - low) as f64 / 1000.0;
                    assert!((count - expected).abs() <= 3.0, "{low}..{high} of {length}: {count}, not {expected}");
                }
            }
        }
    }

    #[test]
    fn exponential_has_its_mean_variance_and_tail() {
        let (mut random, count) = (Random::of_operation(5, 5), 100_000);
        let gaps: Vec<f64> = (0..count).map(|_| random.exponential()).collect();
        let mean = gaps.iter().sum::<f64>() / f64::from(count);
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / f64::from(count);
        let tail = gaps.iter().filter(|gap| **gap > 3.0).count() as f64 / f64::from(count);
        assert!((0.98..1.02).contains(&mean), "{mean}");
        assert!((0.94..1.06).contains(&variance), "{variance}");
        assert!((0.9..1.1).contains(&(tail / (-3.0f64).exp())), "{tail}");
        assert!(gaps.iter().all(|gap| *gap >= 0.0 && gap.is_finite()));
    }

    #[test]
    fn zipfian_frequencies_fall_as_the_power_of_the_rank() {
        for skew in [0.5, 0.99, 1.5] {
            let kind = Kind::Zipfian { low: 10, high: 109, zipf: Zipf::new(100, skew) };
            let values = draws(&kind, 200_000);
            assert!(values.iter().all(|value| (10..=109).contains(value)));
            let count = |rank: i64| values.iter().filter(|value| **value == 9 + rank).count() as f64;
            let weights: f64 = (1..=100).map(|rank| f64::from(rank).powf(-skew)).sum();
            for rank in [1, 2, 5, 20] {
                let expected = 200_000.0 * (rank as f64).powf(-skew) / weights;
                let sigmas = (count(rank) - expected).abs() / expected.sqrt();
                assert!(sigmas < 5.0, "skew {skew}, rank {rank}: {} seen, {expected:.0} expected", count(rank));
            }
        }
    }

    #[test]
    fn a_sequence_never_repeats_whichever_thread_draws() {
        let (kind, counter) = (Kind::Sequence { low: 100 }, AtomicI64::new(0));
        let mut seen: Vec<Value> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|thread| {
                    let (kind, counter) = (&kind, &counter);
                    scope.spawn(move || {
                        let mut random = Random::of_operation(1, thread);
                        (0..1000).map(|_| kind.draw(&mut random, counter, &mut Vec::new())).collect::<Vec<_>>()
                    })
                })
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        seen.sort_by_key(|value| match value {
            Value::Integer(value) => *value,
            _ => -1,
        });
        assert_eq!(seen, (100..4100).map(Value::Integer).collect::<Vec<_>>());
    }

    #[test]
    fn text_is_lower_case_letters_of_the_requested_length() {
        let mut texts = Vec::new();
        letters(&mut Random::of_operation(3, 3), 10_001, &mut texts);
        assert_eq!(texts.len(), 10_001);
        assert!(texts.iter().all(u8::is_ascii_lowercase));
        assert_eq!(texts.iter().collect::<HashSet<_>>().len(), 26);
    }

    #[test]
    fn an_operation_draws_the_same_whenever_it_is_drawn_and_differs_from_its_neighbours() {
        let first = |seed, number| Random::of_operation(seed, number).next();
        assert_eq!(first(1, 2), first(1, 2));
        let distinct: HashSet<u64> = (0..100).flat_map(|s| (0..100).map(move |n| first(s, n))).collect();
        assert_eq!(distinct.len(), 10_000);
    }
}
