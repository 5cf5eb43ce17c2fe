"""`make faults`: faults × targets, each at seeded random moments; prints a table and writes benchmarks/faults.json."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from faults import trial, world

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "benchmarks" / "faults.json"
TARGETS = ("postgresql:tls", "mysql:tls", "firebird:wire-crypt", "sqlite:sqlcipher", "nginx:tls")
WANTED = 0.9
"""Share of the intervals that should contain the undisturbed ratio: 0.95, less the reference's own error, other server pairs,
and chance."""


def main(argv: Sequence[str]) -> int:
    faults = {fault.name: fault for fault in world.each_kind("faults")}
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__)
    parser.add_argument(
        "--moments",
        type=int,
        default=20,
        help="trials of each fault on each target; 0 only prints the table. [default: 20]",
    )
    parser.add_argument("--seed", type=int, default=1, help="number of the first trial. [default: 1]")
    parser.add_argument("--targets", default=" ".join(TARGETS), help=f"[default: {' '.join(TARGETS)}]")
    parser.add_argument(
        "--faults", default="", help="only those whose name contains one of these words, separated by ;"
    )
    parser.add_argument("--jobs", type=int, default=2, help="trials at the same time. [default: 2]")
    parser.add_argument(
        "--kept", type=Path, default=KEPT, help="where the outcomes are kept; known ones are not repeated"
    )
    asked = parser.parse_args(argv)
    words = [word.strip() for word in asked.faults.split(";") if word.strip()]
    chosen = [fault for name, fault in faults.items() if not words or any(word in name for word in words)]
    known = msgspec.json.decode(asked.kept.read_bytes(), type=list[trial.Outcome]) if asked.kept.exists() else []
    done = {(outcome.target, outcome.fault, outcome.seed) for outcome in known}
    with tempfile.TemporaryDirectory(prefix="ciphercost-faults-", dir="/var/tmp") as place:
        Path(place).chmod(0o711)
        for target in asked.targets.split():
            wanted = [
                (fault, seed)
                for fault in chosen
                for seed in range(asked.seed, asked.seed + asked.moments)
                if fault.suits(target) and (target, fault.name, seed) not in done
            ]
            if not wanted:
                continue
            print(f"── {target}: {len(wanted)} trials", flush=True)
            for alone in (False, True):
                batch = [(fault, seed) for fault, seed in wanted if fault.alone is alone]
                for outcome in trials(target, batch, 1 if alone else asked.jobs, Path(place)):
                    known.append(outcome)
                    asked.kept.write_text(json.dumps(msgspec.to_builtins(known), indent=1) + "\n")
                    if not outcome.good or outcome.contains is False:
                        print(f"  {outcome}", flush=True)
    print(table(known))
    return 0 if all(outcome.good for outcome in known) and share_that_contains(known) >= WANTED else 1


def trials(
    target: str, wanted: Sequence[tuple[world.Fault, int]], together: int, base: Path
) -> Iterator[trial.Outcome]:
    """Outcomes of (fault, seed), so many at the same time."""
    prepared = dict.fromkeys(fault.compared_with for fault, _ in wanted)
    seconds = {prepare: trial.undisturbed(target, base, prepare)[0] for prepare in prepared}
    references = {prepare: trial.reference(target, base, prepare, together) for prepare in prepared}
    for reference in references.values():
        print(
            f"   undisturbed, {together} at a time: {reference.ratio:.3f} ({reference.low:.3f} to {reference.high:.3f})",
            flush=True,
        )
    with ThreadPoolExecutor(together) as pool:
        runs = [
            pool.submit(
                trial.attempt, target, fault, seed, seconds[fault.compared_with], references[fault.compared_with], base
            )
            for fault, seed in wanted
        ]
        for run in runs:
            yield run.result()


def share_that_contains(outcomes: Sequence[trial.Outcome]) -> float:
    """Of the intervals after a fault, those that contain the undisturbed ratio."""
    compared = [outcome.contains for outcome in outcomes if outcome.struck and outcome.contains is not None]
    return sum(compared) / len(compared) if compared else 1.0


def table(outcomes: Sequence[trial.Outcome]) -> str:
    """A row per fault: trials that struck, how they ended, and what was lost or left."""
    lines = [
        f"{'fault':<42} {'struck':>9} {'record':>8} {'left':>5} {'clean':>6} {'damaged':>8} {'resumed':>8} {'contains':>9} {'apart':>6}  ended with"
    ]
    for fault in dict.fromkeys(outcome.fault for outcome in outcomes):
        of_fault = [outcome for outcome in outcomes if outcome.fault == fault]
        struck = [outcome for outcome in of_fault if outcome.struck]
        ends = Counter("hung" if outcome.status is None else str(outcome.status) for outcome in struck)
        again = [outcome for outcome in struck if outcome.contains is not None]
        lines.append(
            f"{fault:<42} {len(struck):>4}/{len(of_fault):<4} {sum(e.record in ('intact', 'absent') for e in struck):>8} "
            f"{sum(bool(e.left_before) for e in struck):>5} {sum(bool(e.left_after) for e in struck):>6} "
            f"{sum(e.number == 'damaged' for e in struck):>8} {len(again):>8} {sum(bool(e.contains) for e in again):>9} "
            f"{sum(e.apart for e in struck):>6}  "
            + ", ".join(f"{status} ×{count}" for status, count in ends.most_common())
        )
    bad = sum(not outcome.good for outcome in outcomes)
    struck = [outcome for outcome in outcomes if outcome.struck]
    lines.append(
        f"{len(outcomes)} trials, {len(struck)} of which struck; {bad} not as promised; the interval contains the undisturbed ratio "
        f"in {share_that_contains(outcomes):.1%} and is apart from the undisturbed one in {sum(e.apart for e in struck)}"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
