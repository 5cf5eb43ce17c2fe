"""What `predict` says against what is measured, for workloads that were not used to fit the parts.

Each server is measured twice: with `--split`, whose cells fit the parts, and with other workloads, statements and sizes. For each of these
`predict` gets the plain arm's rate, CPU time, bytes and connections and says what encryption adds; the other run has measured that.

    python benchmarks/prediction.py [SECONDS] [SERVER…]

prints a table of errors and the share of measured values within the predicted interval, widened by the measured one's own error, and
writes benchmarks/prediction.json.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ciphercost.estimate import prediction
from ciphercost.model.errors import UsageError
from ciphercost.model.prediction import Load
from ciphercost.model.result import Cell, Result
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import matrix
from ciphercost.runs import pipeline

SECONDS = 6.0
"""Of load, for each cell."""
SQL = ("insert", "mixed-crud", "tpcb", "scan", "hospital-sql", "search", "shop")
"""Workloads for SQL servers; those that a server does not have are left out."""
LOOPS = {"postgresql": "SELECT count(*) FROM generate_series(1, {n});"}
"""Own statements that take longer with n."""
LENGTHS = (500, 5_000, 50_000)
"""n: about 0.1, 1 and 10 ms."""
SIZES = ("1KB", "10KB", "100KB", "300KB", "3MB")
SERVERS = ("postgresql", "mysql", "mariadb", "nginx", "valkey")


class Compared(NamedTuple):
    server: str
    workload: str
    plain_us: float
    measured_us: float
    measured_half: float
    predicted_us: float
    low_us: float
    high_us: float

    @property
    def within(self) -> bool:
        """Whether measured and predicted agree: their difference is within both half-widths together, as independent errors add."""
        half = (
            self.high_us - self.predicted_us
            if self.measured_us > self.predicted_us
            else self.predicted_us - self.low_us
        )
        return abs(self.measured_us - self.predicted_us) <= math.hypot(half, self.measured_half)

    @property
    def error(self) -> float:
        """Points of the plain arm's CPU time."""
        return 100 * (self.predicted_us - self.measured_us) / self.plain_us


def held_out(server: str, place: Path) -> Iterator[CellSpec]:
    """Cells that `--split` does not have."""
    known = {each.workload for each in matrix.split(CellSpec(server, "tls"))}
    if server == "nginx":
        yield from (CellSpec(server, "tls", workload="file", factors={"size": size}) for size in SIZES)
        yield CellSpec(server, "tls", workload="page")
    elif server == "valkey":
        yield CellSpec(server, "tls", workload="kv-set")
        yield from (
            CellSpec(server, "tls", workload="kv-get", factors={"size": size}) for size in ("1KB", "10KB", "100KB")
        )
    else:
        yield from (CellSpec(server, "tls", workload=each) for each in SQL if each not in known)
        for n in LENGTHS if server in LOOPS else ():
            script = place / f"{server}-{n}.sql"
            script.write_text(LOOPS[server].format(n=n))
            yield CellSpec(server, "tls", sql=str(script))


def run(cells: Sequence[CellSpec], seconds: float, directory: Path) -> Result:
    spec = Spec(cells=list(cells), seed=1, mode="quick", sessions=1, time=seconds, latency=False)
    return pipeline.run(spec, directory)


def compared(server: str, fitted: Result, cell: Cell) -> Compared | None:
    arm = cell.arms["plain"]
    measured = cell.added.get("server_cpu")
    if cell.status != "ok" or measured is None:
        print(f"  {server} {cell.workload}: {cell.status} {cell.reason}", flush=True)
        return None
    rate = arm["throughput"]
    load = Load(
        rate=rate,
        cpu_us=arm["server_cpu_us_per_op"],
        bytes_per_operation=arm["wire_bytes_per_op"],
        connections=rate * arm.get("connects", 0) / max(1, arm["operations"]),
    )
    (made,) = prediction.predict(fitted, load)
    half = (measured.high - measured.low) / 2
    added = made.added_us
    return Compared(server, cell.workload, load.cpu_us, measured.mean, half, added.value, added.low, added.high)


def main(seconds: float, servers: Sequence[str]) -> None:
    found: list[Compared] = []
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        for server in servers:
            split = matrix.split(CellSpec(server, "tls"))
            fitted = run(split, seconds, place / f"{server}-split")
            others: list[Cell] = []
            for cell in held_out(server, place):
                try:
                    others.append(run([cell], seconds, place / f"{server}-{len(others)}").cells[0])
                except UsageError as error:
                    print(f"  {server} {cell.workload or cell.sql}: {error}", flush=True)
            for measured in others:
                if (one := compared(server, fitted, measured)) is not None:
                    found.append(one)
                    print(line(one), flush=True)
    within = sum(each.within for each in found)
    print(f"{within} of {len(found)} measured values agree with the prediction ({within / max(1, len(found)):.0%})")
    rows = [each._asdict() | {"within": each.within} for each in found]
    (Path(__file__).parent / "prediction.json").write_text(json.dumps(rows, indent=1) + "\n")


def line(of: Compared) -> str:
    return (
        f"{of.server:<11} {of.workload:<14} {of.plain_us:>9.1f} µs plain  measured +{of.measured_us:.2f} ± {of.measured_half:.2f}  "
        f"predicted +{of.predicted_us:.2f} ({of.low_us:.2f} to {of.high_us:.2f})  error {of.error:+.2f} points  "
        f"{'ok' if of.within else 'OUTSIDE'}"
    )


if __name__ == "__main__":
    given = sys.argv[1:]
    seconds = float(given.pop(0)) if given and given[0].replace(".", "").isdigit() else SECONDS
    main(seconds, given or SERVERS)
