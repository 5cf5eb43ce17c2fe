package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// pgxDriver is pgx with its own interface, not database/sql's: a connection string with sslmode and sslrootcert, and what it has no words for
// set in the configuration's TLSConfig, as its documentation says.
type pgxDriver struct{ config *pgx.ConnConfig }

func (p *pgxDriver) version() string { return "pgx " + moduleVersion("github.com/jackc/pgx/v5") }
func (p *pgxDriver) close()          {}

func (p *pgxDriver) configure(server *server) *Failure {
	text := server.dsn
	if text == "" {
		settings := server.keywords()
		if server.verifies() && server.ca != "" {
			settings = append(settings, [2]string{"sslrootcert", server.ca})
		}
		if server.tlsAtOnce {
			settings = append(settings, [2]string{"sslnegotiation", "direct"})
		}
		if server.channelBinding != "" {
			settings = append(settings, [2]string{"channel_binding", server.channelBinding})
		}
		text = keywordString(settings)
	}
	config, err := pgx.ParseConfig(server.amended(text))
	if err != nil {
		return server.rejected(err)
	}
	if server.hasPassword {
		config.Password = server.password
	}
	config.DialFunc = dialOf
	if server.address != "" {
		config.LookupFunc = func(context.Context, string) ([]string, error) { return []string{server.address}, nil }
	}
	p.config = config
	if server.tls == "off" || server.dsn != "" {
		return nil
	}
	pair, failure := server.keyPair()
	if failure != nil {
		return failure
	}
	config.TLSConfig.Certificates = pair
	return server.adjust(config.TLSConfig)
}

func (p *pgxDriver) connect(dial dialer) (client, error) {
	connection, err := pgx.ConnectConfig(withDial(dial), p.config)
	if err != nil {
		return nil, err
	}
	return &pgxClient{connection: connection}, nil
}

// ground is a context without an end: drivers watch for the end of any other, which costs them a goroutine or two system calls.
var ground = context.Background()

type pgxClient struct {
	connection  *pgx.Conn
	transaction pgx.Tx
	// By statement; nil: not prepared.
	ready     []*pgconn.StatementDescription
	arguments []any
}

func (p *pgxClient) prepare(at int, statement *prepared) error {
	for len(p.ready) <= at {
		p.ready = append(p.ready, nil)
	}
	description, err := p.connection.Prepare(ground, "s"+strconv.Itoa(at), statement.sql)
	p.ready[at] = description
	return err
}

func (p *pgxClient) forget() error {
	if len(p.ready) == 0 {
		return nil
	}
	p.ready = nil
	return p.connection.DeallocateAll(ground)
}

func (p *pgxClient) run(at int, statement *prepared, op *operation, done *outcome) (uint64, error) {
	if at >= len(p.ready) || p.ready[at] == nil {
		if err := p.prepare(at, statement); err != nil {
			return 0, err
		}
	}
	description := p.ready[at]
	p.bind(statement, description.ParamOIDs, op)
	if statement.kind == sqlUpdate && statement.into == nil {
		_, err := p.connection.Exec(ground, description.Name, p.arguments...)
		return 0, err
	}
	rows, err := p.connection.Query(ground, description.Name, p.arguments...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	fields := rows.FieldDescriptions()
	targets := statement.targets(op.script, func(at int) string { return fields[at].Name }, len(fields))
	count := uint64(0)
	for rows.Next() {
		values, err := rows.Values() // decoded, as an application needs them
		if err != nil {
			return 0, err
		}
		count++
		hash := uint64(hashSeed)
		for _, raw := range rows.RawValues() {
			hash = hashValue(hash, raw)
		}
		done.checksum += hash
		for at, variable := range targets {
			if variable >= 0 {
				op.values[variable] = p.spelled(fields[at].DataTypeOID, values[at])
			}
		}
	}
	return count, rows.Err()
}

// bind fills the arguments. pgx encodes a text for whatever type the server expects, and an integer for types of numbers only.
func (p *pgxClient) bind(statement *prepared, types []uint32, op *operation) {
	p.arguments = p.arguments[:0]
	// A parameter that stands in the text several times is one.
	for at := range statement.variables {
		found := statement.parameter(op, at)
		switch {
		case found.kind == null:
			p.arguments = append(p.arguments, nil)
		case found.kind == integer && at < len(types) && isNumeric(types[at]):
			p.arguments = append(p.arguments, found.whole)
		default:
			p.arguments = append(p.arguments, found.spelled())
		}
	}
}

func isNumeric(oid uint32) bool {
	switch oid {
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.Float4OID, pgtype.Float8OID, pgtype.NumericOID:
		return true
	}
	return false
}

// spelled is a value of a row as PostgreSQL writes it.
func (p *pgxClient) spelled(oid uint32, found any) value {
	switch found := found.(type) {
	case nil:
		return ofNull()
	case string:
		return ofText(found)
	}
	text, err := p.connection.TypeMap().Encode(oid, pgtype.TextFormatCode, found, nil)
	if err != nil {
		return ofText(fmt.Sprint(found))
	}
	return ofText(string(text))
}

func (p *pgxClient) begin() (err error) {
	p.transaction, err = p.connection.Begin(ground)
	return err
}

func (p *pgxClient) commit() error {
	if p.transaction == nil {
		_, err := p.connection.Exec(ground, "commit")
		return err
	}
	transaction := p.transaction
	p.transaction = nil
	return transaction.Commit(ground)
}

func (p *pgxClient) rollback() error {
	if transaction := p.transaction; transaction != nil {
		p.transaction = nil
		return transaction.Rollback(ground)
	}
	if p.connection.PgConn().TxStatus() == 'I' {
		return nil
	}
	_, err := p.connection.Exec(ground, "rollback")
	return err
}

func (p *pgxClient) query(sql string, into *table) error {
	results := p.connection.PgConn().Exec(ground, sql)
	for results.NextResult() {
		reader := results.ResultReader()
		fields := reader.FieldDescriptions()
		if len(fields) == 0 {
			continue
		}
		names := make([]string, len(fields))
		for at := range fields {
			names[at] = fields[at].Name
		}
		begin(into, names)
		for reader.NextRow() {
			into.nextRow()
			for at, raw := range reader.Values() {
				into.add(at, raw)
			}
			if into.tooLarge() {
				_ = p.connection.PgConn().Conn().Close() // what is still to come is not read
				return errTooLarge
			}
		}
	}
	return results.Close()
}

func (p *pgxClient) facts() *facts {
	found := facts{}
	if session, is := p.connection.PgConn().Conn().(*tls.Conn); is {
		found = ofTLS(session.ConnectionState())
	}
	return &found
}

func (p *pgxClient) serverVersion() (string, error) {
	version, _, _ := strings.Cut(p.connection.PgConn().ParameterStatus("server_version"), " ")
	return version, nil
}

func (p *pgxClient) isClosed() bool { return p.connection.IsClosed() }
func (p *pgxClient) close()         { _ = p.connection.Close(ground) }
