package main

import (
	"context"
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// driver is one of other people's drivers, with the settings of an arm.
type driver interface {
	// version is the driver's name and version: `pgx v5.12.0`.
	version() string
	// configure turns the server's settings into the driver's own. Refuses those that it does not have.
	configure(server *server) *Failure
	// connect opens a connection of the driver; `dial` makes the one below it.
	connect(dial dialer) (client, error)
	// close gives back what `configure` took.
	close()
}

// client is an open connection of a driver. Its errors are the driver's own.
type client interface {
	// prepare makes a statement of the script ready; `forget` drops all of them.
	prepare(at int, statement *prepared) error
	forget() error
	// run runs a statement, and returns how many rows it had. One that is not prepared runs as the driver runs what it has not seen before.
	run(at int, statement *prepared, op *operation, done *outcome) (uint64, error)
	begin() error
	commit() error
	// rollback also ends what was begun in another way. Without a transaction it does nothing.
	rollback() error
	// query runs one statement as text. One without rows leaves the table as it is.
	query(sql string, into *table) error
	// facts of its encryption; nil if the driver can't tell them.
	facts() *facts
	serverVersion() (string, error)
	isClosed() bool
	close()
}

// drivers by their names in `connect`.
var drivers = map[string]struct {
	mysql bool
	made  func() driver
}{
	"pgx":      {false, func() driver { return &pgxDriver{} }},
	"lib-pq":   {false, func() driver { return &pqDriver{} }},
	"go-mysql": {true, func() driver { return &mysqlDriver{} }},
}

func driverNames() []string { return []string{"pgx", "lib-pq", "go-mysql"} }

// moduleVersion is the version of a module that this program was built with.
func moduleVersion(path string) string {
	info, known := debug.ReadBuildInfo()
	if !known {
		return "unknown"
	}
	at := slices.IndexFunc(info.Deps, func(each *debug.Module) bool { return each.Path == path })
	if at < 0 {
		return "unknown"
	}
	return info.Deps[at].Version
}

// pool is what the connections of an arm have in common.
type pool struct {
	driver     driver
	server     *server
	lexer      lexer
	perRequest bool
	// Limits how many connections open at once for operations.
	opening chan struct{}
}

func newPool(name string, f *fields, perRequest bool) (*pool, *Failure) {
	known, is := drivers[name]
	if f.failure == nil && !is {
		f.fail("driver: %q is not one of null, %s", name, strings.Join(driverNames(), ", "))
	}
	if f.failure != nil {
		return nil, f.failure
	}
	server := readServer(f, known.mysql)
	failure := f.end()
	if failure == nil {
		failure = server.check()
	}
	made := &pool{
		driver: known.made(), server: server, lexer: lexer{known.mysql}, perRequest: perRequest, opening: make(chan struct{}, openingAtOnce),
	}
	setHome(server.dsn != "")
	if failure == nil {
		failure = made.driver.configure(server)
	}
	if failure == nil {
		failure = server.noMoreOptions()
	}
	return made, failure
}

// open opens the arm's connections and writes what they report into the answer.
func (p *pool) open(connections int, seconds float64, answer *connectedAnswer) ([]link, *Failure) {
	until := time.Now().Add(time.Duration(seconds * ofAll(connections) * 1e9))
	links := make([]link, connections)
	for at := range links {
		links[at] = newNetworkLink(p)
	}
	open := func(each link) *Failure {
		left := min(seconds, max(0, time.Until(until).Seconds()))
		return within(left, "finish the login", each.(*networkLink).open, each.abort)
	}
	failure := open(links[0])
	if failure == nil && !p.perRequest {
		failure = inParallel(links[1:], openingAtOnce, open)
	}
	first := links[0].(*networkLink)
	if failure == nil {
		failure = within(seconds, "report its version", func() *Failure {
			version, err := first.client.serverVersion()
			if err != nil {
				return p.reason(err, "connect", "", false)
			}
			answer.ServerVersion = oneLine(version, longestName)
			return nil
		}, first.abort)
	}
	if failure != nil {
		closeAll(links)
		p.driver.close()
		return nil, failure
	}
	seen := p.seen(links)
	answer.Encrypted, answer.Protocol, answer.Cipher, answer.Group = seen.encrypted, seen.protocol, seen.cipher, seen.group
	answer.Peer, answer.PeerKey, answer.Application = seen.peer, seen.peerKey, seen.application
	answer.Library, answer.DriverVersion = library(), p.driver.version()
	if p.perRequest {
		first.leave()
		first.past = traffic{}
	}
	return links, nil
}

// seen are the facts of all connections: encrypted only if all are; lists every protocol and cipher.
func (p *pool) seen(links []link) facts {
	if p.perRequest {
		links = links[:1]
	}
	all := links[0].(*networkLink).seen
	protocols, ciphers, groups := []string{}, []string{}, []string{}
	add := func(to *[]string, name string) {
		if !slices.Contains(*to, name) {
			*to = append(*to, name)
		}
	}
	for _, each := range links {
		one := each.(*networkLink).seen
		all.encrypted = all.encrypted && one.encrypted
		add(&protocols, one.protocol)
		add(&ciphers, one.cipher)
		add(&groups, one.group)
	}
	joined := func(names []string) string { return strings.TrimSpace(strings.Join(names, " ")) }
	all.protocol, all.cipher, all.group = joined(protocols), joined(ciphers), joined(groups)
	return all
}

// dialing is a context that knows who makes the connections below the driver's; it has no end, so that no driver watches for it.
type dialing struct{}

// dialer makes a connection to an address, or where it is told to instead.
type dialer func(network, address string) (net.Conn, error)

func withDial(dial dialer) context.Context {
	return context.WithValue(context.Background(), dialing{}, dial)
}

func dialOf(context context.Context, network, address string) (net.Conn, error) {
	if dial, is := context.Value(dialing{}).(dialer); is {
		return dial(network, address)
	}
	return new(net.Dialer).DialContext(context, network, address) // to cancel a statement, where the driver is connected to
}
