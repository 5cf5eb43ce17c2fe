#!/usr/bin/env bash
# Checks the Go agent with gofmt and go vet. Where there is no Go that can build it, prints SKIPPED and succeeds.
set -eu -o pipefail
cd "$(dirname "$0")/../../agents/go"

skipped() {
    echo "go vet: SKIPPED: $1"
    exit 0
}

version=$(go env GOVERSION 2>/dev/null) || skipped "go was not found (on Debian: apt-get install golang-go)"
# Since then it fetches the version that go.mod asks for.
[ "$(printf '%s\n' "${version#go}" 1.21 | sort -V | head -n 1)" = 1.21 ] || skipped "$version is too old; Go 1.21 or newer builds it"
unformatted=$(gofmt -l .)
[ -z "$unformatted" ] || { echo "gofmt -w agents/go would change: $unformatted" >&2; exit 1; }
exec go vet -mod=readonly ./...
