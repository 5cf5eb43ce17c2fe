package main

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// keywords are the settings of a connection string that both drivers for PostgreSQL have; without the password.
func (s *server) keywords() [][2]string {
	mode := s.tls
	if mode == "off" {
		mode = "disable"
	}
	found := [][2]string{{"sslmode", mode}}
	if s.searchPath != "" {
		found = append(found, [2]string{"search_path", s.searchPath})
	}
	return found
}

// amended is a connection string of pgx with the fields that stand beside it: the last word of a setting counts, also in a URL.
func (s *server) amended(text string) string {
	var settings [][2]string
	add := func(name, value string, given bool) {
		if given {
			settings = append(settings, [2]string{name, value})
		}
	}
	add("host", s.host, s.host != "")
	add("port", strconv.Itoa(int(s.port)), s.port != 0)
	add("user", s.user, s.hasUser)
	add("dbname", s.database, s.hasDatabase)
	if !strings.HasPrefix(text, "postgres://") && !strings.HasPrefix(text, "postgresql://") {
		return strings.TrimSpace(text) + " " + keywordString(settings)
	}
	joint := "?"
	if strings.Contains(text, "?") {
		joint = "&"
	}
	for _, each := range settings {
		text += joint + each[0] + "=" + url.QueryEscape(each[1])
		joint = "&"
	}
	return text
}

func keywordString(settings [][2]string) string {
	escaped := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
	var out strings.Builder
	for _, each := range settings {
		fmt.Fprintf(&out, "%s='%s' ", each[0], escaped.Replace(each[1]))
	}
	return strings.TrimSpace(out.String())
}
