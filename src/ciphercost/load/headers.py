"""Headers that the user adds to requests for a web page.

A record holds their names. Their values may be secret (Cookie, Authorization): they stay in this process's memory or in the user's own
file, and only the agent gets them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from ciphercost.model import bounds
from ciphercost.model.connection import Connection
from ciphercost.model.errors import UsageError
from ciphercost.model.secret import Secret

FILE = "@"
"""Begins the argument of `--header` that names a file."""
_LENGTH = "ciphercost counts the body"
_CONNECTION = "ciphercost decides when a connection ends"
_VERSION = "`--set http=2` or http=3 chooses the HTTP version"
_TRAILER = "ciphercost neither sends nor takes trailers"
OURS: Mapping[str, str] = MappingProxyType(
    {
        "host": "it comes from the URL, so name the address by the name that the server knows",
        "content-length": _LENGTH,
        "transfer-encoding": _LENGTH,
        "connection": "`--per-request` opens a connection for each request",
        "keep-alive": _CONNECTION,
        "proxy-connection": _CONNECTION,
        "upgrade": _VERSION,
        "http2-settings": _VERSION,
        "alt-used": _VERSION,
        "te": _TRAILER,
        "trailer": _TRAILER,
        "expect": "ciphercost sends the body at once",
    }
)
"""Headers that the agent sets itself, by name in lower case, each with why the user can't."""
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_given: dict[str, Secret] = {}
"""By name in lower case: values that the command line gave to this process."""


def check(name: str, value: str, where: str) -> None:
    """Refuse a header that can't be sent. Raises UsageError, which repeats the name but never the value. Pure."""
    if not _TOKEN.fullmatch(name):
        raise UsageError(f"{where}: a header is written as 'NAME: VALUE', e.g. 'Accept-Encoding: gzip'")
    if why := OURS.get(name.lower()):
        raise UsageError(f"{where}: header {name} can't be set: {why}; remove it")
    if not value:
        raise UsageError(f"{where}: header {name} has no value; write '{name}: VALUE', or remove it")
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in value.replace("\t", " ")):
        raise UsageError(f"{where}: header {name}: its value has a line break or another control character; remove it")


def split(line: str, where: str) -> tuple[str, str]:
    """Return name and value of a header. Raises UsageError, which never repeats the value. Pure."""
    name, colon, value = line.partition(":")
    if not colon:
        raise UsageError(f"{where}: a header is written as 'NAME: VALUE', e.g. 'Accept-Encoding: gzip'")
    value = value.strip(" \t")
    check(name, value, where)
    return name, value


def remember(arguments: Iterable[str]) -> tuple[list[str], str]:
    """Take in the arguments of `--header`. Returns (names whose values this process now knows, the file that was named).

    Raises UsageError.
    """
    names: list[str] = []
    file = ""
    for argument in arguments:
        if argument.startswith(FILE):
            if file:
                raise UsageError("--header names two files; put all headers into one")
            file = argument.removeprefix(FILE)
            if not file:
                raise UsageError("--header @: names no file; write --header @FILE")
            continue
        name, value = split(argument, "--header")
        if name.lower() in {earlier.lower() for earlier in names}:
            raise UsageError(f"--header {name} is given twice; join both values in one header")
        names.append(name)
        _given[name.lower()] = Secret(value)
    return names, file


def read(path: Path) -> list[tuple[str, str]]:
    """Return the headers in a file: one a line; lines that begin with # are comments. Raises UsageError."""
    try:
        lines = bounds.read(path, bounds.HEADERS, f"--header @{path}").decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"--header @{path}: can't read it: {reason}") from None
    headers: list[tuple[str, str]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        name, value = split(line, f"--header @{path}, line {number}")
        if name.lower() in {earlier.lower() for earlier, _ in headers}:
            raise UsageError(f"--header @{path}, line {number}: {name} is given twice; join both values in one header")
        headers.append((name, value))
    if not headers:
        raise UsageError(f"--header @{path}: has no header; write one a line, e.g. 'Cookie: NAME=VALUE'")
    return headers


def of(names: Sequence[str], file: str) -> tuple[tuple[str, ...], Secret | None]:
    """Return (all names, the headers as the agent takes them, one a line) of a cell that names these. None: no headers.

    Raises UsageError for a name whose value is not known here, as when a run is resumed.
    """
    from_file = read(Path(file)) if file else []
    by_name = {name.lower(): (name, value) for name, value in from_file}
    for name in names:
        if not _TOKEN.fullmatch(name):
            raise UsageError(
                f"headers: {name.partition(':')[0]!r} and what follows is not a header's name; a spec holds names only: "
                'put the headers into a file, one a line, and write headers_file = "FILE"'
            )
        if name.lower() not in _given:
            raise UsageError(
                f"headers: {name} has a value that no record holds; give it again on the command line as --header '{name}: …', or put it "
                "into a file and name that with --header @FILE, which a run remembers"
            )
        by_name[name.lower()] = (name, _given[name.lower()].reveal())
    if not by_name:
        return (), None
    lines = [f"{name}: {value}" for name, value in by_name.values()]
    return tuple(name for name, _ in by_name.values()), Secret("\n".join(lines))


def without_values(argv: Sequence[str]) -> list[str]:
    """Return a command's arguments as they may be recorded: of a header only its name. Pure."""
    shown, left = [], iter(argv)
    for word in left:
        if word == "--header":
            shown += [word, *(_named(argument) for argument in [next(left, None)] if argument is not None)]
        elif word.startswith("--header="):
            shown.append(f"--header={_named(word.partition('=')[2])}")
        else:
            shown.append(word)
    return shown


def _named(argument: str) -> str:
    return argument if argument.startswith(FILE) else f"{argument.partition(':')[0]}: …" if ":" in argument else "…"


def with_headers(connection: Connection, lines: str) -> Connection:
    """The connection with these headers, one a line, which replace those of the same name. Pure."""
    new_names = {line.partition(":")[0].lower() for line in lines.splitlines()}
    known = [line for line in connection.header_lines() if line.partition(":")[0].lower() not in new_names]
    joined = "\n".join([*known, *lines.splitlines()])
    return connection | {"headers": Secret(joined)} if joined else connection


def named(name: str, connection: Connection) -> str:
    """The value of a header of a connection; empty: it has none. Pure."""
    lines = [line.partition(":") for line in connection.header_lines()]
    return next((value.strip() for key, _, value in lines if key.lower() == name), "")
