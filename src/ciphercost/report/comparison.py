"""comparison: runs -> how their costs differ, cell by cell, with intervals; what else differs; and a gate on a budget. Pure.

What is compared is the cost itself, encrypted ÷ plain: the other run's ratio ÷ the reference's. A faster machine speeds up both arms and
cancels; a cost that changed does not. Each run's log ratio comes with the standard errors of its own units (sessions; blocks of a quick
run), as `estimate` has them, and not read back from a printed interval. The difference of two independent means has the standard error
√(e₁² + e₂²) and, by Welch (1947) and Satterthwaite (1946), (e₁² + e₂²)² ÷ (e₁⁴/ν₁ + e₂⁴/ν₂) degrees of freedom. Equivalence is two one-sided
tests (Schuirmann 1987) within ± log(1 + margin), of the robust ratio and of the ratio of totals, and goes first,
as everywhere here; p-values are Holm's over all cells compared, and must be below 5 %, of quick runs below 1 %.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from ciphercost.estimate import notation, statistics, totals
from ciphercost.estimate.statistics import ALPHA, Error, Interval
from ciphercost.host.procfs import alike
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Cell, Estimate, Result
from ciphercost.model.terms import Verdict
from ciphercost.report import words

Passed = Literal["pass", "fail", "unresolved", "failed"]

SEEDED = ("data_seed", "next")
"""Parameters of a workload that follow from the run's seed: no factor of what is compared."""
MACHINE = ("cpu", "cores", "aes", "vaes", "virtual", "kernel", "governor", "clocksource", "memory")
"""What makes two machines one, as `machine` of the result has it."""
ACHIEVED = (
    "protocol", "cipher", "group", "peer_key", "verified", "key", "implementation", "server_library", "client_library",
)  # fmt: skip
"""Of `encryption`: what may differ between two cells though both were asked for the same."""


class Run(NamedTuple):
    """One run with what a result no longer has."""

    name: str
    result: Result
    intervals: Sequence[Mapping[str, Interval]]
    """By cell: the log ratio of each metric."""


# ── what comes out ────────────────────────────────────────────────────────────────────────────────────────────────────


class Side(msgspec.Struct, frozen=True):
    """One run, as the page names it."""

    name: str
    id: str
    started: str
    mode: str
    cells: int
    command: str = ""


class Change(msgspec.Struct, frozen=True):
    """Something that is not the same in two runs or in two cells."""

    name: str
    reference: str
    other: str


class Differences(msgspec.Struct, frozen=True):
    """What one run has otherwise than the reference, whatever its cells."""

    run: int
    """Number of the run, from 1; 0 is the reference."""
    machine: list[Change]
    run_facts: list[Change]


class Pair(msgspec.Struct, frozen=True):
    """A cell of the reference and the cell of another run that it is compared with."""

    run: int
    cells: tuple[int, int]
    """Their numbers: in the reference, in the other run."""
    title: str
    """What they have in common."""
    metric: str
    """What the verdict is about; empty where one of the two has no number."""
    verdict: Verdict | None
    change: dict[str, Estimate]
    """By metric: the other's ratio ÷ the reference's, with its 95 % interval; of the verdict's metric p is after Holm."""
    costs: dict[str, tuple[Estimate, Estimate]]
    """By metric: both ratios themselves."""
    factors: list[Change]
    """What was asked for otherwise: what is compared."""
    also: list[Change]
    """What else differs: versions, libraries, what was negotiated, cores."""
    mind: list[str]
    """Warnings of either cell that bear on it."""
    reason: str = ""
    """Why there is no verdict."""


class Alone(msgspec.Struct, frozen=True):
    """A cell without a partner."""

    run: int
    cell: int
    title: str
    nearest: str = ""
    """Of the other run: the cell that is most like it; empty where it has none."""
    differs: list[Change] = []


class Gate(msgspec.Struct, frozen=True):
    """One cell against the budget."""

    run: int
    cell: int
    title: str
    metric: str
    outcome: Passed
    estimate: Estimate | None
    reason: str = ""


class Comparison(msgspec.Struct, frozen=True):
    """What `ciphercost compare` says."""

    format: int
    runs: list[Side]
    """The first is the reference."""
    margin: float
    """Costs that differ by less than this share are called equivalent."""
    differences: list[Differences]
    pairs: list[Pair]
    alone: list[Alone]
    limit: float | None
    """Of --fail-over, as a share: 0.1."""
    gates: list[Gate]
    strict: bool
    exit_status: int


FORMAT = 1
PAIRS_ONLY = "these server pairs only"
QUICK_ALPHA = 0.01
"""Level at which quick runs differ. The scatter between one start of a server and the next, and between one moment of a busy machine and
another, is in no interval of a single session: of 211 pairs of 30 quick runs of one thing, on two cores with a load of 7, 8 % differed
at 5 %."""
MIND = ("steal", "foreign-cpu", "client-bound", "few-blocks", "few-sessions", "one-session", "carry-over")
"""Warnings of a cell that bear on a comparison with another run."""
DONE, FAILED, OVER, UNRESOLVED = 0, 1, 3, 4
"""Exit status, as everywhere: a cell has no number; a budget is exceeded; a verdict was demanded and there is none."""


def compare(
    runs: Sequence[Run], *, limit: float | None = None, strict: bool = False, margin: float | None = None
) -> Comparison:
    """The first run is the reference. With one run alone only `limit` is asked.

    `limit`: the most that encryption may cost (0.1: 10 %). `margin`: as in a run; None: the largest of the runs' own.
    Raises UsageError for one run without a limit, and for one that is given twice.
    """
    if len(runs) < 2 and limit is None:
        raise UsageError("one run alone has nothing to be compared with: give another, or --fail-over 10% as its gate")
    if twice := [
        run.name for number, run in enumerate(runs) if run.result.id in [each.result.id for each in runs[:number]]
    ]:
        raise UsageError(f"{twice[0]} is given twice: a run differs from itself in nothing")
    specs = [run.result.spec for run in runs]
    margin = margin if margin is not None else max((spec.margin for spec in specs if spec), default=0.01)
    pairs, alone = [], []
    for number, run in enumerate(runs[1:], start=1):
        matched, left = match(runs[0].result.cells, run.result.cells)
        pairs += [_pair(runs[0], run, number, numbers, margin) for numbers in matched]
        alone += list(_alone(runs[0].result.cells, run.result.cells, number, left))
    pairs = corrected(pairs)
    gates = (
        [] if limit is None else [each for number in _gated(runs) for each in gate(runs[number].result, number, limit)]
    )
    return Comparison(
        format=FORMAT,
        runs=[
            Side(
                run.name,
                run.result.id,
                run.result.started,
                _mode(run.result),
                len(run.result.cells),
                run.result.command,
            )
            for run in runs
        ],
        margin=margin,
        differences=[_differences(runs[0].result, run.result, number) for number, run in enumerate(runs[1:], start=1)],
        pairs=pairs,
        alone=alone,
        limit=limit,
        gates=gates,
        strict=strict,
        exit_status=status(pairs, alone, gates, limit, strict=strict),
    )


def status(
    pairs: Iterable[Pair], alone: Iterable[Alone], gates: Iterable[Gate], limit: float | None, *, strict: bool
) -> int:
    """What the command ends with. Without a gate and without `strict` a comparison is only told."""
    outcomes = {gate.outcome for gate in gates}
    if "failed" in outcomes:
        return FAILED
    if "fail" in outcomes:
        return OVER
    if not strict:
        return DONE
    if limit is None:
        open_ = any(pair.verdict in (None, "unresolved") for pair in pairs) or any(True for _ in alone)
        return UNRESOLVED if open_ else DONE
    return UNRESOLVED if "unresolved" in outcomes else DONE


# ── which cell with which ─────────────────────────────────────────────────────────────────────────────────────────────


def identity(cell: Cell) -> dict[str, str]:
    """What a cell was asked to be, by name: what two cells must have in common to be one cell measured twice."""
    known = {
        "engine": cell.engine,
        "server version": cell.version,
        "mechanism": cell.mechanism,
        "workload": cell.workload,
        "clients": str(cell.clients),
        "regime": cell.regime,
        "client": cell.client,
    }
    known |= {f"set {name}": value for name, value in cell.factors.items() if name not in SEEDED}
    return known | cell.conditions


def unlike(reference: Cell, other: Cell) -> list[Change]:
    """Where two cells were asked for something different. Between two mechanisms, only what both of them have."""
    a, b = identity(reference), identity(other)
    if reference.mechanism != other.mechanism:
        shared = {name for name in {*a, *b} if not name.startswith("set ") or (name in a and name in b)}
        a, b = ({name: value for name, value in each.items() if name in shared} for each in (a, b))
    return changes(a, b)


def comparable(reference: Cell, other: Cell) -> bool:
    """Whether the ratio of their costs means anything: they do the same operation, and neither or both are controls.

    A control is not a cheaper mechanism, and half a page is not a cheaper page.
    """
    same = reference.workload == other.workload and words.is_control(reference) == words.is_control(other)
    return same and (not words.is_control(reference) or reference.mechanism == other.mechanism)


def match(
    reference: Sequence[Cell], other: Sequence[Cell]
) -> tuple[list[tuple[int, int]], tuple[list[int], list[int]]]:
    """Pairs of numbers, and the numbers that are left on both sides.

    First what is the same in everything that was asked for. What is left is matched with the cell that differs in the fewest things, where
    each is the other's only nearest: two runs that differ in one factor are compared in that factor. Where two are equally near, neither
    is guessed at.
    """
    distances = {
        (i, j): len(unlike(a, b))
        for (i, a), (j, b) in itertools.product(enumerate(reference), enumerate(other))
        if comparable(a, b)
    }
    pairs: list[tuple[int, int]] = []
    left = (list(range(len(reference))), list(range(len(other))))

    def take(pair: tuple[int, int]) -> None:
        pairs.append(pair)
        for side, number in zip(left, pair, strict=True):
            side.remove(number)

    for pair in sorted(pair for pair, distance in distances.items() if not distance):
        if pair[0] in left[0] and pair[1] in left[1]:
            take(pair)
    while found := _nearest_both_ways(distances, left):
        for pair in found:
            take(pair)
    return sorted(pairs), left


def _nearest_both_ways(
    distances: Mapping[tuple[int, int], int], left: tuple[Sequence[int], Sequence[int]]
) -> list[tuple[int, int]]:
    near = {pair: far for pair, far in distances.items() if pair[0] in left[0] and pair[1] in left[1]}
    nearest: tuple[dict[int, list[tuple[int, int]]], dict[int, list[tuple[int, int]]]] = ({}, {})
    for pair, _ in sorted(near.items(), key=lambda each: each[1]):
        for of, number in zip(nearest, pair, strict=True):
            if near[of.setdefault(number, [pair])[0]] == near[pair] and pair not in of[number]:
                of[number].append(pair)
    return [pair for pair in near if nearest[0][pair[0]] == [pair] == nearest[1][pair[1]]]


def _alone(
    reference: Sequence[Cell], other: Sequence[Cell], run: int, left: tuple[Sequence[int], Sequence[int]]
) -> Iterator[Alone]:
    for side, numbers in enumerate(left):
        own, theirs = (reference, other)[side], (other, reference)[side]
        for number in numbers:
            cell = own[number]
            nearest = min(theirs, key=lambda each: len(unlike(cell, each)), default=None)
            differs = []
            if nearest is not None:
                differs = unlike(cell, nearest) if side == 0 else unlike(nearest, cell)
            yield Alone(
                0 if side == 0 else run, number, words.heading(cell), words.heading(nearest) if nearest else "", differs
            )


def changes(reference: Mapping[str, Any], other: Mapping[str, Any], names: Iterable[str] = ()) -> list[Change]:
    """Of these names (none: all of both) those that differ; what one side lacks is empty there."""
    listed = list(names) or list(dict.fromkeys([*reference, *other]))
    return [
        Change(name, _said(reference.get(name)), _said(other.get(name)))
        for name in listed
        if _said(reference.get(name)) != _said(other.get(name))
    ]


def _said(value: object) -> str:
    return "" if value is None else "yes" if value is True else "no" if value is False else str(value)


# ── one pair ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def against(reference: Interval, other: Interval) -> Interval:
    """other - reference of two independent means, by Welch; of several standard errors every combination, of which the worst counts."""
    errors = tuple(_welch(a, b) for a, b in itertools.product(reference.errors, other.errors))
    return Interval(
        other.centre - reference.centre, errors, min(reference.n, other.n), mean=other.middle - reference.middle
    )


def _welch(a: Error, b: Error) -> Error:
    first, second = a.standard**2, b.standard**2
    below = first**2 / a.nu + second**2 / b.nu
    nu = (first + second) ** 2 / below if below > 0 else min(a.nu, b.nu)
    return Error(math.sqrt(first + second), nu, f"Welch: {a.method}; {b.method}")


def judged(
    interval: Interval, margin: float, p_value: float, *, of_totals: Interval | None = None, quick: bool = False
) -> Verdict:
    """Equivalence goes first: a difference that is surely there and surely within the margin is, by the margin's meaning, none.

    It takes the ratio of totals too: stalls in one arm of one run are in no robust ratio.
    """
    if max(each.tost(math.log1p(margin)) for each in (interval, of_totals or interval)) < ALPHA:
        return "equivalent"
    return "differs" if p_value < (QUICK_ALPHA if quick else ALPHA) else "unresolved"


def _pair(reference: Run, other: Run, run: int, numbers: tuple[int, int], margin: float) -> Pair:
    a, b = reference.result.cells[numbers[0]], other.result.cells[numbers[1]]
    mine, theirs = reference.intervals[numbers[0]], other.intervals[numbers[1]]
    metric = next((name for name in ("throughput", "latency_p50") if name in mine and name in theirs), "")
    quick = "quick" in (a.mode, b.mode)
    change, costs = {}, {}
    for name in words.LABELS:
        if name in mine and name in theirs:
            change[name] = _stated(against(mine[name], theirs[name]), quick=quick)
            costs[name] = (a.overhead[name], b.overhead[name])
    reason = ""
    if not metric:
        without = [
            f"{name}: {cell.status}{f', {cell.reason}' if cell.reason else ''}"
            for name, cell in ((reference.name, a), (other.name, b))
            if not words.main_metric(cell) or cell.imported
        ]
        units = "its record has no sessions or blocks by which costs could be compared"
        none = [f"{name}: {units}" for name, each in ((reference.name, mine), (other.name, theirs)) if not each]
        reason = "; ".join(without or none) or "one was measured for throughput, the other for latency alone"
    asked = unlike(a, b)
    names = {each.name for each in asked}
    return Pair(
        run=run,
        cells=numbers,
        title=in_common(a, b),
        metric=metric,
        verdict=judged(
            against(mine[metric], theirs[metric]),
            margin,
            change[metric].p_value or 0.0,
            of_totals=against(*(each.get(totals.key(metric), each[metric]) for each in (mine, theirs))),
            quick=quick,
        )
        if metric
        else None,
        change=change,
        costs=costs,
        factors=asked,
        also=[each for each in also(a, b) if each.name not in names],
        mind=[
            f"{name}: {each.text}"
            for name, cell in ((reference.name, a), (other.name, b))
            for each in cell.warnings
            if each.code in MIND
        ],
        reason=reason,
    )


def _stated(interval: Interval, *, quick: bool) -> Estimate:
    low, high = interval.bounds()
    method = interval.method() + (f"; {PAIRS_ONLY}" if quick else "")
    ratio, low, high = (math.exp(each) for each in (interval.centre, low, high))
    return Estimate(ratio, low, high, n=interval.n, method=method, p_value=interval.p_value(), unit="ratio of ratios")


def corrected(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs with p-values of their verdicts corrected for their number (Holm); what no longer differs is unresolved."""
    judged_ = [pair for pair in pairs if pair.metric]
    adjusted = iter(statistics.holm([pair.change[pair.metric].p_value or 0.0 for pair in judged_]))
    made = []
    for pair in pairs:
        if not pair.metric:
            made.append(pair)
            continue
        p = next(adjusted)
        change = pair.change | {pair.metric: msgspec.structs.replace(pair.change[pair.metric], p_value=p)}
        level = QUICK_ALPHA if is_quick(pair) else ALPHA
        verdict: Verdict | None = "unresolved" if pair.verdict == "differs" and p >= level else pair.verdict
        made.append(msgspec.structs.replace(pair, change=change, verdict=verdict))
    return made


def is_quick(pair: Pair) -> bool:
    """Whether one of the two runs speaks of one server pair alone."""
    return bool(pair.metric) and PAIRS_ONLY in pair.change[pair.metric].method


def in_common(a: Cell, b: Cell) -> str:
    """The words of both headings that are the same, and of the engine its name where the versions differ."""
    mine, theirs = words.heading_words(a), words.heading_words(b)
    said = [mine[name] for name in mine if mine[name] and mine[name] == theirs[name]]
    if a.engine == b.engine and mine["engine"] != theirs["engine"]:
        said.insert(0, a.engine)
    return " · ".join([*said, *([a.variant] if a.variant and a.variant == b.variant else [])])


def also(a: Cell, b: Cell) -> list[Change]:
    """What is not what was asked for, and yet not the same."""
    found = changes(a.encryption, b.encryption, ACHIEVED) + changes({"mode": a.mode}, {"mode": b.mode})
    found += changes(*({f"cores of {name}": value for name, value in each.cores.items()} for each in (a, b)))
    return [each for each in found if each.reference or each.other]


# ── the runs ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _mode(result: Result) -> str:
    return result.cells[0].mode if result.cells else "full"


def _differences(reference: Result, other: Result, run: int) -> Differences:
    names = dict.fromkeys([*MACHINE, *reference.machine, *other.machine])
    tools = [{f"tool {name}": value for name, value in result.tool.items()} for result in (reference, other)]
    specs = [
        {"time of a cell, s": f"{spec.time:g}", "sessions": str(spec.sessions)} if spec else {}
        for spec in (reference.spec, other.spec)
    ]
    machine = [
        each
        for each in changes(reference.machine, other.machine, names)
        if not alike(each.name, reference.machine.get(each.name), other.machine.get(each.name))
    ]
    return Differences(run, machine, changes(*tools) + changes(*specs))


# ── the gate ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _gated(runs: Sequence[Run]) -> range:
    """Each run but the reference; of one run that one."""
    return range(1, len(runs)) if len(runs) > 1 else range(1)


def gate(result: Result, run: int, limit: float) -> list[Gate]:
    """Every cell against the budget; a control, which is no encryption, only where there is nothing else."""
    numbers = [number for number, cell in enumerate(result.cells) if not words.is_control(cell)] or range(
        len(result.cells)
    )
    return [_gate(result.cells[number], run, number, limit) for number in numbers]


def _gate(cell: Cell, run: int, number: int, limit: float) -> Gate:
    title = words.heading(cell) + (f" · {cell.variant}" if cell.variant else "")
    metric = words.main_metric(cell)
    if not metric or cell.status != "ok":
        estimate = cell.overhead.get(metric)
        return Gate(run, number, title, metric, "failed", estimate, cell.reason or "it has no number")
    estimate = cell.overhead[metric]
    outcome = passed(metric, estimate, limit)
    reason = "" if outcome == robustly(metric, estimate, limit) else hidden(metric, estimate)
    return Gate(run, number, title, metric, outcome, estimate, reason)


def passed(metric: str, estimate: Estimate, limit: float) -> Passed:
    """Whether a cost is within the budget for sure, over it for sure, or neither: by the worse of the robust ratio and that of totals.

    Stalls that encryption causes are a cost, and only the totals have them.
    """
    outcomes = [robustly(metric, each, limit) for each in (estimate, of_totals(estimate)) if each is not None]
    return next(each for each in ("fail", "unresolved", "pass") if each in outcomes)


def robustly(metric: str, estimate: Estimate, limit: float) -> Passed:
    """The same by its interval alone."""
    _, low, high = words.loss(metric, estimate)
    return "pass" if high <= limit else "fail" if low > limit else "unresolved"


def of_totals(estimate: Estimate) -> Estimate | None:
    """The ratio of totals as an estimate; None where that is no other than the estimate itself."""
    ratio, low, high = estimate.ratio_of_totals, estimate.totals_low, estimate.totals_high
    return None if ratio is None or low is None or high is None else Estimate(ratio, low, high)


def hidden(metric: str, estimate: Estimate) -> str:
    """`all slices together, stalls included: 1.8 % fewer operations per second (0.3–3.2 %)`: what the robust ratio does not show."""
    totals_ = of_totals(estimate)
    if totals_ is None:
        return ""
    cost = notation.of_what(words.cost(metric, totals_), words.LABELS[metric])
    return f"all slices together, stalls included: {cost} ({words.bounds(metric, totals_)})"
