package main

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

const (
	protocolVersion = 1
	agentName       = "ciphercost-agent-go"
	// Most kinds of errors that are listed; the rest is `other`.
	namedKinds = 16
)

// version is ciphercost's; the build sets it.
var version = "unpackaged"

// The agent's answers, as PROTOCOL.md describes them.

type okAnswer struct {
	Type string `json:"type"`
}

type errorAnswer struct {
	Type string `json:"type"`
	Code string `json:"code"`
	Text string `json:"text"`
}

type helloAnswer struct {
	Type       string `json:"type"`
	Protocol   uint64 `json:"protocol"`
	Agent      string `json:"agent"`
	Version    string `json:"version"`
	Drivers    string `json:"drivers"`
	TLSLibrary string `json:"tls_library"`
	AES        bool   `json:"aes"`
}

type connectedAnswer struct {
	Type          string `json:"type"`
	Arm           string `json:"arm"`
	Connections   int    `json:"connections"`
	Encrypted     bool   `json:"encrypted"`
	Protocol      string `json:"protocol"`
	Cipher        string `json:"cipher"`
	Group         string `json:"group"`
	Resumed       int    `json:"resumed"`
	Verified      bool   `json:"verified"`
	VerifiedBy    string `json:"verified_by"`
	Peer          string `json:"peer"`
	PeerKey       string `json:"peer_key"`
	ServerVersion string `json:"server_version"`
	Auth          string `json:"auth"`
	Library       string `json:"library"`
	Application   string `json:"application"`
	DriverVersion string `json:"driver_version"`
}

type rowsAnswer struct {
	Type    string `json:"type"`
	Rows    uint64 `json:"rows"`
	Columns string `json:"columns"`
	Text    string `json:"text"`
}

type countingAnswer struct {
	Type string `json:"type"`
	Arm  string `json:"arm"`
}

type sliceAnswer struct {
	Type             string  `json:"type"`
	Arm              string  `json:"arm"`
	Seconds          float64 `json:"seconds"`
	Operations       uint64  `json:"operations"`
	Work             float64 `json:"work"`
	Errors           uint64  `json:"errors"`
	ErrorKinds       string  `json:"error_kinds"`
	Rows             uint64  `json:"rows"`
	Sealed           uint64  `json:"sealed"`
	Opened           uint64  `json:"opened"`
	Retries          uint64  `json:"retries"`
	Checksum         string  `json:"checksum"`
	CPUUserNs        int64   `json:"cpu_user_ns"`
	CPUSystemNs      int64   `json:"cpu_system_ns"`
	ProcessCPUNs     int64   `json:"process_cpu_ns"`
	GCMs             int64   `json:"gc_ms"`
	BytesSent        uint64  `json:"bytes_sent"`
	BytesReceived    uint64  `json:"bytes_received"`
	SegmentsSent     uint64  `json:"segments_sent"`
	SegmentsReceived uint64  `json:"segments_received"`
	Connects         uint64  `json:"connects"`
	Resumed          uint64  `json:"resumed"`
	Early            uint64  `json:"early"`
	Late             uint64  `json:"late"`
	Threads          int     `json:"threads"`
	Histogram        string  `json:"histogram"`
	FirstError       string  `json:"first_error"`
	DriverVersion    string  `json:"driver_version"`
	Encrypted        bool    `json:"encrypted"`
	Protocol         string  `json:"protocol"`
	Cipher           string  `json:"cipher"`
}

type floorAnswer struct {
	Type          string  `json:"type"`
	Cipher        string  `json:"cipher"`
	Bytes         uint64  `json:"bytes"`
	NsPerByteSeal float64 `json:"ns_per_byte_seal"`
	NsPerByteOpen float64 `json:"ns_per_byte_open"`
	Library       string  `json:"library"`
}

// listed are kinds of errors: the most frequent first; equal counts in order of their names.
func listed(counts map[string]uint64) string {
	names := slices.SortedFunc(maps.Keys(counts), func(one, other string) int {
		return cmp.Or(cmp.Compare(counts[other], counts[one]), strings.Compare(one, other))
	})
	var words []string
	rest := uint64(0)
	for at, name := range names {
		if at < namedKinds {
			words = append(words, name+"="+strconv.FormatUint(counts[name], 10))
		} else {
			rest += counts[name]
		}
	}
	if rest > 0 {
		words = append(words, "other="+strconv.FormatUint(rest, 10))
	}
	return strings.Join(words, " ")
}
