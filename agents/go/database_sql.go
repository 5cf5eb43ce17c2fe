package main

import (
	"database/sql"
	driver_ "database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// sqlPool opens connections of a driver for database/sql. Each client keeps one of its own, as `db.Conn` gives it; one that is closed is
// closed for the server too.
type sqlPool struct{ database *sql.DB }

func newSQLPool(connector driver_.Connector) sqlPool {
	database := sql.OpenDB(connector)
	database.SetMaxIdleConns(-1)
	return sqlPool{database}
}

func (s sqlPool) open(dial dialer) (*sql.Conn, error) {
	return s.database.Conn(withDial(dial))
}

func (s sqlPool) close() {
	if s.database != nil {
		_ = s.database.Close()
	}
}

// sqlClient is a connection of database/sql.
type sqlClient struct {
	connection  *sql.Conn
	transaction *sql.Tx
	// Whether statements are prepared once, and not by the driver each time.
	prepares bool
	// A value as the driver takes it.
	argument func(value) any
	// Whether a statement that can't be prepared travels as text.
	mayBeText func(error) bool
	// By statement; nil: not prepared.
	ready     []*sql.Stmt
	arguments []any
	raw       []sql.RawBytes
	places    []any
}

func (s *sqlClient) prepare(at int, statement *prepared) error {
	for len(s.ready) <= at {
		s.ready = append(s.ready, nil)
	}
	if !s.prepares {
		return nil
	}
	ready, err := s.connection.PrepareContext(ground, statement.sql)
	if err != nil && len(statement.variables) == 0 && s.mayBeText(err) {
		return nil
	}
	s.ready[at] = ready
	return err
}

func (s *sqlClient) forget() error {
	for _, each := range s.ready {
		if each != nil {
			if err := each.Close(); err != nil {
				return err
			}
		}
	}
	s.ready = nil
	return nil
}

func (s *sqlClient) run(at int, statement *prepared, op *operation, done *outcome) (uint64, error) {
	s.arguments = s.arguments[:0]
	for at := range statement.variables {
		s.arguments = append(s.arguments, s.argument(statement.parameter(op, at)))
	}
	var ready *sql.Stmt
	if at < len(s.ready) {
		ready = s.ready[at]
	}
	if statement.kind == sqlUpdate && statement.into == nil {
		var err error
		if ready != nil {
			_, err = ready.ExecContext(ground, s.arguments...)
		} else {
			_, err = s.connection.ExecContext(ground, statement.sql, s.arguments...)
		}
		return 0, err
	}
	var rows *sql.Rows
	var err error
	if ready != nil {
		rows, err = ready.QueryContext(ground, s.arguments...)
	} else {
		rows, err = s.connection.QueryContext(ground, statement.sql, s.arguments...)
	}
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	return s.read(rows, statement, op, done)
}

func (s *sqlClient) read(rows *sql.Rows, statement *prepared, op *operation, done *outcome) (uint64, error) {
	count := uint64(0)
	for more := true; more; more = rows.NextResultSet() {
		names, err := rows.Columns()
		if err != nil {
			return 0, err
		}
		targets := statement.targets(op.script, func(at int) string { return names[at] }, len(names))
		s.room(len(names))
		for rows.Next() {
			if err := rows.Scan(s.places[:len(names)]...); err != nil {
				return 0, err
			}
			count++
			hash := uint64(hashSeed)
			for at := range names {
				hash = hashValue(hash, s.raw[at])
			}
			done.checksum += hash
			for at, variable := range targets {
				if variable >= 0 {
					op.values[variable] = ofText(string(s.raw[at]))
					if s.raw[at] == nil {
						op.values[variable] = ofNull()
					}
				}
			}
		}
	}
	return count, rows.Err()
}

// room makes place for so many columns of a row.
func (s *sqlClient) room(columns int) {
	if columns <= len(s.places) {
		return
	}
	s.raw, s.places = make([]sql.RawBytes, columns), make([]any, columns)
	for at := range s.places {
		s.places[at] = &s.raw[at]
	}
}

func (s *sqlClient) begin() (err error) {
	s.transaction, err = s.connection.BeginTx(ground, nil)
	return err
}

func (s *sqlClient) commit() error {
	if transaction := s.transaction; transaction != nil {
		s.transaction = nil
		return transaction.Commit()
	}
	_, err := s.connection.ExecContext(ground, "COMMIT")
	return err
}

func (s *sqlClient) rollback() error {
	if transaction := s.transaction; transaction != nil {
		s.transaction = nil
		// It is done if its COMMIT failed, or if the driver has rolled it back.
		if err := transaction.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
			return err
		}
		return nil
	}
	_, err := s.connection.ExecContext(ground, "ROLLBACK")
	return err
}

func (s *sqlClient) query(text string, into *table) error {
	rows, err := s.connection.QueryContext(ground, text)
	if err != nil {
		return err
	}
	defer rows.Close()
	for more := true; more; more = rows.NextResultSet() {
		types, err := rows.ColumnTypes()
		if err != nil {
			return err
		}
		if len(types) == 0 {
			continue
		}
		names, values, places := make([]string, len(types)), make([]any, len(types)), make([]any, len(types))
		for at, each := range types {
			names[at], places[at] = each.Name(), &values[at]
		}
		begin(into, names)
		for rows.Next() {
			if err := rows.Scan(places...); err != nil {
				return err
			}
			into.nextRow()
			for at, found := range values {
				into.add(at, spelledAs(found, types[at].DatabaseTypeName()))
			}
			if into.tooLarge() {
				return errTooLarge
			}
		}
	}
	return rows.Err()
}

// spelledAs is a value that a driver has decoded, as the server wrote it. `kind`: the column's type as the driver names it.
func spelledAs(found any, kind string) []byte {
	switch found := found.(type) {
	case nil:
		return nil
	case []byte:
		if kind == "BYTEA" {
			return append([]byte(`\x`), hex.EncodeToString(found)...)
		}
		return found
	case string:
		return []byte(found)
	case bool:
		return []byte(strconv.FormatBool(found)[:1])
	case float32:
		return spelledFloat(float64(found), 32)
	case float64:
		return spelledFloat(found, 64)
	case time.Time:
		return spelledTime(found, kind)
	}
	return []byte(fmt.Sprint(found))
}

// spelledFloat has the fewest digits that tell a number from all others, with an exponent where PostgreSQL has one.
func spelledFloat(number float64, bits int) []byte {
	if math.IsInf(number, 0) || math.IsNaN(number) {
		return []byte(unusual(number, "Infinity"))
	}
	shortest := strconv.FormatFloat(number, 'e', -1, bits)
	_, power, _ := strings.Cut(shortest, "e")
	if exponent, _ := strconv.Atoi(power); exponent < -4 || exponent >= precision {
		return []byte(shortest)
	}
	return strconv.AppendFloat(nil, number, 'f', -1, bits)
}

func spelledTime(moment time.Time, kind string) []byte {
	layout := "2006-01-02 15:04:05.999999"
	switch kind {
	case "DATE":
		layout = "2006-01-02"
	case "TIME":
		layout = "15:04:05.999999"
	case "TIMETZ":
		layout = "15:04:05.999999-07"
	case "TIMESTAMPTZ":
		layout += "-07"
	}
	return []byte(moment.Format(layout))
}

func (s *sqlClient) isClosed() bool {
	valid := true
	err := s.connection.Raw(func(own any) error {
		if can, is := own.(driver_.Validator); is {
			valid = can.IsValid()
		}
		return nil
	})
	return err != nil || !valid
}

func (s *sqlClient) close() {
	for _, each := range s.ready {
		if each != nil {
			_ = each.Close()
		}
	}
	_ = s.connection.Close()
}
