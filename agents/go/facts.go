package main

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"regexp"
	"strings"
)

// facts are what was negotiated on one connection.
type facts struct {
	encrypted                                           bool
	protocol, cipher, group, peer, peerKey, application string
}

// ofTLS are the facts of a session of Go's TLS.
func ofTLS(state tls.ConnectionState) facts {
	found := facts{
		encrypted: true, protocol: strings.Replace(tls.VersionName(state.Version), "TLS ", "TLSv", 1),
		cipher: opensslName(tls.CipherSuiteName(state.CipherSuite)), application: oneLine(state.NegotiatedProtocol, longestName),
	}
	if state.CurveID != 0 {
		found.group = strings.Replace(state.CurveID.String(), "CurveP", "P-", 1)
	}
	if len(state.PeerCertificates) > 0 {
		found.peer = oneLine(state.PeerCertificates[0].Subject.String(), longestName)
		found.peerKey = keyName(state.PeerCertificates[0])
	}
	return found
}

func keyName(certificate *x509.Certificate) string {
	switch key := certificate.PublicKey.(type) {
	case *rsa.PublicKey:
		return fmt.Sprintf("RSA %d", key.N.BitLen())
	case *ecdsa.PublicKey:
		return "EC " + key.Curve.Params().Name
	case ed25519.PublicKey:
		return "Ed25519"
	}
	return certificate.PublicKeyAlgorithm.String()
}

var (
	versions = map[string]uint16{"1.0": tls.VersionTLS10, "1.1": tls.VersionTLS11, "1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}
	suite    = regexp.MustCompile(`^TLS_((?:EC)?DHE_[A-Z]+)_WITH_(AES_(?:128|256)_(?:GCM|CBC)_SHA\d*|CHACHA20_POLY1305)(?:_SHA256)?$`)
)

// opensslName is `ECDHE-RSA-AES256-GCM-SHA384` for `TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384`. Other names stay.
func opensslName(name string) string {
	parts := suite.FindStringSubmatch(name)
	if parts == nil {
		return name
	}
	cipher := strings.NewReplacer("AES_128", "AES128", "AES_256", "AES256", "_CBC", "").Replace(parts[2])
	return strings.ReplaceAll(parts[1]+"_"+cipher, "_", "-")
}

// adjust sets in a driver's TLS configuration what its own settings have no words for: versions and ciphers.
func (s *server) adjust(config *tls.Config) *Failure {
	config.MinVersion, config.MaxVersion = versions[s.min], versions[s.max]
	if s.min == "" && s.max != "" {
		config.MinVersion = min(config.MaxVersion, tls.VersionTLS12)
	}
	for _, name := range s.ciphers {
		id, failure := suiteOf(name)
		if failure != nil {
			return failure
		}
		config.CipherSuites = append(config.CipherSuites, id)
	}
	return nil
}

func suiteOf(name string) (uint16, *Failure) {
	for _, known := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		if known.Name != name && opensslName(known.Name) != name {
			continue
		}
		if known.SupportedVersions[0] == tls.VersionTLS13 {
			return 0, lacks("tls_ciphers", "Go chooses the cipher of TLS 1.3 itself")
		}
		return known.ID, nil
	}
	return 0, fail("tls", "tls_ciphers: Go's TLS has no %s", name)
}

// keyPair is the client's certificate and key; none: it has none.
func (s *server) keyPair() ([]tls.Certificate, *Failure) {
	if s.identity == "" {
		return nil, nil
	}
	pair, err := tls.X509KeyPair([]byte(s.identity), []byte(s.identity))
	if err != nil {
		return nil, fail("tls", "tls_identity: holds no certificate with its key")
	}
	return []tls.Certificate{pair}, nil
}
