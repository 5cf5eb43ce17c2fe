package main

import (
	"errors"
	"strings"
)

// Most bytes of the answer to a query.
const longestAnswer = 16 << 20

var errTooLarge = errors.New("the result exceeds 16 MiB")

// begin makes a table that of a new result, with these columns.
func begin(into *table, columns []string) {
	*into = table{columns: strings.Join(columns, "\t")}
}

func (t *table) nextRow() {
	if t.rows > 0 {
		t.text = append(t.text, '\n')
	}
	t.rows++
}

// add adds a value to the row; nil is NULL. `column` counts from 0.
func (t *table) add(column int, value []byte) {
	if column > 0 {
		t.text = append(t.text, '\t')
	}
	if value == nil {
		t.text = append(t.text, '\\', 'N')
		return
	}
	t.text = escape(t.text, value)
}

func (t *table) tooLarge() bool { return len(t.text)+len(t.columns) > longestAnswer }
