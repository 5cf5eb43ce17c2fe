package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// A request that begins more than this after it was due is late.
	lateNs = 1_000_000
	// Clients start together, this long after their creation, plus this much for each.
	gatherNs     = 2_000_000
	gatherEachNs = 10_000
	// How often the server's silence is looked for.
	watchNs = 1_000_000_000
)

// plan is one requested slice. `intervalNs`: between due requests, 0: closed loop; `operations`: 0 for no limit; `silenceNs`: an operation
// that takes longer has lost its connection.
type plan struct {
	lengthNs, discardNs int64
	seed                uint64
	intervalNs          float64
	random              bool
	operations          uint64
	silenceNs           int64
}

// tally has the counts of one client, or of all.
type tally struct {
	operations uint64
	// Operations by their share in the counted part: one that is half inside counts one half.
	work           float64
	errors         uint64
	kinds          map[string]uint64
	rows, checksum uint64
	late, retries  uint64
	firstError     string
	traffic        traffic
	lastEnd        int64
}

func (t *tally) add(other *tally) {
	t.operations += other.operations
	t.work += other.work
	t.errors += other.errors
	for kind, count := range other.kinds {
		t.count(kind, count)
	}
	t.rows += other.rows
	t.checksum += other.checksum
	t.late += other.late
	t.retries += other.retries
	if t.firstError == "" {
		t.firstError = other.firstError
	}
	t.traffic.add(other.traffic)
	t.lastEnd = max(t.lastEnd, other.lastEnd)
}

func (t *tally) count(kind string, by uint64) {
	if t.kinds == nil {
		t.kinds = map[string]uint64{}
	}
	t.kinds[kind] += by
}

// total is the result of a slice. `cpu`, `gcMs`: what the whole process used in the counted part.
type total struct {
	tally
	seconds   float64
	cpu       cpuTime
	gcMs      int64
	latencies *histogram
}

// load runs and times the operations of a slice. Each connection has a client of its own, a goroutine.
type load struct {
	script    *script
	plan      plan
	clients   int
	latencies *histogram
	// Times of the slice.
	start, countFrom, end int64
	limit                 uint64
	// Open loop: the next request that no client has claimed.
	next atomic.Uint64
	// A connection was lost, so the slice is void.
	stop atomic.Bool
	// What the process had used when the counted part began and ended: whoever first sees that it is time looks.
	begun, ended snapshot
}

// snapshot of what the process has used.
type snapshot struct {
	once sync.Once
	cpu  cpuTime
	gcNs int64
}

func (s *snapshot) take() {
	s.once.Do(func() { s.cpu, s.gcNs = cpuNow(), collecting() })
}

// latencies are kept from slice to slice, because they are large.
var latencies histogram

// runSlice runs one slice; with as many of Go's processors as there are `threads`. `counting` is called when the counted part begins.
func runSlice(links []link, script *script, plan plan, threads int, counting func()) (*total, *Failure) {
	if runtime.GOMAXPROCS(0) != threads {
		runtime.GOMAXPROCS(threads)
	}
	latencies.clear()
	start := now() + gatherNs + gatherEachNs*int64(len(links))
	l := &load{
		script: script, plan: plan, clients: len(links), latencies: &latencies,
		start: start, countFrom: start + plan.discardNs, end: start + plan.lengthNs, limit: plan.operations,
	}
	if l.limit == 0 {
		l.limit = ^uint64(0)
	}
	return l.run(links, counting)
}

func (l *load) run(links []link, counting func()) (*total, *Failure) {
	workers := make([]*worker, len(links))
	done := make(chan struct{})
	var working sync.WaitGroup
	for number, each := range links {
		workers[number] = newWorker(l, each, number)
		working.Add(1)
		go func() {
			defer working.Done()
			workers[number].run()
		}()
	}
	go func() {
		working.Wait()
		close(done)
	}()
	l.waitUntil(l.countFrom, done)
	l.begun.take()
	if !l.stop.Load() {
		counting()
	}
	if l.plan.operations == 0 {
		l.waitUntil(l.end, done)
		l.ended.take()
	}
	for waiting := true; waiting; {
		select {
		case <-done:
			waiting = false
		case <-time.After(min(watchNs, time.Duration(max(l.plan.silenceNs/4, 1_000_000)))):
			if failure := l.silence(workers, links); failure != nil {
				return nil, failure
			}
		}
	}
	l.ended.take()
	return l.add(workers)
}

// silence returns a Failure if the server owes some client an answer for too long.
func (l *load) silence(workers []*worker, links []link) *Failure {
	waiting := 0
	for _, each := range workers {
		if each.isSilent() {
			waiting++
		}
	}
	if waiting == 0 {
		return nil
	}
	l.stop.Store(true)
	abort(links)
	return fail("connect", "the server has not finished an answer for %s s, with %d operations in flight",
		spelledSeconds(float64(l.plan.silenceNs)/1e9), waiting).isLost()
}

func (l *load) add(workers []*worker) (*total, *Failure) {
	sum := &total{latencies: l.latencies, cpu: l.ended.cpu.since(l.begun.cpu), gcMs: max(0, l.ended.gcNs-l.begun.gcNs) / 1_000_000}
	for _, each := range workers {
		if each.failure != nil {
			return nil, each.failure
		}
		sum.tally.add(&each.tally)
	}
	counted := l.plan.lengthNs - l.plan.discardNs
	if l.plan.operations > 0 {
		counted = max(1, sum.lastEnd-l.start)
	}
	sum.seconds = float64(counted) / 1e9
	return sum, nil
}

// waitUntil waits until this time, or until all clients have ended.
func (l *load) waitUntil(due int64, done <-chan struct{}) {
	var alarm alarm
	defer alarm.close()
	for left := due - now(); left > 0 && !l.stop.Load(); left = due - now() {
		alarm.sleepUntil(now() + min(left, 50_000_000))
		select {
		case <-done:
			return
		default:
		}
	}
}
