#!/usr/bin/env bash
# Checks the workflow files with actionlint, which it builds once, from modules whose hashes are in go.sum. Where that can't be done
# it prints SKIPPED and succeeds; with ACTIONLINT=required (the workflow that checks) it fails.
#   run.sh [FILE]…               Without files: .github/workflows, and the workflow in docs/ that users copy
set -eu -o pipefail
cd "$(dirname "$0")/../.."
program=$PWD/.make/actionlint-$(sha256sum tools/actionlint/go.sum | cut -c 1-12)

# skipped WHY
skipped() {
    [ "${ACTIONLINT:-}" = required ] && { echo "actionlint: FAILED: $1; ACTIONLINT=required asks for it" >&2; exit 1; }
    echo "actionlint: SKIPPED: $1"
    exit 0
}

if [ ! -x "$program" ]; then
    version=$(go env GOVERSION 2>/dev/null) || skipped "go was not found (on Debian: apt-get install golang-go)"
    # Since then it fetches the version that go.mod asks for.
    [ "$(printf '%s\n' "${version#go}" 1.21 | sort -V | head -n 1)" = 1.21 ] || skipped "$version is too old; Go 1.21 or newer builds it"
    echo "building actionlint (takes a minute, once)"
    mkdir -p .make
    said=$(GOFLAGS=-mod=readonly go build -C tools/actionlint -o "$program" github.com/rhysd/actionlint/cmd/actionlint 2>&1) ||
        skipped "go could not build it: $(tail -n 1 <<<"$said")"
fi
[ $# -gt 0 ] || set -- .github/workflows/*.yml docs/github-actions.yml
# Without shellcheck and pyflakes, if they happen to be installed: everybody gets the same answer.
exec "$program" -shellcheck= -pyflakes= "$@"
