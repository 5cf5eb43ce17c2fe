package main

import (
	"bytes"
	"slices"
)

const (
	nativePlugin = "mysql_native_password"
	sha2Plugin   = "caching_sha2_password"
	parsecPlugin = "parsec"

	withDatabase     = 1 << 3
	protocol41       = 1 << 9
	tlsCapability    = 1 << 11
	secureConnection = 1 << 15
	pluginAuth       = 1 << 19
	longAnswer       = 1 << 21

	// The nonce's parts: 8 bytes, then 12 and a zero.
	nonceLength = 21
	secondPart  = 13
	// Of a packet.
	headerLength = 4
	// Start of a client's first packet: capabilities, longest packet, character set, filler. A TLS request has nothing else.
	fixedLength   = 32
	longestPacket = 1 << 16
)

// harmless are plugins, and the lengths of their answers. An account without a password has an empty answer, or a single zero.
var harmless = map[string][]int{nativePlugin: {0, 20}, sha2Plugin: {0, 1, 32}, "client_ed25519": {0, 64}, parsecPlugin: {0, 96}}

// mysqlGuard allows only logins to MySQL and MariaDB whose answers do not reveal the password.
//
// It checks both directions. A driver may read an odd greeting differently from this guard, so only greetings of the form that real servers
// send are passed on. What the driver sends is checked on its own: its plugin, and the length of the plugin's answer.
type mysqlGuard struct {
	greeted, answered bool
	plugin            string
}

// ── what the driver sends ────────────────────────────────────────────────────────────────────────────────────────────

func (m *mysqlGuard) sending(all []byte, reveals func([]byte) bool) (int, bool, error) {
	if len(all) < headerLength {
		return 0, false, nil
	}
	end := headerLength + littleEndian(all[:3])
	if !m.greeted || end > headerLength+longestPacket {
		return 0, false, unknownAnswer()
	}
	if len(all) < end {
		return 0, false, nil
	}
	packet := all[headerLength:end]
	quits := len(packet) == 1 && packet[0] == 1
	var err error
	switch {
	case quits:
	case m.answered:
		err = m.allow(packet, reveals)
	default:
		err = m.respond(packet, reveals)
	}
	if err != nil {
		return 0, false, err
	}
	return end, false, nil
}

// respond checks the first packet: a request for TLS, or the handshake response.
func (m *mysqlGuard) respond(packet []byte, reveals func([]byte) bool) error {
	if len(packet) < fixedLength {
		return unknownAnswer()
	}
	capabilities := littleEndian(packet[:4])
	if capabilities&protocol41 == 0 || capabilities&secureConnection == 0 {
		return refusal("the driver answers with the login method from before MySQL 4.1")
	}
	if len(packet) == fixedLength && capabilities&tlsCapability != 0 {
		return nil
	}
	_, rest, named := bytes.Cut(packet[fixedLength:], []byte{0}) // the user
	if !named || len(rest) == 0 || capabilities&longAnswer != 0 && rest[0] > 250 {
		return unknownAnswer() // a length of more than one byte: no harmless answer is that long
	}
	length := int(rest[0])
	if len(rest) < 1+length {
		return unknownAnswer()
	}
	answer, rest := rest[1:1+length], rest[1+length:]
	m.plugin = nativePlugin
	if capabilities&pluginAuth != 0 {
		if capabilities&withDatabase != 0 {
			if _, rest, named = bytes.Cut(rest, []byte{0}); !named {
				return unknownAnswer()
			}
		}
		plugin, _, ended := bytes.Cut(rest, []byte{0})
		if !ended {
			return unknownAnswer()
		}
		m.plugin = string(plugin)
	}
	m.answered = true
	return m.allow(answer, reveals)
}

// allow checks the plugin's answer.
func (m *mysqlGuard) allow(answer []byte, reveals func([]byte) bool) error {
	lengths, known := harmless[m.plugin]
	if !known {
		return refusal("the driver answers with %q", m.plugin)
	}
	letter := len(answer) == 1 && answer[0] != 0
	if !slices.Contains(lengths, len(answer)) || letter || reveals(answer) {
		return refusal("the driver's message is not an answer of %s", m.plugin)
	}
	return nil
}

func unknownAnswer() error { return refusal("the driver's message is not a MySQL login") }

// ── what the server requests ─────────────────────────────────────────────────────────────────────────────────────────

func (m *mysqlGuard) receiving(all []byte) (int, bool, error) {
	if len(all) < headerLength {
		return 0, false, nil
	}
	length := littleEndian(all[:3])
	if length == 0 || length > longestPacket {
		return 0, false, refusal("the server's message is not a MySQL login")
	}
	end := headerLength + length
	if len(all) < end {
		return 0, false, nil
	}
	packet := all[headerLength:end]
	var err error
	switch {
	case packet[0] == 0xff: // an error: the driver gives up or sends nothing new
	case !m.greeted:
		err = m.greet(packet)
	case !m.answered:
		err = refusal("the server continues before the driver has answered its greeting")
	case packet[0] == 0:
		return end, true, nil
	case packet[0] == 0xfe:
		plugin := "mysql_old_password"
		if len(packet) > 1 {
			plugin = zeroEnded(packet[1:])
		}
		err = m.use(plugin)
	case m.plugin == sha2Plugin && len(packet) == 2 && packet[0] == 1 && packet[1] == 3: // the server remembers the account
	case m.plugin == parsecPlugin && packet[0] == 'P':
	default:
		// Full authentication, or a public key, which could be anybody's.
		err = refusal("the server requests the whole password (%s). With caching_sha2_password, log in once over TLS first, so that the "+
			"server remembers the account", m.plugin)
	}
	if err != nil {
		return 0, false, err
	}
	return end, false, nil
}

func (m *mysqlGuard) greet(packet []byte) error {
	m.greeted = true
	version := bytes.IndexByte(packet[1:], 0)
	// After the version: connection, first part of the nonce, filler, capabilities, character set, status, capabilities.
	flags := 1 + version + 1 + 4 + 8 + 1
	if version < 0 || packet[0] != 10 || flags+7 > len(packet) {
		return refusal("the server requests the login method from before MySQL 4.1")
	}
	capabilities := littleEndian(packet[flags:flags+2]) | littleEndian(packet[flags+5:flags+7])<<16
	if capabilities&protocol41 == 0 || capabilities&secureConnection == 0 {
		return refusal("the server requests the login method from before MySQL 4.1")
	}
	// After those: the nonce's length, a filler of ten, the nonce's second part; then, with pluginAuth, the plugin's name.
	named := capabilities&pluginAuth != 0
	length := flags + 7
	name := length + 1 + 10 + secondPart
	usual := name <= len(packet) && packet[name-1] == 0
	if usual && named {
		usual = packet[length] == nonceLength && name+1 < len(packet) && len(zeroEnded(packet[name:])) == len(packet)-name-1
	} else if usual {
		usual = (packet[length] == nonceLength || packet[length] == 0) && name == len(packet)
	}
	if !usual {
		return refusal("the server's greeting has a form that no MySQL or MariaDB server sends")
	}
	if named {
		return m.use(zeroEnded(packet[name:]))
	}
	return nil
}

func (m *mysqlGuard) use(plugin string) error {
	m.plugin = plugin
	if _, known := harmless[plugin]; !known {
		return refusal("the server requests the password with %q", plugin)
	}
	return nil
}

func zeroEnded(from []byte) string {
	before, _, _ := bytes.Cut(from, []byte{0})
	return string(before)
}
