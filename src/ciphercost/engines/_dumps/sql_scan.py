"""sql_scan: what the SQL text of pg_dump needs of a server: extensions, roles, and what can't be loaded. Skips the rows of COPY. I/O."""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ciphercost.engines._dumps.files import line_at
from ciphercost.model.errors import UsageError

_NAME = rb'(?:"(?:[^"\n]|"")*"|[\w$\x80-\xff]+)'
_LINES = re.compile(
    rb"^(?:"
    rb"(?P<copy>COPY [^\n]* FROM stdin;)"
    rb"|CREATE EXTENSION (?:IF NOT EXISTS )?(?P<extension>" + _NAME + rb")"
    rb"|ALTER [^\n]* OWNER TO (?P<owner>" + _NAME + rb");"
    rb"|(?:GRANT [^\n]* TO|REVOKE [^\n]* FROM) (?P<grantees>[^\n]*?)(?: WITH GRANT OPTION)?;"
    rb"|ALTER DEFAULT PRIVILEGES FOR ROLE (?P<grantor>" + _NAME + rb")[^\n]* (?:TO|FROM) (?P<default>" + _NAME + rb");"
    rb"|CREATE POLICY [^\n]*? TO (?P<policy>" + _NAME + rb"(?:, " + _NAME + rb")*)"
    rb"|SET SESSION AUTHORIZATION '?(?P<session>" + _NAME + rb")"
    rb"|SET default_tablespace = '?(?P<tablespace>[^';\n]+)"
    rb"|(?P<public>CREATE SCHEMA public;)"
    rb"|(?P<cluster>(?:CREATE|ALTER) (?:ROLE|DATABASE) )"
    rb"|(?P<meta>\\(?!\.|restrict |unrestrict )[^\s]+)"
    rb")",
    re.MULTILINE,
)
_END_OF_ROWS = b"\n\\.\n"
PSEUDO_ROLES = {"PUBLIC", "CURRENT_USER", "CURRENT_ROLE", "SESSION_USER", "DEFAULT"}


class Needs(msgspec.Struct):
    """What a dump needs."""

    extensions: dict[str, int] = {}
    """By name: the line that creates it."""
    roles: dict[str, int] = {}
    """By name: the first line that names it."""
    makes_public: bool = False
    """Whether it creates the schema `public`, which every new database has."""


def scan(path: Path, where: str, *, whole: bool = True) -> Needs:
    """Read the SQL text at `path`. `where`: how errors name it; `whole`: it is the dump itself, so its lines can be named.

    Raises UsageError for text that would be run elsewhere than in our database.
    """
    needs = Needs()
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for match in _matches(content):
            kind = match.lastgroup or ""
            line = f", line {line_at(path, match.start())}" if whole else ""
            if kind == "meta":
                raise UsageError(f"{where}{line}: {_of_meta(_text(match[kind]))}")
            if kind == "cluster":
                raise UsageError(
                    f"{where}{line}: creates a role or a database, which a dump of one database does not; make it with pg_dump, without "
                    "--create"
                )
            if kind == "tablespace":
                raise UsageError(
                    f"{where}{line}: puts tables into a tablespace, which no other server has; dump with --no-tablespaces"
                )
            if kind == "public":
                needs.makes_public = True
            elif kind == "extension":
                needs.extensions.setdefault(_unquoted(match[kind]), line_at(path, match.start()))
            elif kind != "copy":
                number = 0
                for name in _roles(match):
                    if name not in needs.roles:
                        needs.roles[name] = number = number or line_at(path, match.start())
    return needs


def _matches(content: mmap.mmap) -> Iterator[re.Match[bytes]]:
    """The lines that matter, without those that are rows of COPY."""
    at = 0
    while match := _LINES.search(content, at):
        yield match
        at = match.end()
        if match["copy"]:
            at = content.find(_END_OF_ROWS, at)
            if at < 0:
                return
            at += 1


def _roles(match: re.Match[bytes]) -> list[str]:
    names: list[str] = []
    for group in ("owner", "grantees", "grantor", "default", "policy", "session"):
        found = re.findall(_NAME, match[group] or b"")
        # `GRANTED BY x` after the names, and words such as GROUP before them, are not written by pg_dump.
        names += [_unquoted(name) for name in found if _text(name).upper() not in PSEUDO_ROLES]
    return names


def _of_meta(word: str) -> str:
    if word in ("\\connect", "\\c"):
        return "connects to another database; dump one database, without --create"
    return f"has the command {word} of psql, which is no SQL; remove it"


def _text(name: bytes) -> str:
    return name.decode(errors="replace")


def _unquoted(name: bytes) -> str:
    text = _text(name)
    return text[1:-1].replace('""', '"') if text.startswith('"') else text
