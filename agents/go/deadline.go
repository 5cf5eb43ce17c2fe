package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"time"
)

const (
	connectSeconds = 30.0
	querySeconds   = 60.0
	// Seconds by which a slice may exceed its length.
	sliceSeconds   = 120.0
	longestSeconds = 86_400.0
)

// ofAll is the time for all connections of an arm, as a multiple of the time for one.
func ofAll(connections int) float64 { return 4 + float64(connections)/8 }

// within limits the total time of some work, however much the server sends meanwhile: a driver's own timeouts restart with every byte
// that arrives. The work runs in a goroutine of its own, which is abandoned if it does not finish in time. `what`: the end of "the server
// did not …" for the error. Calls `abort` when the time is over.
func within(seconds float64, what string, work func() *Failure, abort func()) *Failure {
	done := make(chan *Failure, 1)
	go func() { done <- caught(work) }()
	timer := time.NewTimer(time.Duration(seconds * 1e9))
	defer timer.Stop()
	select {
	case failure := <-done:
		return failure
	case <-timer.C:
	}
	select {
	case failure := <-done: // at the last moment
		return failure
	default:
	}
	abort()
	return fail("timeout", "the server did not %s within %s s; if it is only slow, raise CIPHERCOST_TIMEOUT", what,
		spelledSeconds(seconds)).isLost()
}

// caught does some work. A crash is a Failure, so that it ends no more than an arm.
func caught(work func() *Failure) (failure *Failure) {
	defer func() {
		if crash := recover(); crash != nil {
			fmt.Fprintf(os.Stderr, "%v\n%s", crash, debug.Stack())
			failure = fail("driver", "the driver failed: %v", crash).isLost() // some do on what only a broken server sends
		}
	}()
	return work()
}

func spelledSeconds(seconds float64) string { return strconv.FormatFloat(seconds, 'f', -1, 64) }

// inParallel does something for each link, for so many at a time, and returns the first Failure. After one, no other begins.
func inParallel(links []link, atOnce int, do func(link) *Failure) *Failure {
	results := make(chan *Failure, len(links))
	slots := make(chan struct{}, atOnce)
	begun := 0
	var first *Failure
	collect := func(failure *Failure) {
		if first == nil {
			first = failure
		}
	}
	for _, each := range links {
		slots <- struct{}{}
		for drained := false; !drained; {
			select {
			case failure := <-results:
				begun--
				collect(failure)
			default:
				drained = true
			}
		}
		if first != nil {
			break
		}
		begun++
		go func() {
			failure := caught(func() *Failure { return do(each) })
			<-slots
			results <- failure
		}()
	}
	for ; begun > 0; begun-- {
		collect(<-results)
	}
	return first
}
