"""Joins readings into runs: the logs of a run's threads, a log with its summary, CPU samples with the load they cover."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ciphercost.importers import formats
from ciphercost.importers.formats import Bad, pgbench_log
from ciphercost.importers.input_files import Source
from ciphercost.importers.wording import count
from ciphercost.model.errors import UsageError
from ciphercost.model.imported import Reading
from ciphercost.model.result import ImportedFile, Warning_

SAMPLE_TOLERANCE = 0.02
"""Allowed relative difference between a summary's number of transactions and the estimate from a sampled log."""
NAMED = re.compile(r"(.*?\.\d+)(?:\.\d+)?")
"""`pgbench_log.PID`, and `pgbench_log.PID.N` for further threads."""


def join_runs(told: list[tuple[Source, ImportedFile, list[Reading]]]) -> list[Reading]:
    """Return the runs: threads' logs as one, each log with its summary, CPU samples with the load they cover."""
    logs: dict[tuple[str, ...], list[Reading]] = {}
    loads: list[Reading] = []
    cpus: list[Reading] = []
    timed: dict[Path, list[Reading]] = {}
    screens: list[tuple[Path, Reading]] = []
    for source, file, readings in told:
        match = NAMED.fullmatch(source.path.name)
        for reading in readings:
            if file.format == "pgbench_log":
                key = (str(reading.arm), str(source.path.parent), match[1] if match else source.path.name)
                logs.setdefault(key, []).append(reading)
            elif file.format == "atop_screen":
                screens.append((source.path, reading))
            elif reading.kind == "cpu":
                cpus.append(reading)
            else:
                loads.append(reading)
                if file.format == "times":
                    timed.setdefault(source.path, []).append(reading)
    for parts in logs.values():
        try:
            whole = pgbench_log.together(parts)
        except Bad as error:
            raise UsageError(f"{', '.join(part.file for part in parts)}: {error.what}") from None
        whole.file, whole.arm, whole.clock = ", ".join(part.file for part in parts), parts[0].arm, "utc"
        whole.counts, whole.by_second = {}, {}
        with_summary(whole, loads)
    for load in loads:
        load.clock = load.clock or ("utc" if load.started is not None else "")
    # A screen has neither an address nor a time zone: only its file's name tells which run it covers.
    cpus += [screen for path, screen in screens if not with_times(path, screen, timed)]
    alone = [cpu for cpu in cpus if not under_load(cpu, loads)]
    return [*loads, *alone]


def with_summary(log: Reading, loads: list[Reading]) -> None:
    """Join a log to the summary with the same number of transactions; without one it is its own run.

    Changes `loads`.
    """
    fits = [
        load
        for load in loads
        if load.tool == "pgbench" and load.arm == log.arm and as_many(load, log) and not load.names
    ]
    if len(fits) != 1:
        loads.append(log)
        return
    summary = fits[0]
    # If the summary has no throughput, the rate was set, and then the log's throughput is not a result either.
    summary.figures |= {name: log.figures[name] for name in log.figures if name not in {*summary.figures, "throughput"}}
    summary.series = summary.series or ({} if "throughput" not in summary.figures else log.series)
    summary.notes += [note for note in log.notes if note.code == "sampled-log"]
    summary.started, summary.ended = log.started, log.ended
    summary.file = f"{summary.file}, {log.file}"
    summary.names = ["joined"]


def as_many(summary: Reading, log: Reading) -> bool:
    """Whether a log has as many transactions as a summary. For a sampled log the number is an estimate."""
    if any(note.code == "sampled-log" for note in log.notes):
        return not formats.differ(summary.operations, log.operations, SAMPLE_TOLERANCE)
    return summary.operations == log.operations


def with_times(path: Path, screen: Reading, timed: Mapping[Path, list[Reading]]) -> bool:
    """Whether a screen's file is named after a run's file of times and one of its operations, as `RUN-INSERT-CPU.csv` is after
    `RUN`; if so, that run gets its figures. Changes `timed`.
    """
    for other, runs in timed.items():
        if other.parent != path.parent or not re.match(rf"{re.escape(other.stem)}[-_. ]", path.name):
            continue
        words = re.findall(r"[^\W_]+", path.stem[len(other.stem) :].lower())
        fits = [run for run in runs if run.arm == screen.arm and run.workload.lower() in words]
        if len(fits) != 1:
            return False
        fits[0].figures |= screen.figures
        fits[0].notes += [note for note in screen.notes if note.code != "idle-edges"]
        fits[0].file = f"{fits[0].file}, {screen.file}"
        return True
    return False


def under_load(cpu: Reading, loads: list[Reading]) -> bool:
    """Whether these samples cover runs of their arm; if so, each run gets the figures of its own period.

    Changes `loads`.
    """
    joined = False
    for load in loads:
        if (
            load.arm != cpu.arm
            or load.started is None
            or load.ended is None
            or cpu.clock != "utc"
            or load.clock != "utc"
        ):
            continue
        # sar and atop print times in whole seconds.
        samples = [row for row in cpu.rows if load.started - 1 <= row[0] - row[1] and row[0] <= load.ended + 1]
        if not samples:
            continue
        busy = (
            sum(row[1] * row[2] for row in samples) / sum(row[1] for row in samples)
            if sum(row[1] for row in samples)
            else samples[0][2]
        )
        load.figures["host_busy"] = busy
        rate = load.figures.get("throughput", load.operations / load.seconds if load.seconds > 0 else 0.0)
        if cpu.cpus and rate > 0:
            load.figures["host_cpu_per_op"] = busy / 100 * cpu.cpus / rate * 1e6
        load.notes += [note for note in cpu.notes if note.code != "idle-edges"]
        load.notes.append(Warning_("joined", f"CPU from {cpu.tool}: {count(len(samples), 'sample')} during the run"))
        load.file = f"{load.file}, {cpu.file}"
        joined = True
    return joined
