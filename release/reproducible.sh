#!/usr/bin/env bash
# Builds the wheels of the last commit twice, in two clones, and compares them: another directory, another length of its name,
# another time, another umask, another locale and time zone. Prints the SHA-256 of each file of dist/ and, where two differ, which
# member of the wheel does.
#   reproducible.sh [PYTHON]     RELEASE_TARGETS: fewer targets, as for wheels.sh. KEEP=DIRECTORY: clone there and keep the clones
set -eu -o pipefail
python=${1:-python3}
cd "$(dirname "$0")/.."
here=$PWD
if [ -n "${KEEP:-}" ]; then
    place=$(mkdir -p "$KEEP" && cd "$KEEP" && pwd)
else
    place=$(mktemp -d)
    trap 'rm -rf "$place"' EXIT
fi
[ -z "$(git status --porcelain)" ] || echo "make reproducible builds the last commit, without your uncommitted changes" >&2
commit=$(git rev-parse HEAD)
unset SOURCE_DATE_EPOCH

# build CLONE COMMAND...
build() {
    local clone=$1
    shift
    rm -rf "$clone"
    git clone --quiet "$here" "$clone"
    git -C "$clone" checkout --quiet --detach "$commit"
    echo "── $clone, $(date -u +%H:%M:%S)"
    (cd "$clone" && "$@" bash release/wheels.sh "$python")
}
(umask 022 && build "$place/first" env LC_ALL=C.UTF-8 TZ=UTC)
(umask 077 && build "$place/second-with-a-longer-name" env LC_ALL=C TZ=Pacific/Auckland)
echo "── compared, $(date -u +%H:%M:%S)"
"$python" release/compare.py "$place/first/dist" "$place/second-with-a-longer-name/dist"
