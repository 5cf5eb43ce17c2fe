//! XXH3-64, which identifies what a server has sent. It uses the vectors that this CPU has.

use std::hash::Hasher as _;
use twox_hash::xxhash3_64::{DEFAULT_SECRET_LENGTH, Hasher, RawHasher, SecretBuffer};

#[inline]
pub fn xxh3_64(bytes: &[u8]) -> u64 {
    Hasher::oneshot(bytes)
}

#[inline]
pub fn xxh3_64_with_seed(bytes: &[u8], seed: u64) -> u64 {
    Hasher::oneshot_with_seed(seed, bytes)
}

/// The same hash of bytes that come in parts. Allocates nothing.
pub struct Xxh3(RawHasher<[u8; DEFAULT_SECRET_LENGTH]>);

impl Xxh3 {
    pub fn new() -> Xxh3 {
        Xxh3::with_seed(0)
    }

    pub fn with_seed(seed: u64) -> Xxh3 {
        let room = [0; DEFAULT_SECRET_LENGTH];
        Xxh3(RawHasher::new(SecretBuffer::with_seed(seed, room).expect("the secret has its length")))
    }

    #[inline]
    pub fn update(&mut self, part: &[u8]) {
        self.0.write(part);
    }

    pub fn digest(&self) -> u64 {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRIME32: u64 = 2_654_435_761;
    const PRIME64: u64 = 11_400_714_785_074_694_797;
    /// From xxHash's own sanity check: the number of bytes, the seed, the hash.
    const VECTORS: [(usize, u64, u64); 26] = [
        (0, 0, 0x2d06_8005_38d3_94c2),
        (0, PRIME64, 0xa8a6_b918_b2f0_364a),
        (1, 0, 0xc44b_dff4_074e_ecdb),
        (1, PRIME64, 0x032b_e332_dd76_6ef8),
        (6, 0, 0x27b5_6a84_cd2d_7325),
        (6, PRIME64, 0x8458_9c11_6ab5_9ab9),
        (12, 0, 0xa713_daf0_dfbb_77e7),
        (12, PRIME64, 0xe730_3e1b_2336_de0e),
        (24, 0, 0xa3fe_70bf_9d35_10eb),
        (24, PRIME64, 0x850e_80fc_35bd_d690),
        (48, 0, 0x397d_a259_ecba_1f11),
        (48, PRIME64, 0xadc2_cbaa_44ac_c616),
        (80, 0, 0xbcde_fbbb_2c47_c90a),
        (80, PRIME64, 0xc6dd_0cb6_9953_2e73),
        (195, 0, 0xcd94_217e_e362_ec3a),
        (195, PRIME64, 0xba68_003d_370c_b3d9),
        (403, 0, 0xcdeb_804d_65c6_dea4),
        (403, PRIME64, 0x6259_f6ec_fd64_43fd),
        (512, 0, 0x617e_4959_9013_cb6b),
        (512, PRIME64, 0x3ce4_57de_14c2_7708),
        (2048, 0, 0xdd59_e2c3_a5f0_38e0),
        (2048, PRIME64, 0x66f8_1670_669a_babc),
        (2240, 0, 0x6e73_a905_39cf_2948),
        (2240, PRIME64, 0x757b_a848_7d1b_5247),
        (2367, 0, 0xcb37_aeb9_e5d3_61ed),
        (2367, PRIME64, 0xd2db_3415_b942_b42a),
    ];

    #[test]
    fn it_is_xxh3() {
        let mut state = PRIME32;
        let bytes: Vec<u8> = (0..2367)
            .map(|_| {
                let byte = (state >> 56) as u8;
                state = state.wrapping_mul(PRIME64);
                byte
            })
            .collect();
        for (length, seed, hash) in VECTORS {
            assert_eq!(xxh3_64_with_seed(&bytes[..length], seed), hash, "{length} bytes, seed {seed:x}");
            if seed == 0 {
                assert_eq!(xxh3_64(&bytes[..length]), hash, "{length} bytes");
            }
        }
    }

    #[test]
    fn parts_have_the_hash_of_the_whole() {
        let bytes: Vec<u8> = (0..100_000_u64).map(|at| ((at * at) >> 7) as u8).collect();
        for length in [0, 1, 16, 17, 128, 129, 240, 241, 255, 256, 257, 1024, 4096, 65_537, 100_000] {
            for part in [1, 7, 64, 255, 256, 1000, 16_384, 65_536] {
                for seed in [0, 200] {
                    let mut hash = Xxh3::with_seed(seed);
                    bytes[..length].chunks(part).for_each(|part| hash.update(part));
                    assert_eq!(hash.digest(), xxh3_64_with_seed(&bytes[..length], seed), "{length} in parts of {part}");
                }
            }
        }
    }
}
