package main

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// Most characters of an error's text and of its code, which may come from a server.
	longestText = 2000
	longestCode = 60
	// Most characters of a name from a server.
	longestName = 300
)

// Failure is what went wrong: the code and the one-line text of an `error` answer. Functions return nil if nothing did.
type Failure struct {
	code string
	text string
	// The connection is lost and can't be used any more.
	lost bool
}

func fail(code, format string, values ...any) *Failure {
	return &Failure{code: oneLine(code, longestCode), text: oneLine(fmt.Sprintf(format, values...), longestText)}
}

func badMessage(format string, values ...any) *Failure { return fail("bad-message", format, values...) }
func noProgram(format string, values ...any) *Failure  { return fail("no-program", format, values...) }
func badStatement(format string, values ...any) *Failure {
	return fail("statement", format, values...)
}
func internal(format string, values ...any) *Failure { return fail("internal", format, values...) }

func (failure *Failure) isLost() *Failure {
	failure.lost = true
	return failure
}

// Error makes it an error among those of a driver. Only code that runs statements uses it so.
func (failure *Failure) Error() string { return failure.spell() }

func (failure *Failure) spell() string { return failure.code + ": " + failure.text }

// kind is the code as one word, for a list of `CODE=COUNT`.
func (failure *Failure) kind() string {
	word := strings.Map(func(letter rune) rune {
		if unicode.IsLetter(letter) || unicode.IsNumber(letter) || strings.ContainsRune("_.-", letter) {
			return letter
		}
		return '-'
	}, failure.code)
	if word == "" {
		return "unknown"
	}
	return word
}

// oneLine reduces a server's text to one line of at most this many characters, without control characters, for display on terminals.
func oneLine(text string, most int) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	if utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:most]) + "…"
	}
	return strings.Map(func(letter rune) rune {
		if unicode.IsControl(letter) {
			return ' '
		}
		return letter
	}, text)
}
