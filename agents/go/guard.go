package main

import (
	"bytes"
	"fmt"
	"sync"
)

const (
	// Longer than any message of a login.
	longestMessage = 1 << 17
	// A password this long does not occur in a hash by chance, even if it consists of hexadecimal digits.
	tellingLength = 10
)

// guard passes on the bytes of an unencrypted login to another machine, unless they request or contain a password that the other side could
// recover. Then it passes on nothing more. It stops with the login, or when the driver begins TLS.
type guard struct {
	mutex    sync.Mutex
	protocol guarded
	password []byte
	sent     []byte
	received []byte
	over     bool
	refused  error
}

// guarded is a protocol's part. Each function returns how many leading bytes may be passed on, or have been checked; 0: a message is still
// incomplete. `over`: the login is, and nothing is checked any more.
type guarded interface {
	sending(bytes []byte, reveals func([]byte) bool) (count int, over bool, err error)
	receiving(bytes []byte) (count int, over bool, err error)
}

func newGuard(server *server) *guard {
	made := &guard{password: []byte(server.password), protocol: &postgresGuard{}}
	if server.mysql {
		made.protocol = &mysqlGuard{plugin: nativePlugin}
	}
	return made
}

func refusal(format string, values ...any) error {
	return fmt.Errorf(format+", over an unencrypted connection to another machine, where anybody could pose as the server: refused. "+
		"Use TLS, or an account whose login does not reveal its password", values...)
}

// reveals says whether these bytes are the password, or contain one that is too long to occur by chance.
func (g *guard) reveals(all []byte) bool {
	if len(g.password) == 0 {
		return false
	}
	return bytes.Equal(all, g.password) || bytes.Equal(all, append(bytes.Clone(g.password), 0)) ||
		len(g.password) >= tellingLength && bytes.Contains(all, g.password)
}

// heard checks what the server has sent.
func (g *guard) heard(more []byte) error {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.refused != nil || g.over {
		return g.refused
	}
	g.received = append(g.received, more...)
	for !g.over && len(g.received) > 0 && g.refused == nil {
		var count int
		count, g.over, g.refused = g.protocol.receiving(g.received)
		if count == 0 {
			break
		}
		g.received = g.received[count:]
	}
	if len(g.received) > longestMessage && g.refused == nil {
		g.refused = refusal("the server sends a message that is too long for a login")
	}
	return g.refused
}

// say returns what of the driver's bytes, and of those before, may be passed on now.
func (g *guard) say(more []byte) ([]byte, error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.refused != nil {
		return nil, g.refused
	}
	if len(g.sent) == 0 && len(more) > 2 && more[0] == 0x16 && more[1] == 3 && more[2] <= 3 {
		g.over = true // the driver begins TLS
	}
	g.sent = append(g.sent, more...)
	may := 0
	for !g.over && may < len(g.sent) && g.refused == nil {
		var count int
		count, g.over, g.refused = g.protocol.sending(g.sent[may:], g.reveals)
		if count == 0 {
			break
		}
		may += count
	}
	if g.over && g.refused == nil {
		may = len(g.sent)
	}
	passed := bytes.Clone(g.sent[:may])
	g.sent = g.sent[may:]
	if len(g.sent) > longestMessage && g.refused == nil {
		g.refused = refusal("the driver sends a message that is too long for a login")
	}
	return passed, g.refused
}

// refusalOf is why the login was refused, if it was: drivers hide it behind errors of their own.
func (l *line) refusalOf() error {
	switch {
	case l == nil:
		return nil
	case l.left.Load() < 0:
		return errLongLogin
	case l.guard == nil:
		return nil
	}
	l.guard.mutex.Lock()
	defer l.guard.mutex.Unlock()
	return l.guard.refused
}

// littleEndian is the number in these bytes.
func littleEndian(from []byte) int {
	number := 0
	for at := len(from) - 1; at >= 0; at-- {
		number = number<<8 | int(from[at])
	}
	return number
}
