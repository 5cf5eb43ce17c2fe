"""Errors that ciphercost reports, and the exit status of each."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from pathlib import Path


class CiphercostError(Exception):
    """A failure with a message: what is wrong, where, and what to do. `exit_status` is part of the command line's contract."""

    exit_status = 1


class UsageError(CiphercostError):
    """Bad usage or a bad spec; nothing was started."""

    exit_status = 2


class UnknownCell(UsageError, KeyError):
    """A result has no such cell, or more than one; the message lists them."""

    def __str__(self) -> str:
        return Exception.__str__(self)  # KeyError would quote the message


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a run. `directory` holds everything measured so far."""

    def __init__(self, directory: Path) -> None:
        typed = shlex.quote(str(directory))
        super().__init__(
            f"interrupted; everything measured so far is in {directory}. `ciphercost report {typed}` prints it, "
            f"`ciphercost resume {typed}` continues the run"
        )
        self.directory = directory


class MissingServer(UsageError):
    """No binary of a server was found; the message says how to get one."""


class RefusedSetting(UsageError):
    """A server that ciphercost started refused a setting of the user's, so every cell with this setting fails alike."""


class RefusedDump(UsageError):
    """A server that ciphercost started refused the user's dump before anything was measured."""


class RunError(CiphercostError):
    """A cell can't continue: server, agent or workload failed at run time."""


class AgentError(RunError):
    """The agent refused a request, or the request failed. `code`: the agent's own or the server's (SQLSTATE)."""

    def __init__(self, text: str, code: str = "agent") -> None:
        super().__init__(text)
        self.code = code

    @property
    def words(self) -> str:
        """The text, with the server's own code if it has one; the agent's codes are for programs."""
        return f"{self}{server_code(self.code)}"


class LoadStopped(RunError):
    """The server's errors or latency passed a limit, so ciphercost stopped the load on it."""


class Unproven(RunError):
    """A witness failed: an arm is not what its name says, so ciphercost prints no number."""


AGENT_CODES = [
    "protocol",
    "unknown-message",
    "bad-message",
    "no-arm",
    "no-program",
    "connect",
    "timeout",
    "driver",
    "tls",
    "statement",
    "internal",
    "malformed",
    "closed-early",
    "agent",
    "log",
    "rows",
    "late",
    "skewed",
]
"""Codes of the agents and of ciphercost itself (PROTOCOL.md), beside `status-404` and its like. No report prints one."""


def server_code(code: str) -> str:
    """Return a server's own code in words, which help to search for it: ` (SQLSTATE 42501)`, ` (error 1045, SQLSTATE 28000)`; empty
    for a code of the agent. Pure.
    """
    if both := re.fullmatch(r"(\d+) \(([0-9A-Z]{5})\)", code):
        return f" (error {both[1]}, SQLSTATE {both[2]})"
    if re.fullmatch(r"(?=.*\d)[0-9A-Z]{5}", code):
        return f" (SQLSTATE {code})"
    return f" (error {code})" if re.fullmatch(r"\d+", code) else ""


KINDS = {
    "connect": "connection refused or lost",
    "timeout": "no answer in time",
    "tls": "TLS refused",
    "statement": "statement failed",
    "malformed": "malformed answer",
    "closed-early": "connection closed early",
    "internal": "error in the agent",
}
"""What an operation failed of, by the agent's code. User-visible."""


def kind(code: str) -> str:
    """Return what failed operations with this code have in common, in words: `HTTP status 404`, `SQLSTATE 40001`. Pure."""
    if code.startswith("status-"):
        return f"HTTP status {code.removeprefix('status-').removesuffix('-https')}"
    return KINDS.get(code) or server_code(code).strip(" ()") or code


_TAIL = re.compile(
    rf" \[(?P<code>{'|'.join(AGENT_CODES)}|status-\d+(?:-https)?|\d+ \([0-9A-Z]{{5}}\)|(?=\w*\d)[0-9A-Z]{{5}}|\d+)\](?=[.,;)]|$)"
)


def without_codes(text: str) -> tuple[str, str]:
    """Split a text of a record that an older ciphercost wrote: (text without codes in brackets, the last code or empty). Pure."""
    codes = [match["code"] for match in _TAIL.finditer(text)]
    return _TAIL.sub(lambda match: server_code(match["code"]), text), codes[-1] if codes else ""


ALIASES: dict[str, tuple[str, ...]] = {
    "ssl": ("tls",),
    "https": ("tls",),
    "starttls": ("tls",),
    "tls1.3": ("tls",),
    "tde": ("innodb-tde", "mariadb-tde", "pg-tde", "firebird-crypt", "sqlcipher"),
    "encryption-at-rest": ("innodb-tde", "mariadb-tde", "pg-tde", "firebird-crypt", "sqlcipher"),
    "cipher": ("sqlcipher",),
    "luks": ("path", "fscrypt"),
    "dm-crypt": ("path", "fscrypt"),
    "dmcrypt": ("path", "fscrypt"),
    "ecryptfs": ("fscrypt", "gocryptfs"),
    "encfs": ("gocryptfs",),
    "plain": ("none",),
    "off": ("none",),
    "control": ("none",),
    "pg": ("postgresql",),
    "postgres": ("postgresql",),
    "psql": ("postgresql",),
    "pgsql": ("postgresql",),
    "maria": ("mariadb",),
    "mysqld": ("mysql",),
    "httpd": ("apache",),
    "apache2": ("apache",),
    "sqlite3": ("sqlite",),
    "fb": ("firebird",),
    "http": ("url",),
    "iis": ("url",),
    "pgbench": ("tpcb",),
    "tpc-b": ("tpcb",),
    "select": ("point-select",),
    "crud": ("mixed-crud",),
    "handshake": ("connect",),
    "download": ("file",),
    "text": ("terminal",),
    "txt": ("terminal",),
    "markdown": ("md",),
    "tex": ("latex",),
    "htm": ("html",),
    "pdf": ("html",),
    "xlsx": ("csv",),
    "excel": ("csv",),
    "jpg": ("png",),
    "prometheus": ("openmetrics",),
    "prom": ("openmetrics",),
    "xunit": ("junit",),
    "xml": ("junit",),
    "bmf": ("bencher",),
    "customsmallerisbetter": ("github-action-benchmark",),
}
"""Common names -> ciphercost's names. `nearest` uses those that are valid in its place."""
SOME = 3
"""Most names to suggest alike."""
FEW = 12
"""Most names to list beside a suggestion; if there are more, only the suggestion is printed."""


def nearest(word: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?` for the nearest known words, or a list of all of them. Pure.

    Prefers an alias to a similar spelling. Ignores case.
    """
    import difflib  # only a mistake needs it

    choices = sorted(known)
    small = {choice.lower(): choice for choice in choices}
    close = [name for name in ALIASES.get(word.lower(), ()) if name in choices]
    family = [small[spelling] for spelling in small if spelling.startswith(f"{word.lower()}-")]
    if len(family) > SOME and not close:
        return f"did you mean '{family[0]}' or another that begins with '{word.lower()}-': {', '.join(family[1:])}?"
    close = close or family
    if not close:
        close = [small[spelling] for spelling in difflib.get_close_matches(word.lower(), small, n=1, cutoff=0.5)]
    if not close:
        # A misspelt alias.
        meant_ = difflib.get_close_matches(word.lower(), ALIASES, n=1, cutoff=0.7)
        close = [name for alias in meant_ for name in ALIASES[alias] if name in choices]
    if not close:
        return f"known: {', '.join(choices)}"
    meant = " or ".join(f"'{name}'" for name in close)
    return f"did you mean {meant}?" + (f" (known: {', '.join(choices)})" if len(choices) <= FEW else "")
