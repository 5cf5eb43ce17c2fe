"""`make soak`: half an hour of load from a thousand connections to three servers; does anything grow?

Samples memory, open files and threads of the controller and of every agent each second, and fits a line to the least of
each minute of the second half. The first half is left out: after loading, connecting and warming up, an allocator takes
pages from the system until its free lists cover the worst moment it has seen, which takes an agent about twenty minutes. A
leak goes on growing after that. Nothing grows if the interval of each slope contains zero. All of them together hold in
95 % of soaks (Bonferroni), because one of fifteen 95 % intervals would miss zero in every second soak in which nothing
grows. Writes benchmarks/soak.json.

    python benchmarks/soak.py [--minutes 30]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ciphercost.estimate.student_t import quantile
from ciphercost.host.procfs import tree
from ciphercost.model import run_directory
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import toml

KEPT = Path(__file__).parent / "soak.json"
COMMAND = Path(sys.executable).parent / "ciphercost"
TARGETS = (("postgresql", "point-select"), ("mysql", "point-select"), ("nginx", "small-api"))
CONNECTIONS = 1000
SLICE_S = 0.15
WINDOW_S = 60.0
LEFT_OUT = 0.5
"""Share of the windows, from the start, that the line leaves out."""
LEVEL = 0.95
KINDS = {"memory": "kB", "files": "", "threads": ""}


class Slope(NamedTuple):
    """Change per hour of one process's figure."""

    process: str
    what: str
    per_hour: float
    low: float
    high: float
    level: float
    """Mean of all windows' least figures."""

    @property
    def grows(self) -> bool:
        return self.low > 0


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--minutes", type=float, default=30.0, help="load time. [default: 30; pauses between slices add a half]"
    )
    asked = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="ciphercost-soak-", dir="/var/tmp") as place:
        run, file = Path(place) / "run", Path(place) / "soak.toml"
        file.write_text(toml.dump(spec(60 * asked.minutes)))
        with (Path(place) / "said").open("w+") as said:
            process = subprocess.Popen(
                [str(COMMAND), "run", str(file), "-o", str(run), "--no-progress"], stdout=said, stderr=subprocess.STDOUT
            )
            seen = watch(process)
            said.seek(0)
            text = said.read()
        slices = list(run_directory.read_slices(run))
        failed = sum(bool(each.error) for each in slices)
    level = 1 - (1 - LEVEL) / max(1, len(seen))
    slopes = [found for key, samples in sorted(seen.items()) if (found := slope(*key, samples, level))]
    print(f"{len(slices):,} slices, {failed} of them failed; exit status {process.returncode}")
    for each in slopes:
        unit = KINDS[each.what]
        print(
            f"{each.process:<24} {each.what:<8} {each.level:>12,.0f} {unit:<3} {each.per_hour:>+10.1f} per hour "
            f"({each.low:+.1f} to {each.high:+.1f}){'  GROWS' if each.grows else ''}"
        )
    KEPT.write_text(
        json.dumps({"slices": len(slices), "failed": failed, "slopes": [each._asdict() for each in slopes]}, indent=1)
        + "\n"
    )
    if process.returncode:
        print(text, file=sys.stderr)
    return 1 if process.returncode or failed or any(each.grows for each in slopes) else 0


def spec(seconds: float) -> Spec:
    """Cells that share one session, so that all connections are open together."""
    clients = math.ceil(CONNECTIONS / (2 * len(TARGETS)))
    cells = [
        CellSpec(engine, "tls", workload=workload, clients=clients, group="soak", variant=engine)
        for engine, workload in TARGETS
    ]
    load = seconds / len(cells)
    return Spec(cells=cells, seed=7, mode="quick", sessions=1, time=load, latency=False, slice_seconds=SLICE_S)


Samples = list[tuple[float, float]]
"""(seconds, figure)."""


def watch(process: subprocess.Popen[bytes]) -> dict[tuple[str, str], Samples]:
    """Samples of (process, kind) until the run ends."""
    seen: dict[tuple[str, str], Samples] = defaultdict(list)
    while process.poll() is None:
        now = time.monotonic()
        for pid, name in members(process.pid):
            for kind, value in figures(pid).items():
                seen[name, kind].append((now, value))
        time.sleep(1.0)
    return seen


def members(root: int) -> Iterator[tuple[int, str]]:
    """The controller, its agents and its supervisor."""
    for pid in tree(root):
        with contextlib.suppress(OSError):
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            if pid == root:
                yield pid, "controller"
            elif b"ciphercost-agent" in command.partition(b"\0")[0]:
                yield pid, f"agent {pid}"
            elif b"supervisor_process.py" in command:
                yield pid, "supervisor"


def figures(pid: int) -> dict[str, float]:
    with contextlib.suppress(OSError):
        status = dict(
            line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line
        )
        files = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
        return {"memory": float(status["VmRSS"].split()[0]), "files": files, "threads": float(status["Threads"])}
    return {}


def slope(process: str, what: str, samples: Samples, level: float = LEVEL) -> Slope | None:
    """The least-squares line through the windows' least figures, with an interval of this level; None with fewer than five windows.

    Windows of a minute are nearly independent: what a process holds for longer than that is what is looked for. Their means
    would also rise when more of the time falls into slices, in which an agent has more threads and memory than between them.
    """
    windows: dict[int, list[float]] = defaultdict(list)
    for at, value in samples:
        windows[int((at - samples[0][0]) / WINDOW_S)].append(value)
    points = [(number, min(values)) for number, values in sorted(windows.items())]
    points = points[int(LEFT_OUT * len(points)) : -1]
    if len(points) < 5:
        return None
    n = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    rise = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    left = sum((y - mean_y - rise * (x - mean_x)) ** 2 for x, y in points)
    half = quantile((1 + level) / 2, n - 2) * math.sqrt(left / (n - 2) / spread)
    hourly = 3600 / WINDOW_S
    return Slope(process, what, rise * hourly, (rise - half) * hourly, (rise + half) * hourly, mean_y)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
