#!/usr/bin/env bash
# Writes release/locks/*.txt: the exact version of every Python package that `make` installs, with the hashes of its files.
#   dev.txt      everything for development and tests     run.txt      what `ciphercost` itself needs
#   tools.txt    what builds the agent                    release.txt  what builds the wheels
#   fuzz.txt     what `make fuzz` needs besides              audit.txt    what `make audit` needs
# One resolution for all of them, for every Python from 3.11 on, on any machine. pip refuses a file with another hash.
#   lock.sh [PYTHON]
set -eu -o pipefail
python=${1:-python3}
cd "$(dirname "$0")/.."
tools=.make/lock
[ -x $tools/bin/uv ] || { "$python" -m venv $tools && $tools/bin/pip install --quiet uv; }

# compile NAME SOURCE...
compile() {
    local name=$1
    shift
    $tools/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --upgrade \
        "$@" --output-file "release/locks/$name.txt"
}
compile dev pyproject.toml --extra dev release/locks/release.in
for name in tools release audit; do compile $name release/locks/$name.in --constraint release/locks/dev.txt; done
compile run pyproject.toml --constraint release/locks/dev.txt
compile fuzz pyproject.toml --extra fuzz --constraint release/locks/dev.txt
wc -l release/locks/*.txt
