package main

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

type valueType uint8

const (
	// A computed variable that has no value yet.
	unset valueType = iota
	null
	boolean
	integer
	real
	text
)

// value is what a variable holds, and what an expression yields: the latter is never `unset` nor a `text`.
type value struct {
	kind  valueType
	whole int64 // of an integer; 1 or 0 of a boolean
	real  float64
	text  string
}

func ofInteger(whole int64) value { return value{kind: integer, whole: whole} }
func ofReal(number float64) value { return value{kind: real, real: number} }
func ofText(words string) value   { return value{kind: text, text: words} }
func ofNull() value               { return value{kind: null} }
func ofBool(holds bool) value {
	if holds {
		return value{kind: boolean, whole: 1}
	}
	return value{kind: boolean}
}

const (
	// Digits of a number with a fraction in text, as in C's `%.15g`.
	precision   = 15
	aboveInt64s = 1 << 63
)

var (
	wholeNumber = regexp.MustCompile(`^[+-]?[0-9]+$`)
	realNumber  = regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)
	boolWords   = map[string]bool{
		"true": true, "t": true, "yes": true, "y": true, "on": true,
		"false": false, "f": false, "no": false, "n": false, "off": false,
	}
	typeNames = map[valueType]string{null: "null", boolean: "boolean", integer: "int", real: "double"}
)

// isTrue says whether a condition holds: numbers other than zero do, NULL doesn't.
func (v value) isTrue() bool {
	return (v.kind == boolean || v.kind == integer) && v.whole != 0 || v.kind == real && v.real != 0
}

func (v value) bool() (bool, *Failure) {
	if v.kind != boolean {
		return false, badStatement("cannot coerce %s to boolean", typeNames[v.kind])
	}
	return v.whole != 0, nil
}

// integer is a number as an integer. One with a fraction is rounded to the nearest, halves to even.
func (v value) integer() (int64, *Failure) {
	switch v.kind {
	case integer:
		return v.whole, nil
	case real:
		rounded := math.RoundToEven(v.real)
		if !(rounded >= -aboveInt64s && rounded < aboveInt64s) {
			return 0, badStatement("double to int overflow for %s", shown(v.real))
		}
		return int64(rounded), nil
	}
	return 0, badStatement("cannot coerce %s to int", typeNames[v.kind])
}

func (v value) double() (float64, *Failure) {
	switch v.kind {
	case integer:
		return float64(v.whole), nil
	case real:
		return v.real, nil
	}
	return 0, badStatement("cannot coerce %s to double", typeNames[v.kind])
}

// same says whether both have the same type and value; NaN is no value's equal.
func (v value) same(other value) bool {
	return v.kind == other.kind && v.whole == other.whole && v.real == other.real
}

// scalar is the value of a text from a row: NULL, a boolean, an integer or a number. A Failure if it is none of these; `name`: the variable's.
func scalar(words string, name string) (value, *Failure) {
	word := strings.ToLower(strings.TrimSpace(words))
	if word == "null" {
		return ofNull(), nil
	}
	if holds, known := boolWords[word]; known {
		return ofBool(holds), nil
	}
	if found, is := integerOf(word); is {
		return found, nil
	}
	if found, is := realOf(word); is {
		return found, nil
	}
	return value{}, badStatement("variable %s is no number, boolean or NULL", name)
}

// integerOf is an integer of 64 bits, if the text is one.
func integerOf(words string) (value, bool) {
	if !wholeNumber.MatchString(words) {
		return value{}, false
	}
	whole, err := strconv.ParseInt(words, 10, 64)
	return ofInteger(whole), err == nil
}

// realOf is a number, if the lower-case text is one.
func realOf(words string) (value, bool) {
	if realNumber.MatchString(words) {
		number, _ := strconv.ParseFloat(words, 64) // too large: infinity
		return ofReal(number), true
	}
	sign := 1
	bare := words
	if strings.HasPrefix(words, "-") || strings.HasPrefix(words, "+") {
		bare = words[1:]
		if words[0] == '-' {
			sign = -1
		}
	}
	switch bare {
	case "inf", "infinity":
		return ofReal(math.Inf(sign)), true
	case "nan":
		return ofReal(math.NaN()), true
	}
	return value{}, false
}

// decimal is a number as C's `%.15g` writes it.
func decimal(number float64) string {
	if math.IsInf(number, 0) || math.IsNaN(number) {
		return unusual(number, "Infinity")
	}
	return strconv.FormatFloat(number, 'g', precision, 64)
}

// shown is a number in the text of an error: the fewest digits that tell it from all others, without an exponent.
func shown(number float64) string {
	if math.IsInf(number, 0) || math.IsNaN(number) {
		return unusual(number, "inf")
	}
	return strconv.FormatFloat(number, 'f', -1, 64)
}

func unusual(number float64, infinity string) string {
	switch {
	case math.IsNaN(number):
		return "NaN"
	case number < 0:
		return "-" + infinity
	}
	return infinity
}

// spelled is a value as text; NULL is empty.
func (v value) spelled() string {
	switch v.kind {
	case boolean:
		return strconv.FormatBool(v.whole != 0)
	case integer:
		return strconv.FormatInt(v.whole, 10)
	case real:
		return decimal(v.real)
	}
	return v.text
}
