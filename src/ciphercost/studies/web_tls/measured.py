"""Mean, variance and coefficient of variation of a fetch's counters, over the window and over its busy time. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, variance

from ciphercost.model.study import StudyRun
from ciphercost.studies.web_tls import procedure, published

Here = Mapping[tuple[int, str], StudyRun]
"""Fetches by file (megabytes) and arm."""
RATE, WITHOUT_SENDFILE, TLS_ITSELF = "operations/s", "no sendfile", "TLS itself"
SERVER_CPU, BUSY_SECONDS, SHARE = "server's CPU", "time of the fetch", "share of the window"
"""Figures beyond the twelve tables."""
ONE_CLIENT, MANY = "one client", "many clients"
"""Our two experiments; the second is the `workload` of its figures."""
LEAST = 2
"""Samples needed for a variance."""


def figures(values: Sequence[float]) -> dict[str, float]:
    """Mean, sample variance, coefficient of variation; without those that too few samples or a mean of zero don't allow."""
    if not values:
        return {}
    statistics = {published.MEAN: fmean(values)}
    if len(values) >= LEAST:
        statistics[published.VARIANCE] = variance(values)
        if statistics[published.MEAN]:
            statistics[published.CV] = math.sqrt(statistics[published.VARIANCE]) / abs(statistics[published.MEAN])
    return statistics


def whole(run: StudyRun, counter: str) -> dict[str, float]:
    """Over the fixed window, as published: every sample has equal weight."""
    return figures(run.series[counter])


def carried(run: StudyRun, counter: str) -> float:
    """Sum of a rate over the window: each sample counts for as long as it was."""
    return math.fsum(value * seconds for value, seconds in zip(run.series[counter], run.series["seconds"], strict=True))


def busy(run: StudyRun, counter: str) -> dict[str, float]:
    """Between the request's first byte and the answer's last: the mean of exactly that time, the scatter of the samples within it."""
    first, last = run.series["busy_s"]
    within = [
        value
        for at, seconds, value in zip(run.series["at_s"], run.series["seconds"], run.series[counter], strict=True)
        if at - seconds >= first and at <= last
    ]
    mean = run.series[f"{procedure.BUSY}{counter}"][0]
    statistics = figures(within) if len(within) >= LEAST else {}
    if published.VARIANCE in statistics and mean:
        statistics[published.CV] = math.sqrt(statistics[published.VARIANCE]) / abs(mean)
    return statistics | {published.MEAN: mean}


def busy_seconds(run: StudyRun) -> float:
    first, last = run.series["busy_s"]
    return last - first


def window(run: StudyRun) -> float:
    """Sampled seconds."""
    return math.fsum(run.series["seconds"])


def busy_share(run: StudyRun) -> float:
    return busy_seconds(run) / window(run)


def server_seconds(run: StudyRun) -> float:
    """CPU time of the server's own processes during the fetch."""
    return run.series["server_cpu_s"][0]


def threads(run: StudyRun) -> dict[str, tuple[float, float, float]]:
    """Seconds of each active server thread: total, in user mode, in kernel mode."""
    by_thread = {}
    for name, values in run.series.items():
        if name.startswith(procedure.THREAD):
            seconds, user, system = values
            by_thread[name.removeprefix(procedure.THREAD)] = (seconds, user, system)
    return by_thread
