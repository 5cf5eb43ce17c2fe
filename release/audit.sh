#!/usr/bin/env bash
# Checks what ciphercost is built from: licences, duplicates and sources of the crates (agents/rust/deny.toml), licences of the
# Python packages that it needs (release/licences.py), and known vulnerabilities of all of them.
# Vulnerabilities are in databases on the network. Where one can't be reached the audit prints SKIPPED and goes on.
#   audit.sh [PYTHON]            ADVISORIES=required: fail instead of skipping; before a release
set -eu -o pipefail
python=${1:-python3}
advisories=${ADVISORIES:-}
cd "$(dirname "$0")/.."
deny_version=0.20.2
tools=$PWD/.make/audit
deny=$PWD/.make/cargo-deny-$deny_version
status=0

[ -x "$tools/bin/pip" ] || "$python" -m venv "$tools"
"$tools/bin/pip" install --quiet --require-hashes -r release/locks/audit.txt
"$tools/bin/pip" install --quiet --require-hashes -r release/locks/run.txt
[ -x "$deny/bin/cargo-deny" ] || {
    echo "building cargo-deny $deny_version (takes some minutes, once)"
    cargo install --quiet --locked --root "$deny" "cargo-deny@$deny_version"
}

# skipped WHAT WHY
skipped() {
    if [ "$advisories" = required ]; then
        echo "$1: FAILED: $2; ADVISORIES=required asks for it" >&2
        status=1
    else
        echo "$1: SKIPPED: $2"
    fi
}
# judged WHAT COMMAND...
judged() {
    local what=$1
    shift
    if "$@"; then echo "$what: ok"; else
        echo "$what: FAILED" >&2
        status=1
    fi
}

cargo_deny() { (cd agents/rust && "$deny/bin/cargo-deny" --log-level error --all-features --locked "$@"); }

judged "crates: licences, duplicates, sources" cargo_deny check licenses bans sources
judged "Python packages: licences" env PYTHONPATH=release "$tools/bin/python" release/licences.py
if timeout 60 "$deny/bin/cargo-deny" --log-level off --manifest-path agents/rust/Cargo.toml fetch db 2>/dev/null; then
    judged "crates: known vulnerabilities" cargo_deny check --disable-fetch advisories
else
    skipped "crates: known vulnerabilities" "the RustSec database can't be reached from here"
fi
# dev.txt has the packages of tools.txt, run.txt and release.txt too. tools.txt is short: it shows whether the index answers.
for lock in tools dev fuzz audit; do
    what="Python packages of $lock.txt: known vulnerabilities" code=0
    "$tools/bin/python" release/advisories.py "release/locks/$lock.txt" || code=$?
    case $code in
        0) echo "$what: ok" ;;
        3)
            skipped "Python packages: known vulnerabilities" "the package index that pip-audit asks has no answer from here"
            break
            ;;
        *)
            echo "$what: FAILED" >&2
            status=1
            ;;
    esac
done
exit $status
