"""process_end: waits for the end of processes that are not our children, and kills whole trees of them."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterator

from ciphercost.host.procfs import tree
from ciphercost.host.run_ownership import start_time
from ciphercost.model.errors import RunError


@contextlib.contextmanager
def held(pid: int, start: str) -> Iterator[int]:
    """A pidfd of the process that has this start time, which is readable once it has ended; -1 if it has."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        yield -1
        return
    try:
        # With another start time, it has ended, and this is another process.
        yield descriptor if start_time(pid) == start else -1
    finally:
        os.close(descriptor)


def ends(descriptor: int, patience_ms: float) -> bool:
    """Whether the process of a pidfd ends within this time."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(patience_ms))


def kill_tree(root: int, patience_s: float) -> None:
    """Kill a process and everything it started, and wait until all of it is gone. Raises RunError."""
    starts = {pid: start_time(pid) for pid in tree(root)}
    for pid in starts:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + patience_s
    for pid, start in starts.items():
        with held(pid, start) as descriptor:
            if descriptor >= 0 and not ends(descriptor, max(0.0, 1000 * (deadline - time.monotonic()))):
                raise RunError(f"process {pid} does not end, even after SIGKILL")
