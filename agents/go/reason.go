package main

import (
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	driver_ "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"
)

const (
	longestReason = 900
	hidden        = "[password]"
	// A shorter secret is hidden only next to a word for a password. Hidden everywhere, a password "a" would make every sentence
	// unreadable, and reveal itself.
	shortestSecret = 4
)

var (
	namedSecret = regexp.MustCompile(
		`(?i)([\w.-]*(?:password|passwd|passphrase|pwd|secret)[\w.-]*\s*=\s*)(?:"[^"]*"|'[^']*'|[^\s&;,)}\]]+)`)
	secretInAddress = regexp.MustCompile(`(//[^/@:\s]*:)[^/@\s]+@`)
)

// reason reduces a driver's error to one line, without the connection's password. `otherwise`: the code if neither server nor driver gives one.
func (p *pool) reason(err error, otherwise, before string, lost bool) *Failure {
	var own *Failure
	if errors.As(err, &own) {
		return own
	}
	said := serverError(err)
	code, text := said.code, said.text
	if code == "" {
		code, text = otherwise, err.Error()
		if isTLS(err) {
			code = "tls"
		}
	}
	if strings.HasPrefix(said.state, "08") || isLost(err) {
		lost = true
	}
	failure := fail(code, "%s%s", before, oneLine(p.hide(text), longestReason))
	failure.lost = lost
	return failure
}

func (p *pool) hide(text string) string {
	shown := secretInAddress.ReplaceAllString(text, "${1}"+hidden+"@")
	return p.server.hide(namedSecret.ReplaceAllString(shown, "${1}"+hidden))
}

// hide replaces the password.
func (s *server) hide(text string) string {
	if len(s.password) < shortestSecret {
		return text
	}
	return strings.ReplaceAll(text, s.password, hidden)
}

// rejected is a driver's error about the settings that it was given.
func (s *server) rejected(err error) *Failure { return fail("driver", "%s", s.hide(err.Error())) }

// told is what the server itself says of an error: its code in the protocol, the SQLSTATE, and its text without the driver's words around it.
type told struct{ code, state, text string }

// serverError is empty if the error is not the server's. MySQL's code has its number too.
func serverError(err error) told {
	var ofPgx *pgconn.PgError
	var ofPq *pq.Error
	var ofMySQL *mysql.MySQLError
	switch {
	case errors.As(err, &ofPgx):
		return told{ofPgx.Code, ofPgx.Code, ofPgx.Message}
	case errors.As(err, &ofPq):
		return told{string(ofPq.Code), string(ofPq.Code), ofPq.Message}
	case errors.As(err, &ofMySQL):
		said := told{code: fmt.Sprint(ofMySQL.Number), text: ofMySQL.Message}
		if ofMySQL.SQLState != [5]byte{} {
			said.state = string(ofMySQL.SQLState[:])
			said.code += " (" + said.state + ")"
		}
		return said
	}
	return told{}
}

func isTLS(err error) bool {
	var certificate *tls.CertificateVerificationError
	var header tls.RecordHeaderError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	if errors.As(err, &certificate) || errors.As(err, &header) || errors.As(err, &authority) || errors.As(err, &name) ||
		errors.As(err, &invalid) || errors.Is(err, pq.ErrSSLNotSupported) || errors.Is(err, mysql.ErrNoTLS) {
		return true
	}
	// An alert of the server's has no type of its own; nor has pgx's "server refused TLS connection".
	text := err.Error()
	return strings.Contains(text, "tls: ") || strings.Contains(text, "x509: ") || strings.Contains(text, "refused TLS connection")
}

// isLost says whether the connection is gone, as far as the error tells.
func isLost(err error) bool {
	var network net.Error
	return errors.Is(err, driver_.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, sql.ErrConnDone) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, errLongLogin) ||
		errors.As(err, &network)
}
