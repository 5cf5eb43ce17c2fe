"""What each test cost, and which ones failed, in files that `make test` prints after everything else.

Each line of `.make/test-costs.tsv` is a test with its seconds of CPU (its process, the children that it waited for, and the commands that
`warm.run` forked) and of wall clock, setup and teardown included. A fixture counts for the test that asks for it first, and a server of a
fixture for the test after which it ends.
Each line of `.make/tests-failed.txt` is a test that failed, with the last line of its error.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import warm

DIRECTORY = Path(__file__).parents[2] / ".make"
COSTS = "test-costs.tsv"
FAILED = "tests-failed.txt"
CPU = "cpu_seconds"


def _cpu() -> float:
    """Seconds of CPU of this process, of all children that it waited for, and of all commands that ran in forks."""
    return sum(os.times()[:4]) + warm.cpu_seconds()


class Accounts:
    """A plugin of pytest: in each worker of pytest-xdist it measures, in the controller it writes the files."""

    def __init__(self, config: pytest.Config) -> None:
        self.worker = hasattr(config, "workerinput")
        self.cpu: dict[str, float] = {}
        self.wall: dict[str, float] = defaultdict(float)
        self.failed: dict[str, str] = {}
        self.since = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        self.since = _cpu()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        if call.when == "teardown":
            item.user_properties.append((CPU, _cpu() - self.since))
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.wall[report.nodeid] += report.duration
        for name, value in report.user_properties:
            if name == CPU:
                self.cpu[report.nodeid] = float(value)
        if report.failed:
            self._failed(report.nodeid, report.longreprtext)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._failed(report.nodeid, report.longreprtext)

    def _failed(self, test: str, error: str) -> None:
        lines = [line for line in error.splitlines() if line.startswith("E  ")] or error.splitlines() or [""]
        self.failed[test] = lines[0].removeprefix("E").strip()[:300]

    def pytest_sessionfinish(self) -> None:
        # Some tests run a pytest of their own, whose tests are to fail.
        if self.worker or "PYTEST_XDIST_WORKER" in os.environ or not DIRECTORY.is_dir():
            return
        with (DIRECTORY / COSTS).open("a") as costs:
            for test in sorted(self.wall):
                costs.write(f"{self.cpu.get(test, 0.0):.2f}\t{self.wall[test]:.2f}\t{test}\n")
        with (DIRECTORY / FAILED).open("a") as failed:
            for test, error in self.failed.items():
                failed.write(f"{test}\n    {error}\n")
