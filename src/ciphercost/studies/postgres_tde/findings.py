"""What the published figures contradict, and what their procedure could not show, computed from both. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from ciphercost.measure.fio import LEAST_CELL_SECONDS
from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyRecord, StudyRun
from ciphercost.studies import tde_pairs
from ciphercost.studies.costs import bounds, change, too_wide
from ciphercost.studies.postgres_tde import grid
from ciphercost.studies.sheet import worded

if TYPE_CHECKING:
    from ciphercost.studies import Study

Here = Mapping[tuple[str, str], StudyRun]
APART = 0.02
"""Share by which a rate and the rate computed from its latency may differ: seconds at both ends of a run."""
EDGE_SECONDS = 8
"""Seconds compared at the beginning and end of a run, like the study's first seconds."""
LEAST_SECONDS = 3 * EDGE_SECONDS


class Measurements(NamedTuple):
    """What was measured here."""

    here: Here
    """The published procedure at the study's own point."""
    ours: Mapping[str, Cell]
    """Our method at that point, by pair."""
    runs: Mapping[grid.Point, Here]
    """The published procedure at every point."""


def findings(study: Study, record: StudyRecord, seen: Measurements) -> list[str]:
    """Findings of a few sentences each, with computed figures."""
    all_findings = [
        study.finding("loss"),
        falling(study, seen.here),
        study.finding("screen"),
        study.finding("unequal-work"),
        select_only(seen.runs),
        *map(study.finding, ("same-latency", "promised", "two-pairs")),
        littles_law(study, record, seen.here),
        spread(study, seen.here),
        *map(study.finding, ("contradictions", "wording")),
        intervals(study, seen.here, seen.ours),
        study.finding("unproven"),
        on_the_disk(seen.here),
        loads(study, record),
        fio(study, record, seen.ours),
        study.finding("elsewhere"),
    ]
    return [finding for finding in all_findings if finding]


# ── the published figures among themselves ────────────────────────────────────────────────────────────────────────────


def select_only(runs: Mapping[grid.Point, Here]) -> str:
    """The factor that different statements alone cause, if both kinds ran here."""
    clauses = []
    for point, here in runs.items():
        other = runs.get(point._replace(operation=grid.SELECT), {})
        if point.operation != grid.TPCB or not other:
            continue
        for name in dict.fromkeys(name for name, _ in here):
            encrypted, plain = here.get((name, "encrypted")), here.get((name, "plain"))
            select = other.get((name, "plain"))
            if encrypted and plain and select:
                tps = [run.series["tps"][0] for run in (select, encrypted, plain)]
                clauses.append(
                    f"{name}, {point.rows:,} rows, {point.clients} clients: {tps[0]:,.0f} TPS SELECT-only without encryption, "
                    f"{tps[1]:,.0f} TPC-B-like with it, a factor of {tps[0] / tps[1]:.1f}; TPC-B-like without it {tps[2]:,.0f}, "
                    f"a factor of {tps[2] / tps[1]:.2f}"
                )
    if not clauses:
        return ""
    return f"The effect of different statements alone, here: {'; '.join(clauses)}."


def loads(study: Study, record: StudyRecord) -> str:
    """Low and high load: only one pair of figures exists for low load."""
    run = sorted({point.clients for point in grid.of_record(record)})
    return f"{study.finding('loads')} Run here: {worded(run)} clients."


def littles_law(study: Study, record: StudyRecord, here: Here) -> str:
    """Clients ÷ mean latency is the rate if every client is busy all the time."""
    text = study.finding("littles-law")
    rates = [
        (record.settings["clients"] / run.series["latency_average_ms"][0] * 1000) / run.series["tps"][0] - 1
        for run in here.values()
        if run.series["latency_average_ms"][0]
    ]
    if rates:
        text += f" Here the two differ by at most {100 * max(map(abs, rates)):.1f} %."
    return text


def spread(study: Study, here: Here) -> str:
    """A standard deviation as large as the mean."""
    text = study.finding("spread")
    shares = [
        f"{name} "
        + " and ".join(
            f"{run.series['latency_stddev_ms'][0] / run.series['latency_average_ms'][0]:.2f} {spell(arm)}"
            for arm in ARMS
            if (run := here[name, arm])
        )
        for name in dict.fromkeys(name for name, _ in here)
        if all((name, arm) in here for arm in ARMS)
    ]
    return f"{text} Here, where both arms ran alike: {'; '.join(shares)}." if shares else text


def falling(study: Study, here: Here) -> str:
    """Falling progress lines and the run that they belong to. Two readings; each is an inference."""
    text = study.finding("falling")
    clauses = [
        f"{name} {spell(arm)} {fmean(rates[:EDGE_SECONDS]):,.0f} and {fmean(rates[-EDGE_SECONDS:]):,.0f}"
        for (name, arm), run in here.items()
        if len(rates := run.series["progress_tps"]) >= LEAST_SECONDS
    ]
    if clauses:
        text += f" Here, TPS in the first and the last {EDGE_SECONDS} seconds: {'; '.join(clauses)}."
    return text


# ── beside what was measured here ─────────────────────────────────────────────────────────────────────────────────────


def intervals(study: Study, here: Here, ours: Mapping[str, Cell]) -> str:
    """One run per arm, one after the other: the result of that here, and our interval."""
    text = study.finding("intervals")
    clauses = []
    for name in dict.fromkeys(name for name, _ in here):
        rate = ours[name].overhead.get("throughput") if name in ours else None
        if rate is None or any((name, arm) not in here for arm in ARMS):
            continue
        plain, encrypted = (here[name, arm].series["tps"][0] for arm in ARMS)
        ratio = encrypted / plain
        inside = "inside" if rate.low <= ratio <= rate.high else "outside"
        our = (
            "; our interval is too wide to compare"
            if too_wide(rate.low, rate.high)
            else f", {inside} our {bounds(rate.low, rate.high, 'TPS')}"
        )
        clauses.append(f"{name} {change(ratio, 'TPS')}{our}")
    if not clauses:
        return text
    return (
        f"{text} Run once as published, TPS change here by: {'; '.join(clauses)}. pgbench shares all cores with its server, as in "
        "the study; our method keeps server and client on separate cores if there are two."
    )


def on_the_disk(here: Here) -> str:
    """Whether the servers here write durably."""
    runs = list(here.values())
    if not runs or "fsync" not in runs[0].load:
        return ""
    switches = [
        name for name in ("fsync", "synchronous_commit", "full_page_writes") if all(run.load[name] for run in runs)
    ]
    load = runs[0].load
    counts = "; ".join(f"{name} {spell(arm)} {run.series['checkpoints'][0]:.0f}" for (name, arm), run in here.items())
    return (
        f"Here, by the servers' own settings: {worded(switches) or 'no switch'} on, a checkpoint every {load['checkpoint_timeout']:.0f} s "
        f"or {load['max_wal_size'] / 1024**2:,.0f} MB of log, {load['shared_buffers'] / 1024**2:,.0f} MB of shared buffers; "
        f"checkpoints in a run: {counts}. A run shorter than that time shows no timed checkpoint."
    )


FIO = "fio"
"""Key of a record's tools: `installed` or `not installed`. Older records lack it."""
CELL_SECONDS = "cell_seconds"
"""Key of a record's settings: seconds of load of each of our cells. Older records lack it."""


def fio(study: Study, record: StudyRecord, ours: Mapping[str, Cell]) -> str:
    """fio: the study names it as a tool and prints no figure of it; why it did not run here either."""
    text = study.finding("fio")
    if any(cell.storage for cell in ours.values()):
        return text
    return f"{text} Here fio did not run either: {_why_no_fio(record, ours)}."


def _why_no_fio(record: StudyRecord, ours: Mapping[str, Cell]) -> str:
    length = record.settings.get(CELL_SECONDS, 0.0)
    if all(mechanism in tde_pairs.VENDORS for mechanism in record.mechanisms):
        return "the server itself encrypts, so both arms lie on one file system"
    if record.tools.get(FIO) == "not installed":
        return "it is not installed"
    if 0 < length < LEAST_CELL_SECONDS and len({point.rows for point in grid.of_record(record)}) < 2:
        return f"our cells had {length:g} s of load each, and it runs from {LEAST_CELL_SECONDS:g} s on (--time), or with several sizes (--rows)"
    if ours and all(cell.status != "ok" for cell in ours.values()):
        return "no cell of our method has a number"
    if not ours:
        return "our cells were not measured"
    return "the record does not say why" + ("" if FIO in record.tools else "; ciphercost did not record it then")


def spell(arm: str) -> str:
    return "encrypted" if arm == "encrypted" else "plain"
