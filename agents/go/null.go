package main

import (
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

const longestThoughtUs = 3_600_000_000

var (
	microseconds = regexp.MustCompile(`^[0-9]{1,10}$`)
	marked       = regexp.MustCompile(`^\$[1-9][0-9]{0,3}$`)
)

// nullLink runs operations that do nothing, wait busily, or think. Shows the agent's own floor, and provides a known effect to measure.
type nullLink struct {
	busyNs     int64
	jitter     float64
	perRequest bool
	random     random
	last       outcome
	// What each statement thinks; nil if none does.
	thoughts []thought
	open     bool
	connects uint64
	alarm    alarm
}

// thought of a statement. `variable`: whose value it is, if it is 0 or above; -1: `us`; -2: none.
type thought struct {
	variable int
	us       int64
}

func openNull(f *fields, connections int, perRequest bool) ([]link, *Failure) {
	busyNs := f.unsigned("busy_ns", 0)
	jitter := f.numberOr("jitter", 0)
	if !(jitter >= 0 && jitter <= 1) {
		f.fail("jitter: must lie between 0 and 1")
	}
	if failure := f.end(); failure != nil {
		return nil, failure
	}
	links := make([]link, connections)
	for number := range links {
		links[number] = &nullLink{
			busyNs: int64(min(busyNs, 1<<62)), jitter: jitter, perRequest: perRequest, random: ofOperation(0, uint64(number)),
		}
	}
	return links, nil
}

// prepare skips all statements except THINK.
func (n *nullLink) prepare(script *script, _, open bool) *Failure {
	if script.decides() {
		return badStatement("the null driver runs no scripts with steps")
	}
	n.open, n.thoughts = open, nil
	thoughts, any := make([]thought, len(script.statements)), false
	for at, each := range script.statements {
		var failure *Failure
		if thoughts[at], failure = readThought(each); failure != nil {
			return failure
		}
		any = any || thoughts[at].variable != -2
	}
	if any {
		n.thoughts = thoughts
	}
	return nil
}

func readThought(statement statement) (thought, *Failure) {
	words := strings.Fields(statement.sql)
	if len(words) == 0 || words[0] != "THINK" {
		return thought{variable: -2}, nil
	}
	if len(words) == 2 && !strings.HasPrefix(words[1], "$") {
		us, failure := thinkTime(words[1])
		return thought{-1, us}, failure
	}
	if len(words) == 2 && marked.MatchString(words[1]) {
		if number, _ := strconv.Atoi(words[1][1:]); number <= len(statement.parameters) {
			return thought{variable: statement.parameters[number-1]}, nil
		}
	}
	return thought{}, badStatement("%q: write THINK $1, the value in microseconds", statement.sql)
}

func thinkTime(words string) (int64, *Failure) {
	us, err := strconv.ParseInt(words, 10, 64)
	if err != nil || !microseconds.MatchString(words) || us > longestThoughtUs {
		return 0, badStatement("THINK %s: must be microseconds, from 0 to %d", words, longestThoughtUs)
	}
	return us, nil
}

func (n *nullLink) run(op *operation) *Failure {
	n.last = outcome{}
	if n.perRequest {
		n.connects++
	}
	if n.busyNs > 0 {
		share := 1.0
		if n.jitter > 0 {
			share += n.jitter * (2*n.random.share() - 1)
		}
		busyWait(int64(float64(n.busyNs) * share))
	}
	if n.thoughts != nil {
		for at := op.first; at < op.last && n.last.failure == nil; at++ {
			n.last.failure = n.think(op, n.thoughts[at])
		}
	}
	runtime.Gosched() // a client that waits for nothing would let no other one run
	return nil
}

func busyWait(ns int64) {
	for until := now() + ns; now() < until; {
	}
}

func (n *nullLink) think(op *operation, what thought) *Failure {
	us := what.us
	switch what.variable {
	case -2:
		return nil
	case -1:
	default:
		var failure *Failure
		if us, failure = thinkTime(op.values[what.variable].spelled()); failure != nil {
			return failure
		}
	}
	if n.open && us > 0 {
		// The requested time, not the actual one: waking up late is the agent's own delay and counts.
		n.last.thoughtNs += us * 1_000
		n.alarm.sleepUntil(now() + us*1_000)
	}
	return nil
}

func (n *nullLink) outcome() *outcome { return &n.last }
func (n *nullLink) carried() traffic  { return traffic{connects: n.connects} }
func (n *nullLink) awakeNs() int64    { return 0 }
func (n *nullLink) abort()            {}
func (n *nullLink) close()            { n.alarm.close() }

func (n *nullLink) query(string) (table, *Failure) {
	return table{}, badStatement("the null driver runs no SQL")
}
