"""What the published procedure could not show; each finding appears only if this run shows it. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from ciphercost.estimate.notation import factor
from ciphercost.model.result import Cell, Estimate
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyFigure, StudyRecord
from ciphercost.studies import in_turn
from ciphercost.studies.column_functions import measured, procedure, published, servers
from ciphercost.studies.column_functions.names import CPU, GROWTH, RATE, SERVER_CPU, TIME
from ciphercost.studies.costs import bounds, change, plus_minus, too_wide, with_interval
from ciphercost.studies.sheet import worded

if TYPE_CHECKING:
    from ciphercost.studies import Study

STEEP = 1.5
"""Exponent of growth from which a time counts as growing faster than its load."""
APART = 0.3
"""Least difference of two versions' exponents that is reported."""
BUSY = 0.02
"""Share by which two levels of CPU may differ and still count as equal."""
LEAST_BUSY = 80.0
LEAST_MB, FOREIGN = 50.0, 3.0
"""Least change of RAM that is reported, and by how much it must exceed the server's own."""
OF_THE_PUBLICATION = (
    "cpus",
    "averages",
    "below-zero",
    "order",
    "slips",
    "waiting",
    "cpu-order",
    "memory",
    "less-memory",
    "reads-first",
    "whole-process",
    "elsewhere",
)
"""Where the publication, its authors' spreadsheets and their logs differ, and what they show."""


def findings(study: Study, record: StudyRecord, figures: Sequence[StudyFigure], cells: Sequence[Cell]) -> list[str]:
    """Findings of one or two sentences each, with computed figures."""
    texts = [
        modes(study, cells),
        another_version(record, cells),
        instructions(record),
        no_interval(study, figures),
        *map(study.finding, OF_THE_PUBLICATION),
        below_zero(record, figures),
        outside(record, figures),
        order(figures),
        fixed_iv(record),
        too_short(record),
        busy_core(figures),
        whose_memory(record),
        compiling(record),
        access_path(figures),
        growth(record, figures),
        study.finding("unproven") if record.proofs else "",
    ]
    return [text for text in texts if text]


def costs(figures: Sequence[StudyFigure], version: str, figure: str = TIME) -> list[StudyFigure]:
    """Encrypted ÷ plain of each operation and load."""
    return [
        cost
        for cost in figures
        if (cost.arm, cost.figure, cost.workload) == ("cost", figure, version) and cost.load is not None
    ]


def headline(figures: Sequence[StudyFigure], engine: str, version: str = procedure.STUDYS) -> StudyFigure | None:
    wanted = (engine, version, "cost", TIME)
    return next((f for f in figures if (f.engine, f.workload, f.arm, f.figure) == wanted and f.load is None), None)


def called(figure: StudyFigure) -> str:
    return f"{figure.engine} {figure.operation} {figure.load:,.0f}"


# ── three modes as three databases ────────────────────────────────────────────────────────────────────────────────────


def modes(study: Study, cells: Sequence[Cell]) -> str:
    printed = published.servers(study)
    text = study.finding("modes")
    rates = {cell.engine: cell.overhead["throughput"] for cell in cells if "throughput" in cell.overhead}
    if len(rates) < 2:
        return text
    equal = ", ".join(f"{name} {_rate(rate)}" for name, rate in rates.items())
    text += f" With {servers.EQUAL_CIPHER} on each and a random IV for every value, operations/s: {equal}."
    order_then = sorted((name for name in rates if name in printed), key=lambda name: printed[name].ratio)
    order_now = sorted(order_then, key=lambda name: -rates[name].ratio)
    touching = [(one, other) for one, other in itertools.pairwise(order_now) if rates[one].low <= rates[other].high]
    if touching:
        overlapping = worded([f"{one} and {other}" for one, other in touching])
        return f"{text} The intervals of {overlapping} overlap: at equal cipher this run shows no order between them."
    if order_then != order_now:
        text += f" The order from the lowest cost is {worded(order_now)}; as published it was {worded(order_then)}."
    return text


def another_version(record: StudyRecord, cells: Sequence[Cell]) -> str:
    """Servers of the comparison at equal cipher that are not those of the procedure."""
    others = [cell for cell in cells if cell.version and record.versions.get(cell.engine) not in (None, cell.version)]
    if not others:
        return ""
    apart = (
        f"{cell.engine} {record.versions[cell.engine]} ran the study's procedure, and {cell.version} ran {cell.mechanism}"
        for cell in others
    )
    one = ",".join(f"{cell.engine}@{cell.version}" for cell in others)
    return f"Two versions of a server ran here: {'; '.join(apart)}, which the first cannot do. `--engine {one}` runs both on one version."


OPENSSL = ("mariadb", "postgresql")
"""Servers whose functions use OpenSSL. Firebird's use LibTomCrypt, which has no code for AES instructions."""


FIREBIRD_ALONE = "Firebird uses LibTomCrypt, which has no code for AES instructions: it ran without them here, as in the study, whatever --cpu-crypto is."


def instructions(record: StudyRecord) -> str:
    """Whether this run could use AES instructions, which is not known of the published one, and which servers that affects."""
    used = record.conditions.get("cpu_crypto", "")
    ran = {run.engine for run in record.runs}
    by_openssl = [name for name in record.engines if name in OPENSSL and name in ran]
    if used not in ("on", "off"):
        return ""
    if not by_openssl:
        return FIREBIRD_ALONE if "firebird" in ran else ""
    beside = " Firebird's LibTomCrypt never uses any." if "firebird" in ran else ""
    if used == "on":
        return (
            f"This CPU has AES instructions and {worded(by_openssl)} could use them. If the study's servers could not, encryption costs "
            f"less here than there for that reason alone.{beside} `--cpu-crypto off` hides them."
        )
    return (
        f"OpenSSL had no AES instructions here, as the study says of its machine: they were hidden from it. {worded(by_openssl)} "
        f"encrypt{'s' * (len(by_openssl) == 1)} with OpenSSL.{beside} The agent proved that they were hidden from it. Only behind TLS is it proven "
        "that a server obeyed, so not here."
    )


def no_interval(study: Study, figures: Sequence[StudyFigure]) -> str:
    """The published ± is over four operations."""
    printed = published.servers(study)
    text = study.finding("no-interval")
    both = []
    for name in printed:
        cost = headline(figures, name)
        if (
            cost
            and cost.here is not None
            and cost.here_sd is not None
            and cost.low is not None
            and cost.high is not None
        ):
            both.append(f"{name} {plus_minus(cost.here, cost.here_sd)}, interleaved {with_interval(cost)}")
    if both:
        text += f" Here the same ± with a 95 % interval: {'; '.join(both)}."
    return text


def below_zero(record: StudyRecord, figures: Sequence[StudyFigure]) -> str:
    """Cells of the procedure run here in which the encrypted arm is faster."""
    all_ = [cost for cost in costs(figures, procedure.STUDYS) if cost.here is not None]
    negative = [cost for cost in all_ if cost.here is not None and cost.here < 1]
    if not negative:
        return ""
    listed = ", ".join(f"{called(cost)} {change(cost.here)}" for cost in negative)
    runs = record.settings["runs"]
    text = (
        f"In {len(negative)} of {len(all_)} cells the procedure, run here {in_turn.often(runs)}, finds the encrypted arm faster "
        f"({listed}), as in published cells."
    )
    sure = [cost for cost in negative if cost.high is not None and cost.high < 1]
    if not sure:
        return f"{text} Interleaved, none of these intervals lies wholly below zero."
    return f"{text} Interleaved, the whole interval lies below zero for {', '.join(map(called, sure))}."


def outside(record: StudyRecord, figures: Sequence[StudyFigure]) -> str:
    """Cells whose repeated cost lies outside the interleaved interval, both by the time of the statements alone."""
    alone = {name: measured.as_published(record.runs, name) for name in record.engines}
    judged = [
        cost
        for cost in costs(figures, procedure.STUDYS)
        if cost.here is not None and cost.low and cost.high and not too_wide(cost.low, cost.high)
    ]
    known = [
        (cost, ratio)
        for cost in judged
        if (ratio := measured.cost_of(alone[cost.engine][cost.operation, cost.load or 0.0], procedure.STATEMENTS))
    ]
    apart = [(cost, ratio) for cost, ratio in known if not cost.low <= ratio <= cost.high]  # type: ignore[operator]
    diluted = [cost for cost, ratio in known if _within(cost, ratio) and not _within(cost, cost.here)]
    text = ""
    if apart:
        listed = "; ".join(f"{called(e)} {change(r)}, not {bounds(e.low or 0.0, e.high or 0.0)}" for e, r in apart)
        text = (
            "One arm ran completely before the other: whatever changes on the machine meanwhile looks like encryption. Compared by the time "
            f"of the statements alone, in {len(apart)} of {len(known)} cells the procedure gives a different cost here than interleaved arms: "
            f"{listed}."
        )
    if diluted:
        whole = "; ".join(f"{called(e)} {change(e.here)}" for e in diluted)
        text += (
            f"{' ' if text else ''}In {len(diluted)} of {len(known)} cells only the time of the whole client process lies outside the "
            f"interleaved interval, and the statements alone within it: {whole}. That is the client's start and connection, which both arms "
            "contain, and not the order of the arms."
        )
    return text


def _within(cost: StudyFigure, ratio: float | None) -> bool:
    return ratio is not None and cost.low is not None and cost.high is not None and cost.low <= ratio <= cost.high


def order(figures: Sequence[StudyFigure]) -> str:
    """Whether this run can order the servers by the study's figure at all."""
    known = [cost for name in servers.PAIRS if (cost := headline(figures, name)) and cost.low and cost.high]
    pairs = [
        (one, other)
        for number, one in enumerate(known)
        for other in known[number + 1 :]
        if one.low <= other.high and other.low <= one.high  # type: ignore[operator]
    ]
    if not pairs:
        return ""
    overlapping = worded([f"{one.engine} with {other.engine}" for one, other in pairs])
    return f"Even in the study's own figure the intervals overlap here for {overlapping}: this run does not show which of them costs more."


# ── what the procedure contains ───────────────────────────────────────────────────────────────────────────────────────


def fixed_iv(record: StudyRecord) -> str:
    """Equal values that are stored alike, as counted after the first INSERT."""
    seen = []
    for run in record.runs:
        counted = run.series.get(procedure.COUNTED)
        if counted and run.workload == procedure.STUDYS:
            values, texts, stored = (int(count) for count in counted)
            if stored < values:
                seen.append(
                    f"{run.engine} ({run.mechanism}) {values:,} names of {texts} states as {stored} stored values"
                )
    if not seen:
        return ""
    return (
        f"One IV for every row, or none, stores equal values alike: {'; '.join(seen)}. Anyone who reads the table can count each state's "
        "notifications without the key. None of the published figures includes the cost of one IV per value."
    )


def too_short(record: StudyRecord) -> str:
    """Operations that end before a second sample."""
    every = [run for run in record.runs if run.design == measured.PUBLISHED]
    short = [run for run in every if not measured.counted(run)]
    if not short:
        return ""
    names = sorted({(run.engine, run.operation) for run in short})
    listed = ", ".join(f"{engine} {name}" for engine, name in names)
    return (
        f"CPU is sampled every {record.settings['interval_s']:g} s. The first sample is dropped, and here also a last one that is too short. In "
        f"{len(short)} of {len(every)} runs here the operation ended before a second whole sample ({listed}), so there is nothing to "
        "average."
    )


def busy_core(figures: Sequence[StudyFigure]) -> str:
    """A CPU that is equally busy in both arms shows nothing of what encryption costs."""
    levels = {(f.engine, f.operation, f.load, f.arm): f.here for f in figures if f.figure == CPU and f.here is not None}
    same = []
    for cost in costs(figures, procedure.STUDYS, SERVER_CPU):
        both = [levels.get((cost.engine, cost.operation, cost.load, arm)) for arm in ARMS]
        plain, encrypted = both
        if plain is None or encrypted is None or min(plain, encrypted) < LEAST_BUSY or cost.low is None:
            continue
        if abs(encrypted / plain - 1) <= BUSY and cost.low > 1 + BUSY:
            same.append((cost, plain, encrypted))
    if not same:
        return ""
    listed = "; ".join(f"{called(e)} {p:.0f} → {c:.0f} % busy, {change(e.ours)} CPU time" for e, p, c in same)
    return f"The core is as busy in one arm as in the other, only for longer: {listed}. Mean CPU % does not measure the cost; CPU time does."


def whose_memory(record: StudyRecord) -> str:
    """Total − free covers the whole machine with its caches; beside it, the memory of the server itself."""
    apart = []
    for engine in record.engines:
        by_arm: dict[str, list[tuple[float, float]]] = {}
        for run in record.runs:
            if (run.engine, run.design) == (engine, measured.PUBLISHED):
                by_arm.setdefault(run.arm, []).extend(
                    (
                        row.memory_available_bytes + row.memory_used_bytes - row.memory_free_bytes,
                        row.server_memory_bytes,
                    )
                    for row in run.host
                )
        if not all(by_arm.get(arm) for arm in ARMS):
            continue
        used, held = (
            (
                fmean(sample[which] for sample in by_arm["encrypted"])
                - fmean(sample[which] for sample in by_arm["plain"])
            )
            / 1e6
            for which in (0, 1)
        )
        if abs(used) >= LEAST_MB and abs(used) > FOREIGN * abs(held):
            apart.append(f"{engine} {used:+,.0f} MB, of which the server's own processes {held:+,.0f} MB")
    if not apart:
        return ""
    return (
        "RAM in use as total − free covers the whole machine, including every file that the kernel caches. From the plain to the encrypted "
        f"arm it changes by: {'; '.join(apart)}."
    )


def compiling(record: StudyRecord) -> str:
    """A planner that compiles one arm's plan and not the other's: an effect of a threshold, not of a cipher."""
    by_load: dict[tuple[str, float], dict[str, tuple[float, float]]] = {}
    for run in record.runs:
        if run.design == measured.PUBLISHED and (times := run.series.get(procedure.COMPILED)):
            by_load.setdefault((run.engine, run.load["records"]), {})[run.arm] = (times[0], times[1])
    parts = [
        f"{engine} select {load:,.0f} compiles the {arm} arm's ({ms:.0f} of {whole:.0f} ms) and not the other's"
        for (engine, load), arms in sorted(by_load.items())
        if len(arms) == len(ARMS) and sum(arm_times[0] > 0 for arm_times in arms.values()) == 1
        for arm, (ms, whole) in arms.items()
        if ms
    ]
    if not parts:
        return ""
    return (
        f"On tables without ANALYZE, a planner estimates the number of rows from bytes, and encrypted rows are longer: {'; '.join(parts)}. That "
        "part of the time comes from a crossed threshold (jit_above_cost), not from encryption; ANALYZE or jit = off avoids it."
    )


# ── the access path ───────────────────────────────────────────────────────────────────────────────────────────────────


def access_path(figures: Sequence[StudyFigure]) -> str:
    """The same rows by other statements: how much of a time is the function, and how much is finding the rows."""
    parts = []
    for engine in servers.PAIRS:
        study, tuned = headline(figures, engine), headline(figures, engine, procedure.TUNED)
        if not study or not tuned or study.ours is None or tuned.ours is None:
            continue
        faster = [
            f"{name} {factor(ratio)}"
            for name in procedure.OPERATIONS
            if (ratio := _speedup(figures, engine, name)) and ratio >= STEEP
        ]
        if faster or _apart(study, tuned):
            quicker = f"; unencrypted {', '.join(faster)} as fast" if faster else ""
            parts.append(f"{engine} {with_interval(study)}, then {with_interval(tuned)}{quicker}")
    if not parts:
        return ""
    return (
        "A cost in per cent applies to the statements that were timed. The same records by the study's statements, and by statements with indexes "
        f"and joins: {'. '.join(parts)}."
    )


def _apart(one: StudyFigure, other: StudyFigure) -> bool:
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return False
    return one.high < other.low or other.high < one.low


def _speedup(figures: Sequence[StudyFigure], engine: str, operation: str) -> float | None:
    """Plain arm's time at the highest load by the study's statements ÷ by the tuned ones."""
    by_version: dict[str, dict[float, float]] = {}
    for figure in figures:
        wanted = (figure.engine, figure.operation, figure.figure, figure.arm) == (engine, operation, TIME, "plain")
        if wanted and figure.load and figure.ours:
            by_version.setdefault(figure.workload, {})[figure.load] = figure.ours
    if len(by_version) < 2:
        return None
    load = max(set(by_version[procedure.STUDYS]) & set(by_version[procedure.TUNED]), default=None)
    return by_version[procedure.STUDYS][load] / by_version[procedure.TUNED][load] if load else None


def growth(record: StudyRecord, figures: Sequence[StudyFigure]) -> str:
    """Times that grow faster than their load, if those of the other statements don't."""
    exponents = {
        (f.engine, f.operation, f.workload, f.arm): f.ours for f in figures if f.figure == GROWTH and f.ours is not None
    }
    parts = []
    for (engine, operation, version, arm), value in exponents.items():
        other = exponents.get((engine, operation, procedure.TUNED, arm))
        if (
            version == procedure.STUDYS
            and arm == "plain"
            and other is not None
            and value >= STEEP
            and value - other >= APART
        ):
            parts.append(f"{engine} {operation} load^{value:.2f}, with {procedure.TUNED} load^{other:.2f}")
    if not parts:
        return ""
    two = " (two loads: a slope of two points only)" if len(measured.loads(record)) == 2 else ""
    return (
        f"The study's statements search rows again for each row: unencrypted, {'; '.join(parts)}{two}. A mean over loads is then mostly a "
        "choice of loads, and what encryption costs is how often a value is decrypted again."
    )


def _rate(estimate: Estimate) -> str:
    return with_interval(
        StudyFigure("", RATE, "ratio", "cost", ours=estimate.ratio, low=estimate.low, high=estimate.high)
    )
