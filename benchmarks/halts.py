"""How halting idle cores changes a cost: five servers, both modes alternating in one experiment each, three runs.

Prints half-width and spread of the cost in throughput and in server CPU per operation, and the added CPU in µs. Needs root.
"""

from __future__ import annotations

import math
import os
import statistics as st
import tempfile
from pathlib import Path

from ciphercost.host import idle
from ciphercost.model.result import Cell, Estimate
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import matrix
from ciphercost.runs import pipeline
from run import Row

RUNS, SECONDS, CLIENTS = 3, 15.0, 8
MODES = ("poll", "halt")
CELLS = (
    CellSpec("postgresql", "tls", clients=CLIENTS),
    CellSpec("mysql", "tls", clients=CLIENTS),
    CellSpec("mariadb", "tls", clients=CLIENTS),
    CellSpec("firebird", "wire-crypt", clients=CLIENTS),
    CellSpec("nginx", "tls", workload="small-api", clients=CLIENTS),
)
METRICS = (("server_cpu_per_op", "server CPU/op"), ("throughput", "operations/s"))


def rows() -> list[Row]:
    """A row per server: how much narrower the interval of server CPU per operation is if cores don't halt."""
    cpus = os.sched_getaffinity(0)
    if reason := idle.obstacle(cpus, cpus):
        raise SystemExit(f"halts: {reason}")
    found: list[Row] = []
    for cell in CELLS:
        runs = [one(cell, seed) for seed in range(1, RUNS + 1)]
        print(f"  {runs[0][0].engine} {runs[0][0].version} {cell.mechanism} {runs[0][0].workload}", flush=True)
        for number, mode in enumerate(MODES):
            for key, label in METRICS:
                print(f"    {mode}  {label:<14}{summary([run[number] for run in runs], key)}", flush=True)
        widths = [math.log(half(run[1]) / half(run[0])) for run in runs]
        mean, error = st.mean(widths), st.stdev(widths) / math.sqrt(RUNS)
        reach = 4.303 * error  # t with two degrees of freedom
        found.append(
            {
                "bench": "halts",
                "row": f"{cell.engine}: half-width of server CPU/op, halting ÷ polling",
                "ratio": math.exp(mean),
                "low": math.exp(mean - reach),
                "high": math.exp(mean + reach),
                "aim": 1.0,
            }
        )
    return found


def one(cell: CellSpec, seed: int) -> list[Cell]:
    """Both modes, in the order of MODES."""
    cells = matrix.matrix(cell, [f"idle={','.join(MODES)}"])
    asked = Spec(cells=cells, seed=seed, mode="quick", sessions=1, time=SECONDS, latency=False)
    with tempfile.TemporaryDirectory() as place:
        made = pipeline.run(asked, Path(place) / "run").cells
    for each in made:
        assert each.status == "ok", each.reason
    return made


def half(cell: Cell, key: str = "server_cpu_per_op") -> float:
    """Half-width of the log ratio's interval."""
    estimate = cell.overhead[key]
    return (math.log(estimate.high) - math.log(estimate.low)) / 2


def summary(cells: list[Cell], key: str) -> str:
    """Cost and half-width of each run, their spread, and the added CPU."""
    estimates: list[Estimate] = [cell.overhead[key] for cell in cells]
    costs = [100 * (each.ratio - 1) for each in estimates]
    text = "  ".join(f"{cost:+6.1f} % ± {100 * half(cell, key):.1f}" for cost, cell in zip(costs, cells, strict=True))
    text += f"   spread {max(costs) - min(costs):.1f} points"
    if key == "server_cpu_per_op":
        text += "   added " + ", ".join(f"{cell.added['server_cpu'].mean:.2f}" for cell in cells) + " µs"
    return text
