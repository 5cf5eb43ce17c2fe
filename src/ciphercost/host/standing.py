"""standing: whether a process that a measurement needs still stands: it may have died, lost a process that it had started, or been
stopped (SIGSTOP). I/O: reads /proc and logs.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from ciphercost.host.process_state import Patience, died_of, go_on, is_stopped
from ciphercost.host.procfs import tree
from ciphercost.host.run_ownership import start_time
from ciphercost.model.errors import RunError

MOST_READ = 1 << 20
"""Bytes of a log that are read at a time. What a server prints beyond that between two looks is not searched."""
CRASHED = re.compile(
    r"^.*(?:\[alert\] \d+#\d+: .* process \d+ exited on signal \d+"  # nginx
    r"|LOG:  .* \(PID \d+\) was terminated by signal \d+).*$",  # PostgreSQL
    re.MULTILINE,
)
"""What servers log when a process that they started was killed, or crashed."""


class Standing:
    """One process that must live as long as the load, and what its logs say of those that it started."""

    def __init__(
        self,
        what: str,
        pid: int,
        logs: Iterable[Path] = (),
        status: Callable[[], int | None] = lambda: None,
        *,
        lasting: bool = False,
    ) -> None:
        """`what`: for messages. `logs`: of the server, from here on. `status`: how it ended, if that is known. `lasting`: the processes
        that it starts live as long as it does.
        """
        self.what = what
        self.pid = pid
        self._start = start_time(pid)
        self._status = status
        self._logs = {path: _size(path) for path in logs}
        self._patience = Patience(what, pid)
        self._lasting = lasting
        self._children: dict[int, str] = {}
        """Start times."""

    def died(self) -> str:
        """What died, as a sentence; empty: nothing did."""
        if start_time(self.pid) != self._start:
            status = None
            with contextlib.suppress(RunError):  # the supervisor is gone too
                status = self._status()
            how = f", {died_of(status)}" if status is not None else ""
            return f"{self.what} (process {self.pid}) died during the measurement{how}"
        line = next(filter(None, map(self._crash, self._logs)), "") or self._lost()
        return f"a process of {self.what} (process {self.pid}) died during the measurement: {line}" if line else ""

    def _lost(self) -> str:
        """A process, seen at an earlier look, that should live as long as its parent and does not; empty: none."""
        if not self._lasting:
            return ""
        lost = [pid for pid, start in self._children.items() if start_time(pid) != start]
        self._children |= {pid: start for pid in tree(self.pid)[1:] if (start := start_time(pid))}
        return f"process {lost[0]}" if lost else ""

    def _crash(self, log: Path) -> str:
        """The line of a log, since the last look, that reports the death of a process; empty: none."""
        begin, size = self._logs[log], _size(log)
        if size <= begin:
            return ""
        with log.open("rb") as file:
            file.seek(begin)
            text = file.read(MOST_READ)
        # The last line may not be whole yet.
        whole = text[: text.rfind(b"\n") + 1] or (text if len(text) == MOST_READ else b"")
        self._logs[log] = begin + len(whole)
        match = CRASHED.search(whole.decode(errors="replace"))
        return " ".join(match[0].split())[:300] if match else ""

    def check_answers(self) -> None:
        """Raise RunError if it has been stopped for longer than a login may take. Call it repeatedly."""
        self._patience.check()

    def stopped(self) -> str:
        """What is stopped of it and of the processes that it started, and what to do; empty: nothing is."""
        return next((go_on(self.what, pid) for pid in tree(self.pid) if is_stopped(pid)), "")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
