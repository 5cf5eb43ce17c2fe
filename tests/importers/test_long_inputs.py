"""Long files, and files with a garbled line: reading them takes time in proportion to their size.

Each input takes a tenth of a second, and took minutes where a pattern or a loop began again at each character, line or run.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from ciphercost.importers import csv_columns, gather
from ciphercost.importers.choices import Choices
from ciphercost.model.errors import UsageError

SAMPLES = Path(__file__).parent / "samples"
CPU_SECONDS = 20.0
LONG = 200_000
COLUMNS = csv_columns.columns("throughput=tps")
PGBENCH = """\
transaction type: <builtin: select only>
scaling factor: 1
query mode: simple
number of clients: 1
number of threads: 1
duration: 10 s
number of transactions actually processed: 10000
latency average = 1.000 ms
initial connection time = 2.000 ms
tps = 1000.000000 (without initial connection time)
"""


@pytest.fixture(autouse=True)
def limited() -> Iterator[None]:
    """CPU time, not time, so that a busy machine is no failure."""

    def stop(*_: object) -> None:
        raise AssertionError(f"more than {CPU_SECONDS:g} s of CPU time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


def read(text: str, directory: Path) -> int:
    """The number of runs in a text; 0: it is refused."""
    (directory / "plain.txt").write_text(text)
    try:
        return len(gather.gather([directory / "plain.txt"], Choices(only="plain"))[0].readings)
    except UsageError:
        return 0


def garbled(name: str, beside: str, piece: str) -> str:
    """A sample with a line before this one that has a long run of a piece in its middle."""
    text = (SAMPLES / name).read_text()
    line = next(line for line in text.split("\n") if beside in line)
    half = len(line) // 2
    return text.replace(line, f"{line[:half]}{piece * (LONG // len(piece))}{line[half:]}\n{line}", 1)


@pytest.mark.parametrize("piece", [" ", "9", "a ", "9.9", "-", "a="])
@pytest.mark.parametrize(
    ("name", "beside"),
    [
        ("criterion.txt", "time:"),
        ("hey.txt", "Requests/sec"),
        ("autocannon.txt", "Req/Sec"),
        ("k6.txt", "http_reqs"),
        ("jmh.txt", "thrpt"),
        ("fio.txt", "IOPS="),
        ("cassandra_stress.txt", "Op rate"),
        ("siege.txt", "Transaction rate"),
    ],
)
def test_a_garbled_line_takes_no_longer_than_its_length(name: str, beside: str, piece: str, tmp_path: Path) -> None:
    assert read(garbled(name, beside, piece), tmp_path) == read((SAMPLES / name).read_text(), tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        '{"state": 1}\n' * (LONG // 10),
        '[{"benchmark": ' + '"benchmark": ' * (LONG // 13),
        "Execution time: " + "9" * LONG,
        "Execution time" + " " * LONG + "x: 4.1 s",
        "tps;name\n" + f"12{' ' * LONG}3;x\n",
        "tps;name\n" + f"{'9.9' * LONG};x\n",
    ],
    ids=["json lines", "keys", "digits", "spaces", "spaces in a table", "digits in a table"],
)
def test_what_looks_like_a_format_at_every_place_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text(text)
    with pytest.raises(UsageError):
        gather.gather([tmp_path / "plain.txt"], Choices(only="plain", columns=COLUMNS))


def test_many_runs_below_many_headings(tmp_path: Path) -> None:
    runs = 4000
    assert read(f"$ pgbench -S -T 10\n{PGBENCH}" * runs, tmp_path) == runs
