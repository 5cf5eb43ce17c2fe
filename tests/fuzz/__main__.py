"""`make fuzz`: every target for SECONDS, by coverage (atheris, libFuzzer). Prints a table; keeps the corpus and what it found."""

from __future__ import annotations

import argparse
import os
import pkgutil
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
CORPUS, FOUND = HERE / "corpus", HERE / "found"
TARGETS = sorted(each.name for each in pkgutil.iter_modules([str(HERE / "targets")]))
LONGEST_S, MOST_MB = 10, 256
"""Limits of a single input: time, and memory beyond what the libraries take when nothing was parsed yet."""
LIBRARIES_MB = 256
"""Memory of Python with numpy and the instrumented package, measured: 170 MB."""
BYTES = 4096
"""Longest input that is kept."""


class Outcome(NamedTuple):
    target: str
    status: int
    executions: int
    kept: int
    peak_mb: int
    finding: str


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"{', '.join(TARGETS)}. [default: all]")
    parser.add_argument("--seconds", type=int, default=600, help="for each target. [default: 600]")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep-nothing", action="store_true", help="leave the corpus as it is")
    asked = parser.parse_args(argv)
    if unknown := set(asked.targets) - set(TARGETS):
        parser.error(f"unknown target {unknown.pop()}; there are {', '.join(TARGETS)}")
    FOUND.mkdir(exist_ok=True)
    with ThreadPoolExecutor(asked.jobs) as pool:
        outcomes = list(
            pool.map(lambda name: fuzz(name, asked.seconds, keep=not asked.keep_nothing), asked.targets or TARGETS)
        )
    print(f"{'target':<12} {'executions':>11} {'corpus':>7} {'peak MB':>8}  finding")
    for each in outcomes:
        print(f"{each.target:<12} {each.executions:>11,} {each.kept:>7} {each.peak_mb:>8}  {each.finding or 'none'}")
    return 1 if any(each.finding for each in outcomes) else 0


def fuzz(target: str, seconds: int, *, keep: bool) -> Outcome:
    """Fuzz one target from its seeds and its corpus, then keep the smallest corpus with the same coverage."""
    kept = CORPUS / target
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ciphercost-fuzz-", dir="/dev/shm") as place:
        work, fresh, small = (Path(place) / name for name in ("work", "fresh", "small"))
        for each in (work, fresh, small):
            each.mkdir()
        subprocess.run([sys.executable, "-m", "fuzz.seeds", target, str(fresh)], check=True)
        command = [sys.executable, "-m", "fuzz.one", target, str(work)]
        limits = [
            f"-timeout={LONGEST_S}",
            f"-rss_limit_mb={MOST_MB + LIBRARIES_MB}",
            f"-artifact_prefix={FOUND}/{target}-",
        ]
        asked = [f"-max_total_time={seconds}", f"-max_len={BYTES}", "-print_final_stats=1", *limits]
        done = subprocess.run([*command, *asked, str(fresh), str(kept)], capture_output=True, text=True)
        (FOUND / f"{target}.log").write_text(done.stdout + done.stderr)
        finding = ""
        if done.returncode:
            said = re.search(r"=== Uncaught Python exception: ===\n(.*)", done.stdout + done.stderr)
            finding = said[1] if said else (done.stderr.strip().splitlines() or ["it ended without a word"])[-1]
        if keep and not done.returncode and _merged([*command, "-merge=1", str(small), str(fresh), str(kept)]):
            for each in kept.iterdir():
                each.unlink()
            for each in small.iterdir():
                (kept / each.name).write_bytes(each.read_bytes())
        count = {name: int(value) for name, value in re.findall(r"stat::(\w+):\s+(\d+)", done.stderr)}
        return Outcome(
            target, done.returncode, count.get("number_of_executed_units", 0), len(list(kept.iterdir())),
            count.get("peak_rss_mb", 0), finding,
        )  # fmt: skip


def _merged(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True).returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
