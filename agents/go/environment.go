package main

import (
	"os"
	"strings"
)

// home is the user's. Both drivers for PostgreSQL look for certificates there.
var home = os.Getenv("HOME")

// isolate makes the drivers take no settings but those of `connect`: some read the environment, and files in the user's home.
func isolate() {
	for _, each := range os.Environ() {
		if name, _, _ := strings.Cut(each, "="); strings.HasPrefix(name, "PG") || strings.HasPrefix(name, "SSLPG") {
			_ = os.Unsetenv(name)
		}
	}
	setHome(false)
}

// setHome lets the drivers find the user's home, as an application does, or none.
func setHome(known bool) {
	place := "/nonexistent"
	if known {
		place = home
	}
	_ = os.Setenv("HOME", place)
}
