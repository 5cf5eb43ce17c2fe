"""supervisor_channel: the supervisor's process as its client sees it: requests and answers over two pipes, each within a limit."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

from ciphercost.host.process_state import Patience, is_stopped
from ciphercost.host.run_ownership import SUPERVISOR
from ciphercost.model.errors import RunError

TITLE = "this run's supervisor process"
GONE = f"{TITLE} is gone, and so is everything it had started. Start the run again."
LOOK_SECONDS = 1.0
"""Between two looks at a supervisor that has not answered yet."""
LIMIT_SECONDS = 120.0
"""For a request, beside the time that it asks for itself."""
UNDO_SECONDS = 600.0
"""For undoing everything: each process may take seconds to end, and each command that undoes something up to a minute."""
READ = 1 << 16


class Channel:
    """One supervisor process."""

    def __init__(self, run_id: str, mark: Mapping[str, str]) -> None:
        """Start it. `mark`: variables by which its process, and all that it starts, are known."""
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(SUPERVISOR), run_id, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C at the terminal is for the controller only
            cwd="/",
            env={**mark, "PATH": os.environ.get("PATH", os.defpath)},
            bufsize=0,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._stdin, self._stdout = self.process.stdin, self.process.stdout
        os.set_blocking(self._stdin.fileno(), False)
        self._unsent = b""
        self._received = b""
        self._number = 0
        self.patience = Patience(TITLE, self.process.pid)

    def ask(self, request: Mapping[str, object], limit: float) -> dict[str, Any]:
        """Send one request and return its answer; empty: the process is gone. Raises RunError if it stays stopped, or does not
        answer within `limit` seconds.
        """
        self._number += 1
        self._unsent += json.dumps({**request, "number": self._number}).encode() + b"\n"
        until = time.monotonic() + limit
        try:
            while True:
                line = self._line(until, limit)
                answer: dict[str, Any] = json.loads(line) if line else {}
                if not answer or answer["number"] == self._number:  # else: the answer to an interrupted request
                    return answer
        except (BrokenPipeError, ValueError):
            return {}

    def _line(self, until: float, limit: float) -> bytes:
        """The next line that it writes, sending meanwhile what is still to be sent. Empty at the end."""
        while b"\n" not in self._received:
            poll = select.poll()
            poll.register(self._stdout, select.POLLIN)
            if self._unsent:
                poll.register(self._stdin, select.POLLOUT)
            ready = dict(poll.poll(1e3 * LOOK_SECONDS))
            if self._stdin.fileno() in ready:
                self._unsent = self._unsent[self._stdin.write(self._unsent) or 0 :]
            if self._stdout.fileno() in ready:
                data = os.read(self._stdout.fileno(), READ)
                if not data:
                    return b""
                self._received += data
            if not ready:
                self.patience.check()
                if time.monotonic() > until:
                    raise RunError(f"{TITLE} (process {self.process.pid}) did not answer within {limit:g} s")
        line, _, self._received = self._received.partition(b"\n")
        return line

    def continued(self) -> bool:
        """Let it go on if it is stopped. Returns whether it was."""
        stopped = is_stopped(self.process.pid)
        if stopped:
            self.process.send_signal(signal.SIGCONT)
        return stopped

    def end(self, *, kill: bool) -> None:
        """Close the pipes and wait for its end. `kill`: it does not answer, so end it by force."""
        for pipe in (self._stdin, self._stdout):
            pipe.close()
        if kill:
            self.process.kill()
        try:
            self.process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
