"""`make fuzz`: every target for SECONDS, by coverage (libFuzzer; for Python atheris). Prints a table, writes
benchmarks/fuzz.json, and keeps the corpus and what it found.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pkgutil
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from fuzz import agent

HERE = Path(__file__).parent
CORPUS, FOUND = HERE / "corpus", HERE / "found"
KEPT = HERE.parents[1] / "benchmarks" / "fuzz.json"
OURS = sorted(module.name for module in pkgutil.iter_modules([str(HERE / "targets")]))
"""Targets in Python."""
TARGETS = [*OURS, *agent.TARGETS]
LONGEST_S, MOST_MB = 10, 256
"""Limits of a single input: time, and memory beyond what the libraries take when nothing was parsed yet.

The agent's targets count what they allocate (`fuzz/memory.rs`), so that memory they ask for and don't touch counts too.
libFuzzer's own limit for that, -malloc_limit_mb, needs a sanitizer.
"""
LIBRARIES_MB = 256
"""Memory of Python with numpy and the instrumented package, measured: 170 MB."""
ROUND = 2_000_000
"""Executions after which a process ends and another one goes on: atheris loses some 30 bytes at each execution of an
instrumented parser that loses none without it.
"""
BYTES = 4096
"""Longest input that is kept."""


class Outcome(NamedTuple):
    target: str
    minutes: float
    executions: int
    coverage: int
    """Edges of the program that some input has taken."""
    inputs: int
    kept_bytes: int
    """The corpus: how many inputs, and their bytes."""
    peak_mb: int
    finding: str


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"{', '.join(TARGETS)}. [default: all]")
    parser.add_argument("--seconds", type=int, default=600, help="for each target. [default: 600]")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--keep-nothing", action="store_true", help="leave the corpus and benchmarks/fuzz.json as they are"
    )
    asked = parser.parse_args(argv)
    if unknown := set(asked.targets) - set(TARGETS):
        parser.error(f"unknown target {unknown.pop()}; there are {', '.join(TARGETS)}")
    FOUND.mkdir(exist_ok=True)
    targets = asked.targets or TARGETS
    if set(targets) & set(agent.TARGETS):
        agent.build()
    outcomes = []
    with ThreadPoolExecutor(asked.jobs) as pool:
        for outcome in pool.map(lambda name: fuzz(name, asked.seconds, keep=not asked.keep_nothing), targets):
            outcomes.append(outcome)
            if not asked.keep_nothing:
                keep(outcome)
    print(table(outcomes))
    return 1 if any(outcome.finding for outcome in outcomes) else 0


def keep(outcome: Outcome) -> None:
    """Write an outcome to benchmarks/fuzz.json, in place of the target's previous one."""
    known = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    known[outcome.target] = outcome._asdict()
    KEPT.write_text(json.dumps({name: known[name] for name in TARGETS if name in known}, indent=1) + "\n")


def table(outcomes: Sequence[Outcome]) -> str:
    head = (
        f"{'target':<12} {'minutes':>7} {'executions':>12} {'edges':>6} {'corpus':>7} {'KB':>5} {'peak MB':>8}  finding"
    )
    rows = [
        f"{outcome.target:<12} {outcome.minutes:>7.1f} {outcome.executions:>12,} {outcome.coverage:>6,} {outcome.inputs:>7} "
        f"{outcome.kept_bytes / 1000:>5.0f} {outcome.peak_mb:>8}  {outcome.finding or 'none'}"
        for outcome in outcomes
    ]
    return "\n".join([head, *rows])


def fuzz(target: str, seconds: int, *, keep: bool) -> Outcome:
    """Fuzz one target from its seeds and its corpus, then keep a small corpus that takes the same edges."""
    kept = CORPUS / target
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ciphercost-fuzz-", dir="/dev/shm") as place:
        work, fresh, small = (Path(place) / name for name in ("work", "fresh", "small"))
        for folder in (work, fresh, small):
            folder.mkdir()
        begin = [str(fresh), str(kept)]
        command, environment = [sys.executable, "-m", "fuzz.one", target, str(work)], dict(os.environ)
        if target in agent.TARGETS:
            command, environment = [str(agent.build())], environment | {"CIPHERCOST_FUZZ": target}
            begin.append(str(agent.SAMPLES / target))
        else:
            subprocess.run([sys.executable, "-m", "fuzz.seeds", target, str(fresh)], check=True)
        limits = [
            f"-timeout={LONGEST_S}",
            f"-rss_limit_mb={MOST_MB + LIBRARIES_MB}",
            f"-artifact_prefix={FOUND}/{target}-",
        ]
        began, output, executions, peak_mb, status = time.monotonic(), "", 0, 0, 0
        while not status and (left := math.ceil(seconds - (time.monotonic() - began))) > 0:
            asked = [f"-max_total_time={left}", f"-runs={ROUND}", f"-max_len={BYTES}", "-print_final_stats=1", *limits]
            done = subprocess.run(
                [*command, *asked, *begin], capture_output=True, text=True, errors="replace", env=environment
            )
            output, status = done.stdout + done.stderr, done.returncode
            executions += _count(output, "number_of_executed_units")
            peak_mb = max(peak_mb, _count(output, "peak_rss_mb"))
        took = time.monotonic() - began
        (FOUND / f"{target}.log").write_text(output)
        if keep and not status:
            merge = [*command, "-merge=1", "-use_counters=0", str(small), *begin]
            subprocess.run(merge, capture_output=True, env=environment, check=True)
            assert any(small.iterdir()), f"{target}: no input was kept"
            for path in kept.iterdir():
                path.unlink()
            for path in small.iterdir():
                (kept / path.name).write_bytes(path.read_bytes())
        edges = re.findall(r" cov: (\d+)", output)
        sizes = [path.stat().st_size for path in kept.iterdir()]
        return Outcome(
            target, round(took / 60, 2), executions, int(edges[-1]) if edges else 0,
            len(sizes), sum(sizes), peak_mb, _finding(output) if status else "",
        )  # fmt: skip


def _count(output: str, name: str) -> int:
    """One of libFuzzer's final statistics; 0 if it ended without them."""
    match = re.search(rf"stat::{name}:\s+(\d+)", output)
    return int(match[1]) if match else 0


def _finding(output: str) -> str:
    """Why the fuzzer stopped, in one line."""
    for mark in (r"=== Uncaught Python exception: ===\n(.*)", r"panicked at (.*\n.*)", r"ERROR: (libFuzzer: .*)"):
        if match := re.search(mark, output):
            return match[1].replace("\n", " ")
    return (output.strip().splitlines() or ["it ended without a word"])[-1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
