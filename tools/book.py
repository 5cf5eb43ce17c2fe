"""Measure the grid of the project's own results book, family by family: `make book-runs`.

Each file of book/grid is a family: a spec with a few cells. Its run is packed as book/runs/FAMILY.tar.xz; a family that has one is
skipped, so this can be stopped and started again at any time. A family that was interrupted is resumed. Neither a failed
cell nor a failed family stops the others; at the end, this prints what has no figure.

After a change of the method, `--estimate` estimates the packed runs again from their slices: a book takes no record whose result.json does
not follow from them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from ciphercost import studies as published
from ciphercost.load.units import duration, minutes
from ciphercost.model.errors import CiphercostError
from ciphercost.model.spec import Spec
from ciphercost.plan import schedule, toml

ROOT = Path(__file__).parents[1]
GRID, RECORDS, WORK = ROOT / "book" / "grid", ROOT / "book" / "runs", ROOT / "build" / "book"
COMMAND = Path(sys.executable).parent / "ciphercost"
STUDIES = {f"50-{name}": name for name in published.names()}
"""Families of published studies, which have no spec: `ciphercost replicate NAME`."""
SMALLER = {
    "postgres-tde": ("--scale", "10", "--duration", "60s", "--clients", "10"),
    "cybertec-tde-cost": ("--mechanism", "gocryptfs", "--runs", "10", "--duration", "20s"),
    "pg-tde-small-cost": ("--mechanism", "fscrypt"),
}
"""Sizes of studies that would otherwise take longer than all others together."""


class Asked(NamedTuple):
    """The options."""

    families: list[str]
    seconds: float
    """Load time of each cell; 0: that of its spec."""
    quick: bool
    records: Path
    work: Path
    again: bool
    estimate: bool


def main(argv: list[str]) -> int:
    asked = options(argv)
    asked.records.mkdir(parents=True, exist_ok=True)
    asked.work.mkdir(parents=True, exist_ok=True)
    if asked.estimate:
        return estimated(asked)
    left = [each for each in asked.families if asked.again or not record(each, asked).is_file()]
    print(f"{len(left)} of {len(asked.families)} families to measure{about(left, asked)}")
    bad: list[str] = []
    for number, family in enumerate(left, start=1):
        print(f"\n── {family} ({number} of {len(left)}), {time.strftime('%H:%M')} ──", flush=True)
        try:
            bad += measured(family, asked)
        except KeyboardInterrupt:
            print("interrupted; the same command continues")
            return 130
        except (OSError, ValueError, CiphercostError) as error:
            bad.append(f"{family}: {error}")
    print()
    for line in bad or ["every cell has its figures"]:
        print(line)
    return 1 if bad else 0


def options(argv: list[str]) -> Asked:
    known = [*sorted(path.stem for path in GRID.glob("*.toml")), *STUDIES]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=f"{', '.join(known)}. [default: all of them]")
    parser.add_argument("--time", default="", help="load time of each cell, e.g. 90s. [default: 90s; 240s at rest]")
    parser.add_argument("--quick", action="store_true", help="one session for each cell: a trial, not for the book")
    parser.add_argument("--records", type=Path, default=RECORDS, help="where the packed runs go. [default: book/runs]")
    parser.add_argument("--work", type=Path, default=WORK, help="where the runs go. [default: build/book]")
    parser.add_argument(
        "--again", action="store_true", help="also families with a record: resume those with failed cells"
    )
    parser.add_argument("--estimate", action="store_true", help="measure nothing; estimate the packed runs again")
    given = parser.parse_args(argv)
    if unknown := [each for each in given.families if each not in known]:
        parser.error(f"unknown family {unknown[0]}; there are {', '.join(known[:-1])} and {known[-1]}")
    try:
        seconds = duration(given.time, "--time") if given.time else 0.0
    except CiphercostError as error:
        parser.error(str(error))
    return Asked(given.families or known, seconds, given.quick, given.records, given.work, given.again, given.estimate)


def estimated(asked: Asked) -> int:
    """Estimate the packed runs of these families again. Returns the exit status."""
    bad = []
    for family in filter(lambda each: record(each, asked).is_file(), asked.families):
        with tempfile.TemporaryDirectory(dir=asked.work) as temporary:
            with tarfile.open(record(family, asked)) as archive:
                archive.extractall(temporary, filter="data")
            (place,) = Path(temporary).iterdir()
            fresh = place / "result.json.new"  # a report of a run reads its result.json too
            if call("report", str(place), "--format", "json", "-o", str(fresh)) == 0:
                fresh.replace(place / "result.json")
                bad += packed(family, place, asked)
            else:
                bad.append(f"{family}: could not be estimated; see above")
    print(*(bad or ["every cell has its figures"]), sep="\n")
    return 1 if bad else 0


def record(name: str, asked: Asked) -> Path:
    return asked.records / f"{name}.tar.xz"


def about(families: list[str], asked: Asked) -> str:
    """How long these families of the grid take, in words."""
    specs = []
    for each in families:
        with contextlib.suppress(CiphercostError):  # its turn comes, with the reason
            specs += [adjusted(toml.load(GRID / f"{each}.toml"), asked)] if each not in STUDIES else []
    return f", about {minutes(sum(map(schedule.time_estimate, specs)))} without the studies" if specs else ""


def measured(family: str, asked: Asked) -> list[str]:
    """Run or resume one family and pack its record. Returns what has no figure, in words."""
    place = asked.work / family
    if not (place / "plan.json").is_file():
        begin(family, place, asked)
    elif unfinished(place):
        call("resume", str(place))
    return packed(family, place, asked)


def begin(family: str, place: Path, asked: Asked) -> None:
    """Begin the run of a study, or of a family of the grid, whose servers are fetched first."""
    if name := STUDIES.get(family):
        time_each = ("--time", f"{asked.seconds:g}s") if asked.seconds else ()
        call("replicate", name, *SMALLER.get(name, ()), *time_each, "-o", str(place))
        return
    spec = adjusted(toml.load(GRID / f"{family}.toml"), asked)
    for server in dict.fromkeys(f"{cell.engine}@{cell.version}" for cell in spec.cells if cell.version):
        call("install", server)  # if this fails, the run itself gives the reason
    path = asked.work / f"{family}.toml"
    path.write_text(toml.dump(spec))
    call("run", str(path), "-o", str(place))


def adjusted(spec: Spec, asked: Asked) -> Spec:
    """The family's spec with the options of this program."""
    spec = msgspec.structs.replace(spec, time=asked.seconds or spec.time)
    return msgspec.structs.replace(spec, mode="quick", sessions=1) if asked.quick else spec


def unfinished(place: Path) -> bool:
    """Whether the run was cut off, or a cell has no figure."""
    facts = json.loads((place / "plan.json").read_bytes())
    return not facts.get("ended") or any(cell.get("status") != "ok" for cell in facts["cells"])


def packed(family: str, place: Path, asked: Asked) -> list[str]:
    """Pack a family's run, and return what is wrong with it."""
    if not (place / "result.json").is_file():
        return [f"{family}: did not run; see above"]
    with tempfile.TemporaryDirectory(dir=asked.work) as temporary:
        call("book", "--pack", "--condense", str(place), "-o", temporary)
        found = list(Path(temporary).glob("*.tar.xz"))
        if not found:
            return [f"{family}: its record was refused; see above"]
        found[0].replace(record(family, asked))
    result = json.loads((place / "result.json").read_bytes())
    return [
        f"{family}: {cell['engine']} {cell['mechanism']} {cell['workload']}: {cell['status']}: {cell['reason']}"
        for cell in result["cells"]
        if cell["status"] != "ok"
    ]


def call(*argv: str) -> int:
    """Run ciphercost, with its output below ours."""
    return subprocess.run([COMMAND, *argv], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
