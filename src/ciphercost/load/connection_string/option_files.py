"""Option files of MySQL's and MariaDB's clients (`my.cnf`): which are read, in which order, and which groups count.

Sources: the MySQL manual, "Using Option Files", and MariaDB's page "Configuring MariaDB with Option Files".
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ciphercost.model import bounds
from ciphercost.model.errors import UsageError

GROUPS = {
    "mysql": ("mysql", "client"),
    "mariadb": ("mysql", "mariadb-client", "client", "client-server", "client-mariadb"),
}
"""Groups that the command-line client of each server reads."""
SYSTEM_FILES = ("/etc/my.cnf", "/etc/mysql/my.cnf")
CONNECTION = ("user", "password", "host", "port", "socket", "protocol")
ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "r": "\r", "s": " ", "\\": "\\"}
SWITCHES = {"skip-": "0", "disable-": "0", "enable-": "1"}
"""Prefixes of options without a value, and the value that each stands for."""
MOST_FILES = 100
"""Limit for files that include each other."""


def matters(name: str) -> bool:
    """Whether an option is about where a client connects, or about encryption. Pure."""
    return name in CONNECTION or name == "ssl" or name.startswith(("ssl-", "tls-"))


def read(engine: str) -> dict[str, tuple[str, str]]:
    """The options that matter, each with its value and its file; the later one wins.

    Raises UsageError if others can read a user's file that holds a password.
    """
    merged: dict[str, tuple[str, str]] = {}
    home = os.environ.get("MYSQL_HOME")
    user_files = [*([Path(home) / "my.cnf"] if home else []), Path.home() / ".my.cnf"]
    for path in [*map(Path, SYSTEM_FILES), *user_files]:
        for file, text in _with_included(path, MOST_FILES):
            options = parse_options(text, GROUPS[engine])
            if "password" in options and path in user_files and file.stat().st_mode & 0o077:
                raise UsageError(
                    f"{file} holds a password and others can read it, so ciphercost ignores it: chmod 600 {file}"
                )
            merged |= {name: (value, str(file)) for name, value in options.items()}
    return merged


def _with_included(path: Path, most: int) -> Iterator[tuple[Path, str]]:
    """A file and the files that it includes, each with its text."""
    try:
        text = bounds.text(path, bounds.OPTIONS)
    except OSError:
        return
    yield path, text
    for line in map(str.strip, text.splitlines()):
        word, _, named = line.partition(" ")
        place = path.parent / named.strip()
        included = [place] if word == "!include" else sorted(place.glob("*.cnf")) if word == "!includedir" else []
        for file in included:
            if most > 0:
                yield from _with_included(file, most // 2)


def parse_options(text: str, groups: Sequence[str] = ("client",)) -> dict[str, str]:
    """Parse an option file by the rules of MySQL's own programs: the options of these groups that matter. Pure.

    Names have `-` for `_`. An option without a value is "1"; `skip-ssl` is `ssl` with "0".
    """
    group, options = "", {}
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and "]" in line:
            group = line[1 : line.index("]")].strip()
        elif group in groups and line and line[0] not in "#;!":
            written, equals, value = line.partition("=")
            name = written.partition(" #")[0].strip().replace("_", "-").removeprefix("loose-")
            given = _value(value.strip()) if equals else "1"
            for prefix, meant in SWITCHES.items():
                if name.startswith(prefix):
                    name, given = name.removeprefix(prefix), meant
            if matters(name):
                options[name] = given
    return options


def _value(text: str) -> str:
    """Return a value without its quotes and end-of-line comment, with escapes resolved. Pure."""
    if len(text) > 1 and text[0] in "'\"" and (end := text.rfind(text[0])) > 0:
        text = text[1:end]
    else:
        text = text.partition("#")[0].rstrip() if " #" in text else text
    parts, at = [], 0
    while at < len(text):
        if text[at] == "\\" and at + 1 < len(text) and text[at + 1] in ESCAPES:
            parts.append(ESCAPES[text[at + 1]])
            at += 2
        else:
            parts.append(text[at])
            at += 1
    return "".join(parts)
