package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// fields are a message's fields: strings, booleans and numbers. Each is taken once, by name and type; `end` refuses those that remain.
//
// The first failure stays, so that a request takes all its fields and asks once, by `end`, whether they were right.
type fields struct {
	left    map[string]any
	failure *Failure
}

// readFields reads a line as one flat object.
func readFields(line []byte) (*fields, *Failure) {
	if !utf8.Valid(line) {
		return nil, badMessage("not a flat JSON object: not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	if first, err := decoder.Token(); err != nil || first != json.Delim('{') {
		return nil, badMessage("not a flat JSON object: it begins otherwise")
	}
	left := map[string]any{}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, badMessage("not a flat JSON object: %v", err)
		}
		value, err := decoder.Token()
		if err != nil {
			return nil, badMessage("not a flat JSON object: %v", err)
		}
		switch value.(type) {
		case string, bool, json.Number:
		default:
			return nil, badMessage("%v: must be a string, a number or a boolean", name)
		}
		if _, twice := left[name.(string)]; twice {
			return nil, badMessage("%v: given twice", name)
		}
		left[name.(string)] = value
	}
	if _, err := decoder.Token(); err != nil {
		return nil, badMessage("not a flat JSON object: %v", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, badMessage("not a flat JSON object: unexpected text after the object")
	}
	return &fields{left: left}, nil
}

func (f *fields) fail(format string, values ...any) {
	if f.failure == nil {
		f.failure = badMessage(format, values...)
	}
}

func (f *fields) has(name string) bool {
	_, found := f.left[name]
	return found
}

func take[T any](f *fields, name, what string, otherwise T) T {
	value, found := f.left[name]
	if !found {
		return otherwise
	}
	delete(f.left, name)
	typed, fits := value.(T)
	if !fits {
		f.fail("%s: must be %s", name, what)
		return otherwise
	}
	return typed
}

func (f *fields) need(name string) {
	if !f.has(name) {
		f.fail("missing field `%s`", name)
	}
}

func (f *fields) text(name string) string {
	f.need(name)
	return f.textOr(name, "")
}

func (f *fields) textOr(name, otherwise string) string {
	return take(f, name, "a string", otherwise)
}

// word is one of these words; the first if it is absent.
func (f *fields) word(name string, words ...string) string {
	word := f.textOr(name, words[0])
	if slices.Contains(words, word) {
		return word
	}
	f.fail("%s: %q is not one of %s", name, word, strings.Join(words, ", "))
	return words[0]
}

func (f *fields) flag(name string) bool { return take(f, name, "a boolean", false) }

func (f *fields) whole(name string) int64 {
	f.need(name)
	return f.wholeOr(name, 0)
}

func (f *fields) wholeOr(name string, otherwise int64) int64 {
	return parsed(f, name, "an integer", otherwise, func(digits string) (int64, error) { return strconv.ParseInt(digits, 10, 64) })
}

// parsed is a number as `parse` reads it. `what`: what it must be, for the Failure.
func parsed[T any](f *fields, name, what string, otherwise T, parse func(digits string) (T, error)) T {
	number := take(f, name, what, json.Number(""))
	if number == "" {
		return otherwise
	}
	value, err := parse(string(number))
	if err != nil {
		f.fail("%s: must be %s", name, what)
	}
	return value
}

// within is an integer from `least` to `most`.
func (f *fields) within(name string, otherwise, least, most int64) int64 {
	value := f.wholeOr(name, otherwise)
	if f.failure == nil && (value < least || value > most) {
		f.fail("%s: must lie between %d and %d", name, least, most)
	}
	return value
}

// unsigned is an integer from 0 below 2⁶⁴.
func (f *fields) unsigned(name string, otherwise uint64) uint64 {
	return parsed(f, name, "an integer, 0 or above", otherwise, func(digits string) (uint64, error) { return strconv.ParseUint(digits, 10, 64) })
}

func (f *fields) number(name string) float64 {
	f.need(name)
	return f.numberOr(name, 0)
}

func (f *fields) numberOr(name string, otherwise float64) float64 {
	return parsed(f, name, "a number", otherwise, func(digits string) (float64, error) { return strconv.ParseFloat(digits, 64) })
}

// seconds is a request's `timeout`, or the default.
func (f *fields) seconds(otherwise float64) float64 {
	value := f.numberOr("timeout", otherwise)
	if f.failure == nil && !(value > 0 && value <= longestSeconds) {
		f.fail("timeout: must be above 0 and at most 86400")
	}
	return value
}

// end returns what was wrong with the fields; fields that were not taken are.
func (f *fields) end() *Failure {
	if f.failure == nil && len(f.left) > 0 {
		f.fail("unknown field `%s`", slices.Sorted(maps.Keys(f.left))[0])
	}
	return f.failure
}
