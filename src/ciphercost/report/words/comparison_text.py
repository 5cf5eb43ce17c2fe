"""Text on a comparison: its answer, its gates, what differs between two cells, and what encryption adds in both. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ciphercost.estimate import notation
from ciphercost.estimate.statistics import ALPHA
from ciphercost.model.result import Estimate
from ciphercost.report.compare_pair import QUICK_ALPHA, is_quick
from ciphercost.report.comparison_types import Change, Comparison, Gate, Pair, UnitChange
from ciphercost.report.words import added_text, figure_text


def headline(of: Comparison) -> str:
    """The answer in one line: the gate's outcome, or how many costs differ."""
    if of.limit is None:
        return compared(of)
    answer = _gates(of.gates, of.limit)
    outcome, colon, rest = answer.partition(":")
    return f"{outcome}, but nothing is resolved{colon}{rest}" if outcome.startswith("PASS") and nothing(of) else answer


def nothing(of: Comparison) -> bool:
    """Whether costs were compared and not one of them was decided."""
    return bool(of.pairs) and all(pair.verdict in (None, "unresolved") for pair in of.pairs)


def sign(of: Comparison) -> str:
    """The worst outcome as a sign; empty without a gate if something was decided."""
    outcomes = [gate.outcome for gate in of.gates]
    worst = next((outcome for outcome in ("failed", "fail", "unresolved", "pass") if outcome in outcomes), "")
    if worst in ("", "pass") and (nothing(of) or any(gate.doubt for gate in of.gates)):
        return DOUBT
    return SIGNS[worst] if worst else ""


SIGNS = {"pass": "✅", "fail": "❌", "failed": "❌", "unresolved": "❔"}
DOUBT = "⚠️"


def gate_sign(gate: Gate) -> str:
    """The sign of one cell's gate."""
    return DOUBT if gate.outcome == "pass" and gate.doubt else SIGNS[gate.outcome]


def compared(of: Comparison) -> str:
    """`of 5 costs compared, 2 differ, 3 are equivalent`."""
    if not of.pairs:
        return "these runs have no matching cells, so nothing was compared"
    counts = {
        verdict: sum(pair.verdict == verdict for pair in of.pairs)
        for verdict in ("differs", "equivalent", "unresolved")
    }
    parts = [f"{count} {_counted(verdict, count)}" for verdict, count in counts.items() if count]
    without = sum(pair.verdict is None for pair in of.pairs)
    parts += [f"{without} can't be compared"] * bool(without)
    parts += [f"{len(of.alone)} cells have no partner"] * bool(of.alone)
    text = f"of {len(of.pairs)} cost{'s' * (len(of.pairs) != 1)} compared, {', '.join(parts)}"
    return f"nothing is resolved: {text}, so this can't say whether a cost changed" if nothing(of) else text


def _counted(verdict: str, count: int) -> str:
    if verdict == "differs":
        return "differs" if count == 1 else "differ"
    return f"{'is' if count == 1 else 'are'} {verdict}"


def _gates(gates: Sequence[Gate], limit: float) -> str:
    budget = percent(limit)
    by = {outcome: [gate for gate in gates if gate.outcome == outcome] for outcome in ("fail", "failed", "unresolved")}
    all_ = f"{len(gates)} cell{'s' * (len(gates) != 1)}"
    over = f"encryption costs more than {budget} in {len(by['fail'])} of {all_}"
    if by["failed"]:
        has = "has" if len(by["failed"]) == 1 else "have"
        statement = f"FAILED: {len(by['failed'])} of {all_} {has} no number, so the budget of {budget} can't be checked"
        return f"{statement}; {over}" if by["fail"] else statement
    if by["fail"]:
        failing = sum(gate.doubt == "failures" for gate in by["fail"])
        return f"FAIL: {over}{f'; in {failing} of them because slices of the encrypted arm fail more often' * bool(failing)}"
    if by["unresolved"]:
        return f"UNRESOLVED: {'; '.join(_open(by['unresolved'], all_, budget))}"
    statement = f"encryption costs at most {budget} in {all_}"
    if busy := sum(gate.doubt == "mostly" for gate in gates):
        return f"PASS ON A BUSY MACHINE: {statement}, but other processes disturbed most slices of {busy} of them"
    return f"PASS: {statement}"


def _open(gates: Sequence[Gate], all_: str, budget: str) -> Iterator[str]:
    """Why these gates decide nothing, most serious first."""
    count = Counter(gate.doubt for gate in gates)
    if count["no-cost"]:
        yield f"in {count['no-cost']} of {all_} the difference between the arms is not what encryption costs, see below"
    if count["uneven"]:
        yield f"in {count['uneven']} of {all_} other processes disturbed one arm more than the other; run again on a quieter machine"
    if count["failures"]:
        yield f"in {count['failures']} of {all_} failures may change the answer, see below"
    if open_ := count[""] + count["mostly"]:
        busy = f", and other processes disturbed most slices of {count['mostly']} of them" if count["mostly"] else ""
        yield f"in {open_} of {all_} the interval includes the budget of {budget}; a longer --time may resolve it{busy}"


def percent(share: float) -> str:
    return f"{share * 100:.10g} %"


ENDS = {"pass": "passes", "fail": "fails", "unresolved": "undecided", "failed": "can't be checked"}
"""What a gate's outcome is called in a sentence."""


def disturbed(of: Comparison) -> str:
    """The warning above the headline: other processes disturbed a run. Empty: none was, or the headline itself says so."""
    headline_says = of.limit is not None and not {"fail", "failed"} & {gate.outcome for gate in of.gates}
    if headline_says and len(of.runs) == 1 and any(gate.doubt in ("uneven", "mostly") for gate in of.gates):
        return ""
    return " ".join(of.disturbed)


def gate_line(gate: Gate, limit: float | None) -> str:
    """`postgresql 15.18 · tls · …: unresolved: between 3 % fewer and 1 % more operations per second; budget 10 %: passes`."""
    return f"{gate.title}: {gate_verdict(gate, limit)}"


def gate_verdict(gate: Gate, limit: float | None) -> str:
    """The same without the cell's name."""
    reason = f"; {gate.reason}" if gate.reason else ""
    if gate.estimate is None or gate.outcome == "failed":
        figure, reason = f"no figure{f': {gate.reason}' if gate.reason else ''}", ""
    else:
        figure = _change(gate, gate.estimate)
        figure += f"; {added_text.adds(gate.added)}" if gate.added is not None else ""
    budget = f"; budget {percent(limit)}: {ENDS[gate.outcome]}" if limit is not None else ""
    return f"{figure}{budget}{reason}"


def _change(gate: Gate, estimate: Estimate) -> str:
    """`3.1 % fewer operations per second (95 % CI 2.8–3.4 %)`, or where it is not sure that anything changes, between what it lies."""
    label, ends = figure_text.LABELS[gate.metric], figure_text.bounds(gate.metric, estimate)
    low, apart, high = ends.partition(" to ")
    if gate.verdict in ("unresolved", "equivalent") and apart:
        return f"{gate.verdict}: between {low} and {notation.of_what(high, label)}"
    open_ = f"{gate.verdict}: " if gate.verdict in ("unresolved", "equivalent") else ""
    return f"{open_}{notation.of_what(figure_text.cost(gate.metric, estimate), label)} (95 % CI {ends})"


def verdict(pair: Pair, margin: float) -> str:
    """The pair's verdict as text, with its p-value and scope."""
    if not pair.metric:
        return f"none: {pair.reason}"
    change = pair.change[pair.metric]
    p = change.p_value or 0.0
    surely = "p < 0.001" if p < 0.001 else f"p = {p:.2g}"
    what = "cost in operations per second" if pair.metric == "throughput" else "cost in latency"
    quick = is_quick(pair)
    must = f"; quick runs need p below {QUICK_ALPHA}" if quick and p < ALPHA else ""
    direction = "higher" if (change.ratio < 1) == (pair.metric == "throughput") else "lower"
    sentence = {
        "differs": f"the {what} differs{' between these two server pairs' * quick}: it is {direction} here ({surely})",
        "equivalent": f"the {what} differs by less than {percent(margin)}, if at all",
        "unresolved": f"unresolved: no difference in the {what} is established ({surely}{must}); a longer --time may resolve it",
    }[pair.verdict or "unresolved"]
    if quick and pair.verdict == "differs":
        return f"{sentence}; this interval does not include the scatter between restarts: run both with --sessions 8 to include it"
    return sentence + ("; for these two server pairs only" * quick)


def both(pair: Pair, metric: str) -> str:
    """`24.9 → 53.0 % fewer`: both costs, encrypted ÷ plain."""
    first, second = (figure_text.cost(metric, estimate) for estimate in pair.costs[metric])
    return figure_text.both(first, second, " → ")


def shown(pair: Pair) -> Iterator[tuple[str, str, str, str, str]]:
    """(metric, label, change, its interval, both costs) of every metric that both cells have, without `noise`."""
    for metric, label, _, _ in figure_text.METRICS:
        if metric in pair.change and metric not in pair.noise:
            change = pair.change[metric]
            yield (
                metric,
                label,
                figure_text.cost(metric, change),
                figure_text.bounds(metric, change),
                both(pair, metric),
            )


def left_out(pair: Pair) -> str:
    """Which figures are not shown because they are noise; empty: none."""
    names = ", ".join(figure_text.LABELS[metric] for metric in pair.noise)
    return f"not shown, because it is noise: {names}; --format csv has it" if names else ""


def listed(changes: Iterable[Change]) -> str:
    """`cipher aes256-gcm → aes128-gcm; clients 4 → 8`."""
    return "; ".join(
        f"{change.name.removeprefix('set ')} {change.reference or '—'} → {change.other or '—'}" for change in changes
    )


def machines(of: Comparison) -> Iterator[tuple[str, str]]:
    """(run's name, what differs in its machine), for runs from another machine than the reference."""
    for difference in of.differences:
        if difference.machine:
            yield of.runs[difference.run].name, listed(difference.machine)


LOUD = "DIFFERENT MACHINES: a difference in cost may come from the machines, not from your change"


# ── what encryption adds ──────────────────────────────────────────────────────────────────────────────────────────────

MOST_SENTENCES = 3
"""Pairs of which each has a sentence on what is added; of more the table and the sections tell it."""


def added(of: Comparison) -> Iterator[str]:
    """What encryption adds to an operation here and in the reference, a sentence for each pair, if they are few."""
    known = [pair for pair in of.pairs if pair.added is not None]
    for pair in known if len(known) <= MOST_SENTENCES else []:
        if pair.added is not None:
            here, there = pair.added.other, pair.added.reference
            run = f"run {pair.run}" if len(of.runs) > 2 else "this run" if len(known) > 1 else "This run"
            first = f"{run} {added_text.adds(here)}: {added_text.base(here)}"
            second = f"the reference {added_text.adds(there)}: {added_text.base(there)}"
            between = added_text.difference(pair.added.difference)
            where = f"{pair.title}: " if len(known) > 1 else ""
            yield f"{where}{first}; {second}. That is {between}."


def added_row(pair: Pair) -> tuple[str, str, str, str] | None:
    """(label, difference, its interval, `+6.0 → +4.1 µs`): what is added to an operation in both cells."""
    if pair.added is None:
        return None
    both_ = added_text.from_to(*(added_text.part(cost.added) for cost in (pair.added.reference, pair.added.other)))
    return f"added {pair.added.other.whose.partition(' with')[0]}", *added_text.changed(pair.added.difference), both_


def unit_rows(units: Iterable[UnitChange]) -> Iterator[tuple[str, str, str, str]]:
    """(unit, difference, its interval, both costs)."""
    for unit in units:
        yield unit.unit, *added_text.changed(unit.difference), added_text.from_to(unit.reference, unit.other)


def units_by_end(of: Comparison) -> Iterator[tuple[str, list[UnitChange]]]:
    """(`postgresql tls: server CPU that encryption adds to each unit of work`, its units), run by run."""
    by_end: dict[tuple[int, str, str, str], list[UnitChange]] = {}
    for unit in of.units:
        by_end.setdefault((unit.run, unit.engine, unit.mechanism, unit.whose), []).append(unit)
    for (run, engine, mechanism, whose), units in by_end.items():
        where = f"run {run} · " if len(of.runs) > 2 else ""
        yield f"{where}{engine} {mechanism}: {whose} that encryption adds to each unit of work", units
