//! The hash functions and the permutation of pgbench, with its own results for every argument.

/// Appleby's MurmurHash2 for 64 bits (2008) of one number of eight bytes.
pub fn murmur2(value: i64, seed: i64) -> i64 {
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    const SHIFT: u32 = 47;
    let mut key = (value as u64).wrapping_mul(FACTOR);
    key = (key ^ (key >> SHIFT)).wrapping_mul(FACTOR);
    let mut hash = seed as u64 ^ FACTOR.wrapping_mul(8);
    hash = (hash ^ key).wrapping_mul(FACTOR);
    hash = (hash ^ (hash >> SHIFT)).wrapping_mul(FACTOR);
    (hash ^ (hash >> SHIFT)) as i64
}

/// Fowler, Noll and Vo's hash 1a of the eight bytes of a number, the lowest first.
pub fn fnv1a(value: i64, seed: i64) -> i64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x100_0000_01b3;
    let bytes = value.to_le_bytes();
    bytes.iter().fold(BASIS ^ seed as u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME)) as i64
}

/// Where a number lands if those below `size` are permuted: six rounds that multiply, mix and rotate its lower bits, then
/// those of its distance from the end, and then move all of them on. `size` is above zero.
pub fn permute(value: i64, size: i64, seed: i64) -> i64 {
    let size = size as u64;
    if size < 2 {
        return 0;
    }
    let mut random = Xoroshiro::new(seed as u64);
    let bits = size.ilog2();
    let mask = (1u64 << bits) - 1;
    let mut place = value as u64 % size;
    let mix = |place: u64, factor: u64, pattern: u64| {
        let mixed = (place.wrapping_mul(factor) ^ pattern) & mask;
        ((mixed << 1) & mask) | (mixed >> (bits - 1))
    };
    for _ in 0..6 {
        let (factor, pattern) = ((random.next() & mask) | 1, random.next() & mask);
        if place <= mask {
            place = mix(place, factor, pattern);
        }
        let (factor, pattern) = ((random.next() & mask) | 1, random.next() & mask);
        let from_end = size - 1 - place;
        if from_end <= mask {
            place = size - 1 - mix(from_end, factor, pattern);
        }
        place = ((u128::from(place) + u128::from(random.up_to(size - 1))) % u128::from(size)) as u64;
    }
    place as i64
}

/// Blackman and Vigna's xoroshiro128** (2018), seeded by SplitMix64.
struct Xoroshiro(u64, u64);

impl Xoroshiro {
    fn new(seed: u64) -> Xoroshiro {
        let mut random = crate::draw::Random::new(seed);
        Xoroshiro(random.next(), random.next())
    }

    fn next(&mut self) -> u64 {
        let Xoroshiro(first, second) = *self;
        let mixed = first ^ second;
        self.0 = first.rotate_left(24) ^ mixed ^ (mixed << 16);
        self.1 = mixed.rotate_left(37);
        first.wrapping_mul(5).rotate_left(7).wrapping_mul(9)
    }

    /// Uniform from 0 to `most`, both included and above 0: draws as many bits as `most` has until the value fits.
    fn up_to(&mut self, most: u64) -> u64 {
        loop {
            let value = self.next() >> (63 - most.ilog2());
            if value <= most {
                return value;
            }
        }
    }
}
