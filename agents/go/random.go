package main

import (
	"math"
	"math/bits"
)

// random numbers from a seed, the same as the Rust agent's (agents/rust/src/draw.rs). SplitMix64 (Steele, Lea, Flood 2014).
type random struct{ state uint64 }

// ofOperation is the generator of one operation, independent of every other operation's and of the connection that runs it.
func ofOperation(seed, number uint64) random {
	outer := random{seed}
	inner := random{number * 0xd1b54a32d192ed03}
	return random{outer.next() ^ inner.next()}
}

func (r *random) next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

// share is uniform in [0, 1).
func (r *random) share() float64 { return float64(r.next()>>11) / (1 << 53) }

// exponential has mean 1: the gaps of a Poisson process of rate 1.
func (r *random) exponential() float64 { return -math.Log(1.0 - r.share()) }

// below is uniform in [0, below) without bias (Lemire 2019). `below` = 0 stands for 2⁶⁴.
func (r *random) below(below uint64) uint64 {
	if below == 0 {
		return r.next()
	}
	for {
		high, low := bits.Mul64(r.next(), below)
		if low >= below || low >= -below%below {
			return high
		}
	}
}

// letters are `length` random lower-case letters.
func (r *random) letters(length int) string {
	out := make([]byte, length)
	for at := 0; at < length; {
		left := r.next()
		for end := min(at+8, length); at < end; at++ {
			// The product's high half gives the letter, its low half the randomness of the next letter.
			high, low := bits.Mul64(left, 26)
			out[at] = 'a' + byte(high)
			left = low
		}
	}
	return string(out)
}

// zipf is Zipf's distribution over 1..=n by rejection-inversion (Hörmann and Derflinger 1996): constant time, no table.
//
// The conversions to float64 keep the compiler from fusing a product and a sum, which some processors round once only.
type zipf struct {
	n, skew                                float64
	integralFirst, integralLast, threshold float64
}

func newZipf(n uint64, skew float64) zipf {
	z := zipf{n: float64(n), skew: skew}
	z.integralFirst = z.integral(1.5) - 1.0
	z.integralLast = z.integral(z.n + 0.5)
	z.threshold = 2.0 - z.inverse(z.integral(2.5)-math.Pow(2.0, -skew))
	return z
}

func (z *zipf) integral(x float64) float64 {
	return (math.Pow(x, 1.0-z.skew) - 1.0) / (1.0 - z.skew)
}

func (z *zipf) inverse(x float64) float64 {
	return math.Pow(1.0+float64(x*(1.0-z.skew)), 1.0/(1.0-z.skew))
}

func (z *zipf) draw(r *random) uint64 {
	for {
		u := z.integralLast + float64(r.share()*(z.integralFirst-z.integralLast))
		x := z.inverse(u)
		rank := max(1.0, min(z.n, math.Round(x)))
		if rank-x <= z.threshold || u >= z.integral(rank+0.5)-math.Pow(rank, -z.skew) {
			return uint64(rank)
		}
	}
}
