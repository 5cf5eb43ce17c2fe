package main

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"errors"
	"hash"
	"math"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/crypto/chacha20poly1305"
	"golang.org/x/sys/cpu"
)

const (
	// The largest TLS record.
	recordBytes = 16 * 1024
	mostUnit    = 1 << 20
	mostBytes   = 1 << 32
	// The bytes are divided into this many passes. The fastest counts, because other activity on the machine only adds time.
	passes = 5
)

var (
	ciphers = []string{
		"aes256-gcm", "aes128-gcm", "chacha20", "aes128-cbc", "aes192-cbc", "aes256-cbc", "aes128-ctr", "aes192-ctr", "aes256-ctr",
	}
	macs = map[string]func() hash.Hash{"hmac-sha1": sha1.New, "hmac-sha256": sha256.New, "hmac-sha512": sha512.New}
	// The record's header is associated data.
	recordHeader = []byte{0x17, 3, 3, 0x40, 0x11}
)

// hasAES says whether Go uses the CPU's AES instructions. GODEBUG=cpu.aes=off hides them.
func hasAES() bool { return cpu.X86.HasAES || cpu.ARM64.HasAES || cpu.S390X.HasAES }

// sealer encrypts a unit, and `open` decrypts it. `number` gives its nonce, as in TLS.
type sealer interface {
	seal(to, clear []byte, number uint64) []byte
	open(to, sealed []byte, number uint64) ([]byte, error)
}

// measureFloor measures the cost per byte of a cipher alone, with Go's own library: used as in a TLS record layer, or page by page as at rest.
func measureFloor(f *fields) (any, *Failure) {
	name := f.text("cipher")
	f.need("bytes")
	asked := f.within("bytes", 0, 1, mostBytes)
	mac := f.textOr("mac", "")
	unit := int(f.within("unit", recordBytes, 1, mostUnit))
	if failure := f.end(); failure != nil {
		return nil, failure
	}
	if !slices.Contains(ciphers, name) {
		return nil, badMessage("cipher: %q is not one of %s", name, strings.Join(ciphers, ", "))
	}
	if strings.HasSuffix(name, "cbc") && unit%aes.BlockSize != 0 {
		return nil, badMessage("unit: %s encrypts whole blocks, so it must be a multiple of %d", name, aes.BlockSize)
	}
	if mac != "" && macs[mac] == nil {
		return nil, badMessage("mac: %q is not one of hmac-sha1, hmac-sha256, hmac-sha512", mac)
	}
	if mac != "" && (strings.HasSuffix(name, "gcm") || name == "chacha20") {
		return nil, badMessage("mac: %s authenticates by itself; leave it out", name)
	}
	made, err := newSealer(name, mac)
	if err != nil {
		return nil, internal("the cipher failed: %v", err)
	}
	share := int64(passes * unit)
	units := uint64((asked + share - 1) / share)
	sealNs, openNs, err := fastest(made, unit, units)
	if err != nil {
		return nil, internal("the cipher failed: %v", err)
	}
	each := float64(units) * float64(unit)
	return floorAnswer{"floor", name, passes * units * uint64(unit), float64(sealNs) / each, float64(openNs) / each, library()}, nil
}

func newSealer(name, mac string) (sealer, error) {
	if name == "chacha20" {
		made, err := chacha20poly1305.New(bytes.Repeat([]byte{0x5a}, chacha20poly1305.KeySize))
		return &authenticated{aead: made}, err
	}
	length := map[string]int{"aes128": 16, "aes192": 24, "aes256": 32}[name[:6]]
	block, err := aes.NewCipher(bytes.Repeat([]byte{0x5a}, length))
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(name, "gcm") {
		made, err := cipher.NewGCM(block)
		return &authenticated{aead: made}, err
	}
	made := &bare{block: block, chained: strings.HasSuffix(name, "cbc")}
	if mac != "" {
		made.mac = hmac.New(macs[mac], make([]byte, 32))
	}
	return made, nil
}

// authenticated is a cipher of TLS.
type authenticated struct {
	aead  cipher.AEAD
	nonce [12]byte
}

func (a *authenticated) seal(to, clear []byte, number uint64) []byte {
	binary.BigEndian.PutUint64(a.nonce[4:], number)
	return a.aead.Seal(to[:0], a.nonce[:], clear, recordHeader)
}

func (a *authenticated) open(to, sealed []byte, number uint64) ([]byte, error) {
	binary.BigEndian.PutUint64(a.nonce[4:], number)
	return a.aead.Open(to[:0], a.nonce[:], sealed, recordHeader)
}

// bare is a cipher without authentication, and the MAC that stands for it, if any: over nonce and ciphertext, behind it.
type bare struct {
	block   cipher.Block
	chained bool
	mac     hash.Hash
	nonce   [aes.BlockSize]byte
	tag     []byte
}

func (b *bare) seal(to, clear []byte, number uint64) []byte {
	binary.BigEndian.PutUint64(b.nonce[:], number)
	to = to[:len(clear)]
	if b.chained {
		cipher.NewCBCEncrypter(b.block, b.nonce[:]).CryptBlocks(to, clear)
	} else {
		cipher.NewCTR(b.block, b.nonce[:]).XORKeyStream(to, clear)
	}
	return append(to, b.authenticate(to)...)
}

func (b *bare) authenticate(sealed []byte) []byte {
	if b.mac == nil {
		return nil
	}
	b.mac.Reset()
	b.mac.Write(b.nonce[:])
	b.mac.Write(sealed)
	b.tag = b.mac.Sum(b.tag[:0])
	return b.tag
}

func (b *bare) open(to, sealed []byte, number uint64) ([]byte, error) {
	binary.BigEndian.PutUint64(b.nonce[:], number)
	if b.mac != nil {
		length := len(sealed) - b.mac.Size()
		if !hmac.Equal(b.authenticate(sealed[:length]), sealed[length:]) {
			return nil, errMAC
		}
		sealed = sealed[:length]
	}
	to = to[:len(sealed)]
	if b.chained {
		cipher.NewCBCDecrypter(b.block, b.nonce[:]).CryptBlocks(to, sealed)
	} else {
		cipher.NewCTR(b.block, b.nonce[:]).XORKeyStream(to, sealed)
	}
	return to, nil
}

var errMAC = errors.New("a MAC differs")

// fastest is the time of this thread's CPU for sealing and for opening so many units, each that of its fastest pass.
func fastest(made sealer, unit int, units uint64) (int64, int64, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	clear, sealed := make([]byte, unit), make([]byte, 0, unit+sha512.Size)
	opened := make([]byte, unit)
	sealNs, openNs := int64(math.MaxInt64), int64(math.MaxInt64)
	for range passes {
		begun := threadCPU()
		for number := range units {
			sealed = made.seal(sealed[:cap(sealed)], clear, number)
		}
		middle := threadCPU()
		// All units have the same length, so opening the last one repeatedly costs the same as opening each.
		for range units {
			if _, err := made.open(opened, sealed, units-1); err != nil {
				return 0, 0, err
			}
		}
		sealNs, openNs = min(sealNs, middle-begun), min(openNs, threadCPU()-middle)
	}
	return sealNs, openNs, nil
}
