package main

import "math/bits"

// The hash functions and the permutation of pgbench, as in the Rust agent (agents/rust/src/program/expression/hashes.rs).

const (
	murmurFactor = 0xc6a4a7935bd1e995
	murmurShift  = 47
	fnvBasis     = 0xcbf29ce484222325
	fnvPrime     = 0x100000001b3
	rounds       = 6
)

// murmur2 is Appleby's MurmurHash2 for 64 bits (2008) of one number of eight bytes.
func murmur2(number, seed int64) int64 {
	key := uint64(number) * murmurFactor
	key = (key ^ (key >> murmurShift)) * murmurFactor
	factor := uint64(murmurFactor)
	hash := uint64(seed) ^ (factor * 8)
	hash = (hash ^ key) * murmurFactor
	hash = (hash ^ (hash >> murmurShift)) * murmurFactor
	return int64(hash ^ (hash >> murmurShift))
}

// fnv1a is Fowler, Noll and Vo's hash 1a of the eight bytes of a number, the lowest first.
func fnv1a(number, seed int64) int64 {
	hash := fnvBasis ^ uint64(seed)
	for shift := 0; shift < 64; shift += 8 {
		hash = (hash ^ ((uint64(number) >> shift) & 0xff)) * fnvPrime
	}
	return int64(hash)
}

// permute says where a number lands if those below `size`, which is above zero, are permuted: six rounds that multiply, mix and rotate its
// lower bits, then those of its distance from the end, and then move all of them on.
func permute(number, size, seed int64) int64 {
	if size < 2 {
		return 0
	}
	draws := newXoroshiro(uint64(seed))
	all := uint64(size)
	count := log2(all)
	mask := uint64(1)<<count - 1
	place := uint64(number) % all
	for range rounds {
		factor := (draws.next() & mask) | 1
		pattern := draws.next() & mask
		if place <= mask {
			place = mixed(place, factor, pattern, count)
		}
		factor = (draws.next() & mask) | 1
		pattern = draws.next() & mask
		if fromEnd := all - 1 - place; fromEnd <= mask {
			place = all - 1 - mixed(fromEnd, factor, pattern, count)
		}
		place = (place + draws.upTo(all-1)) % all // a sum of two numbers below 2⁶³
	}
	return int64(place)
}

func mixed(place, factor, pattern uint64, count int) uint64 {
	mask := uint64(1)<<count - 1
	mixed := ((place * factor) ^ pattern) & mask
	return ((mixed << 1) & mask) | (mixed >> (count - 1))
}

func log2(positive uint64) int { return bits.Len64(positive) - 1 }

// xoroshiro is Blackman and Vigna's xoroshiro128** (2018), seeded by SplitMix64.
type xoroshiro struct{ first, second uint64 }

func newXoroshiro(seed uint64) *xoroshiro {
	source := random{seed}
	return &xoroshiro{source.next(), source.next()}
}

func (x *xoroshiro) next() uint64 {
	number := bits.RotateLeft64(x.first*5, 7) * 9
	mixed := x.first ^ x.second
	x.first = bits.RotateLeft64(x.first, 24) ^ mixed ^ (mixed << 16)
	x.second = bits.RotateLeft64(mixed, 37)
	return number
}

// upTo is uniform from 0 to `most`, both included and above 0: draws as many bits as `most` has until the value fits.
func (x *xoroshiro) upTo(most uint64) uint64 {
	for {
		if drawn := x.next() >> (63 - log2(most)); drawn <= most {
			return drawn
		}
	}
}
