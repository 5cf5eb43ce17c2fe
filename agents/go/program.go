package main

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"
)

// statement of a program. `parameters`: numbers of variables, in order of `$1`, `$2`…; `into`: nil if its rows set no variables.
type statement struct {
	sql        string
	parameters []int
	into       *into
}

// into says which variables a row sets. `prefix`: precedes a column's name in that of its variable; `every`: the last row counts, if there
// is any, instead of the only one.
type into struct {
	prefix string
	every  bool
}

// step of a transaction that is no statement, or the number of a statement among those of the transaction.
type step struct {
	do         string // as in the message; "run": a statement
	statement  int
	variable   int
	expression expression
}

// of is something that one arm has, or both if `arm` is empty.
type of[T any] struct {
	arm  string
	what T
}

func (o of[T]) isFor(arm string) bool { return o.arm == "" || o.arm == arm }

type transaction struct {
	name       string
	weight     uint64
	statements []of[statement]
	// Also its statements.
	steps []of[step]
}

// decides says whether some step is no statement.
func (t *transaction) decides() bool { return len(t.steps) > len(t.statements) }

// program says what an operation is, and which part of it each arm runs.
type program struct {
	name, mode string
	// How often an operation is tried at most; 0 and 1: once.
	tries        uint64
	names        []string
	kinds        []kind
	transactions []*transaction
	// How often each arm drew each variable. Survives slices and reconnections.
	counters map[string][]atomic.Int64
}

func newProgram(name, mode string, tries uint64) *program {
	return &program{name: name, mode: mode, tries: tries, counters: map[string][]atomic.Int64{}}
}

func (p *program) addVariable(name string, kind kind) *Failure {
	if name == "" || strings.ContainsFunc(name, isSpace) {
		return badMessage("variable name %q: must be one word", name)
	}
	if slices.Contains(p.names, name) {
		return badMessage("variable %q is already declared", name)
	}
	p.names = append(p.names, name)
	p.kinds = append(p.kinds, kind)
	clear(p.counters)
	return nil
}

func (p *program) addTransaction(name string, weight int64) *Failure {
	if weight < 1 {
		return badMessage("weight: must be a positive integer")
	}
	for _, known := range p.transactions {
		if known.name == name {
			return badMessage("transaction %q is already declared", name)
		}
	}
	p.transactions = append(p.transactions, &transaction{name: name, weight: uint64(weight)})
	return nil
}

// addStatement adds a statement; `parameters` are names of variables, separated by spaces.
func (p *program) addStatement(name, arm, sql, parameters string, into *into) *Failure {
	var numbers []int
	eachs := map[int]bool{}
	for _, parameter := range strings.Fields(parameters) {
		number, failure := p.variable("parameters", parameter)
		if failure != nil {
			return failure
		}
		numbers = append(numbers, number)
		if p.kinds[number].name == inTurn {
			eachs[number] = true
		}
	}
	if len(eachs) > 1 {
		return badMessage("parameters: a statement may use at most one variable of kind \"each\"")
	}
	wanted, failure := p.transaction(name)
	if failure != nil {
		return failure
	}
	wanted.steps = append(wanted.steps, of[step]{arm, step{do: "run", statement: len(wanted.statements)}})
	wanted.statements = append(wanted.statements, of[statement]{arm, statement{sql, numbers, into}})
	return nil
}

// addStep adds a step that is no statement.
func (p *program) addStep(name, arm string, added step) *Failure {
	if added.do == "set" && p.kinds[added.variable].name != computed {
		return badMessage("variable: a step sets only one of kind \"computed\"")
	}
	wanted, failure := p.transaction(name)
	if failure == nil {
		wanted.steps = append(wanted.steps, of[step]{arm, added})
	}
	return failure
}

func (p *program) transaction(name string) (*transaction, *Failure) {
	for _, known := range p.transactions {
		if known.name == name {
			return known, nil
		}
	}
	return nil, badMessage("no transaction %q is declared", name)
}

// variable is the number of a declared variable, which `field` of a message names.
func (p *program) variable(field, name string) (int, *Failure) {
	number := slices.Index(p.names, name)
	if number < 0 {
		return 0, badMessage("%s: no variable %q is declared", field, name)
	}
	return number, nil
}

// readStep takes the fields of a `step`, which has its own and no others.
func (p *program) readStep(f *fields) (step, *Failure) {
	read := step{do: f.text("do")}
	var failure *Failure
	switch read.do {
	case "set":
		name := f.text("variable")
		if f.failure == nil {
			read.variable, failure = p.variable("variable", name)
		}
		fallthrough
	case "if", "elif", "sleep":
		words := f.text("expression")
		if f.failure == nil && failure == nil {
			read.expression, failure = readExpression(words, p.names)
		}
	case "else", "endif", "startpipeline", "syncpipeline", "endpipeline":
	default:
		failure = badMessage("do: %q is not known", read.do)
	}
	if f.failure == nil {
		f.failure = failure
	}
	return read, f.end()
}

// script returns what one arm runs: its own statements and those of both arms.
func (p *program) script(arm string) (*script, *Failure) {
	if len(p.transactions) == 0 {
		return nil, noProgram("program %q has no transaction", p.name)
	}
	made := &script{names: slices.Clone(p.names), kinds: slices.Clone(p.kinds), mode: p.mode, tries: p.tries}
	for _, each := range p.transactions {
		if failure := p.add(each, arm, made); failure != nil {
			return nil, failure
		}
	}
	if p.counters[arm] == nil {
		p.counters[arm] = make([]atomic.Int64, len(p.kinds))
	}
	made.counters = p.counters[arm]
	return made, nil
}

// add makes an arm's part of a transaction part of its script.
func (p *program) add(from *transaction, arm string, to *script) *Failure {
	first := len(to.statements)
	numbers := make([]int, len(from.statements))
	for at, each := range from.statements {
		numbers[at] = -1
		if each.isFor(arm) {
			numbers[at] = len(to.statements)
			to.statements = append(to.statements, each.what)
		}
	}
	own := to.statements[first:]
	if len(own) == 0 && !from.decides() {
		return noProgram("transaction %q has no statement for arm %q", from.name, arm)
	}
	var acts []act
	if from.decides() {
		var steps []step
		for _, each := range from.steps {
			if each.isFor(arm) {
				steps = append(steps, each.what)
			}
		}
		var failure *Failure
		if acts, failure = compile(steps, numbers); failure != nil {
			return failure
		}
	}
	used := p.used(own, acts)
	for _, number := range used {
		if len(acts) > 0 && p.kinds[number].name == inTurn {
			return noProgram("a transaction with steps has no variable of kind \"each\"")
		}
	}
	p.addLoops(to, first)
	to.weight += from.weight
	to.transactions = append(to.transactions, drawnTransaction{to.weight, first, len(to.statements), used, acts})
	return nil
}

// used are the variables that statements use, that steps read or set, and that rows may set: no operation begins with a value of the last one.
func (p *program) used(statements []statement, acts []act) []int {
	found := map[int]bool{}
	see := func(number int) { found[number] = true }
	for _, each := range statements {
		for _, number := range each.parameters {
			see(number)
		}
		for at := range p.names {
			if each.into != nil && p.kinds[at].name == computed && strings.HasPrefix(p.names[at], each.into.prefix) {
				see(at)
			}
		}
	}
	for _, each := range acts {
		if each.do == doSet {
			see(each.variable)
		}
		if each.expression != nil {
			each.expression.variables(see)
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// addLoops: consecutive statements of a transaction that use the same variable of kind `each` form a loop.
func (p *program) addLoops(to *script, first int) {
	own := len(to.loops)
	for at := first; at < len(to.statements); at++ {
		parameters := to.statements[at].parameters
		each := slices.IndexFunc(parameters, func(number int) bool { return p.kinds[number].name == inTurn })
		if each < 0 {
			continue
		}
		end := len(to.loops) - 1
		if end >= own && to.loops[end].variable == parameters[each] && to.loops[end].last == at {
			to.loops[end].last = at + 1
		} else {
			to.loops = append(to.loops, loop{parameters[each], at, at + 1})
		}
	}
}

func isSpace(letter rune) bool { return strings.ContainsRune(" \t\n\v\f\r", letter) }
