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


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the nearest of the known words, else a list of them. Pure."""
    choices = sorted(known)
    close = difflib.get_close_matches(word, choices, n=1, cutoff=0.5)
    if close:
        return f"did you mean '{close[0]}'? (known: {', '.join(choices)})"
    return f"known: {', '.join(choices)}"
