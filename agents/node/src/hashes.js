/** The hash functions and the permutation of pgbench, as in the Rust agent (agents/rust/src/program/expression/hashes.rs). */

import { Random } from './random.js';

const MURMUR_FACTOR = 0xc6a4a7935bd1e995n;
const MURMUR_SHIFT = 47n;
const FNV_BASIS = 0xcbf29ce484222325n;
const FNV_PRIME = 0x100000001b3n;
const ROUNDS = 6;

const unsigned = (value) => BigInt.asUintN(64, value);
const signed = (value) => BigInt.asIntN(64, value);

/** Appleby's MurmurHash2 for 64 bits (2008) of one number of eight bytes. */
export function murmur2(value, seed) {
    let key = unsigned(value * MURMUR_FACTOR);
    key = unsigned((key ^ (key >> MURMUR_SHIFT)) * MURMUR_FACTOR);
    let hash = unsigned(seed) ^ unsigned(MURMUR_FACTOR * 8n);
    hash = unsigned((hash ^ key) * MURMUR_FACTOR);
    hash = unsigned((hash ^ (hash >> MURMUR_SHIFT)) * MURMUR_FACTOR);
    return signed(hash ^ (hash >> MURMUR_SHIFT));
}

/** Fowler, Noll and Vo's hash 1a of the eight bytes of a number, the lowest first. */
export function fnv1a(value, seed) {
    let hash = FNV_BASIS ^ unsigned(seed);
    for (let shift = 0n; shift < 64n; shift += 8n) {
        hash = unsigned((hash ^ ((unsigned(value) >> shift) & 0xffn)) * FNV_PRIME);
    }
    return signed(hash);
}

/**
 * Where a number lands if those below `size`, which is above zero, are permuted: six rounds that multiply, mix and rotate its lower
 * bits, then those of its distance from the end, and then move all of them on.
 */
export function permute(value, size, seed) {
    if (size < 2n) {
        return 0n;
    }
    const random = new Xoroshiro(seed);
    const bits = log2(size);
    const mask = (1n << bits) - 1n;
    let place = unsigned(value) % size;
    for (let round = 0; round < ROUNDS; round++) {
        let factor = (random.next() & mask) | 1n;
        let pattern = random.next() & mask;
        if (place <= mask) {
            place = mixed(place, factor, pattern, bits);
        }
        factor = (random.next() & mask) | 1n;
        pattern = random.next() & mask;
        const fromEnd = size - 1n - place;
        if (fromEnd <= mask) {
            place = size - 1n - mixed(fromEnd, factor, pattern, bits);
        }
        place = (place + random.upTo(size - 1n)) % size;
    }
    return place;
}

function mixed(place, factor, pattern, bits) {
    const mask = (1n << bits) - 1n;
    const found = ((place * factor) ^ pattern) & mask;
    return ((found << 1n) & mask) | (found >> (bits - 1n));
}

function log2(positive) {
    return BigInt(positive.toString(2).length - 1);
}

const rotated = (value, by) => unsigned(value << by) | (value >> (64n - by));

/** Blackman and Vigna's xoroshiro128** (2018), seeded by SplitMix64. */
class Xoroshiro {
    constructor(seed) {
        const random = Random.seeded(seed);
        this.first = random.bits();
        this.second = random.bits();
    }

    next() {
        const number = unsigned(rotated(unsigned(this.first * 5n), 7n) * 9n);
        const mix = this.first ^ this.second;
        this.first = rotated(this.first, 24n) ^ mix ^ unsigned(mix << 16n);
        this.second = rotated(mix, 37n);
        return number;
    }

    /** Uniform from 0 to `most`, both included and above 0: draws as many bits as `most` has until the value fits. */
    upTo(most) {
        while (true) {
            const value = this.next() >> (63n - log2(most));
            if (value <= most) {
                return value;
            }
        }
    }
}
