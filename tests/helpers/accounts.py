"""What each test cost, and which ones failed, in files that `make test` prints after everything else.

Each line of `.make/test-costs.tsv` is a test with its seconds of CPU (its process, the children that it waited for, and the commands that
`warm.run` forked) and of wall clock, setup and teardown included. A fixture counts for the test that asks for it first, and a server of a
fixture for the test after which it ends.
Each line of `.make/tests-failed.txt` is a test that failed, with the last line of its error.

A test has a budget of CPU seconds, which depend little on what else the machine does. `tests/costs.tsv` lists the tests that need more, in
the same format. `make test` fails if a test takes several times its budget. `python tests/helpers/accounts.py` writes that list anew from
the last `make test`.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import repetitions
import warm

ROOT = Path(__file__).parents[2]
DIRECTORY = ROOT / ".make"
LISTED = ROOT / "tests" / "costs.tsv"
BUDGET = 5.0
"""CPU seconds of a test that `costs.tsv` does not list."""
LONG = 10.0
"""Seconds of wall clock from which it is listed too, for the order of files."""
LENIENT = 10.0
"""How many times its budget a test may take: another CPU, cores whose caches others use as well, and a server that ends after another test."""
COSTS = "test-costs.tsv"
FAILED = "tests-failed.txt"
CPU = "cpu_seconds"


class Cost(NamedTuple):
    cpu: float
    wall: float


def read(path: Path) -> dict[str, Cost]:
    """Costs by test. Of a test in several lines (by `make test`'s two runs) the last counts."""
    lines = [line.split("\t", 2) for line in path.read_text().splitlines()]
    return {test: Cost(float(cpu), float(wall)) for cpu, wall, test in lines}


@cache
def listed() -> dict[str, Cost]:
    """What `costs.tsv` lists."""
    return read(LISTED)


def beyond(cpu: Mapping[str, float], listed: Mapping[str, Cost]) -> dict[str, str]:
    """For each test that cost too much, what to do. Pure."""
    allowed = {test: max(BUDGET, listed[test].cpu if test in listed else 0.0) for test in cpu}
    return {
        test: f"took {spent:.1f} s of CPU, and {allowed[test]:g} s is its budget: make it cheaper, or list it in tests/costs.tsv"
        for test, spent in cpu.items()
        if spent > LENIENT * allowed[test]
    }


def to_list(costs: Mapping[str, Cost]) -> list[str]:
    """Lines of `costs.tsv`: the tests with a budget of their own, and those that take long. Pure."""
    dear = {test: each for test, each in costs.items() if each.cpu > BUDGET or each.wall > LONG}
    return [f"{each.cpu:.0f}\t{each.wall:.0f}\t{test}" for test, each in sorted(dear.items())]


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
                self.cpu[report.nodeid] = float(str(value))
        if report.failed:
            self._failed(report.nodeid, report.longreprtext)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._failed(report.nodeid, report.longreprtext)

    def _failed(self, test: str, error: str) -> None:
        lines = [line for line in error.splitlines() if line.startswith("E  ")] or error.splitlines() or [""]
        self.failed[test] = lines[0].removeprefix("E").strip()[:300]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        # Some tests run a pytest of their own, whose tests are to fail.
        if self.worker or "PYTEST_XDIST_WORKER" in os.environ or not DIRECTORY.is_dir():
            return
        dear = beyond(self.cpu, listed()) if repetitions.QUICK else {}
        self.failed |= {test: text for test, text in dear.items() if test not in self.failed}
        if dear and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        with (DIRECTORY / COSTS).open("a") as costs:
            for test in sorted(self.wall):
                costs.write(f"{self.cpu.get(test, 0.0):.2f}\t{self.wall[test]:.2f}\t{test}\n")
        with (DIRECTORY / FAILED).open("a") as failed:
            for test, error in self.failed.items():
                failed.write(f"{test}\n    {error}\n")


if __name__ == "__main__":
    LISTED.write_text("".join(f"{line}\n" for line in to_list(read(DIRECTORY / COSTS))))
