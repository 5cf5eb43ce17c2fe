"""The load generators and samplers whose output `import` reads: Debian packages in a private root in ciphercost's cache.

`python tests/other_tools.py` fetches them, as `make test` does.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from ciphercost.host import tools
from ciphercost.model.errors import MissingServer

TOOLS = tools.Tools(
    "loaders",
    ("sysbench", "wrk", "nghttp2-client", "hyperfine", "sysstat", "atop", "locales"),
    (
        "usr/bin/sysbench",
        "usr/bin/wrk",
        "usr/bin/h2load",
        "usr/bin/hyperfine",
        "usr/bin/sar.sysstat",
        "usr/bin/sadf",
        "usr/lib/sysstat/sadc",
        "usr/bin/atop",
    ),
    "bookworm",
)
FURTHER = tools.Tools(
    "further-loaders", ("apache2-utils", "redis-tools"), ("usr/bin/ab", "usr/bin/redis-benchmark"), "bookworm"
)
WEB = tools.Tools("web-loaders", ("hey", "siege"), ("usr/bin/hey", "usr/bin/siege"), "bookworm")
DUMPS = tools.Tools("dumps", ("mariadb-client",), ("usr/bin/mariadb-dump",), "trixie")
"""What dumps a server, if the server's own packages have no such tool."""
SECONDS = 60


def place() -> Path | None:
    """The directory of the programs; None if they weren't fetched."""
    try:
        return tools.together(TOOLS, fetch=False)
    except MissingServer:
        return None


def further() -> Path | None:
    """The directory of FURTHER; None if they weren't fetched."""
    try:
        return tools.together(FURTHER, fetch=False)
    except MissingServer:
        return None


def web() -> Path | None:
    """The directory of WEB; None if they weren't fetched."""
    try:
        return tools.together(WEB, fetch=False)
    except MissingServer:
        return None


def dumps() -> Path | None:
    """The directory of DUMPS; None if they weren't fetched."""
    try:
        return tools.together(DUMPS, fetch=False)
    except MissingServer:
        return None


def run(*argv: object, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
    """Output of a program, errors first, as in a file of `2>&1` if the program prints its result at the end."""
    done = subprocess.run(
        [str(word) for word in argv],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
        env={**os.environ, **(env or {})},
        cwd=cwd,
    )
    assert done.returncode == 0, f"{argv[0]}: {done.stderr}{done.stdout}"
    return done.stderr + done.stdout


if __name__ == "__main__":
    print(tools.together(TOOLS), tools.together(FURTHER), tools.together(WEB))
