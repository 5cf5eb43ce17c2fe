"""Reads fio's results, as text or as JSON (`--output-format=json`, `json+` and both). Pure.

An operation is one I/O. Reads and writes of a job are readings of their own. The jobs of one group run at the same time, so they are one
run. Mean latency is the whole (lat); quantiles are those that fio prints, of completion (clat).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from ciphercost.importers.arm_words import arm_in
from ciphercost.importers.formats import (
    NUMBER,
    SECONDS,
    Bad,
    Lines,
    above_zero,
    cut_off,
    digits,
    line_of,
    number,
    set_rate,
)
from ciphercost.importers.formats._names import state_arms
from ciphercost.importers.formats._whole import JSON_BEGIN, JSON_END, documents, rows
from ciphercost.model.imported import Reading

MARK = re.compile(
    r"^(?:[^\S\n]*(?:fio-\d+\.\d+\S*\s*$|(?:read|write|trim) *: IOPS=)|.*: \(groupid=\d+, jobs=\d+\): err=)",
    re.MULTILINE,
)
JSON = re.compile(r'^[^\S\n]*\{\s*"fio version"\s*:', re.MULTILINE)
DATA = JSON_BEGIN
OWN = re.compile(
    r"fio-.*|Starting .*|Jobs: .*|.*: \(g=\d+\): .*|.*: \(groupid=\d+, .*|(?:read|write|trim) *: .*|[cs]?lat .*|\|.*"
    r"|(?:bw|iops|cpu|IO depths|submit|complete|issued|latency)\b.*"
    r"|(?:READ|WRITE|TRIM|Run status|Disk stats).*|.*ios=\d.*|.*: Laying out .*"
)
VERSION = re.compile(r"\s*fio-(\d\S*)\s*")
DEFINED = re.compile(r"\s*(.+?): \(g=(\d+)\): rw=(\w+), bs=(.*?), ioengine=(\w+), iodepth=(\d+)\s*")
JOB = re.compile(r"\s*(.+?): \(groupid=(\d+), jobs=(\d+)\): err= *(\d+)\b.*")
DIRECTION = re.compile(r"\s*(read|write|trim) *: IOPS=([\d.]+)([kKMG]?), BW=\S+ \(\S+?\)\s?\(\S+?/(\d+)msec\).*")
ISSUED = re.compile(r"\s*issued rwts?: total=(?:r=)?(\d+),(?:w=)?(\d+),(?:d=)?(\d+).*")
TIMES = re.compile(rf"\s*(lat|clat) \((nsec|usec|msec|sec)\): min=\S+ *\S*, max=\S+ *\S*, avg= *{NUMBER}, .*")
PERCENTILES = re.compile(r"\s*(lat|clat) percentiles \((nsec|usec|msec|sec)\):\s*")
QUANTILE = re.compile(r"(50|99)\.00th=\[ *(\d+)\]")
END = re.compile(r"\s*Run status group \d+ \(all jobs\):\s*")
UNITS = {"nsec": "ns", "usec": "us", "msec": "ms", "sec": "s"}
KILO = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}
DIRECTIONS = ("read", "write", "trim")
AGAIN = "run fio with --output-format=json again"
RATES = ("rate_iops", "rate")


class Nanoseconds(msgspec.Struct):
    mean: float = 0.0
    percentile: dict[str, float] = {}


class Part(msgspec.Struct):
    """One direction of a job. Times in ms."""

    total_ios: int = 0
    runtime: float = 0.0
    lat_ns: Nanoseconds = msgspec.field(default_factory=Nanoseconds)
    clat_ns: Nanoseconds = msgspec.field(default_factory=Nanoseconds)


class JsonJob(msgspec.Struct, rename={"options": "job options"}):
    jobname: str
    groupid: int = 0
    error: int = 0
    options: dict[str, str] = {}
    read: Part = msgspec.field(default_factory=Part)
    write: Part = msgspec.field(default_factory=Part)
    trim: Part = msgspec.field(default_factory=Part)


class Export(msgspec.Struct, rename={"version": "fio version", "options": "global options"}):
    jobs: list[JsonJob]
    version: str = ""
    options: dict[str, str] = {}


class Share(NamedTuple):
    """What one job did in one direction. Latencies in ms."""

    run: int
    """Which run of fio, if the text has several."""
    name: str
    group: int
    direction: str
    pattern: str
    factors: tuple[tuple[str, str], ...]
    jobs: int
    operations: int
    seconds: float
    latencies: dict[str, float]
    line: int
    rate: str = ""


def recognise(head: str) -> int:
    return line_of(MARK, head) or line_of(JSON, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading per group of jobs and direction."""
    every = rows(lines, "fio", complete=JSON_END)
    version = next((match[1] for row in every if (match := VERSION.fullmatch(row))), "")
    whole = True
    if any(JSON.match(f"{row}\n{after}") for row, after in zip(every, [*every[1:], ""], strict=True)):
        shares = []
        for line, export in documents(every, "fio", AGAIN, Export, "fio version"):
            version = export.version.removeprefix("fio-")
            shares += [share for job in export.jobs for share in of_json(job, export.options, line)]
    else:
        whole = any(END.fullmatch(row) for row in every)
        shares = list(of_text(every))
    if not shares:
        raise Bad(
            len(every),
            "the output has no job that read or wrote, so there is nothing to compare; import fio's whole output",
        )
    return readings_of(shares, version, whole=whole)


def of_json(job: JsonJob, common: dict[str, str], line: int) -> Iterator[Share]:
    """Yield what a job did. Raises Bad if it ended with an error."""
    _failed(job.jobname, job.error, line)
    options = common | job.options
    pattern = options.get("rw", options.get("readwrite", "read"))
    factors = tuple((name, options[name]) for name in ("bs", "iodepth", "ioengine", "direct") if name in options)
    rate = next((options[name] for name in RATES if options.get(name, "0") != "0"), "")
    jobs = int(count) if (count := options.get("numjobs", "1")).isdigit() else 1
    for direction in DIRECTIONS:
        part: Part = getattr(job, direction)
        if not part.total_ios or not part.runtime > 0:
            continue
        quantiles = part.clat_ns.percentile or part.lat_ns.percentile
        latencies = {"mean": part.lat_ns.mean or part.clat_ns.mean}
        latencies |= {f"p{name}": quantiles[f"{name}.000000"] for name in (50, 99) if f"{name}.000000" in quantiles}
        in_ms = {name: value / 1e6 for name, value in latencies.items()}
        yield Share(
            line,
            job.jobname,
            job.groupid,
            direction,
            pattern,
            factors,
            jobs,
            part.total_ios,
            part.runtime / 1e3,
            in_ms,
            line,
            rate,
        )


def of_text(every: list[str]) -> Iterator[Share]:
    """Yield what each job did. Raises Bad if one ended with an error."""
    defined: dict[tuple[str, str], tuple[str, tuple[tuple[str, str], ...]]] = {}
    name, group, jobs, line, run = "", "0", 1, 0, 0
    parts: dict[str, tuple[float, float, dict[str, float]]] = {}
    direction = unit = ""
    for at, row in enumerate(every, 1):
        if match := DEFINED.fullmatch(row):
            size = re.match(r"(?:\(R\) )?(\S+?)(?:-(\S+?))?,? ", match[4] + " ")
            block = size[1] if size else match[4]
            defined[match[1], match[2]] = (match[3], (("bs", block), ("iodepth", match[6]), ("ioengine", match[5])))
        elif VERSION.fullmatch(row):
            run += 1
        elif match := JOB.fullmatch(row):
            name, group, jobs, line = match[1], match[2], int(match[3]), at
            parts, direction = {}, ""
            _failed(name, int(match[4]), at)
        elif match := DIRECTION.fullmatch(row):
            direction, unit = match[1], ""
            parts[direction] = (number(match[2]) * KILO[match[3]], int(match[4]) / 1e3, {})
        elif direction and (match := TIMES.fullmatch(row)):
            parts[direction][2]["mean"] = number(match[3]) * SECONDS[UNITS[match[2]]] * 1e3  # lat stands below clat
        elif match := PERCENTILES.fullmatch(row):
            unit = UNITS[match[2]]
        elif direction and unit and row.lstrip().startswith("|"):
            for quantile, value in QUANTILE.findall(row):
                parts[direction][2][f"p{quantile}"] = int(value) * SECONDS[unit] * 1e3
        elif (match := ISSUED.fullmatch(row)) and parts:
            pattern, factors = defined.get((name, group), ("", ()))
            for position, which in enumerate(DIRECTIONS, 1):
                if which in parts and int(match[position]):
                    _, seconds, latencies = parts[which]
                    # IOPS are printed with three digits; number and time have all.
                    done = int(match[position])
                    yield Share(
                        run, name, int(group), which, pattern or which, factors, jobs, done, seconds, latencies, line
                    )
            parts = {}


def _failed(name: str, error: int, line: int) -> None:
    if error:
        raise Bad(
            line, f"the job {name[:60]} ended with error {error}, so it is no result; fix the cause and run it again"
        )


def readings_of(shares: list[Share], version: str, *, whole: bool) -> list[Reading]:
    """Return the readings of all jobs. Jobs of a group that do the same ran at the same time and are one run."""
    together: dict[tuple[object, ...], list[Share]] = {}
    for share in shares:
        key = (share.run, share.group, arm_in(share.name), share.direction, share.pattern, share.factors)
        together.setdefault(key, []).append(share)
    readings = [reading(parts, version) for parts in together.values()]
    state_arms(readings, [parts[0].name for parts in together.values()])
    if not whole:
        readings[0].notes.append(cut_off(readings[0].line, "'Run status group'", readings[0].figures))
    return readings


def reading(parts: list[Share], version: str) -> Reading:
    """Return the run of these jobs."""
    first = parts[0]
    if min(part.seconds for part in parts) <= 0:
        raise Bad(first.line, f"the job {first.name[:60]} took no time, so there is no rate")
    done = sum(part.operations for part in parts)
    rate = sum(part.operations / part.seconds for part in parts)
    figures = {"throughput": rate}
    if all("mean" in part.latencies for part in parts):
        figures["latency_mean"] = sum(part.latencies["mean"] * part.operations for part in parts) / done
    if len(parts) == 1:
        figures |= {f"latency_{name}": value for name, value in first.latencies.items() if name != "mean"}
    result = Reading(
        tool="fio",
        version=version,
        line=first.line,
        engine="disk",
        workload=first.pattern if first.pattern.endswith(first.direction) else f"{first.direction}s of {first.pattern}",
        clients=max(len(parts), first.jobs),
        factors=dict(first.factors),
        operations=done,
        seconds=max(part.seconds for part in parts),
        digits=digits(str(done)),
        figures=above_zero(figures),
    )
    if first.rate:
        set_rate(result, first.rate)
    return result
