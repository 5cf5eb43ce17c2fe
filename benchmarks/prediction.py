"""What `predict` says against what is measured, for workloads that were not used to fit the parts.

Each server is measured twice: with the cells that its costs are fitted to (`--split` in transit), and with other workloads, statements and
sizes. For each of these `predict` gets the plain arm's rate, CPU time, round trips, bytes and connections, or the pages of an operation,
and says what encryption adds; the other run has measured that.

    python benchmarks/prediction.py [SECONDS] [SERVER:MECHANISM…] [--keep DIRECTORY [--judge]] [--note TEXT]

prints a table of errors and the share of measured values within the predicted interval, widened by the measured one's own error, and
writes benchmarks/prediction.json. With --keep the runs stay in DIRECTORY, and those that are there already are not measured again; with
--judge no others are.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ciphercost.estimate import model_error, parts, prediction, unit_costs
from ciphercost.model.errors import UsageError
from ciphercost.model.prediction import Load
from ciphercost.model.result import Cell, Result
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import matrix
from ciphercost.runs import conclude, pipeline

SURE = 0.5
"""Half-width of a measured value, as a share of the predicted one, up to which it can tell whether the prediction is right."""
NORMAL = 1.96
SECONDS = 6.0
"""Of load, for each cell."""
TARGETS = (
    "postgresql:tls",
    "mysql:tls",
    "mariadb:tls",
    "nginx:tls",
    "valkey:tls",
    "sqlite:sqlcipher",
    "mysql:innodb-tde",
    "mariadb:mariadb-tde",
)
SQL = ("insert", "mixed-crud", "tpcb", "scan", "hospital-sql", "search")
"""Workloads for SQL servers; those that a server does not have are left out."""
LOOPS = {
    "postgresql": "SELECT count(*) FROM generate_series(1, {n});",
    "mysql": "SELECT BENCHMARK({n}, SHA2('when', 256));",
    "mariadb": "SELECT BENCHMARK({n}, SHA2('when', 256));",
}
"""Own statements that take longer with n."""
LENGTHS = (500, 5_000, 50_000)
"""n: about 0.1, 1 and 10 ms."""
FILES = ("3KB", "30KB", "300KB", "3MB")
VALUES = (("300", 0), ("4KB", 0), ("30KB", 1000))
"""Size and rows."""
SMALL_ROWS = 4000
"""Of a table that is many times larger than a small cache, and quickly read."""


def fitted(target: CellSpec) -> list[CellSpec]:
    """The cells that the costs are fitted to."""
    if target.mechanism == "tls":
        return matrix.split(target)
    return [
        CellSpec(target.engine, target.mechanism, workload="point-select", cache="small"),
        CellSpec(target.engine, target.mechanism, workload="insert"),
        CellSpec(target.engine, target.mechanism, workload="mixed-crud", cache="small"),
    ]


def held_out(target: CellSpec, place: Path) -> Iterator[CellSpec]:
    """Cells that no cost is fitted to."""
    server, mechanism = target.engine, target.mechanism
    if mechanism != "tls":
        yield from (CellSpec(server, mechanism, workload=each, cache="small") for each in ("scan", "insert", "search"))
        yield CellSpec(server, mechanism, workload="mixed-crud")
        yield CellSpec(server, mechanism, workload="tpcb")
        yield CellSpec(server, mechanism, workload="point-select", rows=SMALL_ROWS, cache="small")
    elif server == "nginx":
        yield from (CellSpec(server, mechanism, workload="file", factors={"size": size}) for size in FILES)
        yield CellSpec(server, mechanism, workload="page")
    elif server == "valkey":
        yield CellSpec(server, mechanism, workload="kv-set")
        for size, rows in VALUES:
            yield CellSpec(server, mechanism, workload="kv-get", rows=rows, factors={"size": size})
    else:
        yield from (CellSpec(server, mechanism, workload=each) for each in SQL)
        yield CellSpec(server, mechanism, workload="bulk-read", factors={"size": "30KB"})
        for n in LENGTHS:
            script = place / f"{server}-{n}.sql"
            script.write_text(LOOPS[server].format(n=n))
            yield CellSpec(server, mechanism, sql=str(script))


def run(cells: Sequence[CellSpec], seconds: float, directory: Path) -> Result:
    if (directory / "result.json").exists():
        return conclude.result_of(directory)
    spec = Spec(cells=list(cells), seed=1, mode="quick", sessions=1, time=seconds, latency=False)
    return pipeline.run(spec, directory)


def name(cell: CellSpec) -> str:
    """Of the directory of a held-out cell's run."""
    return "-".join(
        filter(
            None,
            (
                Path(cell.script_names).stem if cell.sql else cell.workload,
                cell.factors.get("size", ""),
                cell.cache,
                f"{cell.rows or ''}",
            ),
        )
    )


def measure(
    targets: Sequence[str], seconds: float, place: Path, judge: bool
) -> Iterator[tuple[str, Result, list[Cell]]]:
    """(target, run of the fitted cells, cells that were held out)."""
    for target in targets:
        engine, _, mechanism = target.partition(":")
        cell = CellSpec(engine, mechanism)
        own = place / target.replace(":", "-")
        own.mkdir(parents=True, exist_ok=True)
        known = run(fitted(cell), seconds, own / "fitted")
        others: list[Cell] = []
        for each in held_out(cell, own):
            if judge and not (own / name(each) / "result.json").exists():
                continue
            try:
                others += run([each], seconds, own / name(each)).cells
            except UsageError as error:
                print(f"  {target} {each.workload or each.sql}: {error}", flush=True)
        yield target, known, others


class Compared(NamedTuple):
    """One held-out cell; µs of CPU time that encryption adds to an operation."""

    target: str
    workload: str
    plain_us: float
    measured_us: float
    measured_half: float
    predicted_us: float
    low_us: float
    high_us: float
    fit_half: float
    """Half-width without the model's error."""
    round_trips: float

    @property
    def within(self) -> bool:
        """Whether measured and predicted agree: their difference is within both half-widths together, as independent errors add."""
        return abs(self.measured_us - self.predicted_us) <= math.hypot(self.half, self.measured_half)

    @property
    def half(self) -> float:
        return (self.high_us - self.low_us) / 2

    @property
    def tells(self) -> bool:
        """Whether the measured value is exact enough to refute a prediction that is off by half."""
        return self.measured_half <= SURE * abs(self.predicted_us)

    @property
    def off(self) -> float:
        """Measured against predicted, as a share of it."""
        return self.measured_us / self.predicted_us - 1

    @property
    def error(self) -> float:
        """Standard error of `off`."""
        return math.hypot(self.measured_half, self.fit_half) / NORMAL / abs(self.predicted_us)


def load(cell: Cell) -> Load:
    """What a server with this cell's plain arm does."""
    arm = cell.arms["plain"]
    rate = arm["throughput"]
    cpu = arm["client_cpu_us_per_op" if cell.embedded else "server_cpu_us_per_op"]
    if cell.layer == "rest":
        return Load(rate, cpu, units={unit: each * rate for unit, each in unit_costs.work_of(cell).items()})
    connections = rate * arm.get("connects", 0) / max(1, arm["operations"])
    return Load(rate, cpu, arm["wire_bytes_per_op"], connections, round_trips=parts.round_trips(cell))


def compared(target: str, known: Result, cell: Cell) -> Compared | None:
    """None, with a line that says why, if the cell has no figure or the fit can't predict it."""
    measured = cell.added.get("client_cpu" if cell.embedded else "server_cpu")
    named = f"{cell.workload} {cell.factors.get('size', '')}".strip()
    if cell.status != "ok" or measured is None:
        print(f"  {target} {named}: {cell.status} {cell.reason}", flush=True)
        return None
    of = load(cell)
    if cell.layer == "rest" and not of.units:
        print(f"  {target} {named}: reads and writes no pages, so there is nothing to predict", flush=True)
        return None
    try:
        (made,) = prediction.predict(known, of)
        with model(0.0):
            (fit,) = prediction.predict(known, of)
    except UsageError as error:
        print(f"  {target} {named}: {error}", flush=True)
        return None
    added, alone = made.added_us, fit.added_us
    return Compared(
        target,
        named,
        of.cpu_us,
        measured.mean,
        (measured.high - measured.low) / 2,
        added.value,
        added.low,
        added.high,
        (alone.high - alone.low) / 2,
        of.round_trips,
    )


@contextmanager
def model(tau: float) -> Iterator[None]:
    """Predict with another standard deviation of the model. 0: none, not even the fit's own."""
    before = model_error.USUAL, model_error.SERVERS
    model_error.USUAL = tau
    model_error.SERVERS = before[1] if tau else 10**9
    yield
    model_error.USUAL, model_error.SERVERS = before


def without(left_out: str, rows: Sequence[Compared]) -> float:
    """τ as the other servers show it."""
    others = [each for each in rows if each.target.partition(":")[0] != left_out]
    return model_error.pooled([each.off for each in others], [each.error for each in others])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("given", nargs="*")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--judge", action="store_true")
    parser.add_argument("--note", default="", help="how the machine was, for the JSON")
    options = parser.parse_args()
    given = list(options.given)
    seconds = float(given.pop(0)) if given and given[0].replace(".", "").isdigit() else SECONDS
    pairs: list[tuple[str, Result, Cell]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for target, known, others in measure(given or TARGETS, seconds, options.keep or Path(scratch), options.judge):
            pairs += [(target, known, each) for each in others]
    rows = list(filter(None, (compared(*each) for each in pairs)))
    for each in rows:
        print(line(each))
    tau = model_error.pooled([each.off for each in rows], [each.error for each in rows])
    summary = {
        "seconds": seconds,
        "note": options.note,
        "rows": len(rows),
        "within": sum(each.within for each in rows),
        "telling": sum(each.tells for each in rows),
        "telling_within": sum(each.within for each in rows if each.tells),
        "tau": round(tau, 3),
    }
    print(json.dumps(summary))
    # The model's error is known from these servers, so each is judged once more with what only the others show.
    blind = []
    for target, known, cell in pairs:
        with model(without(target.partition(":")[0], rows)):
            if (one := compared(target, known, cell)) is not None:
                blind.append(one)
    summary |= {
        "blind_within": sum(each.within for each in blind),
        "blind_telling_within": sum(each.within for each in blind if each.tells),
    }
    print(json.dumps(summary))
    found = summary | {"compared": [each._asdict() | {"within": each.within, "tells": each.tells} for each in rows]}
    (Path(__file__).parent / "prediction.json").write_text(json.dumps(found, indent=1) + "\n")


def line(of: Compared) -> str:
    return (
        f"{of.target:<19} {of.workload:<19} {of.plain_us:>9.1f} µs plain  measured +{of.measured_us:.2f} ± {of.measured_half:.2f}  "
        f"predicted +{of.predicted_us:.2f} ({of.low_us:.2f} to {of.high_us:.2f})  {'ok' if of.within else 'OUTSIDE'}"
        f"{'' if of.tells else ' (measured too roughly to tell)'}"
    )


if __name__ == "__main__":
    main()
