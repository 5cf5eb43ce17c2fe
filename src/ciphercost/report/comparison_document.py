"""The document of a comparison: its answer, what encryption adds, then pair by pair. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ciphercost.report.blocks import Alarm, Block, Document, Figures, Item, Items, Note, Section, Table, Text, Warnings
from ciphercost.report.comparison_types import Comparison, Gate, Pair
from ciphercost.report.words import comparison_text as words

CHANGED = ("the cost", "changed by", "95 % interval", "reference → this")
"""Head of a pair's figures."""
SUMMARY = ("cell", "compared", "cost, reference → this", "changed by", "95 % interval", "verdict")
ADDED = ("adds to CPU/op, reference → this", "difference", "95 % interval")
"""Columns of the summary in front of the cost, if a pair tells what is added."""


def of(comparison: Comparison) -> Document:
    """The document."""
    return Document(
        kind="comparison",
        title=f"Comparison of {len(comparison.runs)} runs",
        answer=words.headline(comparison),
        blocks=list(_blocks(comparison)),
        sign=words.sign(comparison),
        warning=words.disturbed(comparison),
    )


def _blocks(comparison: Comparison) -> Iterator[Block]:
    if len(comparison.runs) < 2:
        yield Items([_gate(gate, comparison) for gate in comparison.gates])
        return
    if comparison.limit is not None:
        yield Text(words.compared(comparison))
    yield from (Text(text) for text in words.added(comparison))
    for name, text in words.machines(comparison):
        yield Alarm(words.LOUD, [f"{name}: {text}"])
    for title, units in words.units_by_end(comparison):
        yield Section(title, [Figures("change", list(words.unit_rows(units)), ("unit", *CHANGED[1:]))], folded=False)
    head, rows = _summary(comparison)
    figures = frozenset({2, 3}) if len(head) < len(SUMMARY) + len(ADDED) else frozenset({2, 3, 5, 6})
    yield Table("The costs that were compared", head, rows, "summary", right=figures)
    if comparison.gates and comparison.limit is not None:
        yield Section(
            f"the budget of {words.percent(comparison.limit)}",
            [Items([_gate(gate, comparison) for gate in comparison.gates])],
        )
    yield Section("the runs", [Items(list(_runs(comparison)))])
    for pair in comparison.pairs:
        run = f"run {pair.run} · " if len(comparison.runs) > 2 else ""
        yield Section(f"{run}{pair.title}", list(_pair(pair, comparison)), words.listed(pair.factors))
    if comparison.alone:
        yield Section("cells without a partner, not compared", [Items(list(_alone(comparison)))])


def _gate(gate: Gate, comparison: Comparison) -> Item:
    return Item(words.gate_line(gate, comparison.limit), sign=words.gate_sign(gate))


def _summary(comparison: Comparison) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Head and rows of the table of all pairs."""
    gates = {(gate.run, gate.cell): gate for gate in comparison.gates}
    budget = [f"budget {words.percent(comparison.limit)}"] if comparison.limit is not None else []
    added = any(pair.added for pair in comparison.pairs)
    rows: list[tuple[str, ...]] = []
    for pair in comparison.pairs:
        gate = gates.get((pair.run, pair.cells[1]))
        figures = next((row for row in words.shown(pair) if row[0] == pair.metric), None)
        costs = (pair.reason, "", "") if figures is None else (figures[4], figures[2], figures[3])
        run = f"run {pair.run} · " if len(comparison.runs) > 2 else ""
        rows.append(
            (
                f"{run}{pair.title}",
                words.listed(pair.factors),
                *(_added(pair) if added else ()),
                *costs,
                pair.verdict or "none",
                *([f"{words.gate_sign(gate)} {words.ENDS[gate.outcome]}" if gate else ""] if budget else []),
            )
        )
    width = len(SUMMARY) + len(ADDED) * added + len(budget)
    for alone in comparison.alone:
        name = f"{comparison.runs[alone.run].name}: {alone.title}"
        rows.append((name, "no partner", *[""] * (width - 3 - len(budget)), "none", *([""] * len(budget))))
    return (*SUMMARY[:2], *(ADDED if added else ()), *SUMMARY[2:], *budget), rows


def _added(pair: Pair) -> tuple[str, str, str]:
    row = words.added_row(pair)
    return ("", "", "") if row is None else (row[3], row[1], row[2])


def _runs(comparison: Comparison) -> Iterator[Item]:
    for number, run in enumerate(comparison.runs):
        role = "reference" if not number else "compared run" if len(comparison.runs) == 2 else f"run {number}"
        cells = f"{run.cells} cell{'s' * (run.cells != 1)}"
        details = ", ".join(filter(None, (run.id, run.command)))
        yield Item(f"{role}: {run.name} ({run.started}, {run.mode} mode, {cells})", details)
    for difference in comparison.differences:
        if difference.run_facts:
            yield Item(f"also differs, {comparison.runs[difference.run].name}: {words.listed(difference.run_facts)}")


def _pair(pair: Pair, comparison: Comparison) -> Iterator[Block]:
    if pair.also:
        yield Note("differs", f"also differs: {words.listed(pair.also)}")
    rows = [(label, change, interval, both) for _, label, change, interval, both in words.shown(pair)]
    if (added := words.added_row(pair)) is not None:
        rows.insert(0, added)
    if rows:
        yield Figures("change", rows, CHANGED)
    if left_out := words.left_out(pair):
        yield Note("left out", left_out)
    yield Note("verdict", words.verdict(pair, comparison.margin), "verdict")
    if pair.mind:
        yield Warnings(pair.mind)


def _alone(comparison: Comparison) -> Iterator[Item]:
    for alone in comparison.alone:
        nearest = f"; most similar: {alone.nearest}, which differs in {words.listed(alone.differs)}"
        yield Item(f"{comparison.runs[alone.run].name}: {alone.title}{nearest if alone.nearest else ''}")
