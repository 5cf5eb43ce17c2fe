package main

import (
	"encoding/binary"
	"regexp"
)

const (
	postgresCancel = 80877102
	postgresTLS    = 80877103
	postgresGSS    = 80877104
)

var (
	md5Hash    = regexp.MustCompile(`^md5[0-9a-f]{32}\x00$`)
	scramFirst = regexp.MustCompile(`(?s)^SCRAM-SHA-256(-PLUS)?\x00.{4}[nyp](=[a-z-]+)?,,n=[^,]*,r=[ -~]+$`)
	scramLast  = regexp.MustCompile(`^c=[A-Za-z0-9+/=]+,r=[ -~]+,p=[A-Za-z0-9+/]{43}=$`)
)

// postgresGuard allows only salted hashes and SCRAM in what a client sends to PostgreSQL before its first statement.
//
// It checks the answers, not the requests, so it does not matter how a server makes a driver send a password.
type postgresGuard struct{ started bool }

func (p *postgresGuard) sending(bytes []byte, reveals func([]byte) bool) (int, bool, error) {
	head := 0
	if p.started {
		head = 1
	}
	if len(bytes) < head+4 {
		return 0, false, nil
	}
	if p.started && bytes[0] != 'p' {
		return len(bytes), true, nil // servers request passwords only before the first statement
	}
	length := int(binary.BigEndian.Uint32(bytes[head:]))
	if length < 4 || length > longestMessage {
		return 0, false, refusal("the driver's message is not a PostgreSQL login")
	}
	if len(bytes) < head+length {
		return 0, false, nil
	}
	if p.started {
		body := bytes[5 : head+length]
		hashed := md5Hash.Match(body) && !reveals(body)
		if !hashed && !scramFirst.Match(latin1(body)) && !scramLast.Match(body) {
			return 0, false, refusal("the server requests the password unencrypted, or another login than md5 or scram-sha-256")
		}
		return head + length, false, nil
	}
	code := 0
	if length >= 8 {
		code = int(binary.BigEndian.Uint32(bytes[4:]))
	}
	p.started = code>>16 == 3
	if !p.started && code != postgresTLS && code != postgresGSS && code != postgresCancel {
		return 0, false, refusal("the driver's first message is not a PostgreSQL login")
	}
	return head + length, false, nil
}

func (p *postgresGuard) receiving(bytes []byte) (int, bool, error) { return len(bytes), false, nil }

// latin1 makes each byte a letter, so that a pattern counts bytes.
func latin1(bytes []byte) []byte {
	letters := make([]rune, len(bytes))
	for at, each := range bytes {
		letters[at] = rune(each)
	}
	return []byte(string(letters))
}
