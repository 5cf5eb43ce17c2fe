package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// Most connections that open, or prepare their statements, at a time.
const openingAtOnce = 64

var requests = []string{
	"hello", "program", "cipher", "variable", "transaction", "statement", "step", "connect", "query", "slice", "floor", "disconnect", "bye",
}

// arm of a comparison: its connections. `pool`: nil for the null driver.
type arm struct {
	links   []link
	threads int
	pool    *pool
	// The script that its connections have prepared.
	prepared *script
}

// session answers requests in order. Holds the program and the arms; a refused request changes nothing.
type session struct {
	say     func(answer any)
	arms    map[string]*arm
	greeted bool
	program *program
	// Whether the agent ends after the answer, and with which status.
	ended  bool
	status int
}

// newSession: `say` sends the event that precedes a slice's answer.
func newSession(say func(answer any)) *session {
	return &session{say: say, arms: map[string]*arm{}}
}

// answer answers one line.
func (s *session) answer(line []byte) (answer any) {
	defer func() {
		if crash := recover(); crash != nil {
			fmt.Fprintf(os.Stderr, "%v\n%s", crash, debug.Stack())
			s.close()
			answer = errorAnswer{"error", "internal", fmt.Sprintf("the agent failed (%T); its arms are disconnected", crash)}
		}
	}()
	answer, failure := s.handle(line)
	if failure != nil {
		return errorAnswer{"error", failure.code, failure.text}
	}
	return answer
}

func (s *session) handle(line []byte) (any, *Failure) {
	f, failure := readFields(line)
	if failure != nil {
		return nil, failure
	}
	kind := f.text("type")
	switch {
	case f.failure != nil:
		return nil, f.failure
	case !slices.Contains(requests, kind):
		return nil, fail("unknown-message", "unknown message type %q", kind)
	case !s.greeted && kind != "hello":
		return nil, fail("protocol", "send `hello` first")
	}
	switch kind {
	case "hello":
		return s.hello(f)
	case "connect":
		return s.connect(f)
	case "query":
		return s.query(f)
	case "slice":
		return s.slice(f)
	case "floor":
		return measureFloor(f)
	case "disconnect":
		failure = s.disconnect(f)
	case "bye":
		if failure = f.end(); failure == nil {
			s.close()
			s.ended = true
		}
	default:
		failure = s.declare(kind, f)
	}
	if failure != nil {
		return nil, failure
	}
	return okAnswer{"ok"}, nil
}

func (s *session) hello(f *fields) (any, *Failure) {
	f.need("protocol")
	wanted := f.unsigned("protocol", 0)
	if failure := f.end(); failure != nil {
		return nil, failure
	}
	if s.greeted {
		return nil, fail("protocol", "`hello` was already sent")
	}
	if wanted != protocolVersion {
		s.ended, s.status = true, 2
		return nil, fail("protocol", "this agent supports protocol %d, not %d", protocolVersion, wanted)
	}
	s.greeted = true
	return helloAnswer{"hello", protocolVersion, agentName, version, "null " + strings.Join(driverNames(), " "), library(), hasAES()}, nil
}

// library is what encrypts: `Go 1.26.8 crypto/tls`.
func library() string { return "Go " + strings.TrimPrefix(runtime.Version(), "go") + " crypto/tls" }

// declare adds a part to the program.
func (s *session) declare(kind string, f *fields) *Failure {
	if kind == "program" {
		name := f.text("name")
		mode, tries := f.word("mode", "prepared", "extended", "simple"), f.unsigned("tries", 0)
		if failure := f.end(); failure != nil {
			return failure
		}
		s.program = newProgram(name, mode, tries)
		return nil
	}
	if kind == "cipher" {
		return badMessage("cipher: this agent does not seal or open values")
	}
	if kind == "statement" {
		return s.statement(f)
	}
	if s.program == nil {
		return noProgram("send `program` first")
	}
	name := ""
	switch kind {
	case "variable":
		name = f.text("name")
		read := readKind(f.text("kind"), f)
		if failure := f.end(); failure != nil {
			return failure
		}
		return s.program.addVariable(name, read)
	case "transaction":
		name = f.text("name")
		weight := f.whole("weight")
		if failure := f.end(); failure != nil {
			return failure
		}
		return s.program.addTransaction(name, weight)
	}
	name = f.text("transaction") // of a step
	arm := f.textOr("arm", "")
	read, failure := s.program.readStep(f)
	if failure != nil {
		return failure
	}
	return s.program.addStep(name, arm, read)
}

func (s *session) statement(f *fields) *Failure {
	name, sql, parameters := f.text("transaction"), f.text("sql"), f.text("parameters")
	arm := f.textOr("arm", "")
	open := f.flag("open")
	var rows *into
	if prefix, every := f.has("into"), f.has("every"); prefix || every {
		read := into{f.textOr("into", ""), f.flag("every")}
		if prefix {
			rows = &read
		}
	}
	if failure := f.end(); failure != nil {
		return failure
	}
	if s.program == nil {
		return noProgram("send `program` first")
	}
	if open {
		return badMessage("open: this agent does not seal or open values")
	}
	return s.program.addStatement(name, arm, sql, parameters, rows)
}

func (s *session) arm(name string) (*arm, *Failure) {
	if found := s.arms[name]; found != nil {
		return found, nil
	}
	return nil, fail("no-arm", "arm %q is not connected; send `connect` first", name)
}

func (s *session) connect(f *fields) (any, *Failure) {
	name, driver := f.text("arm"), f.text("driver")
	connections, threads := int(f.within("connections", 1, 1, 10_000)), int(f.within("threads", 1, 1, 1_000))
	perRequest := f.flag("per_request")
	seconds := f.seconds(connectSeconds)
	answer := connectedAnswer{Type: "connected", Arm: name, Connections: connections}
	if f.failure == nil && driver == "null" {
		links, failure := openNull(f, connections, perRequest)
		if failure != nil {
			return nil, failure
		}
		s.drop(name)
		s.arms[name] = &arm{links: links, threads: threads}
		return answer, nil
	}
	pool, failure := newPool(driver, f, perRequest)
	if failure == nil {
		failure = s.files(name, connections, threads, perRequest)
	}
	if failure != nil {
		if pool != nil {
			pool.driver.close()
		}
		return nil, failure
	}
	s.drop(name)
	runtime.GOMAXPROCS(threads)
	links, failure := pool.open(connections, seconds, &answer)
	if failure != nil {
		return nil, failure
	}
	s.arms[name] = &arm{links: links, threads: threads, pool: pool}
	return answer, nil
}

func (s *session) query(f *fields) (any, *Failure) {
	name, sql := f.text("arm"), f.text("sql")
	all := f.flag("all")
	seconds := f.seconds(querySeconds)
	if failure := f.end(); failure != nil {
		return nil, failure
	}
	arm, failure := s.arm(name)
	if failure != nil {
		return nil, failure
	}
	links := arm.links[:1]
	if all {
		links = arm.links
	}
	answer := rowsAnswer{Type: "rows"}
	failure = within(seconds, "finish its answer", func() *Failure {
		var text strings.Builder
		rows, columns := uint64(0), ""
		for _, each := range links {
			found, failure := each.query(sql)
			if failure != nil {
				return failure
			}
			if rows > 0 && found.rows > 0 {
				text.WriteByte('\n')
			}
			text.Write(found.text)
			rows += found.rows
			columns = found.columns
		}
		answer.Rows, answer.Columns, answer.Text = rows, columns, text.String()
		return nil
	}, func() { abort(links) })
	if failure != nil {
		return nil, s.dropIfLost(name, failure)
	}
	return answer, nil
}

func abort(links []link) {
	for _, each := range links {
		each.abort()
	}
}

func (s *session) slice(f *fields) (any, *Failure) {
	name := f.text("arm")
	plan, failure := readPlan(f)
	if failure != nil {
		return nil, failure
	}
	arm, failure := s.arm(name)
	if failure != nil {
		return nil, failure
	}
	if s.program == nil {
		return nil, noProgram("send `program` first")
	}
	script, failure := s.program.script(name)
	if failure != nil {
		return nil, failure
	}
	again := arm.prepared != nil && arm.prepared.runsAs(script)
	arm.prepared = nil
	failure = within(float64(plan.silenceNs)/1e9, "prepare the statements", func() *Failure {
		return inParallel(arm.links, openingAtOnce, func(each link) *Failure { return each.prepare(script, again, plan.intervalNs > 0) })
	}, func() { abort(arm.links) })
	if failure != nil {
		return nil, s.dropIfLost(name, failure)
	}
	arm.prepared = script
	total, failure := runSlice(arm.links, script, plan, arm.threads, func() { s.say(countingAnswer{"counting", name}) })
	if failure != nil {
		return nil, s.dropIfLost(name, failure)
	}
	answer := sliceAnswer{
		Type: "slice", Arm: name, Seconds: total.seconds, Operations: total.operations, Work: total.work, Errors: total.errors,
		ErrorKinds: listed(total.kinds), Rows: total.rows, Retries: total.retries, Checksum: fmt.Sprintf("%016x", total.checksum),
		CPUUserNs: total.cpu.user, CPUSystemNs: total.cpu.total - total.cpu.user, ProcessCPUNs: total.cpu.total, GCMs: total.gcMs,
		BytesSent: total.traffic.bytesSent, BytesReceived: total.traffic.bytesReceived,
		SegmentsSent: total.traffic.segmentsSent, SegmentsReceived: total.traffic.segmentsReceived,
		Connects: total.traffic.connects, Late: total.late, Threads: arm.threads,
		Histogram: total.latencies.encode(), FirstError: total.firstError,
	}
	if arm.pool != nil {
		seen := arm.pool.seen(arm.links)
		answer.DriverVersion = arm.pool.driver.version()
		answer.Encrypted, answer.Protocol, answer.Cipher = seen.encrypted, seen.protocol, seen.cipher
	}
	return answer, nil
}

func readPlan(f *fields) (plan, *Failure) {
	operations := f.unsigned("operations", 0)
	seconds := 3600.0
	if operations == 0 {
		seconds = f.number("seconds")
	} else {
		seconds = f.numberOr("seconds", seconds)
	}
	discard, rate, seed := f.numberOr("discard", 0), f.numberOr("rate", 0), f.unsigned("seed", 0)
	given := f.has("arrivals")
	arrivals := f.word("arrivals", "even", "random")
	silence := f.seconds(sliceSeconds)
	if failure := f.end(); failure != nil {
		return plan{}, failure
	}
	switch {
	case !(seconds > 0 && seconds <= longestSeconds):
		return plan{}, badMessage("seconds: must be above 0 and at most 86400")
	case !(discard >= 0 && discard < 1):
		return plan{}, badMessage("discard: must be at least 0 and below 1")
	case operations != 0 && discard != 0:
		return plan{}, badMessage("discard: must be 0 with `operations`")
	case !(rate >= 0 && rate <= 1e9):
		return plan{}, badMessage("rate: must lie between 0 and 1e9")
	case given && rate == 0:
		return plan{}, badMessage("arrivals: needs an open loop; set a rate")
	}
	lengthNs := seconds * 1e9
	read := plan{
		lengthNs: int64(lengthNs), discardNs: int64(lengthNs * discard), seed: seed, random: arrivals == "random",
		operations: operations, silenceNs: int64(silence * 1e9),
	}
	if rate > 0 {
		read.intervalNs = 1e9 / rate
	}
	return read, nil
}

func (s *session) disconnect(f *fields) *Failure {
	name := f.text("arm")
	if failure := f.end(); failure != nil {
		return failure
	}
	if _, failure := s.arm(name); failure != nil {
		return failure
	}
	s.drop(name)
	return nil
}

// dropIfLost disconnects an arm that lost a connection, because load on the remaining ones is not what was requested.
func (s *session) dropIfLost(name string, failure *Failure) *Failure {
	if failure.lost {
		s.drop(name)
	}
	return failure
}

func (s *session) drop(name string) {
	if arm := s.arms[name]; arm != nil {
		delete(s.arms, name)
		closeAll(arm.links)
		if arm.pool != nil {
			arm.pool.driver.close()
		}
	}
}

// closeAll says goodbye on all of them at once.
func closeAll(links []link) {
	_ = inParallel(links, openingAtOnce, func(each link) *Failure {
		each.close()
		return nil
	})
}

func (s *session) close() {
	for name := range s.arms {
		s.drop(name)
	}
}
