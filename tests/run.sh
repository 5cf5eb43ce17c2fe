#!/usr/bin/env bash
# Runs the tests that these marks select: first many at once, twice as many as cores because many wait, in the order of
# tests/helpers/turns.py; then, one after the other, those marked `alone`: whole runs on several nodes, which get no figures while
# other tests take the cores.
#   tests/run.sh 'not exhaustive' [TEST]…
set -u
marks=$1
shift
files=("$@")
# Compiled files are kept (an empty value switches the variable off): the tests start the command hundreds of times.
export PYTHONDONTWRITEBYTECODE=
# As the command sets it for itself: a second thread of numpy's only spins, in every process that imports it.
export OPENBLAS_NUM_THREADS=1
none=5 # pytest's status if nothing was selected
run() { .venv/bin/python -m pytest --dist loadfile --durations 20 "$@"; }
run -n $((2 * $(nproc))) -m "$marks${marks:+ and }not alone" "$@"
many=$?
[ "$many" -eq 2 ] && exit 2 # interrupted
# Only files that have the mark are collected again.
[ $# -gt 0 ] || mapfile -t files < <(grep -rlF mark.alone --include='test_*.py' tests)
run -n 1 -m "$marks${marks:+ and }alone" "${files[@]}"
alone=$?
if [ "$many" -eq $none ]; then exit $alone; fi
if [ "$many" -ne 0 ] || [ "$alone" -eq $none ]; then exit "$many"; fi
exit $alone
