package ciphercost.agent;

/** The hash functions and the permutation of pgbench, as in the Rust agent (agents/rust/src/program/expression/hashes.rs). */
final class Hashes {
    private static final long MURMUR_FACTOR = 0xc6a4a7935bd1e995L;
    private static final int MURMUR_SHIFT = 47;
    private static final long FNV_BASIS = 0xcbf29ce484222325L;
    private static final long FNV_PRIME = 0x100000001b3L;
    private static final int ROUNDS = 6;

    private Hashes() {}

    /** Appleby's MurmurHash2 for 64 bits (2008) of one number of eight bytes. */
    static long murmur2(long value, long seed) {
        long key = value * MURMUR_FACTOR;
        key = (key ^ (key >>> MURMUR_SHIFT)) * MURMUR_FACTOR;
        long hash = seed ^ (MURMUR_FACTOR * Long.BYTES);
        hash = (hash ^ key) * MURMUR_FACTOR;
        hash = (hash ^ (hash >>> MURMUR_SHIFT)) * MURMUR_FACTOR;
        return hash ^ (hash >>> MURMUR_SHIFT);
    }

    /** Fowler, Noll and Vo's hash 1a of the eight bytes of a number, the lowest first. */
    static long fnv1a(long value, long seed) {
        long hash = FNV_BASIS ^ seed;
        for (int shift = 0; shift < Long.SIZE; shift += Byte.SIZE) {
            hash = (hash ^ ((value >>> shift) & 0xff)) * FNV_PRIME;
        }
        return hash;
    }

    /** Where a number lands if those below `size`, which is above zero, are permuted: six rounds that multiply, mix and rotate its lower
     * bits, then those of its distance from the end, and then move all of them on. */
    static long permute(long value, long size, long seed) {
        if (size < 2) {
            return 0;
        }
        Xoroshiro random = new Xoroshiro(seed);
        int bits = log2(size);
        long mask = (1L << bits) - 1;
        long place = Long.remainderUnsigned(value, size);
        for (int round = 0; round < ROUNDS; round++) {
            long factor = (random.next() & mask) | 1;
            long pattern = random.next() & mask;
            if (place <= mask) {
                place = mixed(place, factor, pattern, bits);
            }
            factor = (random.next() & mask) | 1;
            pattern = random.next() & mask;
            long fromEnd = size - 1 - place;
            if (fromEnd <= mask) {
                place = size - 1 - mixed(fromEnd, factor, pattern, bits);
            }
            place = Long.remainderUnsigned(place + random.upTo(size - 1), size); // a sum of two numbers below 2⁶³
        }
        return place;
    }

    private static long mixed(long place, long factor, long pattern, int bits) {
        long mask = (1L << bits) - 1;
        long mixed = ((place * factor) ^ pattern) & mask;
        return ((mixed << 1) & mask) | (mixed >>> (bits - 1));
    }

    private static int log2(long positive) {
        return Long.SIZE - 1 - Long.numberOfLeadingZeros(positive);
    }

    /** Blackman and Vigna's xoroshiro128** (2018), seeded by SplitMix64. */
    private static final class Xoroshiro {
        private long first;
        private long second;

        Xoroshiro(long seed) {
            Random random = Random.seeded(seed);
            first = random.next();
            second = random.next();
        }

        long next() {
            long number = Long.rotateLeft(first * 5, 7) * 9;
            long mixed = first ^ second;
            first = Long.rotateLeft(first, 24) ^ mixed ^ (mixed << 16);
            second = Long.rotateLeft(mixed, 37);
            return number;
        }

        /** Uniform from 0 to `most`, both included and above 0: draws as many bits as `most` has until the value fits. */
        long upTo(long most) {
            while (true) {
                long value = next() >>> (Long.SIZE - 1 - log2(most));
                if (value <= most) {
                    return value;
                }
            }
        }
    }
}
