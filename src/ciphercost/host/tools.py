"""tools: finds programs other than servers: in PATH, else in the cache, else unpacked from Debian."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec

from ciphercost.host.debian import unpack_suite
from ciphercost.host.package_cache import RECEIPT, Receipt, Work, cache, keep
from ciphercost.host.run_in_place import run_in_place
from ciphercost.model.errors import MissingServer

ONLY = "only"
"""Directory in a root of tools with links to the programs that the root was fetched for."""


class Tools(msgspec.Struct, frozen=True):
    """Programs other than servers that are fetched together."""

    name: str
    packages: tuple[str, ...]
    programs: tuple[str, ...]
    suite: str


FUSE = Tools("fuse", ("gocryptfs", "fuse3"), ("usr/bin/gocryptfs", "usr/bin/fusermount3"), "sid")
"""From sid: as root, the gocryptfs 2.5.1 of trixie changes the user of all its threads at once, and can't create files."""
CRYFS = Tools("cryfs", ("cryfs",), ("usr/bin/cryfs",), "trixie")
PERF = Tools("perf", ("linux-perf",), ("usr/bin/perf",), "bookworm")
"""perf of Linux 6.1: its software clock works with any kernel since 5.10."""


def mariadb_backup(suite: str) -> Tools:
    """mariadb-backup of this Debian suite: it must be of the server's version."""
    return Tools("mariadb-backup", ("mariadb-backup",), ("usr/bin/mariadb-backup",), suite)


TOOLS = {Path(program).name: tools for tools in (FUSE, CRYFS, PERF) for program in tools.programs}
"""Where each program comes from. A mechanism that needs a program from Debian adds an entry here."""


def tool(name: str, *, fetch: bool = True) -> Path:
    """The path of this program: in PATH, else fetched before, else (`fetch`) unpacked from Debian into the cache.
    Raises MissingServer.
    """
    if path := shutil.which(name):
        return Path(path)
    return together(TOOLS[name], name, fetch=fetch) / name


def together(tools: Tools, name: str = "", *, fetch: bool = True) -> Path:
    """The directory of these programs, fetched before or (`fetch`) now. Raises MissingServer, naming `name`."""
    kept = cache() / "tools" / f"{tools.name}-{tools.suite}-debian"
    if (kept / RECEIPT).exists():
        return kept / ONLY
    missing = f"'{name or tools.name}' was not found (Debian: apt-get install {' '.join(tools.packages)})"
    if not fetch:
        raise MissingServer(missing)
    try:
        return Path(keep("tools", kept.name, lambda work: _unpack(tools, work)).location)
    except MissingServer as error:
        raise MissingServer(f"{missing}, and {error}") from None


def _unpack(tools: Tools, work: Work) -> Receipt:
    unpack_suite(tools.suite, tools.packages, work)
    run_in_place(work, tools.programs)
    # Use a separate directory in PATH: the root's own would put another suite's programs before the system's.
    (work.path / ONLY).mkdir()
    for program in tools.programs:
        if not (work.path / program).is_file():
            raise MissingServer(f"the packages {', '.join(tools.packages)} of {tools.suite} contain no {program}")
        (work.path / ONLY / Path(program).name).symlink_to(f"../{program}")
    return Receipt("tools", "", "debian", ONLY)
