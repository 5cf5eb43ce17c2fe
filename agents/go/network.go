package main

import (
	"slices"
	"strings"
	"sync/atomic"
)

// networkLink is one connection of a driver. Runs operations and queries as an application would.
type networkLink struct {
	pool   *pool
	lines  *lines
	client client // nil: none is open
	// What it runs, once it is prepared.
	script     *script
	statements []prepared
	last       outcome
	seen       facts
	// What the connections of ended operations have carried.
	past  traffic
	awake atomic.Int64
	alarm alarm
}

func newNetworkLink(p *pool) *networkLink { return &networkLink{pool: p, lines: newLines(p.server)} }

// open logs in and finds out what was negotiated.
func (n *networkLink) open() *Failure {
	if failure := n.login(); failure != nil {
		return failure
	}
	return n.look()
}

// login opens a connection and runs `setup`.
func (n *networkLink) login() *Failure {
	opened, err := n.pool.driver.connect(n.lines.dial)
	line := n.lines.last()
	if err != nil {
		if refused := line.refusalOf(); refused != nil {
			return fail("connect", "%v", refused)
		}
		if line != nil {
			_ = line.Close() // lib/pq leaves it open after some errors
		}
		return n.pool.reason(err, "connect", "", false)
	}
	line.loggedIn.Store(true)
	n.client = opened
	for _, sql := range n.pool.server.setup {
		if err := opened.query(sql, &table{}); err != nil {
			failure := n.pool.reason(err, "statement", "setup: ", false)
			n.leave()
			return failure
		}
	}
	return nil
}

// look finds out how the session is encrypted: from the driver's own TLS, and from the witness. They must agree.
func (n *networkLink) look() *Failure {
	own := n.client.facts()
	if n.pool.server.witness == "" {
		if own != nil {
			n.seen = *own
		}
		return nil
	}
	var row table
	if err := n.client.query(n.pool.server.witness, &row); err != nil {
		return n.reason(err, "witness: ")
	}
	told := strings.Split(string(row.text), "\t")
	if row.rows != 1 || len(told) != 3 {
		return badStatement("witness: must return one row: encrypted, protocol, cipher")
	}
	for at := range told {
		if told[at] == `\N` {
			told[at] = ""
		}
	}
	on := slices.Contains([]string{"t", "true", "1", "yes", "on"}, strings.ToLower(told[0]))
	if own == nil {
		n.seen = facts{encrypted: on, protocol: oneLine(told[1], longestName), cipher: oneLine(told[2], longestName)}
		return nil
	}
	if own.encrypted != on {
		return fail("tls", "the driver's session is encrypted: %t, but the server says of it: %t", own.encrypted, on)
	}
	n.seen = *own
	return nil
}

func (n *networkLink) reason(err error, before string) *Failure {
	return n.pool.reason(err, "statement", before, n.client == nil || n.client.isClosed())
}

// ── slices ───────────────────────────────────────────────────────────────────────────────────────────────────────────

func (n *networkLink) prepare(script *script, again, _ bool) *Failure {
	if script.mode != "prepared" {
		return badStatement("%s: no statements travel in mode %s here", n.pool.driver.version(), script.mode)
	}
	if script.hasPipelines() {
		return badStatement("%s: no pipelines here", n.pool.driver.version())
	}
	if !n.pool.perRequest {
		if failure := n.look(); failure != nil {
			return failure
		}
	}
	if !again {
		if failure := n.prepareAll(script); failure != nil {
			return failure
		}
	}
	n.script = script
	return nil
}

func (n *networkLink) prepareAll(script *script) *Failure {
	statements, failure := n.pool.lexer.read(script)
	if failure != nil {
		return failure
	}
	n.statements = statements
	if n.pool.perRequest {
		return nil
	}
	if err := n.client.forget(); err != nil {
		return n.reason(err, "")
	}
	for at := range statements {
		if statements[at].kind.controls() {
			continue
		}
		if err := n.client.prepare(at, &statements[at]); err != nil {
			return n.reason(err, "")
		}
	}
	return nil
}

func (n *networkLink) run(op *operation) *Failure {
	n.last = outcome{}
	if n.pool.perRequest {
		if failure := n.loginForOne(); failure != nil {
			n.last.failure = failure
			return nil
		}
		defer n.leave()
	}
	for {
		err := n.steps(op)
		if err == nil {
			return nil
		}
		if !n.mayTryAgain(err) {
			return n.failed(err)
		}
		n.last.restart()
		if err := n.client.rollback(); err != nil {
			return n.failed(err)
		}
		op.drawAgain()
	}
}

// loginForOne opens the connection of one operation. Not too many open at once.
func (n *networkLink) loginForOne() *Failure {
	n.pool.opening <- struct{}{}
	defer func() { <-n.pool.opening }()
	failure := n.login()
	if failure == nil {
		n.past.connects++
	}
	return failure
}

func (n *networkLink) steps(op *operation) error {
	for {
		next, failure := op.advance()
		if failure != nil {
			return failure
		}
		switch next {
		case end:
			return nil
		case asleep:
			n.last.thoughtNs += op.sleepNs
			due := now() + op.sleepNs
			n.awake.Store(due)
			n.alarm.sleepUntil(due)
			continue
		}
		if err := n.step(next, op); err != nil {
			return err
		}
	}
}

func (n *networkLink) step(at int, op *operation) error {
	statement := &n.statements[at]
	if statement.kind.controls() {
		return n.control(statement.kind)
	}
	rows, err := n.client.run(at, statement, op, &n.last)
	if err != nil {
		return err
	}
	n.last.rows += rows
	if statement.into != nil && !statement.into.every && rows != 1 {
		return badStatement("\\gset: expected one row, got %d", rows)
	}
	return nil
}

// mayTryAgain: an operation that failed by a serialization failure or a deadlock may succeed if it is begun again.
func (n *networkLink) mayTryAgain(err error) bool {
	state := serverError(err).state
	return (state == "40001" || state == "40P01") && n.last.retries+1 < n.script.tries
}

// failed: the operation has. A lost connection fails the slice, unless each operation has its own.
func (n *networkLink) failed(err error) *Failure {
	failure := n.reason(err, "")
	n.last.rows, n.last.checksum, n.last.failure = 0, 0, failure
	if n.pool.perRequest {
		return nil
	}
	if failure.lost {
		return failure
	}
	if err := n.client.rollback(); err != nil {
		return n.pool.reason(err, "connect", "", true)
	}
	return nil
}

// ── queries ──────────────────────────────────────────────────────────────────────────────────────────────────────────

func (n *networkLink) query(sql string) (table, *Failure) {
	var answer table
	if n.client == nil {
		if failure := n.login(); failure != nil {
			return answer, failure
		}
		defer n.leave()
	}
	for _, each := range n.pool.lexer.split(sql) {
		if err := n.ask(each, &answer); err != nil {
			failure := n.reason(err, "")
			if !failure.lost {
				_ = n.client.rollback()
			}
			return table{}, failure
		}
	}
	return answer, nil
}

func (n *networkLink) ask(sql string, into *table) error {
	if kind := kindOf(sql); kind.controls() {
		return n.control(kind)
	}
	return n.client.query(sql, into)
}

// control begins or ends a transaction by the driver's own call.
func (n *networkLink) control(kind sqlKind) error {
	switch kind {
	case sqlBegin:
		return n.client.begin()
	case sqlCommit:
		return n.client.commit()
	}
	return n.client.rollback()
}

// ── the connection ───────────────────────────────────────────────────────────────────────────────────────────────────

func (n *networkLink) outcome() *outcome { return &n.last }
func (n *networkLink) awakeNs() int64    { return n.awake.Load() }
func (n *networkLink) abort()            { n.lines.abort() }

func (n *networkLink) carried() traffic {
	sum := n.past
	if n.client != nil && !n.pool.perRequest {
		sum.add(n.lines.last().carried())
	}
	return sum
}

// leave ends the connection of one operation.
func (n *networkLink) leave() {
	if n.client == nil {
		return
	}
	n.past.add(n.lines.last().carried())
	n.client.close()
	n.client = nil
}

// close says goodbye, and does not wait for the server.
func (n *networkLink) close() {
	if n.lines.aborted() {
		return // somebody may still be using it
	}
	_ = within(closingSeconds, "close", func() *Failure {
		n.leave()
		return nil
	}, n.abort)
	n.lines.cancel()
	n.alarm.close()
}

// closingSeconds is how long a driver may take for a goodbye.
const closingSeconds = 2
