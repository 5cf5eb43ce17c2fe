package main

import (
	"context"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/lib/pq"
)

// pqDriver is lib/pq by database/sql, configured by its connection string alone: sslmode, sslrootcert, ssl_min_protocol_version, and for a
// client certificate sslinline. It does not tell what was negotiated.
type pqDriver struct {
	sqlPool
	prepares bool
}

func (p *pqDriver) version() string { return "lib/pq " + moduleVersion("github.com/lib/pq") }

func (p *pqDriver) configure(server *server) *Failure {
	settings, failure := p.settings(server)
	if failure != nil {
		return failure
	}
	text := server.dsn
	if text == "" {
		text = keywordString(settings)
	}
	config, err := pq.NewConfig(text)
	if err != nil {
		return server.rejected(err)
	}
	// Not in the string: of two hosts in a URL it takes the one that sorts last.
	if server.host != "" {
		config.Host, config.Hostaddr, config.Port, config.Multi = server.host, netip.Addr{}, server.port, nil
	}
	server.replaceLogin(&config.User, &config.Password, &config.Database)
	connector, err := pq.NewConnectorConfig(config)
	if err != nil {
		return server.rejected(err)
	}
	connector.Dialer(pqDialer{})
	p.sqlPool = newSQLPool(connector)
	return nil
}

// settings are the words of the connection string that are lib/pq's own.
func (p *pqDriver) settings(server *server) ([][2]string, *Failure) {
	if len(server.ciphers) > 0 {
		return nil, lacks("tls_ciphers", "lib/pq has no such setting")
	}
	if server.channelBinding == "prefer" || server.channelBinding == "require" {
		return nil, lacks("channel_binding", "lib/pq has none")
	}
	if server.tlsAtOnce {
		return nil, lacks("tls_at_once", "lib/pq offers no protocol by ALPN, without which PostgreSQL ends the connection")
	}
	prepared, failure := server.option("prepared", "true", "false")
	if failure != nil {
		return nil, failure
	}
	p.prepares = prepared == "true"
	binary, failure := server.option("binary_parameters", "no", "yes")
	if failure != nil {
		return nil, failure
	}
	settings := append(server.keywords(), [2]string{"binary_parameters", binary})
	if server.tls == "off" {
		return settings, nil
	}
	for name, version := range map[string]string{"ssl_min_protocol_version": server.min, "ssl_max_protocol_version": server.max} {
		if version != "" {
			settings = append(settings, [2]string{name, "TLSv" + version})
		}
	}
	authorities := ""
	if server.verifies() {
		authorities = server.ca
	}
	if server.identity != "" {
		settings = append(settings, [2]string{"sslinline", "true"}, [2]string{"sslcert", server.identity}, [2]string{"sslkey", server.identity})
		pem, err := os.ReadFile(authorities)
		if err != nil && authorities != "" {
			return nil, fail("tls", "tls_ca: %v", err)
		}
		authorities = string(pem)
	}
	if authorities != "" {
		settings = append(settings, [2]string{"sslrootcert", authorities})
	}
	return settings, nil
}

// pqDialer makes the connections below lib/pq's.
type pqDialer struct{}

func (pqDialer) DialContext(context context.Context, network, address string) (net.Conn, error) {
	return dialOf(context, network, address)
}

// Dial and DialTimeout belong to the interface; lib/pq prefers DialContext.
func (pqDialer) Dial(string, string) (net.Conn, error) { return nil, net.ErrClosed }
func (pqDialer) DialTimeout(string, string, time.Duration) (net.Conn, error) {
	return nil, net.ErrClosed
}

func (p *pqDriver) connect(dial dialer) (client, error) {
	connection, err := p.open(dial)
	if err != nil {
		return nil, err
	}
	never := func(error) bool { return false }
	return &pqClient{sqlClient{connection: connection, prepares: p.prepares, argument: pqArgument, mayBeText: never}}, nil
}

// pqArgument: lib/pq sends every value as text, whose type the server decides.
func pqArgument(given value) any {
	switch given.kind {
	case null:
		return nil
	case integer:
		return given.whole
	}
	return given.spelled()
}

type pqClient struct{ sqlClient }

func (p *pqClient) facts() *facts { return nil }

func (p *pqClient) serverVersion() (version string, err error) {
	err = p.connection.QueryRowContext(ground, "SHOW server_version").Scan(&version)
	version, _, _ = strings.Cut(version, " ")
	return version, err
}
