package main

import "sync/atomic"

// never is a time that does not come.
const never = int64(^uint64(0) >> 1)

// worker is one client's part of a slice.
type worker struct {
	load  *load
	link  link
	op    *operation
	tally tally
	alarm alarm
	// Ends the slice.
	failure *Failure
	// Closed loop, and random arrivals: the number of the next operation. Client i of n runs i, i + n, …
	number uint64
	// Random arrivals: each client has its own process, so that none waits for another.
	arrivals random
	arrival  float64
	due      int64
	// When the time of the operation in flight began, and whether it began late.
	from int64
	late bool
	// When the operation in flight began; 0: none. Read by the main goroutine.
	busySince atomic.Int64
	// When the next part begins: first the counted part, then the rest.
	boundary int64
	counting bool
	carried  traffic
}

func newWorker(l *load, link link, number int) *worker {
	return &worker{
		load: l, link: link, op: l.script.operation(l.clients), number: uint64(number), boundary: l.countFrom,
		arrivals: ofOperation(l.plan.seed, ^uint64(0)-uint64(number)),
	}
}

func (w *worker) run() {
	defer w.alarm.close()
	defer w.busySince.Store(0)
	if w.failure = caught(w.work); w.failure != nil {
		w.load.stop.Store(true)
	}
}

func (w *worker) work() *Failure {
	l := w.load
	sleepAbout(l.start)
	w.look(max(now(), l.start))
	loop := w.closed
	if l.plan.intervalNs > 0 {
		loop = w.open
	}
	if failure := loop(); failure != nil {
		return failure
	}
	if l.plan.operations == 0 && !l.stop.Load() {
		sleepAbout(l.end)
		w.look(max(now(), l.end))
	}
	if w.counting {
		w.close()
	}
	return nil
}

func (w *worker) closed() *Failure {
	l := w.load
	for at := now(); at < l.end && w.number < l.limit && !l.stop.Load(); {
		w.from = at
		w.op.draw(l.plan.seed, w.number)
		w.number += uint64(l.clients)
		var failure *Failure
		if at, failure = w.operate(at); failure != nil {
			return failure
		}
	}
	return nil
}

// open begins each request when it is due.
func (w *worker) open() *Failure {
	for {
		request, any := w.claim()
		if !any {
			return nil
		}
		w.alarm.sleepUntil(w.due)
		at := now()
		w.from, w.late = w.due, at > w.due+lateNs
		w.op.draw(w.load.plan.seed, request)
		if _, failure := w.operate(at); failure != nil {
			return failure
		}
	}
}

// operate runs the drawn operation and returns when it ended.
func (w *worker) operate(at int64) (int64, *Failure) {
	w.busySince.Store(at)
	failure := w.link.run(w.op)
	w.busySince.Store(0)
	if failure != nil {
		return 0, failure
	}
	return w.ended(), nil
}

// claim returns the next request, due at `due`; false: none is left.
func (w *worker) claim() (uint64, bool) {
	l := w.load
	var request uint64
	var after float64
	if l.plan.random {
		request = w.number
		w.number += uint64(l.clients)
		w.arrival += l.plan.intervalNs * float64(l.clients) * w.arrivals.exponential()
		after = w.arrival
	} else {
		request = l.next.Add(1) - 1
		after = float64(request) * l.plan.intervalNs
	}
	w.due = l.start + int64(after)
	return request, w.due < l.end && request < l.limit && !l.stop.Load() && now() < l.end
}

// ended counts the operation that has just ended. Returns the time.
func (w *worker) ended() int64 {
	at, l := now(), w.load
	if at >= w.boundary {
		w.look(at)
	}
	done := w.link.outcome()
	if inside := min(at, l.end) - max(w.from, l.countFrom); inside > 0 && done.failure == nil {
		w.tally.work += float64(inside) / float64(at-w.from)
	}
	// An operation in flight at the end does not count; but if it failed, this slice counts the error.
	if !w.counting && (w.boundary == l.countFrom || done.failure == nil) {
		return at
	}
	if w.late {
		w.tally.late++
	}
	if w.counting {
		w.tally.retries += done.retries
		w.tally.lastEnd = at
	}
	if done.failure != nil {
		w.tally.errors++
		w.tally.count(done.failure.kind(), 1)
		if w.tally.firstError == "" {
			w.tally.firstError = done.failure.spell()
		}
		return at
	}
	w.tally.operations++
	w.tally.rows += done.rows
	w.tally.checksum += done.checksum
	l.latencies.record(at - w.from - done.thoughtNs)
	return at
}

// look moves to the next part of the slice when it is time.
func (w *worker) look(at int64) {
	if at >= w.boundary && w.boundary == w.load.countFrom {
		w.load.begun.take()
		w.counting = true
		w.boundary = w.load.end
		w.carried = w.link.carried()
	}
	if at >= w.boundary && w.counting {
		w.load.ended.take()
		w.close()
	}
}

// close: the counted part is over.
func (w *worker) close() {
	w.tally.traffic = w.link.carried().since(w.carried)
	w.counting = false
	w.boundary = never
}

func (w *worker) isSilent() bool {
	since, awake := w.busySince.Load(), w.link.awakeNs()
	// Whoever is asleep, by its own script, waits for no server; but a slice must end.
	waits := max(since, min(awake, w.load.end))
	return since > 0 && now()-waits > w.load.plan.silenceNs
}
