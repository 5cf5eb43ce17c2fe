package main

import (
	"slices"
	"strings"
)

// Expressions within one another, at most.
const deepest = 200

// expression of a script, as a tree. Its values are those of value.go.
type expression interface {
	// evaluate returns its value. As in pgbench, `case`, `and` and `or` evaluate only what decides them.
	evaluate(*operation) (value, *Failure)
	// variables calls this for each variable that it reads, as often as it does.
	variables(see func(int))
}

type literal struct{ value value }

// variable has this number.
type variable int

type call struct {
	function *function
	given    []expression
}

// decision is `and`, which ends with false, or `or`, which ends with true.
type decision struct {
	endsWith      bool
	first, second expression
}

// choice is `case`: conditions and values in turn; the last value is that of `else`.
type choice []expression

func (l literal) evaluate(*operation) (value, *Failure)     { return l.value, nil }
func (l literal) variables(func(int))                       {}
func (v variable) evaluate(op *operation) (value, *Failure) { return op.scalar(int(v)) }
func (v variable) variables(see func(int))                  { see(int(v)) }

func (c *call) evaluate(op *operation) (value, *Failure) {
	var few [3]value
	values := few[:0]
	for _, part := range c.given {
		found, failure := part.evaluate(op)
		if failure != nil {
			return value{}, failure
		}
		values = append(values, found)
	}
	return c.function.of(values, &op.random)
}

func (c *call) variables(see func(int)) { variablesOf(c.given, see) }

func (d *decision) evaluate(op *operation) (value, *Failure) {
	first, failure := d.first.evaluate(op)
	if failure != nil || first.kind == null {
		return first, failure
	}
	holds, failure := first.bool()
	if failure != nil || holds == d.endsWith {
		return ofBool(holds), failure
	}
	second, failure := d.second.evaluate(op)
	if failure != nil || second.kind == null {
		return second, failure
	}
	holds, failure = second.bool()
	return ofBool(holds), failure
}

func (d *decision) variables(see func(int)) {
	d.first.variables(see)
	d.second.variables(see)
}

func (c choice) evaluate(op *operation) (value, *Failure) {
	at := 0
	for ; at+1 < len(c); at += 2 {
		condition, failure := c[at].evaluate(op)
		if failure != nil {
			return value{}, failure
		}
		if condition.isTrue() {
			return c[at+1].evaluate(op)
		}
	}
	return c[at].evaluate(op)
}

func (c choice) variables(see func(int)) { variablesOf(c, see) }

func variablesOf(parts []expression, see func(int)) {
	for _, part := range parts {
		part.variables(see)
	}
}

// ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────

// reader parses an expression as it travels: `(+ (* :a 2) 1)`, operators and functions before their arguments.
type reader struct {
	text string
	// The declared variables.
	names []string
	at    int
}

func readExpression(text string, names []string) (expression, *Failure) {
	r := &reader{text: text, names: names}
	found, failure := r.one(0)
	if failure != nil {
		return nil, failure
	}
	if more := r.next(); more != "" {
		return nil, badExpression("%q follows its end", more)
	}
	return found, nil
}

func badExpression(format string, values ...any) *Failure {
	return badMessage("expression: "+format, values...)
}

// next is the next parenthesis, or word between parentheses and spaces; empty at the end.
func (r *reader) next() string {
	for r.at < len(r.text) && r.text[r.at] == ' ' {
		r.at++
	}
	from := r.at
	for r.at < len(r.text) && !strings.ContainsRune(" ()", rune(r.text[r.at])) {
		r.at++
	}
	if r.at == from && r.at < len(r.text) {
		r.at++
	}
	return r.text[from:r.at]
}

func (r *reader) needed() (string, *Failure) {
	word := r.next()
	if word == "" {
		return "", badExpression("it ends too early")
	}
	return word, nil
}

func (r *reader) one(depth int) (expression, *Failure) {
	if depth > deepest {
		return nil, badExpression("nested more than %d deep", deepest)
	}
	word, failure := r.needed()
	switch {
	case failure != nil:
		return nil, failure
	case word == "(":
		return r.parenthesis(depth)
	case word == ")":
		return nil, badExpression("a parenthesis closes nothing")
	case word[0] == ':':
		number := slices.Index(r.names, word[1:])
		if number < 0 {
			return nil, badExpression("no variable %q is declared", word[1:])
		}
		return variable(number), nil
	case word == "null":
		return literal{ofNull()}, nil
	case word == "true" || word == "false":
		return literal{ofBool(word == "true")}, nil
	}
	return number(word)
}

func (r *reader) parenthesis(depth int) (expression, *Failure) {
	name, failure := r.needed()
	if failure != nil {
		return nil, failure
	}
	var given []expression
	for {
		before := r.at
		switch r.next() {
		case "":
			return nil, badExpression("a parenthesis is not closed")
		case ")":
			return newCall(name, given)
		}
		r.at = before
		part, failure := r.one(depth + 1)
		if failure != nil {
			return nil, failure
		}
		given = append(given, part)
	}
}

// number is an integer unless it has a point or an exponent.
func number(word string) (expression, *Failure) {
	if strings.ContainsAny(word, "0123456789") { // inf and nan are no numbers here
		found, is := integerOf(word)
		if strings.ContainsAny(word, ".eE") {
			found, is = realOf(strings.ToLower(word))
		}
		if is {
			return literal{found}, nil
		}
	}
	return nil, badExpression("%q is no value", word)
}

func newCall(name string, given []expression) (expression, *Failure) {
	switch name {
	case "and", "or":
		if len(given) != 2 {
			return nil, badExpression("%s takes 2 arguments, not %d", name, len(given))
		}
		return &decision{name == "or", given[0], given[1]}, nil
	case "case":
		if len(given)%2 == 0 || len(given) < 3 {
			return nil, badExpression("case takes conditions and values in turn, and the value of else")
		}
		return choice(given), nil
	}
	found := functions[name]
	if found == nil {
		return nil, badExpression("no function %q is known", name)
	}
	if len(given) < found.least || len(given) > found.most {
		return nil, badExpression("%s takes %d to %d arguments, not %d", name, found.least, found.most, len(given))
	}
	return &call{found, given}, nil
}
