package main

type kindName int

const (
	uniform kindName = iota
	zipfian
	sequence
	letters
	constant
	// Every value in turn: the statements that use it run once per value.
	inTurn
	// What a step or a row sets it to.
	computed
	// The number of the connection.
	clientNumber
)

const longestLetters = 16 << 20

// kind says how a variable's values are generated, in the same order of draws as in the Rust agent.
type kind struct {
	name      kindName
	low, high int64
	zipf      zipf
	length    int
	value     string
}

// readKind takes a kind's own fields. Each kind accepts no others.
func readKind(name string, f *fields) kind {
	switch name {
	case "uniform", "each":
		read := kind{name: uniform, low: f.whole("low"), high: f.whole("high")}
		if name == "each" {
			read.name = inTurn
		}
		notBelow(f, read)
		return read
	case "zipfian":
		read := kind{name: zipfian, low: f.whole("low"), high: f.whole("high")}
		notBelow(f, read)
		skew := f.number("skew")
		if f.failure == nil && (!(skew > 0 && skew < 100) || skew == 1) {
			f.fail("skew: must be above 0, below 100 and not 1")
		}
		if f.failure == nil {
			read.zipf = newZipf(uint64(read.high-read.low)+1, skew)
		}
		return read
	case "sequence":
		return kind{name: sequence, low: f.whole("low")}
	case "text":
		f.need("length")
		return kind{name: letters, length: int(f.within("length", 0, 0, longestLetters))}
	case "constant":
		return kind{name: constant, value: f.text("value")}
	case "computed":
		return kind{name: computed}
	case "client":
		return kind{name: clientNumber}
	case "sealed", "blind":
		f.fail("kind: this agent does not support %q", name)
	default:
		f.fail("kind: %q is unknown", name)
	}
	return kind{}
}

func notBelow(f *fields, read kind) {
	if read.low > read.high {
		f.fail("low: must not be above high")
	}
}
