"""tls_library: starts a server's program with another libssl and libcrypto than its own, and proves that it uses them.

The libraries come from Debian suites or from a directory. The program itself is not changed: the loader of the newest suite
runs it, with the wanted libraries first in its path, the newest C library next, and then what the program uses by itself.
So servers that differ in the library have the same loader and C library.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from ciphercost.host import elf
from ciphercost.host.debian import unpack_suite
from ciphercost.host.package_cache import RECEIPT, Receipt, Work, cache, keep
from ciphercost.host.ports import library_version, mapped
from ciphercost.host.procfs import tree
from ciphercost.host.programs import printed
from ciphercost.host.run_ownership import out_of_reach
from ciphercost.model.errors import MissingServer, UsageError

SUITES = {
    "openssl-1.1.1": ("bullseye", "libssl1.1"),
    "openssl-3.0": ("bookworm", "libssl3"),
    "openssl-3.5": ("trixie", "libssl3t64"),
    "openssl-3.6": ("sid", "libssl3t64"),
}
"""The Debian suite and package of each library that can be named. Programs for 1.1.1 don't go with the others: its symbols and file
names differ.
"""
LOADER_SUITE = "sid"
"""The suite whose C library is new enough for all of them."""
NAMES = ("libssl.so", "libcrypto.so")
KEPT = "tls-library"
"""Where the cache keeps them."""
ONLY, ALSO = "only", "also"
"""In a fetched root: directories with the two libraries, and with what they need beside the C library."""
VARIABLE = "CIPHERCOST_TLS_LIBRARY"
"""Environment variable of a server that is to be started with the libraries in that directory."""
_NEEDED = re.compile(r"^\s*(\S+) => (\S+) \(0x", re.MULTILINE)
_LACKING = re.compile(r"undefined symbol: ([^\s,]+)|version `(\S+)' not found")


def directory(wanted: str, *, fetch: bool = True) -> Path:
    """The directory with the two libraries: of a name in SUITES, fetched once, or the one at this path.

    Raises MissingServer if they, or the loader, can't be fetched or (`fetch` false) are not here; UsageError if the directory
    does not hold them.
    """
    for name in [f"loader-{LOADER_SUITE}", *([wanted] if wanted in SUITES else [])]:
        if not fetch and not (cache() / KEPT / f"{name}-debian" / RECEIPT).exists():
            raise MissingServer(f"{name} was not fetched")
    _loader()
    return _fetched(wanted) if wanted in SUITES else checked(Path(wanted).absolute())


@functools.cache
def checked(place: Path) -> Path:
    """A directory of the user's, if it holds two libraries for this machine. Raises UsageError."""
    if not place.is_dir():
        raise UsageError(f"library={place} is no directory; give one that holds libssl.so.3 and libcrypto.so.3")
    for name in NAMES:
        files = sorted(place.glob(f"{name}.*"))
        if not files:
            raise UsageError(
                f"library={place} has no {name}.3; give the directory that holds libssl.so.3 and libcrypto.so.3"
            )
        for file in files:
            try:
                machine = elf.read(file).machine
            except (ValueError, OSError) as error:
                raise UsageError(f"library={place}: {file.name} is no library: {error}") from None
            if machine != os.uname().machine:
                raise UsageError(
                    f"library={place}: {file.name} is for {machine}, and this machine is {os.uname().machine}"
                )
    if why := out_of_reach(place):
        raise UsageError(f"library={place}: {why}")
    return place


@functools.cache
def _fetched(name: str) -> Path:
    suite, package = SUITES[name]

    def make(work: Work) -> Receipt:
        unpack_suite(suite, [package], work)
        (work.path / ONLY).mkdir()
        (work.path / ALSO).mkdir()
        for file in work.path.glob("usr/lib/*/*.so.*"):
            if file.name.startswith(NAMES):
                shutil.copy(file, work.path / ONLY / file.name)
            elif file.name.startswith(("libz.so.", "libzstd.so.")):
                shutil.copy(file, work.path / ALSO / file.name)
        version = next(map(library_version, (work.path / ONLY).glob("libcrypto.so.*")), "")
        if not re.match(rf"{re.escape(name)}\b|{re.escape(name)}[a-z]", version.lower().replace(" ", "-", 1)):
            raise MissingServer(f"Debian {suite} has {version or 'no OpenSSL'}, not {name}")
        return Receipt(KEPT, version.split()[1], "debian", ONLY)

    return Path(keep(KEPT, f"{name}-debian", make).location)


@functools.cache
def _loader() -> tuple[Path, Path]:
    """The program loader of the newest suite, and the directory of its C library."""

    def make(work: Work) -> Receipt:
        unpack_suite(LOADER_SUITE, ["libc6"], work)
        place = next(work.path.glob("usr/lib/*/libc.so.6")).parent
        return Receipt(KEPT, "", "debian", str(place.relative_to(work.path)))

    place = Path(keep(KEPT, f"loader-{LOADER_SUITE}-debian", make).location)
    return next(place.glob("ld-linux*.so.*")), place


@functools.cache
def command(chosen: str, program: Path) -> tuple[str | Path, ...]:
    """What a program's command line begins with if it is to use the libraries in the directory `chosen`.

    Raises UsageError if the program needs symbols that they lack, MissingServer if the loader can't be fetched. A program that
    loads OpenSSL later, or contains it, is left to the witness.
    """
    loader, libc = _loader()
    place = Path(chosen)
    directories = _own(program)
    search = [place, libc, *directories, place.parent / ALSO]
    prefix = (loader, "--inhibit-rpath", "", "--library-path", ":".join(map(str, search)))
    check_symbols([*prefix, program], place)
    return prefix


def _own(program: Path) -> list[Path]:
    """The directories of the libraries that the program uses by itself."""
    listed = _listed([program])
    return list(dict.fromkeys(Path(path).parent for _, path in _NEEDED.findall(listed) if path.startswith("/")))


def check_symbols(program: Sequence[str | Path], place: Path) -> None:
    """Raises UsageError if the program, with its loader before it, lacks a symbol, or takes its OpenSSL from elsewhere."""
    listed = _listed(program)
    name = Path(program[-1]).name
    if lacking := _LACKING.search(listed):
        raise UsageError(
            f"library={place} does not go with {name}, which needs {lacking[1] or lacking[2]}: the library is too old, or another one"
        )
    used = {library: path for library, path in _NEEDED.findall(listed) if library.startswith(NAMES)}
    for library, path in used.items():
        if not (place / library).exists():
            older = "; a program built for OpenSSL 1.1.1 and one built for 3.0 or later need different files (nginx@1.18 is built for 1.1.1)"
            other = (
                older
                if library.endswith((".1.1", ".3")) and any(place.glob(f"{library.split('.so.')[0]}.so.*"))
                else ""
            )
            raise UsageError(f"library={place} has no {library}, which {name} uses: it takes {path} instead{other}")


def _listed(program: Sequence[str | Path]) -> str:
    """What the loader says about a program's libraries: where each one is, and which symbols are missing."""
    tracing = {"LD_TRACE_LOADED_OBJECTS": "1", "LD_WARN": "yes", "LD_BIND_NOW": "yes"}
    return printed(program, 60, tracing)


def proof(pid: int, chosen: str) -> tuple[bool, str]:
    """Whether a server and all that it started have the OpenSSL libraries of this directory mapped, and no others."""
    place, path_by_name = Path(chosen).resolve(), dict[str, str]()
    for process in tree(pid):
        for path in openssl_of(process):
            if not Path(path).is_relative_to(place):
                return False, f"process {process} of the server uses {path}, which is not in {chosen}"
            path_by_name[Path(path).name] = path
    lacking = [name for name in NAMES if not any(library.startswith(name) for library in path_by_name)]
    if lacking:
        return False, f"no process of the server has {' and '.join(f'{name}.*' for name in lacking)} mapped"
    words = [
        f"{name} (build id {elf.read(Path(path)).build_id[:12] or 'none'})"
        for name, path in sorted(path_by_name.items())
    ]
    version = library_version(Path(next(path for name, path in path_by_name.items() if name.startswith(NAMES[1]))))
    return True, f"it uses {' and '.join(words)} in {chosen}: {version}"


def own_libraries(pid: int, other: str) -> tuple[bool, str]:
    """Whether a server and all that it started have OpenSSL libraries mapped, and none of them is of another arm's directory."""
    libraries = sorted({path for process in tree(pid) for path in openssl_of(process)})
    foreign = [path for path in libraries if Path(path).is_relative_to(Path(other).resolve())]
    if foreign or not libraries:
        return (
            False,
            f"it uses {foreign[0]}, which is the other arm's" if foreign else "it has no OpenSSL library mapped",
        )
    return True, f"it uses its own {' and '.join(libraries)}"


def openssl_of(pid: int) -> list[str]:
    """The OpenSSL libraries that a process has mapped; empty if it has ended."""
    with contextlib.suppress(OSError):
        return [path for path in mapped(pid) if Path(path).name.startswith(NAMES)]
    return []
