package main

import (
	"math"
	"math/bits"
)

const (
	// What the parameter of `random_gaussian` must at least be.
	leastDeviation = 2.0
	mostSkew       = 1000.0
	mostArguments  = 1000
)

// function is an operator or a function of expressions, with the types, bounds and words for errors of pgbench, as in the Rust agent
// (agents/rust/src/program/expression/functions.rs).
type function struct {
	least, most int
	// Whether it gets NULL as well; the others yield NULL if any argument is.
	takesNull bool
	value     func(given []value, draws *random) (value, *Failure)
}

func (f *function) of(given []value, draws *random) (value, *Failure) {
	if !f.takesNull {
		for _, each := range given {
			if each.kind == null {
				return ofNull(), nil
			}
		}
	}
	return f.value(given, draws)
}

var functions = map[string]*function{
	"+":  arithmetic("add", func(a, b float64) float64 { return a + b }, added),
	"-":  arithmetic("sub", func(a, b float64) float64 { return a - b }, subtracted),
	"*":  arithmetic("mul", func(a, b float64) float64 { return a * b }, multiplied),
	"/":  arithmetic("div", func(a, b float64) float64 { return a / b }, divided),
	"%":  ofIntegers(remainder),
	"=":  comparison(func(a, b float64) bool { return a == b }, func(a, b int64) bool { return a == b }),
	"<>": comparison(func(a, b float64) bool { return a != b }, func(a, b int64) bool { return a != b }),
	"<":  comparison(func(a, b float64) bool { return a < b }, func(a, b int64) bool { return a < b }),
	"<=": comparison(func(a, b float64) bool { return a <= b }, func(a, b int64) bool { return a <= b }),
	"&":  ofIntegers(func(a, b int64) (int64, *Failure) { return a & b, nil }),
	"|":  ofIntegers(func(a, b int64) (int64, *Failure) { return a | b, nil }),
	"#":  ofIntegers(func(a, b int64) (int64, *Failure) { return a ^ b, nil }),
	// A shift uses the low six bits of its distance, as processors do.
	"<<": ofIntegers(func(a, b int64) (int64, *Failure) { return a << (b & 63), nil }),
	">>": ofIntegers(func(a, b int64) (int64, *Failure) { return a >> (b & 63), nil }),
	"not": {least: 1, most: 1, value: func(given []value, _ *random) (value, *Failure) {
		holds, failure := given[0].bool()
		return ofBool(!holds), failure
	}},
	"is": {least: 2, most: 2, takesNull: true, value: func(given []value, _ *random) (value, *Failure) {
		return ofBool(given[0].same(given[1])), nil
	}},
	"debug": {least: 1, most: 1, takesNull: true, value: func(given []value, _ *random) (value, *Failure) {
		return given[0], nil
	}},
	"abs": {least: 1, most: 1, value: func(given []value, _ *random) (value, *Failure) {
		if given[0].kind == real {
			return ofReal(math.Abs(given[0].real)), nil
		}
		whole, failure := given[0].integer()
		if whole < 0 {
			whole = -whole // that of the least is itself
		}
		return ofInteger(whole), failure
	}},
	"int": {least: 1, most: 1, value: func(given []value, _ *random) (value, *Failure) {
		whole, failure := given[0].integer()
		return ofInteger(whole), failure
	}},
	"double":       ofDouble(func(a float64) float64 { return a }),
	"exp":          ofDouble(math.Exp),
	"ln":           ofDouble(math.Log),
	"sqrt":         ofDouble(math.Sqrt),
	"pi":           {value: func([]value, *random) (value, *Failure) { return ofReal(math.Pi), nil }},
	"pow":          {least: 2, most: 2, value: power},
	"greatest":     extreme(func(a, b float64) float64 { return max(a, b) }, func(a, b int64) int64 { return max(a, b) }),
	"least":        extreme(func(a, b float64) float64 { return min(a, b) }, func(a, b int64) int64 { return min(a, b) }),
	"hash_fnv1a":   ofIntegers(func(a, b int64) (int64, *Failure) { return fnv1a(a, b), nil }),
	"hash_murmur2": ofIntegers(func(a, b int64) (int64, *Failure) { return murmur2(a, b), nil }),
	"permute":      {least: 3, most: 3, value: permuted},
	"random": drawn(2, func(draws *random, _ float64, values uint64) (uint64, *Failure) {
		return draws.below(values), nil
	}),
	"random_exponential": drawn(3, exponential),
	"random_gaussian":    drawn(3, gaussian),
	"random_zipfian":     drawn(3, skewed),
}

func init() { functions["mod"] = functions["%"] }

// arithmetic is of numbers with a fraction if one has one, else of integers; `what`: the operation in the text of an overflow.
func arithmetic(what string, ofReals func(a, b float64) float64, ofWholes func(a, b int64) (int64, bool)) *function {
	return &function{least: 2, most: 2, value: func(given []value, _ *random) (value, *Failure) {
		if given[0].kind == real || given[1].kind == real {
			first, second, failure := doubles(given)
			return ofReal(ofReals(first, second)), failure
		}
		first, second, failure := integers(given)
		if failure != nil {
			return value{}, failure
		}
		if what == "div" && second == 0 {
			return value{}, badStatement("division by zero")
		}
		result, fits := ofWholes(first, second)
		if !fits {
			return value{}, badStatement("bigint %s out of range", what)
		}
		return ofInteger(result), nil
	}}
}

func added(a, b int64) (int64, bool) {
	sum := a + b
	return sum, (a^sum)&(b^sum) >= 0
}

func subtracted(a, b int64) (int64, bool) {
	difference := a - b
	return difference, (a^b)&(a^difference) >= 0
}

func multiplied(a, b int64) (int64, bool) {
	high, low := bits.Mul64(magnitude(a), magnitude(b))
	negative := (a < 0) != (b < 0)
	product := int64(low)
	if negative {
		product = -product
		return product, high == 0 && low <= 1<<63
	}
	return product, high == 0 && low < 1<<63
}

func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

// divided: the one quotient that no integer of 64 bits holds is that of the least and -1.
func divided(a, b int64) (int64, bool) {
	if b == -1 {
		return -a, a != math.MinInt64
	}
	return a / b, true
}

func remainder(a, b int64) (int64, *Failure) {
	switch b {
	case 0:
		return 0, badStatement("division by zero")
	case -1:
		return 0, nil
	}
	return a % b, nil
}

func doubles(given []value) (float64, float64, *Failure) {
	first, failure := given[0].double()
	if failure != nil {
		return 0, 0, failure
	}
	second, failure := given[1].double()
	return first, second, failure
}

func integers(given []value) (int64, int64, *Failure) {
	first, failure := given[0].integer()
	if failure != nil {
		return 0, 0, failure
	}
	second, failure := given[1].integer()
	return first, second, failure
}

func comparison(ofReals func(a, b float64) bool, ofWholes func(a, b int64) bool) *function {
	return &function{least: 2, most: 2, value: func(given []value, _ *random) (value, *Failure) {
		if given[0].kind == real || given[1].kind == real {
			first, second, failure := doubles(given)
			return ofBool(ofReals(first, second)), failure
		}
		first, second, failure := integers(given)
		return ofBool(ofWholes(first, second)), failure
	}}
}

func ofIntegers(result func(a, b int64) (int64, *Failure)) *function {
	return &function{least: 2, most: 2, value: func(given []value, _ *random) (value, *Failure) {
		first, second, failure := integers(given)
		if failure != nil {
			return value{}, failure
		}
		whole, failure := result(first, second)
		return ofInteger(whole), failure
	}}
}

func ofDouble(result func(float64) float64) *function {
	return &function{least: 1, most: 1, value: func(given []value, _ *random) (value, *Failure) {
		number, failure := given[0].double()
		return ofReal(result(number)), failure
	}}
}

func power(given []value, _ *random) (value, *Failure) {
	base, exponent, failure := doubles(given)
	return ofReal(math.Pow(base, exponent)), failure
}

// extreme is the greatest or the least value: an integer if all are. NaN is none.
func extreme(ofReals func(a, b float64) float64, ofWholes func(a, b int64) int64) *function {
	return &function{least: 1, most: mostArguments, value: func(given []value, _ *random) (value, *Failure) {
		reals := false
		for _, each := range given {
			reals = reals || each.kind == real
		}
		best := math.NaN()
		var whole int64
		for at, each := range given {
			if reals {
				other, failure := each.double()
				if failure != nil {
					return value{}, failure
				}
				if math.IsNaN(best) {
					best = other
				} else if !math.IsNaN(other) {
					best = ofReals(best, other)
				}
				continue
			}
			other, failure := each.integer()
			if failure != nil {
				return value{}, failure
			}
			if at == 0 {
				whole = other
			}
			whole = ofWholes(whole, other)
		}
		if reals {
			return ofReal(best), nil
		}
		return ofInteger(whole), nil
	}}
}

func permuted(given []value, _ *random) (value, *Failure) {
	number, failure := given[0].integer()
	if failure != nil {
		return value{}, failure
	}
	size, failure := given[1].integer()
	if failure != nil {
		return value{}, failure
	}
	if size <= 0 {
		return value{}, badStatement("permute size parameter must be greater than zero")
	}
	seed, failure := given[2].integer()
	return ofInteger(permute(number, size, seed)), failure
}

// drawn is a random integer from the first argument to the second, by a distribution of pgbench's documentation, whose shape is the third.
func drawn(arguments int, rank func(draws *random, shape float64, values uint64) (uint64, *Failure)) *function {
	return &function{least: arguments, most: arguments, value: func(given []value, draws *random) (value, *Failure) {
		shape := 0.0
		if arguments > 2 {
			var failure *Failure
			if shape, failure = given[2].double(); failure != nil {
				return value{}, failure
			}
		}
		low, high, failure := integers(given)
		if failure != nil {
			return value{}, failure
		}
		if low > high {
			return value{}, badStatement("empty range given to random")
		}
		range1, fits := subtracted(high, low)
		if !fits || range1 == math.MaxInt64 {
			return value{}, badStatement("random range is too large")
		}
		found, failure := rank(draws, shape, uint64(range1)+1)
		return ofInteger(low + int64(found)), failure
	}}
}

func exponential(draws *random, shape float64, values uint64) (uint64, *Failure) {
	if !(shape > 0 && shape <= math.MaxFloat64) {
		return 0, badStatement("exponential parameter must be greater than zero (not %s)", shown(shape))
	}
	cut := math.Exp(-shape)
	share := 1.0 - draws.share()
	return at(-math.Log(cut+float64((1.0-cut)*share))/shape, values), nil
}

func gaussian(draws *random, shape float64, values uint64) (uint64, *Failure) {
	if !(shape >= leastDeviation && shape <= math.MaxFloat64) {
		return 0, badStatement("gaussian parameter must be at least %.6f (not %s)", leastDeviation, shown(shape))
	}
	return at((normalWithin(shape, draws)+shape)/(2.0*shape), values), nil
}

func skewed(draws *random, shape float64, values uint64) (uint64, *Failure) {
	if !(shape > 0 && shape <= mostSkew) || shape == 1 {
		return 0, badStatement("zipfian parameter must be above 0, at most 1000 and not 1 (not %s)", shown(shape))
	}
	distribution := newZipf(values, shape)
	return min(distribution.draw(draws)-1, values-1), nil
}

// at is the value at this share of the range. Rounding may reach the range's end, which is not in it.
func at(share float64, values uint64) uint64 {
	return uint64(max(0, min(int64(float64(values)*share), int64(values-1))))
}

// normalWithin is a value of the standard normal distribution within `±most` (Box and Muller 1958), drawn anew until it is.
func normalWithin(most float64, draws *random) float64 {
	for {
		radius := math.Sqrt(-2.0 * math.Log(1.0-draws.share()))
		found := radius * math.Sin(2.0*math.Pi*draws.share())
		if found >= -most && found < most {
			return found
		}
	}
}
