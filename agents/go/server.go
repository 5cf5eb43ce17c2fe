package main

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// server is what `connect` says about it: where it is, a login, and how the connection is encrypted.
type server struct {
	// Whether it speaks MySQL's protocol, not PostgreSQL's.
	mysql bool
	// The driver checks the certificate against `host`; empty and 0 only beside a `dsn`, which then says them.
	host string
	port uint16
	// Where to connect; empty: to what `host` resolves to.
	address    string
	user       string
	database   string
	password   string
	searchPath string
	setup      []string
	// SQL that returns how the session that runs it is encrypted.
	witness string
	// The driver's own settings.
	options map[string]string
	// The driver's own connection string. What else is given replaces what it says.
	dsn string
	// Which of the fields are given beside it.
	hasUser, hasPassword, hasDatabase bool
	// The address is that of a relay to a server on another machine.
	relayed bool
	// The user trusts the network to the server.
	trusted bool

	// off, require, verify-ca or verify-full
	tls            string
	tlsAtOnce      bool
	channelBinding string // empty: the driver's default
	ca             string
	min, max       string
	ciphers        []string
	// PEM: the client's certificate, the chain above it, and its key.
	identity string
}

// readServer takes the fields of a server.
func readServer(f *fields, mysql bool) *server {
	read := &server{mysql: mysql, dsn: f.textOr("dsn", ""), witness: f.textOr("witness", ""), options: map[string]string{}}
	if read.dsn == "" {
		for _, name := range []string{"host", "port", "database"} {
			f.need(name)
		}
	}
	read.hasUser, read.hasPassword, read.hasDatabase = f.has("user"), f.has("password"), f.has("database")
	read.host, read.address = f.textOr("host", ""), f.textOr("address", "")
	read.port = uint16(f.within("port", 0, 0, 65535))
	read.user, read.password, read.database = f.textOr("user", ""), f.textOr("password", ""), f.textOr("database", "")
	read.searchPath = f.textOr("search_path", "")
	read.setup = lexer{mysql}.split(f.textOr("setup", ""))
	read.relayed, read.trusted = f.flag("relayed"), f.flag("trusted")
	for _, line := range strings.Split(f.textOr("options", ""), "\n") {
		if name, value, is := strings.Cut(line, "="); is && name != "" {
			read.options[strings.TrimSpace(name)] = value
		} else if strings.TrimSpace(line) != "" {
			f.fail("options: write name=value, one per line")
		}
	}
	tls := false
	for name := range f.left {
		tls = tls || strings.HasPrefix(name, "tls")
	}
	if read.dsn != "" && (tls || f.has("channel_binding")) {
		f.fail("dsn: it decides about TLS; leave out tls and what belongs to it")
	}
	read.tls = f.word("tls", "off", "require", "verify-ca", "verify-full")
	read.tlsAtOnce, read.channelBinding = f.flag("tls_at_once"), f.word("channel_binding", "", "disable", "prefer", "require")
	read.ca, read.identity = f.textOr("tls_ca", ""), f.textOr("tls_identity", "")
	read.min, read.max = f.word("tls_min", "", "1.0", "1.1", "1.2", "1.3"), f.word("tls_max", "", "1.0", "1.1", "1.2", "1.3")
	read.ciphers = strings.FieldsFunc(f.textOr("tls_ciphers", ""), func(letter rune) bool { return letter == ':' })
	if read.channelBinding == "require" && read.tls == "off" {
		f.fail("channel_binding: require needs tls")
	}
	return read
}

// check refuses what can't work, whatever the driver.
func (s *server) check() *Failure {
	if s.mysql && s.searchPath != "" {
		return lacks("search_path", "MySQL's schemas are its databases")
	}
	if s.mysql && (s.tlsAtOnce || s.channelBinding != "") {
		return lacks("tls_at_once and channel_binding", "they are PostgreSQL's")
	}
	if s.min != "" && s.max != "" && s.min > s.max {
		return fail("tls", "tls_min %s is above tls_max %s", s.min, s.max)
	}
	if s.ca == "" {
		return nil
	}
	pem, err := os.ReadFile(s.ca)
	if err != nil {
		return fail("tls", "tls_ca: %v", err)
	}
	if strings.Contains(string(pem), "-----BEGIN X509 CRL-----") {
		return fail("tls", "tls_ca: %s holds a revocation list (CRL), and Go's TLS checks none; leave it out", s.ca)
	}
	return nil
}

// replaceLogin replaces what a connection string says by the fields that stand beside it.
func (s *server) replaceLogin(user, password, database *string) {
	if s.hasUser {
		*user = s.user
	}
	if s.hasPassword {
		*password = s.password
	}
	if s.hasDatabase {
		*database = s.database
	}
}

// lacks: the driver has no setting for a field.
func lacks(field, reason string) *Failure {
	return fail("driver", "%s: %s; leave it out", field, reason)
}

// option takes one of the driver's own settings; the first value is its default.
func (s *server) option(name string, values ...string) (string, *Failure) {
	given, is := s.options[name]
	delete(s.options, name)
	if !is {
		return values[0], nil
	}
	if slices.Contains(values, given) {
		return given, nil
	}
	return "", fail("driver", "options: %s is one of %s, not %q", name, strings.Join(values, ", "), given)
}

// noMoreOptions refuses settings that no driver has taken.
func (s *server) noMoreOptions() *Failure {
	for name := range s.options {
		return fail("driver", "options: this driver has no %s here", name)
	}
	return nil
}

func (s *server) verifies() bool { return s.tls == "verify-ca" || s.tls == "verify-full" }

// dialed is what the agent connects to, if that is another place than the driver asks for.
func (s *server) dialed(asked string) string {
	if s.address == "" {
		return asked
	}
	_, port, err := net.SplitHostPort(asked)
	if s.port != 0 || err != nil {
		port = strconv.Itoa(int(s.port))
	}
	return net.JoinHostPort(s.address, port)
}

// exposed says whether another machine could pose as the server and read what we send: the connected address is not loopback or belongs to
// a relay to another machine, and TLS is off, or up to a connection string. On a trusted network nobody does.
func (s *server) exposed(connected net.Addr) bool {
	if s.tls != "off" || s.trusted || connected.Network() == "unix" {
		return false
	}
	address, err := netip.ParseAddrPort(connected.String())
	return s.relayed || err != nil || !address.Addr().Unmap().IsLoopback()
}
