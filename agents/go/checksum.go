package main

import (
	"encoding/binary"
	"math/bits"
)

// The checksum of a row is this agent's own: it can compare two arms of this agent, but not an arm of each agent.

const (
	hashSeed = 0x9e3779b97f4a7c15
	hashMix  = 0xd6e8feb86659fd93
	nullMark = 0xa0761d6478bd642f
)

func mix(hash, word uint64) uint64 {
	high, low := bits.Mul64(hash^word, hashMix)
	return high ^ low ^ word
}

// hashValue adds a value to a row's hash. Nil is NULL.
func hashValue(hash uint64, value []byte) uint64 {
	if value == nil {
		return mix(hash, nullMark)
	}
	hash = mix(hash, uint64(len(value))) // so that 'ab' 'c' is not 'a' 'bc'
	for len(value) >= 8 {
		hash = mix(hash, binary.LittleEndian.Uint64(value))
		value = value[8:]
	}
	var rest [8]byte
	copy(rest[:], value)
	return mix(hash, binary.LittleEndian.Uint64(rest[:]))
}
