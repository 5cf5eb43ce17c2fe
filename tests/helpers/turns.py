"""Which file of tests a worker of pytest-xdist gets next. Files stay whole, since their tests share servers.

Files that start servers or measured runs go to as many workers as there are cores, so that runs disturb each other little. Meanwhile the
other workers take the files that only compute, which step back behind the runs; when none is left, they help with the others.
Of each kind the file that takes longest comes first, so that no worker is busy with a long one when the others have ended.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

import accounts

STARTS = re.compile(
    r"^import (warm|short|steady)$|^from test_(real|user_server|grants) import|\brequire_(server|postgresql|java)\b|\b[Ss]upervisor\b|\buser_server\b"
    r"|\bAgent\(|\bPopen\b",
    re.MULTILINE,
)
"""What the text of a file has that starts processes which wait, measure or have deadlines."""
STEP_BACK = 5
"""Nice value of tests that only compute: about a quarter of a core that a run wants too."""
WAITING, COMPUTING = 0.5, 0.05
"""Seconds of a test that `costs.tsv` does not name."""


@cache
def starts_processes(file: str) -> bool:
    """Whether tests of this file (relative to the repository) start servers or measured runs."""
    return STARTS.search((accounts.ROOT / file).read_text()) is not None


class Turns(LoadFileScheduling):  # type: ignore[misc] # pytest-xdist has no types
    """The scheduler."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        self.walls = {test: each.wall for test, each in accounts.listed().items()}

    def _assign_work_unit(self, node: WorkerController) -> None:
        waits = int(node.gateway.id.removeprefix("gw")) < (os.cpu_count() or 1)
        self.workqueue.move_to_end(max(self.workqueue, key=lambda file: self._rank(file, waits)), last=False)
        super()._assign_work_unit(node)

    def _rank(self, file: str, waits: bool) -> tuple[bool, float]:
        """Whether a file is of the kind that a worker takes first, and about how many seconds it takes."""
        usual = WAITING if starts_processes(file) else COMPUTING
        seconds = sum(self.walls.get(test, usual) for test in self.workqueue[file])
        return starts_processes(file) == waits, seconds


class StepsBack:
    """A plugin of pytest: in a worker, tests that only compute run at a lower priority, if a process may raise its own again."""

    def __init__(self) -> None:
        self.usual = os.getpriority(os.PRIO_PROCESS, 0)
        self.may = "PYTEST_XDIST_WORKER" in os.environ and self._may_return()

    def _may_return(self) -> bool:
        os.setpriority(os.PRIO_PROCESS, 0, self.usual + 1)
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, self.usual)
        return os.getpriority(os.PRIO_PROCESS, 0) == self.usual

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        if self.may:
            file = Path(item.path).relative_to(accounts.ROOT)
            os.setpriority(os.PRIO_PROCESS, 0, self.usual + (0 if starts_processes(str(file)) else STEP_BACK))
        return (yield)
