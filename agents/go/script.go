package main

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
)

const (
	// No statement follows: the operation has ended.
	end = -1
	// First, the operation sleeps for its `sleepNs`.
	asleep = -2

	longestSleepUs = 3_600_000_000
)

var writtenInteger = regexp.MustCompile(`^-?[0-9]{1,18}$`)

// drawnTransaction: `upTo`: sum of the weights up to and including this transaction's; its statements are `first` to below `last`; `acts`:
// empty if they run one after the other.
type drawnTransaction struct {
	upTo        uint64
	first, last int
	variables   []int
	acts        []act
}

// loop: statements `first` to below `last` run once per value of the variable: all of them for one value before the next.
type loop struct{ variable, first, last int }

// script is the program as one arm runs it. Draws an operation from a seed and a number.
type script struct {
	statements   []statement
	loops        []loop
	transactions []drawnTransaction
	mode         string
	tries        uint64
	weight       uint64
	names        []string
	kinds        []kind
	counters     []atomic.Int64
}

// decides says whether some transaction has steps.
func (s *script) decides() bool {
	return slices.ContainsFunc(s.transactions, func(drawn drawnTransaction) bool { return len(drawn.acts) > 0 })
}

func (s *script) hasPipelines() bool {
	return slices.ContainsFunc(s.transactions, func(drawn drawnTransaction) bool {
		return slices.ContainsFunc(drawn.acts, func(each act) bool { return each.do == doPipeline })
	})
}

// runsAs says whether a connection prepared for this script can run the other.
func (s *script) runsAs(other *script) bool {
	return reflect.DeepEqual(s.statements, other.statements) && slices.Equal(s.names, other.names) && slices.Equal(s.kinds, other.kinds)
}

// isNumber says whether this variable is a constant written as an integer, which is bound as an integer.
func (s *script) isNumber(variable int) bool {
	return s.kinds[variable].name == constant && writtenInteger.MatchString(s.kinds[variable].value)
}

// variableFor is the variable for a column of this name: the very name, or else one that differs in case; -1 for none.
func (s *script) variableFor(prefix, column string) int {
	if found := slices.Index(s.names, prefix+column); found >= 0 {
		return found
	}
	return slices.IndexFunc(s.names, func(name string) bool {
		return strings.HasPrefix(name, prefix) && strings.EqualFold(name[len(prefix):], column)
	})
}

// shortName is a variable's name without that of its transaction.
func (s *script) shortName(variable int) string {
	name := s.names[variable]
	return name[strings.LastIndexByte(name, '.')+1:]
}

func (s *script) noValue(variable int) *Failure {
	return badStatement("variable %s has no value yet", s.shortName(variable))
}

// operation is one drawn operation: which statements run, with which values. Reused.
type operation struct {
	script *script
	// Connections of its arm.
	clients     uint64
	first, last int
	// How long to sleep at `asleep`.
	sleepNs int64
	values  []value
	// The numbers that sequences gave it.
	taken        []int64
	seed, number uint64
	drawn        *drawnTransaction
	// The statement that ran last; `first` - 1: none. With steps: the next of them.
	current int
	// Continues after what was drawn.
	random random
}

// operation returns a new one; `clients`: connections of its arm.
func (s *script) operation(clients int) *operation {
	return &operation{
		script: s, clients: uint64(clients), values: make([]value, len(s.kinds)), taken: make([]int64, len(s.kinds)),
	}
}

func (op *operation) draw(seed, number uint64) {
	op.seed, op.number = seed, number
	op.drawOnce(false)
}

// drawAgain draws the same operation again.
func (op *operation) drawAgain() { op.drawOnce(true) }

func (op *operation) drawOnce(again bool) {
	script := op.script
	op.random = ofOperation(op.seed, op.number)
	op.drawn = &script.transactions[0]
	if len(script.transactions) > 1 {
		ticket := op.random.below(script.weight)
		at := 0
		for ticket >= script.transactions[at].upTo {
			at++ // the sum of all weights is above every ticket
		}
		op.drawn = &script.transactions[at]
	}
	op.first, op.last = op.drawn.first, op.drawn.last
	op.current = op.first - 1
	if len(op.drawn.acts) > 0 {
		op.current = 0
	}
	for _, number := range op.drawn.variables {
		kind, to := &script.kinds[number], &op.values[number]
		switch kind.name {
		case uniform:
			*to = ofInteger(kind.low + int64(op.random.below(uint64(kind.high-kind.low)+1)))
		case zipfian:
			*to = ofInteger(min(kind.low+int64(kind.zipf.draw(&op.random))-1, kind.high))
		case sequence:
			if !again {
				op.taken[number] = kind.low + script.counters[number].Add(1) - 1
			}
			*to = ofInteger(op.taken[number])
		case letters:
			*to = ofText(op.random.letters(kind.length))
		case constant:
			*to = ofText(kind.value)
		case inTurn:
			*to = ofInteger(kind.low)
		case computed:
			*to = value{}
		case clientNumber:
			*to = ofInteger(int64(op.number % op.clients))
		}
	}
}

// advance returns the number of the next statement to run, or `asleep` or `end`. A Failure if an expression has no value.
func (op *operation) advance() (int, *Failure) {
	if len(op.drawn.acts) > 0 {
		return op.act()
	}
	if op.current < op.first {
		op.current = op.first
	} else {
		op.current = op.after(op.current)
	}
	if op.current < op.last {
		return op.current, nil
	}
	return end, nil
}

// act takes steps up to the next one that its connection has to take.
func (op *operation) act() (int, *Failure) {
	for op.current < len(op.drawn.acts) {
		act := &op.drawn.acts[op.current]
		op.current++
		switch act.do {
		case doRun:
			for _, number := range op.script.statements[act.statement].parameters {
				if op.values[number].kind == unset {
					return end, op.script.noValue(number)
				}
			}
			return act.statement, nil
		case doSet:
			found, failure := act.expression.evaluate(op)
			if failure != nil {
				return end, failure
			}
			op.values[act.variable] = found
		case doUnless:
			condition, failure := act.expression.evaluate(op)
			if failure != nil {
				return end, failure
			}
			if !condition.isTrue() {
				op.current = act.target
			}
		case doJump:
			op.current = act.target
		case doSleep:
			found, failure := act.expression.evaluate(op)
			if failure != nil {
				return end, failure
			}
			time, failure := found.integer()
			if failure == nil && time > longestSleepUs {
				failure = badStatement("\\sleep %d us: at most an hour", time)
			}
			if failure != nil {
				return end, failure
			}
			if time > 0 {
				op.sleepNs = time * 1_000
				return asleep, nil
			}
		}
	}
	return end, nil
}

// after says which statement runs after this one; `last`: none.
func (op *operation) after(statement int) int {
	for _, loop := range op.script.loops {
		if loop.last == statement+1 {
			kind, turn := &op.script.kinds[loop.variable], &op.values[loop.variable]
			if turn.whole < kind.high {
				turn.whole++
				return loop.first
			}
			turn.whole = kind.low // it may run again later
		}
	}
	return statement + 1
}

// scalar is a variable's value in an expression.
func (op *operation) scalar(variable int) (value, *Failure) {
	found := op.values[variable]
	switch found.kind {
	case unset:
		return value{}, op.script.noValue(variable)
	case text:
		return scalar(found.text, op.script.shortName(variable))
	}
	return found, nil
}
