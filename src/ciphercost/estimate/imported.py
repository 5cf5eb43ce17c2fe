"""imported: other tools' runs -> cells. Pure. Units are runs; nothing here is paired, and nothing is proven.

The cost of a figure is the difference of the mean logs of both arms' runs, its interval Welch's:

    d = mean(ln e) − mean(ln p),   s² = s²ₑ/nₑ + s²ₚ/nₚ,   ν = s⁴ / ((s²ₑ/nₑ)²/(nₑ−1) + (s²ₚ/nₚ)²/(nₚ−1)),   d ± t(97.5 %, ν) · s

(Welch, "The generalization of 'Student's' problem when several different population variances are involved", Biometrika 34, 1947;
ν by Satterthwaite, Biometrics Bulletin 2, 1946.) Seconds within a run share its server start, its data and its time of day, so they
are no units: of a single run each they give, by batch means (Schmeiser, "Batch size effects in the analysis of simulation output",
Operations Research 30, 1982), the least that an interval would have to hold, and no interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np

from ciphercost.estimate import statistics
from ciphercost.estimate.statistics import Error, Floats, Interval, t_quantile
from ciphercost.model.errors import UsageError
from ciphercost.model.facts import UNREGISTERED, CellFacts, RunFacts
from ciphercost.model.imported import ImportedRecord, Reading
from ciphercost.model.result import Cell, Estimate, Imported, ImportedCost, ImportedFile, Warning_
from ciphercost.model.spec import ARMS, Arm, CellSpec

REASON = "imported: not paired, not proven"
EFFECT = math.log(1.05)
"""What `runs_needed` is to resolve."""
MOST_RUNS = 1000
FEWEST_BATCHES, MOST_BATCHES = 8, 20
LEAST_FALL = 1.25
"""First third ÷ last third of a run, above which (or below its inverse) the run is not called steady."""
UNEQUAL = 0.2
"""Of the lengths of the arms' runs."""
SAME = 1e-9
"""Logs of a figure that scatter less are the same but for rounding."""
SURE_DIGITS, COARSE_DIGITS = 6, 5
"""Of a figure, at which two equal runs are one; and, where nothing is known of how runs scatter, for which they are taken for one."""
EXPECTED = 0.05
"""Of the pairs of equal runs, which chance may have made."""
ALIKE = 0.002
"""Spread of all runs' throughput, and distance from a round number, below which it looks like a rate that was set."""
FOLLOWING = "runs that follow each other"
Order = Literal["unknown", "plain first", "encrypted first", "by turns"]

UNSAID = {
    "pgbench": "pgbench does not say whether its connections were encrypted; by default (sslmode=prefer) it takes TLS wherever the "
    "server offers it, in the arm called plain too",
    "mysqlslap": "mysqlslap does not say whether its connections were encrypted; MySQL's takes TLS by default (--ssl-mode=PREFERRED) "
    "wherever the server offers it, in the arm called plain too",
    "sysbench": "sysbench does not say whether its connections were encrypted; with PostgreSQL it takes TLS wherever the server offers "
    "it (sslmode=prefer), with MySQL only where --mysql-ssl is on",
    "wrk": "wrk does not say what was negotiated, checks no certificate, and resumes TLS sessions without saying so",
    "h2load": "h2load names the TLS that it spoke and checks no certificate; nobody asked the server, nor looked at the wire",
    "hyperfine": "hyperfine does not know what its commands did",
    "csv": "a table does not say how its figures came about",
    "cpu": "shares of a machine's CPU do not say what it worked on",
}


def key(reading: Reading) -> tuple[object, ...]:
    """What runs have in common that can be compared."""
    return (
        reading.kind,
        reading.tool,
        reading.engine,
        reading.workload,
        reading.clients,
        tuple(sorted(reading.factors.items())),
    )


def specs(record: ImportedRecord, engine: str, mechanism: str) -> list[CellFacts]:
    """The cells of a record, and every reading's number of its cell. Changes the readings."""
    numbers: dict[tuple[object, ...], int] = {}
    made: list[CellFacts] = []
    for reading in record.readings:
        own = key(reading)
        if own not in numbers:
            numbers[own] = len(made)
            spec = CellSpec(
                engine=engine or reading.engine,
                mechanism=mechanism,
                workload=reading.workload,
                clients=reading.clients,
                factors=reading.factors,
            )
            made.append(CellFacts(spec=spec, clients=reading.clients, status="unproven", reason=REASON))
        reading.cell = numbers[own]
    return made


def cells(facts: RunFacts, record: ImportedRecord) -> list[Cell]:
    """Every cell with what its runs can tell; p-values corrected for the number of cells (Holm)."""
    made = []
    for number, known in enumerate(facts.cells):
        own = [reading for reading in record.readings if reading.cell == number]
        if not own:
            raise UsageError(f"imported.json holds no readings of cell {number + 1}: import the files again")
        files = {name for reading in own for name in reading.file.split(", ")}
        made.append(cell(known, own, [each for each in record.files if each.name in files]))
    tested = [(number, name) for number, each in enumerate(made) if (name := imported_metric(each.overhead))]
    corrected = statistics.holm([made[number].overhead[name].p_value or 0.0 for number, name in tested])
    for (number, name), p_value in zip(tested, corrected, strict=True):
        estimate = msgspec.structs.replace(made[number].overhead[name], p_value=p_value)
        made[number] = msgspec.structs.replace(made[number], overhead={**made[number].overhead, name: estimate})
    twice = twice_published(facts, record)
    return [
        msgspec.structs.replace(each, warnings=[*each.warnings, *alone(each, made), *twice.get(number, [])])
        for number, each in enumerate(made)
    ]


def twice_published(facts: RunFacts, record: ImportedRecord) -> dict[int, list[Warning_]]:
    """Of each cell: that one of its runs is another cell's to the last digit. Pure."""
    first: dict[tuple[object, ...], Reading] = {}
    found: dict[int, list[Warning_]] = {}
    for reading in record.readings:
        if digits(reading) < SURE_DIGITS:
            continue
        own = first.setdefault((reading.arm, *printed(reading)), reading)
        if own.cell != reading.cell and reading.cell not in found:
            other = facts.cells[own.cell].spec
            factors = " ".join(f"{name}={value}" for name, value in other.factors.items())
            text = (
                f"{place(reading)}: this {reading.arm} run is that of another cell ({' '.join(filter(None, (other.workload, factors)))}) to "
                "the last digit: one run was taken for two"
            )
            found[reading.cell] = [Warning_("run-of-another-cell", text)]
    return found


def cell(known: CellFacts, readings: list[Reading], files: list[ImportedFile]) -> Cell:
    """One cell of all runs that can be compared."""
    by_arm: dict[Arm, list[Reading]] = {arm: [each for each in readings if each.arm == arm] for arm in ARMS}
    by_arm, minded = once(by_arm)
    readings = [each for arm in ARMS for each in by_arm[arm]]
    names = list(dict.fromkeys(name for each in readings for name in each.figures))
    costs: dict[str, ImportedCost] = {}
    overhead: dict[str, Estimate] = {}
    smallest = None
    for name in names:
        if not compared(name) or not all(any(name in run.figures for run in by_arm[arm]) for arm in ARMS):
            continue
        costs[name], interval = cost(name, by_arm["plain"], by_arm["encrypted"])
        if interval is not None:
            minded += [each for each in follow(name, interval) if each.code not in {known.code for known in minded}]
            overhead[name] = estimate(costs[name], interval)
            if name == "throughput":
                smallest = math.exp(interval.smallest_effect()) - 1
    tools = dict.fromkeys(f"{each.tool} {each.version}".strip() for each in readings)
    order = order_of(by_arm)
    encryption = next((each.encryption for each in by_arm["encrypted"] if each.encryption), {})
    registered = known.registered or UNREGISTERED
    return Cell(
        engine=known.spec.engine,
        version="",
        layer=known.layer or registered.layer,
        mechanism=known.spec.mechanism,
        workload=known.spec.workload,
        clients=known.clients,
        status="unproven",
        mode="imported",
        factors=known.spec.factors,
        overhead=overhead,
        arms={arm: level(by_arm[arm]) for arm in ARMS if by_arm[arm]},
        warnings=[*warnings(readings, by_arm, costs, order, list(tools)), *minded, *same_rate(by_arm)],
        reason=reason(by_arm, overhead),
        encryption={f"{name} (as {readings[0].tool} says)": value for name, value in encryption.items()},
        smallest_effect=smallest,
        embedded=registered.embedded,
        protects=registered.protects,
        mechanism_factors=registered.factors,
        imported=Imported(", ".join(tools), files, costs, order),
    )


def compared(name: str) -> bool:
    """Not: shares of a share, of which a ratio says nothing, and levels of the machine's memory."""
    return name in ("throughput", "client_cpu_per_op", "host_cpu_per_op", "host_busy") or name.startswith("latency_")


def reason(by_arm: dict[Arm, list[Reading]], overhead: dict[str, Estimate]) -> str:
    if not all(by_arm.values()):
        only = next(arm for arm in ARMS if by_arm[arm])
        return f"{REASON}; runs of the {only} arm alone: levels, and no cost"
    return REASON if overhead else f"{REASON}; one run of an arm: no interval, so no cost can be stated"


# ── copies ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def printed(reading: Reading) -> tuple[object, ...]:
    """What two runs share only if one is a copy of the other, where it has digits enough."""
    series = tuple((name, tuple(values)) for name, values in sorted(reading.series.items()))
    return (tuple(sorted(reading.figures.items())), reading.operations, reading.seconds, reading.started, series)


def digits(reading: Reading) -> int:
    """Significant digits of the most precise figure that was printed of it."""
    if reading.digits:
        return reading.digits
    return max((significant(value) for value in reading.figures.values()), default=0)


def significant(value: float) -> int:
    """Significant digits of a number as it is written. Pure."""
    return len(repr(value).partition("e")[0].replace(".", "").strip("-").strip("0"))


def place(reading: Reading) -> str:
    return f"{reading.file}, line {reading.line}"


def once(by_arm: dict[Arm, list[Reading]]) -> tuple[dict[Arm, list[Reading]], list[Warning_]]:
    """(each arm's runs without copies, what is to be minded of that). A copy has the same figures, by digits that chance doesn't give."""
    made: dict[Arm, list[Reading]] = {}
    minded = []
    for arm in ARMS:
        first: dict[tuple[object, ...], Reading] = {}
        copies = []
        for run in by_arm[arm]:
            own = first.setdefault(printed(run), run)
            if own is not run:
                copies.append((own, run))
        if not copies or not by_copying(by_arm[arm], list(first.values()), len(copies)):
            made[arm] = by_arm[arm]
            continue
        made[arm] = list(first.values())
        own, run = copies[0]
        text = (
            f"{len(copies)} of {len(by_arm[arm])} {arm} runs have the figures of another to the last digit ({place(run)} those of "
            f"{place(own)}): copies of one run, each counted once"
        )
        minded.append(Warning_("copied-runs", text))
    known = {printed(run): run for run in made["plain"] if digits(run) >= SURE_DIGITS}
    if both := [(known[printed(run)], run) for run in made["encrypted"] if printed(run) in known]:
        text = f"{place(both[0][1])} has the figures of {place(both[0][0])} to the last digit: one run can't be of both arms"
        minded.append(Warning_("same-in-both-arms", text))
    return made, minded


def by_copying(runs: list[Reading], different: list[Reading], copies: int) -> bool:
    """Whether so many equal runs are too many for chance.

    Two independent runs of standard deviation s, printed in steps of r, agree with probability about r/(2·√π·s).
    """
    least = min(digits(run) for run in runs)
    if least >= SURE_DIGITS:
        return True
    scatter = [
        float(np.std(values(name, different), ddof=1))
        for name in IMPORTED
        if len(different) >= 3 and all(run.figures.get(name, 0.0) > 0 for run in runs)
    ]
    # A figure that is the same in every run (a set rate) does not say how much runs scatter.
    spread = next((each for each in scatter if each > SAME), 0.0)
    if not spread:
        return least >= COARSE_DIGITS
    step = 10.0 ** (1 - least)  # at most, of a figure that begins with 1
    chance = step / (2 * math.sqrt(math.pi) * spread)
    return len(runs) * (len(runs) - 1) / 2 * chance < EXPECTED * copies


# ── figures ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def values(name: str, runs: Sequence[Reading]) -> Floats:
    """Logs of one figure of those runs that have it and in which it is above 0."""
    return np.log(np.array([run.figures[name] for run in runs if run.figures.get(name, 0.0) > 0], dtype=np.float64))


def cost(name: str, plain: Sequence[Reading], encrypted: Sequence[Reading]) -> tuple[ImportedCost, Interval | None]:
    """One figure's cost, with its interval where both arms have two runs that are not all the same."""
    a, b = values(name, plain), values(name, encrypted)
    centre = (float(np.mean(b)) if len(b) else math.nan) - (float(np.mean(a)) if len(a) else math.nan)
    if not math.isfinite(centre):
        return ImportedCost(1.0, 0.0, 0.0, len(a), len(b)), None
    made = ImportedCost(math.exp(centre), math.exp(float(np.mean(a))), math.exp(float(np.mean(b))), len(a), len(b))
    error = welch(a, b) if min(len(a), len(b)) >= 2 else None
    if error is None:
        half = within(name, plain, encrypted) if len(a) == len(b) == 1 else None
        if half is None:
            return made, None
        return msgspec.structs.replace(
            made, within_low=math.exp(centre - half), within_high=math.exp(centre + half)
        ), None
    errors: tuple[Error, ...] = (error,)
    if in_order(plain) and in_order(encrypted) and statistics.depend((a, b)):
        errors = (error, long_run(a, b))
    interval = Interval(centre, errors, len(a) + len(b))
    low, high = interval.bounds()
    needed = runs_needed(float(np.var(a, ddof=1)) + float(np.var(b, ddof=1)))
    return msgspec.structs.replace(made, low=math.exp(low), high=math.exp(high), runs_needed=needed), interval


def welch(plain: Floats, encrypted: Floats) -> Error | None:
    """Standard error of the difference of two means; None where no run differs from another, so that nothing is known of scatter."""
    parts = [float(np.var(each, ddof=1)) / len(each) for each in (plain, encrypted)]
    whole = sum(parts)
    if math.sqrt(whole) <= statistics.ROUNDING:
        return None
    nu = whole**2 / sum(part**2 / (len(each) - 1) for part, each in zip(parts, (plain, encrypted), strict=True))
    method = f"Welch's t over {len(plain)} plain and {len(encrypted)} encrypted runs, ν = {nu:.1f}"
    return Error(math.sqrt(whole), nu, method)


def in_order(runs: Sequence[Reading]) -> bool:
    """Whether the runs stand in the order in which they were made: in one file, or with a time of each that increases."""
    times = [run.started for run in runs if run.started is not None]
    if len(times) == len(runs):
        return times == sorted(times)
    return len({run.file for run in runs}) == 1 and [run.line for run in runs] == sorted(run.line for run in runs)


def long_run(plain: Floats, encrypted: Floats) -> Error:
    """Standard error of the difference of two means of autocorrelated series: equal-weighted cosines, as few as Lazarus, Lewis, Stock and
    Watson (2018) advise for such; ν by Satterthwaite."""
    parts = [
        statistics.cosine_error(each, min(len(each) - 1, max(4, math.ceil(0.4 * len(each) ** (2 / 3)))))
        for each in (plain, encrypted)
    ]
    whole = sum(part.standard**2 for part in parts)
    nu = whole**2 / sum(part.standard**4 / part.nu for part in parts) if whole > 0 else parts[0].nu
    return Error(math.sqrt(whole), nu, f"long-run variance of {FOLLOWING} (equal-weighted cosines), ν = {nu:.1f}")


def follow(name: str, interval: Interval) -> list[Warning_]:
    """That runs are no independent ones, where their interval had to be widened for it."""
    if len(interval.errors) == 1:
        return []
    text = (
        f"{name}: each run is like the one before it, so they tell less than as many independent ones: the interval is widened (long-run "
        "variance). If they are parts of one run, they tell nothing of how runs differ: import one figure for each run"
    )
    return [Warning_("runs-follow", text)]


def same_rate(by_arm: dict[Arm, list[Reading]]) -> list[Warning_]:
    """That all runs of both arms have the same throughput, and a round one: a rate that was set, most likely."""
    rates = [run.figures["throughput"] for arm in ARMS for run in by_arm[arm] if run.figures.get("throughput", 0.0) > 0]
    if len(rates) < 2 or not all(by_arm.values()) or max(rates) > min(rates) * (1 + ALIKE):
        return []
    middle = sum(rates) / len(rates)
    rounded = float(f"{middle:.1e}")
    if abs(middle / rounded - 1) > ALIKE or len({printed(run) for arm in ARMS for run in by_arm[arm]}) < 2:
        return []
    text = (
        f"all {len(rates)} runs of both arms have a throughput within {ALIKE:.1%} of {rounded:,.0f} a second: if the tool was told to keep "
        "that rate, throughput tells nothing here, and latency does"
    )
    return [Warning_("rate-alike", text.replace("%", " %"))]


def estimate(made: ImportedCost, interval: Interval) -> Estimate:
    assert made.low is not None
    assert made.high is not None
    return Estimate(
        made.ratio, made.low, made.high, n=interval.n, method=interval.method(), p_value=interval.p_value(), unit="run"
    )


def within(name: str, plain: Sequence[Reading], encrypted: Sequence[Reading]) -> float | None:
    """Half-width of the log ratio of two runs by the scatter within each alone: batch means."""
    parts = []
    for run in (*plain, *encrypted):
        series = np.array(run.series.get(name, []), dtype=np.float64)
        if name not in run.figures:
            continue
        batches = min(MOST_BATCHES, len(series) if len(series) < 2 * FEWEST_BATCHES else len(series) // 2)
        if batches < FEWEST_BATCHES or not series.mean() > 0:
            return None
        means = np.array([float(each.mean()) for each in np.array_split(series, batches)])
        parts.append((float(np.std(means, ddof=1)) / math.sqrt(batches) / float(series.mean()), batches - 1))
    if len(parts) != 2 or not any(error > 0 for error, _ in parts):
        return None
    variance = sum(error**2 for error, _ in parts)
    nu = variance**2 / sum(error**4 / freedom for error, freedom in parts)
    return t_quantile(0.975, nu) * math.sqrt(variance)


def runs_needed(variance: float) -> int | None:
    """Runs of each arm to find a difference of 5 % (95 % level, 80 % power) where the arms' variances make this sum; None: above a thousand."""
    for runs in range(2, MOST_RUNS + 1):
        nu = 2 * (runs - 1)
        if (t_quantile(0.975, nu) + t_quantile(statistics.POWER, nu)) * math.sqrt(variance / runs) <= EFFECT:
            return runs
    return None


def level(runs: Sequence[Reading]) -> dict[str, object]:
    """One arm's level: geometric means over runs, so that their quotient is the ratio; shares of the CPU with their variance."""
    made: dict[str, object] = {
        "runs": len(runs),
        "operations": sum(run.operations for run in runs),
        "errors": sum(run.errors for run in runs),
        "seconds": math.fsum(run.seconds for run in runs),
    }
    names = dict.fromkeys(name for run in runs for name in run.figures)
    latency = {}
    host = {}
    for name in names:
        logs = values(name, runs)
        mean = math.exp(float(np.mean(logs))) if len(logs) else 0.0
        if name.startswith("latency_"):
            latency[name.removeprefix("latency_")] = mean
        elif name.startswith("host_") and name not in ("host_busy", "host_cpu_per_op"):
            own = np.array([run.figures[name] for run in runs if name in run.figures])
            variance = float(np.var(own, ddof=1)) if len(own) > 1 else 0.0
            middle = float(own.mean())
            host[name] = {
                "mean": middle,
                "variance": variance,
                "cv": math.sqrt(variance) / middle if middle else 0.0,
            }
        else:
            made[
                {"client_cpu_per_op": "client_cpu_us_per_op", "host_cpu_per_op": "host_cpu_us_per_op"}.get(name, name)
            ] = mean
    return made | ({"latency_ms": latency} if latency else {}) | ({"host": host} if host else {})


# ── what to mind ──────────────────────────────────────────────────────────────────────────────────────────────────────


def order_of(by_arm: dict[Arm, list[Reading]]) -> Order:
    """How the arms' runs followed each other, where every run has a time by one kind of clock."""
    runs = [run for arm in ARMS for run in by_arm[arm]]
    if not all(by_arm.values()) or any(run.started is None for run in runs) or len({run.clock for run in runs}) != 1:
        return "unknown"
    began = {arm: [run.started or 0.0 for run in by_arm[arm]] for arm in ARMS}
    if max(began["plain"]) < min(began["encrypted"]):
        return "plain first"
    return "encrypted first" if max(began["encrypted"]) < min(began["plain"]) else "by turns"


def warnings(
    readings: list[Reading],
    by_arm: dict[Arm, list[Reading]],
    costs: dict[str, ImportedCost],
    order: Order,
    tools: list[str],
) -> list[Warning_]:
    """What these runs can't tell, the gravest first."""
    made = [Warning_("imported", "imported: not paired, not proven: read what follows before the figures")]
    tool = "cpu" if readings[0].kind == "cpu" else readings[0].tool.split()[0]
    made.append(Warning_("not-proven", UNSAID[tool]))
    schemes = {arm: {run.scheme for run in by_arm[arm]} for arm in ARMS}
    if all(by_arm.values()) and schemes["plain"] == schemes["encrypted"] != {""} and len(schemes["plain"]) == 1:
        scheme = next(iter(schemes["plain"]))
        made.append(
            Warning_("same-scheme", f"both arms spoke {scheme}: what TLS costs on the wire is not in these figures")
        )
    if all(by_arm.values()):
        made += ordered(order)
        made += few(by_arm, costs)
        made += unequal(by_arm)
    made += zeros(readings)
    if len(tools) > 1:
        made.append(
            Warning_(
                "tool-differs",
                f"several versions of the tool made these runs ({', '.join(tools)}): its own change is in the difference",
            )
        )
    if falling := [run for run in readings if not steady(run)]:
        arms = " and ".join(arm for arm in ARMS if any(run.arm == arm for run in falling))
        ends = sorted(third(run) for run in falling)
        text = (
            f"{len(falling)} of {len(readings)} runs ({arms}) are not steady: from the first third to the last, throughput goes to "
            f"{ends[0]:.0%}{f' to {ends[-1]:.0%}' if len(ends) > 1 else ''}: a cache that fills or a checkpoint; its mean depends on the run's length"
        )
        made.append(Warning_("not-steady", text.replace("%", " %")))
    seen: dict[tuple[str, str], list[str]] = {}
    for run in readings:
        for note in run.notes:
            seen.setdefault((note.code, note.text), []).append(run.file)
    for (code, text), where in seen.items():
        files = list(dict.fromkeys(where))
        shown = files[0] + (f" and {len(files) - 1} more" if len(files) > 1 else "")
        made.append(Warning_(code, f"{shown}: {text}"))
    return made


def ordered(order: Order) -> list[Warning_]:
    if order == "unknown":
        text = "these files don't say when each run was: if one arm ran wholly before the other, the machine's drift is in the difference"
        return [Warning_("order-unknown", text)]
    if order == "by turns":
        return []
    first, second = ("plain", "encrypted") if order == "plain first" else ("encrypted", "plain")
    text = f"every {first} run began before the first {second} one: whatever changed on the machine meanwhile is in the difference"
    return [Warning_("one-after-other", text)]


def few(by_arm: dict[Arm, list[Reading]], costs: dict[str, ImportedCost]) -> list[Warning_]:
    """One run each; runs that are all alike."""
    made = []
    counts = {arm: len(by_arm[arm]) for arm in ARMS}
    if min(counts.values()) == 1:
        arms = "each arm" if set(counts.values()) == {1} else f"the {min(counts, key=lambda arm: counts[arm])} arm"
        text = (
            f"one run of {arms}: how much two runs of the same thing differ is not known, so there is no interval, and no telling a cost "
            "from chance; two of each at least, five or more for most questions"
        )
        made.append(Warning_("one-run", text))
    for name, each in costs.items():
        if min(each.plain_runs, each.encrypted_runs) >= 2 and each.low is None:
            made.append(
                Warning_(
                    "all-alike",
                    f"{name}: no run differs from another to the last printed digit: are they copies of one?",
                )
            )
    return made


def zeros(readings: list[Reading]) -> list[Warning_]:
    """Figures of 0, of which there is no ratio."""
    made = []
    for name in dict.fromkeys(name for run in readings for name in run.figures if compared(name)):
        own = [run.figures[name] for run in readings if name in run.figures]
        if out := sum(1 for value in own if not value > 0):
            text = f"{name} is 0 in {out} of {len(own)} runs, which are left out of it (no ratio has a 0): it is of the others alone"
            made.append(Warning_("zero-figures", text))
    return made


def unequal(by_arm: dict[Arm, list[Reading]]) -> list[Warning_]:
    """Arms whose runs were not as long, where the work was not what ended them."""
    made = []
    lengths = {arm: sum(run.seconds for run in by_arm[arm]) / len(by_arm[arm]) for arm in ARMS}
    work = {arm: sum(run.operations for run in by_arm[arm]) / len(by_arm[arm]) for arm in ARMS}
    as_long = abs(lengths["plain"] - lengths["encrypted"]) <= UNEQUAL * max(lengths.values())
    as_much = abs(work["plain"] - work["encrypted"]) <= UNEQUAL * max(work.values())
    if not as_long and not as_much and min(lengths.values()) > 0:
        text = f"the arms' runs are neither as long ({lengths['plain']:.3g} and {lengths['encrypted']:.3g} s) nor of as many operations"
        made.append(Warning_("unequal", text))
    return made


def third(run: Reading) -> float:
    """Last third of the run's throughput ÷ the first; 1 where too little is known."""
    series = run.series.get("throughput", [])
    size = len(series) // 3
    first, last = sum(series[:size]), sum(series[len(series) - size :])
    return last / first if size >= 3 and first > 0 else 1.0


def steady(run: Reading) -> bool:
    return 1 / LEAST_FALL <= third(run) <= LEAST_FALL


def alone(own: Cell, everything: list[Cell]) -> list[Warning_]:
    """Of a cell with one arm: where the other arm's runs are of something else."""
    if len(own.arms) != 1:
        return []
    arm = next(iter(own.arms))
    others = [
        each
        for each in everything
        if each is not own and len(each.arms) == 1 and arm not in each.arms and each.engine == own.engine
    ]
    if not others:
        return []
    other = next(iter(others[0].arms))
    text = (
        f"the {arm} runs ({own.workload}, {own.clients} clients) and the {other} runs ({others[0].workload}, {others[0].clients} clients) "
        "are of different tests: they were not compared"
    )
    return [Warning_("not-the-same-test", text)]


IMPORTED = ("throughput", "latency_mean", "latency_p50", "latency_p99", "host_busy")
"""What other tools' runs are judged by: the first of these that has an interval."""


def imported_metric(overhead: Mapping[str, Estimate]) -> str:
    """The figure that an imported cell is judged by; empty: it has none."""
    return next((key for key in (*IMPORTED, *overhead) if key in overhead), "")
