#!/usr/bin/env bash
# servers.sh CIPHERCOST: gets what the tests require, by the Python beside that program. What can't be had is printed with the
# reason; its tests are skipped, or fail with CIPHERCOST_REQUIRE=all. The list is in needs.py.
set -u
exec "$(dirname "$1")/python" "$(dirname "$0")/needs.py" --get
