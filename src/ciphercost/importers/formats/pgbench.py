"""Reads the output of pgbench from PostgreSQL 9 to 18: summaries, with the lines of `-P` before, between or after them.
Pure.
"""

from __future__ import annotations

import itertools
import math
import re

from ciphercost.importers.formats import NUMBER, Bad, Lines, differ, digits, line_of, number, set_rate
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

MARK = re.compile(
    r"^(?:pgbench \(|progress: [\d.,]+ s, [\d.,]+ tps|transaction type: |number of transactions actually processed)",
    re.MULTILINE,
)
VERSION = re.compile(r"pgbench \((?:PostgreSQL\) )?(\d+[\w.]*)")
PROGRESS = re.compile(
    rf"progress: {NUMBER} s, {NUMBER} tps, lat {NUMBER} ms stddev {NUMBER}(?:, (\d+) failed)?(, lag .*)?\s*"
)
TPS = re.compile(
    rf"tps = {NUMBER} \((without initial|excluding|including) (re)?connections?\s*(?:times?|establishing)\)\s*"
)
FIELDS = {
    "workload": re.compile(r"transaction type: (.+)"),
    "scale": re.compile(rf"scaling factor: {NUMBER}\s*"),
    "query mode": re.compile(r"query mode: (\w+)\s*"),
    "clients": re.compile(r"number of clients: (\d+)\s*"),
    "threads": re.compile(r"number of threads: (\d+)\s*"),
    "duration": re.compile(rf"duration: {NUMBER} s\s*"),
    "operations": re.compile(r"number of transactions actually processed: (\d+)(?:/\d+)?\s*"),
    "failed": re.compile(r"number of failed transactions: (\d+) .*"),
    "skipped": re.compile(r"number of transactions skipped: (\d+) .*"),
    "latency_mean": re.compile(rf"latency average[ =:]+{NUMBER} ms.*"),
    "connecting": re.compile(rf"initial connection time = {NUMBER} ms\s*"),
    "each connecting": re.compile(rf"average connection time = {NUMBER} ms\s*"),
    "lag": re.compile(rf"rate limit schedule lag: avg {NUMBER} .*"),
}
CONNECTING = 0.05
"""Share of the rate that connecting takes, in pgbench before 14.

Above it, every transaction connects (-C), which pgbench does not print.
"""
EPOCH = 1e9
"""`--progress-timestamp` prints seconds since 1970 instead of seconds since the start."""
COUNT_TOLERANCE, LITTLE_TOLERANCE = 0.10, 0.15
SHORTEST = 1.0
"""Seconds below which the start and end of a run dominate, so that its figures need not agree."""


def recognise(head: str) -> int:
    return line_of(MARK, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading per summary.

    Progress lines belong to the next summary; those at the end belong to the previous one.
    """
    readings: list[Reading] = []
    told: dict[str, str] = {}
    progress: list[tuple[float, float, float]] = []
    version, began, summary, old_rate, lagging = "", 0, False, False, False
    for line in lines:
        if "run was aborted" in line.lower():
            raise Bad(
                lines.number,
                "pgbench lost a client here, so its figures are of fewer clients than requested; run it again",
            )
        if match := VERSION.match(line):
            version, summary, began = match[1], True, began or lines.number
        elif match := PROGRESS.fullmatch(line):
            began = began or lines.number
            lagging = lagging or bool(match[6])
            if "nan" not in match[2]:
                # Without a transaction in that second pgbench prints `nan` or 0.
                latency = 0.0 if "nan" in match[3] else number(match[3])
                progress.append((number(match[1]), number(match[2]), latency))
        elif match := TPS.fullmatch(line):
            if match[2] == "including" and not match[3]:
                told["including"], old_rate = match[1], True
                continue
            if "operations" not in told:
                raise Bad(
                    lines.number,
                    "a rate without 'number of transactions actually processed'; import pgbench's whole output",
                )
            if match[3]:
                told["each"] = "-C"
            readings.append(reading(told, number(match[1]), progress, version, began or lines.number))
            readings[-1].digits = digits(match[1])
            told, progress, began, summary, old_rate, lagging = {}, [], 0, False, False, False
        else:
            for name, pattern in FIELDS.items():
                if match := pattern.fullmatch(line):
                    told[name] = match[1]
                    began, summary = began or lines.number, True
    if summary or old_rate:
        raise Bad(lines.number, f"the run that begins on line {began} has no line 'tps = … (without initial connection time)' and is cut "
                  "off; import pgbench's whole output")  # fmt: skip
    if progress and readings and not any(run.series for run in readings) and len(readings) == 1:
        readings[0] = with_progress(readings[0], progress)
    elif progress:
        readings.append(of_progress(progress, version, began, complete=not readings))
        if lagging:
            set_rate(readings[-1])
    return readings


def reading(
    told: dict[str, str], rate: float, progress: list[tuple[float, float, float]], version: str, line: int
) -> Reading:
    """Return one run from its summary, with warnings for contradictions in it."""
    operations, clients = int(told["operations"]), int(told.get("clients", 0))
    if not operations or not rate > 0:
        raise Bad(line, "pgbench ran no transaction, so there is nothing to compare")
    notes = []
    excluding = rate
    if "including" in told and differ(number(told["including"]), rate, CONNECTING):
        rate = number(told["including"])
        told = told | {"each": "-C"}
        if not rate > 0:
            raise Bad(line, "pgbench ran no transaction, so there is nothing to compare")
    if "each" in told:
        if rate != excluding:
            text = (
                f"connecting takes much of the time: {rate:,.1f} transactions per second with it, {excluding:,.1f} without. Each "
                "transaction seems to open a connection (-C), so this time is included"
            )
        else:
            text = "each transaction opened a connection (-C), so the figures include its handshake"
            if "each connecting" in told:
                text += f", {number(told['each connecting']):g} ms on average"
        notes.append(Warning_("connect-each", text))
    figures = {"throughput": rate}
    if "latency_mean" in told:
        figures["latency_mean"] = number(told["latency_mean"])
    connecting = number(told.get("connecting", "0")) / 1e3
    length = number(told["duration"]) if "duration" in told else 0.0
    seconds = length if length > 0 else operations / rate
    if length - connecting >= SHORTEST and differ(rate * (length - connecting), operations, COUNT_TOLERANCE):
        notes.append(
            Warning_(
                "contradiction",
                f"{operations:,} transactions in {length:g} s are {operations / (length - connecting):,.1f} per second, but pgbench "
                f"printed {rate:,.1f}; the run was longer or shorter than requested, or a figure is wrong",
            )
        )
    in_flight = rate * figures.get("latency_mean", 0.0) / 1e3
    if (
        clients
        and in_flight
        and not {"lag", "each"} & told.keys()
        and seconds >= SHORTEST
        and differ(in_flight, clients, LITTLE_TOLERANCE)
    ):
        notes.append(
            Warning_(
                "contradiction",
                f"{rate:,.1f} transactions per second of {figures['latency_mean']:g} ms each keep {in_flight:.1f} clients busy, "
                f"not {clients} (Little's law); clients waited elsewhere, or a figure is from another run",
            )
        )
    notes += [
        Warning_("errors", f"{int(told[name]):,} transactions {name}, {operations:,} succeeded")
        for name in ("failed", "skipped")
        if int(told.get(name, 0))
    ]
    run = Reading(
        tool="pgbench",
        version=version,
        line=line,
        engine="postgresql",
        workload=told.get("workload", "pgbench").strip("<> ").removeprefix("builtin: "),
        factors={name.replace(" ", "_"): told[name] for name in ("scale", "query mode", "threads") if name in told}
        | ({"connect": "each"} if "each" in told else {}),
        clients=clients,
        operations=operations,
        errors=int(told.get("failed", 0)) + int(told.get("skipped", 0)),
        seconds=seconds,
        figures=figures,
        notes=notes,
    )
    with_progress(run, progress)
    if "lag" in told:
        set_rate(run)
    return run


def with_progress(run: Reading, progress: list[tuple[float, float, float]]) -> Reading:
    """Add progress lines to a run: figures over its course and, if they have timestamps, when it ran."""
    if progress:
        if "throughput" in run.figures:
            run.series["throughput"] = [rate for _, rate, _ in progress]
        if all(latency > 0 for *_, latency in progress):
            run.series["latency_mean"] = [latency for *_, latency in progress]
        if progress[0][0] > EPOCH:
            step = progress[1][0] - progress[0][0] if len(progress) > 1 else 1.0
            run.started, run.ended = progress[0][0] - step, progress[-1][0]
    return run


def of_progress(progress: list[tuple[float, float, float]], version: str, line: int, *, complete: bool) -> Reading:
    """Return a run that has only progress lines, as when standard error was kept but not standard output."""
    if not complete:
        raise Bad(
            line,
            "progress lines from here on have no summary, so the last run is cut off; import pgbench's whole output",
        )
    times = [at for at, *_ in progress]
    if any(later <= earlier for earlier, later in itertools.pairwise(times)):
        raise Bad(line, "progress lines of several runs without a summary between them; put each run into its own file")
    first = times[1] - times[0] if times[0] > EPOCH and len(times) > 1 else times[0] if times[0] < EPOCH else 1.0
    lengths = [first, *(later - earlier for earlier, later in itertools.pairwise(times))]
    operations = math.fsum(rate * length for (_, rate, _), length in zip(progress, lengths, strict=True))
    seconds = math.fsum(lengths)
    if operations <= 0:
        raise Bad(line, "pgbench ran no transaction, so there is nothing to compare")
    latency = (
        math.fsum(rate * length * latency_ms for (_, rate, latency_ms), length in zip(progress, lengths, strict=True))
        / operations
    )
    text = f"no summary, only {len(progress)} progress lines; the run may have been longer, and its number of clients is unknown"
    return with_progress(
        Reading(
            tool="pgbench",
            version=version,
            line=line,
            engine="postgresql",
            workload="pgbench",
            operations=round(operations),
            seconds=seconds,
            figures={"throughput": operations / seconds} | ({"latency_mean": latency} if latency else {}),
            notes=[Warning_("progress-only", text)],
        ),
        progress,
    )
