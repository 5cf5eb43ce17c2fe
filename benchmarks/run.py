"""Runs the benchmarks named on the command line (default: all) and writes benchmarks/latest.json and a table.

    python benchmarks/run.py [load_generator] [script_load] [web_load] [kv_load] [threads] [controller] [report] [old_way] [a_a] [compare_a_a] [halts]

Each row has a ratio with its 95 % interval and the aim: ours ÷ peer's, or limit ÷ ours without a peer. Higher is better.
"""

from __future__ import annotations

import importlib
import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import NotRequired, TypedDict

from ciphercost.host import idle, supervisor
from ciphercost.model import run_directory

HERE = Path(__file__).parent
BENCHES = (
    "load_generator",
    "script_load",
    "web_load",
    "kv_load",
    "threads",
    "controller",
    "report",
    "old_way",
    "a_a",
    "compare_a_a",
    "halts",
)
PEERS = ("load_generator", "script_load", "web_load", "kv_load")
"""Benchmarks that start a peer. If possible, client and server cores poll for both sides alike."""


class Row(TypedDict):
    bench: str
    row: str
    ratio: float
    low: float
    high: float
    aim: float
    idle: NotRequired[str]
    """What idle cores did while a peer was measured: `poll` or `halt`."""


def table(rows: list[Row]) -> str:
    """The row as text."""
    lines = [f"{'bench':<16} {'row':<58} {'ratio':>7} {'95 % interval':>17} {'aim':>5}"]
    for row in rows:
        mark = "" if row["ratio"] >= row["aim"] else "  below its aim"
        span = f"{row['low']:.3f} to {row['high']:.3f}"
        lines.append(f"{row['bench']:<16} {row['row']:<58} {row['ratio']:>7.3f} {span:>17} {row['aim']:>5.1f}{mark}")
    return "\n".join(lines)


def measured(name: str) -> list[Row]:
    """The rows of one benchmark."""
    bench = importlib.import_module(name)
    if name not in PEERS:
        rows: list[Row] = bench.rows()
        return rows
    with ExitStack() as stack:
        run_supervisor = stack.enter_context(supervisor.Supervisor(run_directory.new_id()))
        mode = stack.enter_context(idle.all_awake(run_supervisor))
        found: list[Row] = bench.rows()
        for row in found:
            row["idle"] = mode
        return found


def main() -> None:
    wanted = sys.argv[1:] or list(BENCHES)
    if unknown := [name for name in wanted if name not in BENCHES]:
        sys.exit(f"no benchmark named {', '.join(unknown)}; there are {', '.join(BENCHES)}")
    latest = HERE / "latest.json"
    kept: list[Row] = json.loads(latest.read_text()) if latest.exists() else []
    for name in wanted:
        print(f"── {name}", flush=True)
        rows = measured(name)
        kept = [row for row in kept if row["bench"] != name] + rows
        kept.sort(key=lambda row: BENCHES.index(row["bench"]))
        latest.write_text(json.dumps(kept, indent=1) + "\n")
    print(table(kept))


if __name__ == "__main__":
    main()
