package main

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"math"
	"math/bits"
	"sync/atomic"
)

const (
	hourNs = 3_600_000_000_000
	// Three significant digits need 2048 steps in each octave, of which the upper half are its own.
	halfMagnitude = 10
	halfSteps     = 1 << halfMagnitude
	octaves       = 32
	cells         = (octaves + 1) * halfSteps

	plainCookie      = 0x1c849303 | 0x10
	compressedCookie = 0x1c849304 | 0x10
)

// histogram of latencies in nanoseconds, from one to an hour, as HdrHistogram has it. All clients of a slice count in the same.
type histogram [cells]atomic.Int64

func cell(ns int64) int {
	octave := bits.Len64(uint64(ns)|(2*halfSteps-1)) - halfMagnitude - 1
	return octave<<halfMagnitude + int(ns>>octave)
}

func (h *histogram) record(ns int64) { h[cell(max(1, min(ns, hourNs)))].Add(1) }

func (h *histogram) clear() {
	for at := range h {
		h[at].Store(0)
	}
}

// encode returns it in format V2, compressed, in base64.
func (h *histogram) encode() string {
	var counts []byte
	empty := int64(0)
	for at := range h {
		count := h[at].Load()
		if count == 0 {
			empty++
			continue
		}
		if empty > 0 {
			counts = appendZigZag(counts, -empty)
			empty = 0
		}
		counts = appendZigZag(counts, count)
	}
	var plain bytes.Buffer
	for _, field := range []any{
		uint32(plainCookie), uint32(len(counts)), uint32(0), uint32(3), uint64(1), uint64(hourNs), math.Float64bits(1.0),
	} {
		_ = binary.Write(&plain, binary.BigEndian, field) // a buffer takes everything
	}
	plain.Write(counts)
	var packed bytes.Buffer
	writer := zlib.NewWriter(&packed)
	_, _ = writer.Write(plain.Bytes())
	_ = writer.Close()
	out := binary.BigEndian.AppendUint32(nil, compressedCookie)
	out = binary.BigEndian.AppendUint32(out, uint32(packed.Len()))
	return base64.StdEncoding.EncodeToString(append(out, packed.Bytes()...))
}

// appendZigZag appends a number as it is in the format: seven bits a byte, the lowest first, the sign lowest of all.
func appendZigZag(to []byte, number int64) []byte {
	return binary.AppendUvarint(to, uint64(number<<1)^uint64(number>>63))
}
