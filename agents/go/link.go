package main

// outcome has the totals of the operation that ended last.
type outcome struct {
	rows uint64
	// Sum modulo 2⁶⁴ of each row's hash.
	checksum uint64
	// Why it failed, if it did. The connection stays usable.
	failure *Failure
	// Nanoseconds of think time and sleep, which a latency does not include.
	thoughtNs int64
	// How often the operation was begun again.
	retries uint64
}

// restart: the operation begins again.
func (o *outcome) restart() {
	*o = outcome{thoughtNs: o.thoughtNs, retries: o.retries + 1}
}

// table is the answer to a query.
type table struct {
	rows    uint64
	columns string
	text    []byte
}

// link is one connection: the interface between the load and the drivers. A Failure with `lost` means that the connection is lost.
type link interface {
	// prepare prepares for a slice. `open`: an open loop, in which operations may think.
	prepare(script *script, again, open bool) *Failure
	// run runs an operation. A Failure ends the slice; that of an operation is in its outcome.
	run(op *operation) *Failure
	outcome() *outcome
	// carried is what has travelled so far.
	carried() traffic
	// awakeNs is when it last awoke from a sleep of a script, or will awake; 0: it has not slept. For other goroutines too.
	awakeNs() int64
	query(sql string) (table, *Failure)
	// abort ends a connection for which somebody may be waiting. For other goroutines.
	abort()
	close()
}

// traffic of connections. Bytes and segments are the kernel's, of TCP.
type traffic struct {
	bytesSent, bytesReceived, segmentsSent, segmentsReceived uint64
	// Connections opened for operations.
	connects uint64
}

func (t *traffic) add(other traffic) {
	t.bytesSent += other.bytesSent
	t.bytesReceived += other.bytesReceived
	t.segmentsSent += other.segmentsSent
	t.segmentsReceived += other.segmentsReceived
	t.connects += other.connects
}

func (t traffic) since(earlier traffic) traffic {
	return traffic{
		t.bytesSent - earlier.bytesSent, t.bytesReceived - earlier.bytesReceived,
		t.segmentsSent - earlier.segmentsSent, t.segmentsReceived - earlier.segmentsReceived,
		t.connects - earlier.connects,
	}
}
