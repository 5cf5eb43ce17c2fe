"""errors: every failure ciphercost names, and the exit status it ends with."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class CiphercostError(Exception):
    """A failure with a message for people: what, where, what to do next. `exit_status` follows the command line contract."""

    exit_status = 1


class UsageError(CiphercostError):
    """Bad usage or specification: nothing was started."""

    exit_status = 2


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in the middle of a run: what was measured until then is in `directory`."""

    def __init__(self, directory: Path) -> None:
        super().__init__(
            f"interrupted; what was measured until then is in {directory}: `ciphercost report {directory}` shows it, "
            f"`ciphercost resume {directory}` goes on with it"
        )
        self.directory = directory


class MissingServer(UsageError):
    """No binary of a server was found; the message names how to get one."""


class RunError(CiphercostError):
    """A cell can't go on: server, agent or workload failed at run time."""


class AgentError(RunError):
    """The agent refused or failed a request. `code` is the agent's or the server's (SQLSTATE)."""

    def __init__(self, text: str, code: str = "agent") -> None:
        super().__init__(text)
        self.code = code


class Unproven(RunError):
    """A witness failed: this arm is not what its name says, so no number may be printed."""


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
}
"""What people call things -> what they are called here. `nearest` takes those that the place knows."""
FEW = 12
"""Names that are listed beside a suggestion; of more only the suggestion is printed."""


def nearest(word: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?` for the known words that are nearest, else a list of them. Pure.

    Another name for the same thing goes before a similar spelling; upper and lower case are one.
    """
    choices = sorted(known)
    small = {each.lower(): each for each in choices}
    close = [each for each in ALIASES.get(word.lower(), ()) if each in choices]
    if not close:
        close = [small[each] for each in difflib.get_close_matches(word.lower(), small, n=1, cutoff=0.5)]
    if not close:
        # Another name for it, misspelt.
        meant_ = difflib.get_close_matches(word.lower(), ALIASES, n=1, cutoff=0.7)
        close = [each for alias in meant_ for each in ALIASES[alias] if each in choices]
    if not close:
        return f"known: {', '.join(choices)}"
    meant = " or ".join(f"'{each}'" for each in close)
    return f"did you mean {meant}?" + (f" (known: {', '.join(choices)})" if len(choices) <= FEW else "")
