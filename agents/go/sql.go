package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What a statement is for a driver.
type sqlKind int

const (
	sqlUnknown sqlKind = iota // only its result tells
	sqlBegin
	sqlCommit
	sqlRollback
	sqlQuery  // returns rows
	sqlUpdate // returns none
)

// controls says whether it begins or ends a transaction, for which drivers have calls.
func (k sqlKind) controls() bool { return k == sqlBegin || k == sqlCommit || k == sqlRollback }

var (
	dollarTag  = regexp.MustCompile(`^\$(?:[\p{L}_][\p{L}\p{N}_]*)?\$`)
	dollarMark = regexp.MustCompile(`^\$([0-9]{1,4})`)
	routine    = regexp.MustCompile(`(?is)^\s*(EXECUTE\s+BLOCK|BEGIN\s+NOT\s+ATOMIC` +
		`|(CREATE|ALTER)\s+(OR\s+(REPLACE|ALTER)\s+)?(DEFINER\s*=\s*\S+\s+)?(AGGREGATE\s+)?(PROCEDURE|FUNCTION|TRIGGER|PACKAGE|EVENT))\b`)
	control   = regexp.MustCompile(`(?i)^\s*(BEGIN|START\s+TRANSACTION|COMMIT|END|ROLLBACK)(\s+(WORK|TRANSACTION))?\s*;?\s*$`)
	rowsWords = regexp.MustCompile(`(?is)^\s*\(*\s*(SELECT|VALUES|SHOW|TABLE|EXPLAIN|DESC|DESCRIBE)\b`)
	noRows    = regexp.MustCompile(`(?is)^\s*(INSERT|UPDATE|DELETE|REPLACE|MERGE|CREATE|DROP|ALTER|TRUNCATE|GRANT|REVOKE|SET|USE` +
		`|LOCK|UNLOCK|SAVEPOINT|RELEASE|COMMENT)\b`)
	returning = regexp.MustCompile(`(?i)\bRETURNING\b`)
)

// lexer knows about SQL where literals and comments end, and nothing more.
type lexer struct {
	mysql bool
	// MySQL's sql_mode NO_BACKSLASH_ESCAPES is not known here, as to other clients that split texts.
}

func kindOf(sql string) sqlKind {
	if found := control.FindStringSubmatch(sql); found != nil {
		switch unicode.ToUpper(rune(found[1][0])) {
		case 'C', 'E':
			return sqlCommit
		case 'R':
			return sqlRollback
		}
		return sqlBegin
	}
	if rowsWords.MatchString(sql) {
		return sqlQuery
	}
	if noRows.MatchString(sql) && !returning.MatchString(sql) {
		return sqlUpdate
	}
	return sqlUnknown
}

// split returns the statements of a text, separated by `;`.
func (l lexer) split(text string) []string {
	if l.mysql && routine.MatchString(text) {
		return []string{text}
	}
	var found []string
	from := 0
	add := func(to int) {
		if words := strings.TrimSpace(text[from:to]); words != "" {
			found = append(found, words)
		}
		from = to + 1
	}
	for at := 0; at < len(text); {
		past := l.skip(text, at)
		if past > at {
			at = past
			continue
		}
		if text[at] == ';' {
			add(at)
		}
		at++
	}
	if from < len(text) {
		add(len(text))
	}
	return found
}

// mark returns `$1` as `?`, outside literals, quoted names and comments, and for each `?` the number of the parameter (from 0) that it
// stands for. `parameters`: how many there are.
func (l lexer) mark(sql string, parameters int) (string, []int, *Failure) {
	var out strings.Builder
	var order []int
	for at := 0; at < len(sql); {
		if past := l.skip(sql, at); past > at {
			out.WriteString(sql[at:past])
			at = past
			continue
		}
		if found := dollarMark.FindString(sql[at:]); found != "" && !isPartOfName(sql[:at]) {
			number, _ := strconv.Atoi(found[1:])
			if number < 1 || number > parameters {
				return "", nil, badStatement("$%d is not a parameter of: %s", number, sql)
			}
			order = append(order, number-1)
			out.WriteByte('?')
			at += len(found)
			continue
		}
		out.WriteByte(sql[at])
		at++
	}
	return out.String(), order, nil
}

// isPartOfName says whether the text ends with a letter of a name.
func isPartOfName(before string) bool {
	letter, size := utf8.DecodeLastRuneInString(before)
	return size > 0 && (unicode.IsLetter(letter) || unicode.IsDigit(letter) || letter == '_' || letter == '$')
}

// skip returns the position after the literal, quoted name or comment that begins here; `at` if none does.
func (l lexer) skip(text string, at int) int {
	switch text[at] {
	case '\'':
		escapes := l.mysql || at > 0 && (text[at-1] == 'e' || text[at-1] == 'E') && !isPartOfName(text[:at-1])
		return quoted(text, at, escapes)
	case '"':
		return quoted(text, at, l.mysql)
	case '`':
		if l.mysql {
			return quoted(text, at, false)
		}
	case '#':
		if l.mysql {
			return lineEnd(text, at)
		}
	case '-':
		if strings.HasPrefix(text[at:], "--") && (!l.mysql || at+2 == len(text) || unicode.IsSpace(rune(text[at+2]))) {
			return lineEnd(text, at)
		}
	case '/':
		if strings.HasPrefix(text[at:], "/*") {
			return commentEnd(text, at, !l.mysql)
		}
	case '$':
		if tag := dollarTag.FindString(text[at:]); tag != "" && !l.mysql {
			close := strings.Index(text[at+len(tag):], tag)
			if close < 0 {
				return len(text)
			}
			return at + close + 2*len(tag)
		}
	}
	return at
}

// commentEnd is the position after a comment. `nested`: comments within it have ends of their own.
func commentEnd(text string, at int, nested bool) int {
	depth := 0
	for end := at; end+1 < len(text); end++ {
		switch {
		case text[end:end+2] == "/*" && (nested || depth == 0):
			depth++
			end++
		case text[end:end+2] == "*/":
			end++
			if depth--; depth == 0 {
				return end + 1
			}
		}
	}
	return len(text)
}

func quoted(text string, at int, escapes bool) int {
	mark := text[at]
	for end := at + 1; end < len(text); end++ {
		if text[end] == mark {
			return end + 1
		}
		if escapes && text[end] == '\\' {
			end++
		}
	}
	return len(text)
}

func lineEnd(text string, at int) int {
	if end := strings.IndexByte(text[at:], '\n'); end >= 0 {
		return at + end
	}
	return len(text)
}

// prepared is a statement of a script as the drivers take it.
type prepared struct {
	kind sqlKind
	sql  string
	// The variable of each parameter.
	variables []int
	// Which of those are text constants written as an integer.
	numbers []bool
	into    *into
}

// read makes the statements of a script ready. MySQL's parameters are `?`, PostgreSQL's are as in the protocol.
func (l lexer) read(script *script) ([]prepared, *Failure) {
	found := make([]prepared, len(script.statements))
	for at, declared := range script.statements {
		read := prepared{kind: kindOf(declared.sql), sql: declared.sql, variables: slices.Clone(declared.parameters), into: declared.into}
		if l.mysql {
			sql, order, failure := l.mark(declared.sql, len(declared.parameters))
			if failure != nil {
				return nil, failure
			}
			read.sql, read.variables = sql, nil
			for _, number := range order {
				read.variables = append(read.variables, declared.parameters[number])
			}
		}
		for _, variable := range read.variables {
			read.numbers = append(read.numbers, script.isNumber(variable))
		}
		found[at] = read
	}
	return found, nil
}

// parameter is a variable's value as it is bound; a text constant that is written as an integer is one. One that has none is an empty text.
func (p *prepared) parameter(op *operation, at int) value {
	found := op.values[p.variables[at]]
	if p.numbers[at] && found.kind == text {
		whole, _ := strconv.ParseInt(found.text, 10, 64)
		return ofInteger(whole)
	}
	if found.kind == unset {
		return ofText("")
	}
	return found
}

// targets are the variables of columns with these names, -1 for none. Nil if its rows set none.
func (p *prepared) targets(script *script, columns func(at int) string, count int) []int {
	if p.into == nil {
		return nil
	}
	found := make([]int, count)
	for at := range found {
		found[at] = script.variableFor(p.into.prefix, columns(at))
	}
	return found
}

// escape appends a value as in `COPY`.
func escape(to []byte, value []byte) []byte {
	for _, letter := range value {
		switch letter {
		case '\\':
			to = append(to, '\\', '\\')
		case '\t':
			to = append(to, '\\', 't')
		case '\n':
			to = append(to, '\\', 'n')
		case '\r':
			to = append(to, '\\', 'r')
		default:
			to = append(to, letter)
		}
	}
	return to
}
