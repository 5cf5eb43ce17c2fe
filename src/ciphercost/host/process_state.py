"""process_state: whether a process is stopped (SIGSTOP), how it ended, and what to say about that."""

from __future__ import annotations

import contextlib
import signal
import time
from pathlib import Path

from ciphercost.host import deadlines
from ciphercost.model.errors import RunError


def state(pid: int) -> str:
    """A process's state, one letter (`R`, `S`, `T` …); empty if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def is_stopped(pid: int) -> bool:
    """Whether a signal (SIGSTOP) or a debugger stopped the process."""
    return state(pid) in ("T", "t")


def go_on(what: str, pid: int) -> str:
    """What is wrong with a stopped process, and what to do. Pure."""
    return f"{what} (process {pid}) is stopped, so it does not answer; continue it with: kill -CONT {pid}"


def died_of(status: int) -> str:
    """`killed by SIGKILL`, `exit status 3`: how a process ended, from its status (negative: a signal). Pure."""
    if status >= 0:
        return f"exit status {status}"
    with contextlib.suppress(ValueError):
        return f"killed by {signal.Signals(-status).name}"
    return f"killed by signal {-status}"


FEW_SECONDS = 5.0
"""Between two checks: after more, the process may have gone on meanwhile and have been stopped again, as a server is while the other
arm is measured.
"""


class Patience:
    """How long a process has been stopped."""

    def __init__(self, what: str, pid: int) -> None:
        """`what`: for messages."""
        self._what = what
        self._pid = pid
        self._since = self._checked = 0.0

    def check(self) -> None:
        """Raise RunError if it has been stopped for longer than a login may take. Call it repeatedly, about once a second."""
        now, before = time.monotonic(), self._checked
        self._checked = now
        if not is_stopped(self._pid):
            self._since = 0.0
            return
        if not self._since or now - before > FEW_SECONDS:
            self._since = now
        if now - self._since > deadlines.login():
            raise RunError(go_on(self._what, self._pid))
