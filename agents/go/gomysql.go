package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/go-sql-driver/mysql"
)

// mysqlDriver is go-sql-driver/mysql by database/sql. Its users give it a tls.Config for anything but "true" and "skip-verify", so that is
// what it gets here: with RootCAs and ServerName, and for verify-ca with a check of the chain alone, which the driver lacks.
type mysqlDriver struct {
	sqlPool
	prepares bool
}

// notPreparable is the error of a statement that MySQL can't prepare.
const notPreparable = 1295

// states finds the TLS session of a connection that is being made. Go's TLS tells it when the handshake is complete.
type states struct{}

func (m *mysqlDriver) version() string {
	return "go-sql-driver/mysql " + moduleVersion("github.com/go-sql-driver/mysql")
}

func (m *mysqlDriver) configure(server *server) *Failure {
	config := mysql.NewConfig()
	if server.dsn != "" {
		parsed, err := mysql.ParseDSN(ofURL(server.dsn))
		if err != nil {
			return server.rejected(err)
		}
		config = parsed
	}
	if failure := m.configureBy(server, config); failure != nil {
		return failure
	}
	config.Logger = &mysql.NopLogger{} // errors come back anyway
	config.DialFunc = dialOf
	// Each connection has a configuration of its own, which keeps what was negotiated.
	err := config.Apply(mysql.BeforeConnect(func(context context.Context, own *mysql.Config) error {
		if seen, is := context.Value(states{}).(*atomic.Pointer[tls.ConnectionState]); is && own.TLS != nil {
			check := own.TLS.VerifyConnection
			own.TLS.VerifyConnection = func(state tls.ConnectionState) error {
				seen.Store(&state)
				if check != nil {
					return check(state)
				}
				return nil
			}
		}
		return nil
	}))
	if err != nil {
		return internal("%v", err)
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return server.rejected(err)
	}
	m.sqlPool = newSQLPool(connector)
	return nil
}

// ofURL is a URL as the driver writes it: `user@tcp(host:3306)/database?tls=true`. Any other text stays.
func ofURL(text string) string {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Scheme != "mysql" && parsed.Scheme != "mariadb" {
		return text
	}
	port := parsed.Port()
	if port == "" {
		port = "3306"
	}
	login := ""
	if parsed.User != nil {
		login = parsed.User.Username() + "@"
		if password, is := parsed.User.Password(); is {
			login = parsed.User.Username() + ":" + password + "@"
		}
	}
	text = login + "tcp(" + net.JoinHostPort(parsed.Hostname(), port) + ")" + "/" + url.PathEscape(strings.TrimPrefix(parsed.Path, "/"))
	if parsed.RawQuery != "" {
		text += "?" + parsed.RawQuery
	}
	return text
}

// configureBy sets what the fields of `connect` say, above what a connection string says.
func (m *mysqlDriver) configureBy(server *server, config *mysql.Config) *Failure {
	prepared, failure := server.option("prepared", "true", "false")
	if failure != nil {
		return failure
	}
	m.prepares = prepared == "true"
	interpolates, failure := server.option("interpolateParams", "false", "true")
	if failure != nil {
		return failure
	}
	config.InterpolateParams = config.InterpolateParams || interpolates == "true"
	server.replaceLogin(&config.User, &config.Passwd, &config.DBName)
	if server.host != "" {
		config.Net, config.Addr = "tcp", net.JoinHostPort(server.host, strconv.Itoa(int(server.port)))
		if config.TLS != nil && !config.TLS.InsecureSkipVerify {
			config.TLS.ServerName = server.host
		}
	}
	if server.tls != "off" {
		config.TLS, failure = server.tlsConfig()
	}
	return failure
}

// tlsConfig is the server's TLS as a program that uses the driver writes it.
func (s *server) tlsConfig() (*tls.Config, *Failure) {
	config := &tls.Config{ServerName: s.host, InsecureSkipVerify: s.tls != "verify-full"}
	if s.verifies() && s.ca != "" {
		pem, err := os.ReadFile(s.ca)
		config.RootCAs = x509.NewCertPool()
		if err != nil || !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fail("tls", "tls_ca: %s holds no certificate", s.ca)
		}
	}
	if s.tls == "verify-ca" {
		config.VerifyConnection = func(state tls.ConnectionState) error { return chained(state, config.RootCAs) }
	}
	pair, failure := s.keyPair()
	if failure != nil {
		return nil, failure
	}
	config.Certificates = pair
	return config, s.adjust(config)
}

// chained checks that an authority has signed the server's certificate, whatever its name (crypto/tls documents this way).
func chained(state tls.ConnectionState, authorities *x509.CertPool) error {
	between := x509.NewCertPool()
	for _, each := range state.PeerCertificates[1:] {
		between.AddCert(each)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: authorities, Intermediates: between})
	return err
}

func (m *mysqlDriver) connect(dial dialer) (client, error) {
	seen := &atomic.Pointer[tls.ConnectionState]{}
	connection, err := m.database.Conn(context.WithValue(withDial(dial), states{}, seen))
	if err != nil {
		return nil, err
	}
	common := sqlClient{connection: connection, prepares: m.prepares, argument: mysqlArgument, mayBeText: isNotPreparable}
	return &mysqlClient{common, seen.Load()}, nil
}

func isNotPreparable(err error) bool {
	var ofServer *mysql.MySQLError
	return errors.As(err, &ofServer) && ofServer.Number == notPreparable
}

func mysqlArgument(given value) any {
	switch given.kind {
	case null:
		return nil
	case integer:
		return given.whole
	case boolean:
		return given.whole != 0
	case real:
		return given.real
	}
	return given.text
}

type mysqlClient struct {
	sqlClient
	state *tls.ConnectionState // nil: not encrypted
}

func (m *mysqlClient) facts() *facts {
	found := facts{}
	if m.state != nil {
		found = ofTLS(*m.state)
	}
	return &found
}

// packager is what follows the version's numbers, and MariaDB's mark for clients that know only MySQL.
var packager = regexp.MustCompile(`^(5\.5\.5-)?([0-9.]+).*$`)

func (m *mysqlClient) serverVersion() (version string, err error) {
	err = m.connection.QueryRowContext(ground, "SELECT VERSION()").Scan(&version)
	return packager.ReplaceAllString(version, "$2"), err
}
