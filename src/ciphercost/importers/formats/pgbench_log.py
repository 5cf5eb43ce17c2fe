"""Reads pgbench's log of each transaction (`-l`) or of each interval (`--aggregate-interval`), line by line. Pure.

Each thread writes its own file; `together` joins the files of one process into a run.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence

from ciphercost.importers.formats import Bad, Lines, set_rate
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

TRANSACTION = re.compile(r"\d+ \d+ (?:\d+|skipped|failed|serialization|deadlock) \d+ 1\d{9} \d{1,6}(?: -?\d+)*")
INTERVAL = re.compile(r"1\d{9} \d+ \d+ \d+ \d+ \d+(?: -?\d+)*")
HEAD_LINES = 50
LAG = 7
"""Number of columns in a log with one more than usual: the lag behind the schedule (-R) in µs, or the number of retries
(--max-tries).
"""
MOST_RETRIES = 100
SAMPLED = 0.95
"""A log with a smaller share of the transactions that its numbers imply was sampled (--sampling-rate)."""
ENOUGH = 200
"""Lines per client, times the square root of the clients, for a throughput from transaction numbers that is accurate to
0.5 %.
"""
LAG_SUM = 6
"""Column of the sum of lags in a log of intervals."""


def recognise(head: str) -> int:
    first = head.splitlines()[:HEAD_LINES]
    for kind in (TRANSACTION, INTERVAL):
        whole = [line for line in first if line.strip()][: max(1, len(first) - 1)]
        if whole and kind.fullmatch(whole[0].strip()):
            return 1
    return 0


def read(lines: Lines) -> list[Reading]:
    """Return one reading. Skips a last line that is cut off."""
    kind = None
    rows: list[list[int]] = []
    seconds: dict[int, int] = {}
    latencies: dict[int, int] = {}
    skipped = False
    total, lost, started, ended, sum_us = 0, 0, math.inf, -math.inf, 0
    clients: dict[int, list[int]] = {}
    lag = 0
    for line in lines:
        text = line.strip()
        if not text or lines.cut:
            continue
        kind = kind or (TRANSACTION if TRANSACTION.fullmatch(text) else INTERVAL)
        if not kind.fullmatch(text):
            raise Bad(
                lines.number,
                f"'{text[:60]}' is not a line of a pgbench log; put each log alone into its own file",
            )
        words = text.split()
        if kind is INTERVAL:
            rows.append([int(word) for word in words])
            continue
        client = clients.setdefault(int(words[0]), [0, 0])
        client[0], client[1] = client[0] + 1, max(client[1], int(words[1]))
        if not words[2].isdecimal():
            lost += 1
            skipped = skipped or words[2] == "skipped"
            continue
        latency, at = int(words[2]), int(words[4]) + int(words[5]) / 1e6
        if len(words) >= LAG:
            lag = max(lag, int(words[LAG - 1])) if len(words) == LAG else MOST_RETRIES + 1
        total, sum_us = total + 1, sum_us + latency
        started, ended = min(started, at - latency / 1e6), max(ended, at)
        seconds[int(words[4])] = seconds.get(int(words[4]), 0) + 1
        bucket = rounded(latency)
        latencies[bucket] = latencies.get(bucket, 0) + 1
    if kind is INTERVAL:
        return [of_intervals(rows)]
    if not total:
        raise Bad(lines.number, "the log has no successful transaction")
    if ended <= started:
        raise Bad(lines.number, "the log's times do not increase, so its columns are not those of pgbench -l")
    reading = Reading(
        tool="pgbench -l",
        line=1,
        engine="postgresql",
        workload="pgbench",
        clients=len(clients),
        operations=total,
        errors=lost,
        seconds=ended - started,
        started=started,
        ended=ended,
        figures={"latency_mean": sum_us / total / 1e3},
        counts=latencies,
        by_second=seconds,
        notes=[Warning_("errors", f"{lost:,} transactions failed or were skipped, {total:,} succeeded")]
        if lost
        else [],
    )
    if lost <= total:
        of_a_sample(reading, list(clients.values()))
    # Retries are few, and only a run with a schedule skips transactions.
    if skipped or lag > MOST_RETRIES:
        set_rate(reading)
    return [finished(reading)]


def of_a_sample(reading: Reading, clients: list[list[int]]) -> None:
    """Extrapolate a sampled log to its whole run, using each client's transaction numbers, which start at 1. Changes
    it.

    `clients`: number of lines and highest number of each. If k numbers are drawn from 1 … N and the highest is m, m +
    m/k − 1 estimates N without bias. Its error is about N/k, and the clients' errors are independent.
    """
    if sum(lines for lines, _ in clients) >= SAMPLED * sum(highest for _, highest in clients):
        return
    whole = round(sum(highest + highest / lines - 1 for lines, highest in clients))
    text = f"the log contains {reading.operations / whole:.2g} of the transactions that its numbers imply (--sampling-rate)"
    least = min(lines for lines, _ in clients)
    reading.by_second = {}
    if least * math.sqrt(len(clients)) < ENOUGH:
        reading.notes.append(
            Warning_("sampled-log", f"{percent(text)}; too few to estimate throughput, which is omitted")
        )
    else:
        reading.notes.append(
            Warning_("sampled-log", f"{percent(text)}; throughput comes from these numbers, latency from the sample")
        )
        reading.operations = whole
        reading.figures["throughput"] = whole / reading.seconds


def percent(text: str) -> str:
    """Turn `0.1 of` into `10 % of`."""
    return re.sub(r"\d[\d.e-]*(?= of)", lambda share: f"{float(share[0]) * 100:.2g} %", text, count=1)


def rounded(latency: int) -> int:
    """Round to three significant digits, so that a log of any length fits into memory."""
    digits = max(0, len(str(latency)) - 3)
    return round(latency, -digits)


def finished(reading: Reading) -> Reading:
    """Compute the figures that need all files of a run."""
    figures = dict(reading.figures)
    known = {note.code for note in reading.notes}
    if not known & {"rate-limited", "sampled-log"}:
        figures = {"throughput": reading.operations / reading.seconds, **figures}
    if sum(reading.counts.values()) >= 100:
        figures |= {
            name: quantile(reading.counts, share) / 1e3 for name, share in (("latency_p50", 0.5), ("latency_p99", 0.99))
        }
    whole = sorted(reading.by_second)[1:-1]  # The first and the last second are incomplete.
    series = [float(reading.by_second.get(second, 0)) for second in range(whole[0], whole[-1] + 1)] if whole else []
    reading.figures = figures
    reading.series = {"throughput": series} if len(series) > 1 and "rate-limited" not in known else {}
    return reading


def quantile(counts: dict[int, int], share: float) -> float:
    """Return a quantile of values with their counts: the smallest value with at least this share at or below it."""
    wanted, below = share * sum(counts.values()), 0
    for value in sorted(counts):
        below += counts[value]
        if below >= wanted:
            return float(value)
    return float(max(counts))


def of_intervals(rows: list[list[int]]) -> Reading:
    """Return the reading of a log of intervals. Skips the first and last interval, which are incomplete."""
    steps = {later[0] - earlier[0] for earlier, later in itertools.pairwise(rows)}
    if not rows or (steps and min(steps) <= 0):
        raise Bad(len(rows), "the intervals of this log are not consecutive; put each run into its own file")
    if len(rows) < 3:
        raise Bad(
            len(rows),
            "fewer than three intervals, and the first and last are incomplete, so no complete one is left; run longer",
        )
    step, kept = min(steps), rows[1:-1]
    count, micro = sum(row[1] for row in kept), sum(row[2] for row in kept)
    seconds = float(rows[-1][0] - kept[0][0])
    if not count:
        raise Bad(len(rows), "the log has no successful transaction")
    reading = Reading(
        tool="pgbench --aggregate-interval",
        line=1,
        engine="postgresql",
        workload="pgbench",
        operations=count,
        seconds=seconds,
        started=float(rows[0][0]),
        ended=float(rows[-1][0] + step),
        figures={"throughput": count / seconds, "latency_mean": micro / count / 1e3},
        series={
            "throughput": [row[1] / step for row in kept],
            **({"latency_mean": [row[2] / row[1] / 1e3 for row in kept]} if all(row[1] for row in kept) else {}),
        },
        notes=[Warning_("left-out", "the first and the last interval are incomplete and were skipped")],
    )
    if any(len(row) > LAG_SUM + 3 and row[LAG_SUM] for row in rows):
        set_rate(reading)
    return reading


def together(parts: Sequence[Reading]) -> Reading:
    """Join the files of a run's threads into one run."""
    first = parts[0]
    if len(parts) == 1:
        return first
    if any(not part.counts for part in parts):
        raise Bad(
            0,
            "interval logs of several threads can't be joined; run pgbench with -j 1, or without --aggregate-interval",
        )
    started, ended = min(part.started or 0.0 for part in parts), max(part.ended or 0.0 for part in parts)
    operations = sum(part.operations for part in parts)
    counts: dict[int, int] = {}
    by_second: dict[int, int] = {}
    for part in parts:
        for whole, part_counts in ((counts, part.counts), (by_second, part.by_second)):
            for key, value in part_counts.items():
                whole[key] = whole.get(key, 0) + value
    mean = sum(part.figures["latency_mean"] * part.operations for part in parts) / operations
    run = Reading(
        tool=first.tool,
        line=1,
        engine=first.engine,
        workload=first.workload,
        clients=sum(part.clients for part in parts),
        operations=operations,
        errors=sum(part.errors for part in parts),
        seconds=ended - started,
        started=started,
        ended=ended,
        figures={"latency_mean": mean},
        counts=counts,
        by_second=by_second,
        notes=[note for part in parts for note in part.notes],
    )
    if any("sampled-log" in (note.code for note in part.notes) for part in parts):
        run.by_second = {}
        if all("throughput" in part.figures for part in parts):
            run.figures["throughput"] = operations / run.seconds
    return finished(run)
