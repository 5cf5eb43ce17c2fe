package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// The most that a server may send before the login is complete.
const longestLogin = 1 << 20

var errLongLogin = errors.New("the server sends more than 1 MiB before the login is complete")

// line is a connection below a driver and its TLS. Until the login is complete it counts what the server sends, and watches what an exposed
// login reveals; then it only passes on.
type line struct {
	net.Conn
	loggedIn atomic.Bool
	guard    *guard // nil: nothing to watch
	left     atomic.Int64
}

func (l *line) Read(bytes []byte) (int, error) {
	count, err := l.Conn.Read(bytes)
	if l.loggedIn.Load() {
		return count, err
	}
	if l.left.Add(-int64(count)) < 0 {
		return 0, errLongLogin
	}
	if l.guard != nil && count > 0 {
		if refused := l.guard.heard(bytes[:count]); refused != nil {
			return 0, refused
		}
	}
	return count, err
}

func (l *line) Write(bytes []byte) (int, error) {
	if l.guard == nil || l.loggedIn.Load() {
		return l.Conn.Write(bytes)
	}
	may, refused := l.guard.say(bytes)
	if _, err := l.Conn.Write(may); err != nil {
		return 0, err
	}
	if refused != nil {
		return 0, refused
	}
	return len(bytes), nil
}

// SyscallConn is what drivers look for to see whether an idle connection still lives.
func (l *line) SyscallConn() (syscall.RawConn, error) {
	under, is := l.Conn.(syscall.Conn)
	if !is {
		return nil, errors.ErrUnsupported
	}
	return under.SyscallConn()
}

// carried is what the kernel has counted of its TCP; nothing of a Unix socket.
func (l *line) carried() traffic {
	tcp, is := l.Conn.(*net.TCPConn)
	if !is {
		return traffic{}
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return traffic{}
	}
	var info *unix.TCPInfo
	if raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }) != nil || err != nil {
		return traffic{}
	}
	return traffic{
		bytesSent: info.Bytes_sent - info.Bytes_retrans, bytesReceived: info.Bytes_received,
		segmentsSent: uint64(info.Segs_out), segmentsReceived: uint64(info.Segs_in),
	}
}

// lines makes the connections of one client, and ends the one that there is when it must.
type lines struct {
	server  *server
	context context.Context
	cancel  context.CancelFunc
	mutex   sync.Mutex
	current *line
	ended   bool
}

func newLines(server *server) *lines {
	made := &lines{server: server}
	made.context, made.cancel = context.WithCancel(context.Background())
	return made
}

// dial connects to the server's address, if it has one of its own, whatever the driver asks for.
func (l *lines) dial(network, address string) (net.Conn, error) {
	if network == "tcp" {
		address = l.server.dialed(address)
	}
	var dialer net.Dialer
	connected, err := dialer.DialContext(l.context, network, address)
	if err != nil {
		return nil, err
	}
	made := &line{Conn: connected}
	made.left.Store(longestLogin)
	if l.server.exposed(connected.RemoteAddr()) {
		made.guard = newGuard(l.server)
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.ended {
		_ = connected.Close()
		return nil, net.ErrClosed
	}
	l.current = made
	return made, nil
}

// last is the connection that was made last; nil: none was.
func (l *lines) last() *line {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.current
}

// abort ends the connection, and lets no other begin.
func (l *lines) abort() {
	l.cancel()
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.ended = true
	if l.current != nil {
		_ = l.current.Conn.Close()
	}
}

func (l *lines) aborted() bool { return l.context.Err() != nil }
