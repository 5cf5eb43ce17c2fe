"""Where the publication, its authors' spreadsheets and their logs differ, and what they show. Pure.

These findings need no run of ours; every report prints them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ciphercost.model.spec import ARMS
from ciphercost.studies.column_functions import measured, published, servers
from ciphercost.studies.column_functions.names import CPU, MEMORY, TIME
from ciphercost.studies.costs import change

if TYPE_CHECKING:
    from ciphercost.studies import Study

LATER_DAYS = 7
"""Days between runs of one cell from which they count as different sessions."""
WAITING = 90.0
"""Per cent of CPU below which the core is not kept busy."""


def contradictions(study: Study) -> list[str]:
    return [
        each
        for each in (
            averages(study),
            below_zero(study),
            order(study),
            slips(study),
            waiting(study),
            memory(study),
            reads_first(study),
            WHOLE_PROCESS,
        )
        if each
    ]


WHOLE_PROCESS = (
    "Published times are those of a whole PHP process: its start, reading the CSV file, the connection, and every statement. What both "
    "arms have in common makes the cost in per cent smaller."
)


def averages(study: Study) -> str:
    """The published costs beside those that the spreadsheets give."""
    apart, same = [], []
    for row in study.rows("cost.csv"):
        name, mean, sd = row["server"], row["cost_percent_mean"], row["cost_percent_stddev"]
        found = measured.headline(published.costs(study, name))
        if found is None or found[1] is None:
            continue
        ours = ((found[0] - 1) * 100, found[1] * 100)
        if all(f"{value:.{decimals(text)}f}" == text for value, text in zip(ours, (mean, sd), strict=True)):
            same.append(name)
        else:
            apart.append(f"{name} {mean} ± {sd} %, from its authors' spreadsheets {ours[0]:.2f} ± {ours[1]:.2f} %")
    if not apart:
        return ""
    rest = f"; {servers.worded(same)} agree in every published digit" if same else ""
    return f"The publication and its authors' spreadsheets differ: {'; '.join(apart)}{rest}."


def decimals(text: str) -> int:
    return len(text.partition(".")[2])


def below_zero(study: Study) -> str:
    """Cells in which the encrypted arm is faster."""
    costs = {(name, *key): cost for name in servers.PAIRS for key, cost in published.costs(study, name).items()}
    negative = sorted(
        (cost, f"{name} {operation} {load:,.0f}") for (name, operation, load), cost in costs.items() if cost < 1
    )
    if not negative:
        return ""
    said = ", ".join(f"{name} {change(cost)}" for cost, name in negative)
    return (
        f"In {len(negative)} of {len(costs)} published cells the encrypted arm is faster ({said}). Encryption adds "
        "work, so we infer noise or drift; the study has no interval that would show how much."
    )


def order(study: Study) -> str:
    """Each arm ran before the other: by how much time, and which arm came first."""
    every = published.order(study)
    apart = sorted(abs(each.first["encrypted"] - each.first["plain"]).total_seconds() / 3600 for each in every)
    text = (
        f"The authors' logs date each run. For each server and load one arm ran first; the other arm's first run began {apart[0]:.1f} to "
        f"{apart[-1]:.0f} hours later. So the cost includes whatever changed on the machine in between."
    )
    reverse = [f"{each.engine} {each.records:,.0f}" for each in every if each.first["encrypted"] < each.first["plain"]]
    if reverse:
        text += f" The plain arm came first, except for {servers.worded(reverse)}."
    late = {
        f"{each.engine} {each.records:,.0f} {arm}": days
        for each in every
        for arm in ARMS
        if (days := (each.last[arm] - each.first[arm]).days) >= LATER_DAYS
    }
    if late:
        text += (
            f" {servers.worded(list(late))} contain a run that was made later than the others, up to "
            f"{max(late.values())} days after the first; we infer that it replaced another."
        )
    return text


# ── slips ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def slips(study: Study) -> str:
    """Spreadsheet values that differ from the logs. The published figures contain them."""
    said = list(_slips(study))
    if not said:
        return ""
    return f"Some spreadsheet values differ from the logs, and the published figures contain them: {'; '.join(said)}."


def _slips(study: Study) -> Iterator[str]:
    for each in published.slips(study):
        cell = " ".join(filter(None, (each.engine, each.operation, f"{each.records:,.0f} {each.arm}")))
        if each.kind == "twice":
            yield f"{cell}: run {each.run} repeats run {each.run - 1}"
        elif each.log is None:
            yield f"{cell}: run {each.run} has no log"
        elif each.kind == "unit":
            level = published.levels(study, MEMORY, each.engine)[each.operation, each.records][each.arm]
            right = level.mean / published.GB + (each.log - each.spreadsheet) / 1024 / RUNS
            yield (
                f"{cell}: RAM of run {each.run} is {each.spreadsheet:g} in a column of MB; its log has {each.log:,.0f} (mean "
                f"{level.mean / published.GB:.2f} GB, with the log's value {right:.2f})"
            )
        else:
            times = published.levels(study, TIME, each.engine)[each.operation, each.records]
            means = {arm: times[arm].mean + (each.log - each.spreadsheet) / RUNS * (arm == each.arm) for arm in ARMS}
            then, right = (found["encrypted"] / found["plain"] for found in ({a: times[a].mean for a in ARMS}, means))
            yield (
                f"{cell}: run {each.run} is {each.spreadsheet:.2f} s; its log has {each.log:.2f} s (cost {change(then)}, with the log's value {change(right)})"
            )


RUNS = 10
"""Runs behind each published mean."""


# ── an idle core ──────────────────────────────────────────────────────────────────────────────────────────────────────


def waiting(study: Study) -> str:
    """Cells whose core was partly idle: encryption may use time that would otherwise be idle."""
    said, number, total = [], 0, 0
    for engine in servers.PAIRS:
        levels = published.levels(study, CPU, engine)
        total += len(levels)
        for operation in dict.fromkeys(name for name, _ in levels):
            own = {load: arms["plain"].mean for (name, load), arms in levels.items() if name == operation}
            low = {load: mean for load, mean in own.items() if mean < WAITING}
            number += len(low)
            if low:
                which = "" if len(low) == len(own) else " of " + servers.worded([f"{load:,.0f}" for load in low])
                said.append(f"{engine} {operation}{which} {percents(list(low.values()))}")
    if not said:
        return ""
    return (
        f"In {number} of {total} published cells of the plain arm the core was busy for less than {WAITING:.0f} % of the time ({'; '.join(said)}). "
        "There the disk, not the core, sets the pace, so the time shows little of what encryption costs the CPU. This is an inference."
    )


def percents(values: list[float]) -> str:
    """`49 to 54 %`."""
    low, high = f"{min(values):.0f}", f"{max(values):.0f}"
    return f"{low} %" if low == high else f"{low} to {high} %"


def memory(study: Study) -> str:
    """How RAM in use of the whole machine differs between the arms."""
    changes = sorted(
        (arms["encrypted"].mean - arms["plain"].mean, f"{engine} {operation} {load:,.0f}")
        for engine in servers.PAIRS
        for (operation, load), arms in published.levels(study, MEMORY, engine).items()
    )
    (least, where), (most, other) = changes[0], changes[-1]
    return (
        f"Published RAM in use is total − free of the whole machine, including caches. From the plain to the encrypted arm it changes by "
        f"{least:+,.0f} MB ({where}) to {most:+,.0f} MB ({other}). An encryption function "
        "needs far less, so we infer that encryption causes little of the change."
    )


# ── what an operation contains ────────────────────────────────────────────────────────────────────────────────────────

READING = ("update", "delete")
"""Operations that begin with the study's SELECT of every notification."""


def reads_first(study: Study) -> str:
    """The share of UPDATE and DELETE that the preceding SELECT takes, and what encryption costs without it."""
    said = []
    for engine in servers.PAIRS:
        times = published.levels(study, TIME, engine)
        load = max(records for _, records in times)
        for operation in READING:
            whole, select = times[operation, load], times["select", load]
            rest = {arm: whole[arm].mean - select[arm].mean for arm in ARMS}
            share = select["plain"].mean / whole["plain"].mean
            costs = [change(each["encrypted"] / each["plain"]) for each in ({a: whole[a].mean for a in ARMS}, rest)]
            said.append(f"{engine} {operation} {share * 100:.0f} %, cost {costs[0]}, of the rest {costs[1]}")
    return (
        f"The study's UPDATE and DELETE first read every notification, as its SELECT does. At {load:,.0f} records the published SELECT takes this "
        f"share of their plain arm's time: {'; '.join(said)}. The rest is an inference: it assumes that the SELECT takes as long there as by itself."
    )
