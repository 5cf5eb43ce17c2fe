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


def of(found: Comparison) -> Document:
    """The document."""
    return Document(
        kind="comparison",
        title=f"Comparison of {len(found.runs)} runs",
        answer=words.headline(found),
        blocks=list(_blocks(found)),
        sign=words.sign(found),
        warning=words.disturbed(found),
    )


def _blocks(found: Comparison) -> Iterator[Block]:
    if len(found.runs) < 2:
        yield Items([_gate(gate, found) for gate in found.gates])
        return
    if found.limit is not None:
        yield Text(words.compared(found))
    yield from (Text(text) for text in words.added(found))
    for name, text in words.machines(found):
        yield Alarm(words.LOUD, [f"{name}: {text}"])
    for title, units in words.units_by_end(found):
        yield Section(title, [Figures("change", list(words.unit_rows(units)), ("unit", *CHANGED[1:]))], folded=False)
    head, rows = _summary(found)
    figures = frozenset({2, 3}) if len(head) < len(SUMMARY) + len(ADDED) else frozenset({2, 3, 5, 6})
    yield Table("The costs that were compared", head, rows, "summary", right=figures)
    if found.gates and found.limit is not None:
        yield Section(
            f"the budget of {words.percent(found.limit)}", [Items([_gate(each, found) for each in found.gates])]
        )
    yield Section("the runs", [Items(list(_runs(found)))])
    for pair in found.pairs:
        run = f"run {pair.run} · " if len(found.runs) > 2 else ""
        yield Section(f"{run}{pair.title}", list(_pair(pair, found)), words.listed(pair.factors))
    if found.alone:
        yield Section("cells without a partner, not compared", [Items(list(_alone(found)))])


def _gate(gate: Gate, found: Comparison) -> Item:
    return Item(words.gate_line(gate, found.limit), sign=words.gate_sign(gate))


def _summary(found: Comparison) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Head and rows of the table of all pairs."""
    gates = {(gate.run, gate.cell): gate for gate in found.gates}
    budget = [f"budget {words.percent(found.limit)}"] if found.limit is not None else []
    added = any(pair.added for pair in found.pairs)
    rows: list[tuple[str, ...]] = []
    for pair in found.pairs:
        gate = gates.get((pair.run, pair.cells[1]))
        figures = next((each for each in words.shown(pair) if each[0] == pair.metric), None)
        costs = (pair.reason, "", "") if figures is None else (figures[4], figures[2], figures[3])
        run = f"run {pair.run} · " if len(found.runs) > 2 else ""
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
    for alone in found.alone:
        name = f"{found.runs[alone.run].name}: {alone.title}"
        rows.append((name, "no partner", *[""] * (width - 3 - len(budget)), "none", *([""] * len(budget))))
    return (*SUMMARY[:2], *(ADDED if added else ()), *SUMMARY[2:], *budget), rows


def _added(pair: Pair) -> tuple[str, str, str]:
    row = words.added_row(pair)
    return ("", "", "") if row is None else (row[3], row[1], row[2])


def _runs(found: Comparison) -> Iterator[Item]:
    for number, run in enumerate(found.runs):
        role = "reference" if not number else "compared run" if len(found.runs) == 2 else f"run {number}"
        cells = f"{run.cells} cell{'s' * (run.cells != 1)}"
        details = ", ".join(filter(None, (run.id, run.command)))
        yield Item(f"{role}: {run.name} ({run.started}, {run.mode} mode, {cells})", details)
    for each in found.differences:
        if each.run_facts:
            yield Item(f"also differs, {found.runs[each.run].name}: {words.listed(each.run_facts)}")


def _pair(pair: Pair, found: Comparison) -> Iterator[Block]:
    if pair.also:
        yield Note("differs", f"also differs: {words.listed(pair.also)}")
    rows = [(label, change, interval, both) for _, label, change, interval, both in words.shown(pair)]
    if (added := words.added_row(pair)) is not None:
        rows.insert(0, added)
    if rows:
        yield Figures("change", rows, CHANGED)
    if left_out := words.left_out(pair):
        yield Note("left out", left_out)
    yield Note("verdict", words.verdict(pair, found.margin), "verdict")
    if pair.mind:
        yield Warnings(pair.mind)


def _alone(found: Comparison) -> Iterator[Item]:
    for alone in found.alone:
        nearest = f"; most similar: {alone.nearest}, which differs in {words.listed(alone.differs)}"
        yield Item(f"{found.runs[alone.run].name}: {alone.title}{nearest if alone.nearest else ''}")
