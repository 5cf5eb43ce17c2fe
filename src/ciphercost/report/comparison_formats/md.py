"""Markdown for a comment on a pull request: the answer, a warning if machines differ, one table, and folded details."""

from __future__ import annotations

from collections.abc import Iterator

from ciphercost.report.comparison_formats import (
    ENDS,
    LOUD,
    compared,
    disturbed,
    gate_line,
    gate_sign,
    headline,
    left_out,
    listed,
    machines,
    shown,
    sign,
    verdict,
)
from ciphercost.report.comparison_types import Comparison, Pair
from ciphercost.report.formats.md import LONGEST, MOST, SHORT, escaped, fitting, fold, item, row


def render(of: Comparison) -> str:
    """At most MOST characters. What does not fit is left out from the end, with a note."""
    head = [f"**{escaped(disturbed(of), 1000)}**", ""] if disturbed(of) else []
    head += [f"### {f'{sign(of)} '.lstrip()}{escaped(headline(of))}", ""]
    if of.limit is not None and len(of.runs) > 1:
        head += [escaped(compared(of)), ""]
    for name, text in machines(of):
        head += [f"> **{LOUD}**", f"> {escaped(f'{name}: {text}', 1000)}", ""]
    rows = list(_gate_list(of) if len(of.runs) < 2 else _table(of))
    room = MOST - sum(len(line) + 1 for line in head) - 400
    rows_shown = list(fitting(rows, room))
    lost = len(rows) - len(rows_shown)
    rows_shown += [f"\n{lost} more rows did not fit into a comment."] * bool(lost)
    room -= sum(len(line) + 1 for line in rows_shown)
    folded = list(_folded(of))
    shown_ = list(fitting(folded, room))
    lost = len(folded) - len(shown_)
    shown_ += [f"\nDetails of {lost} more did not fit into a comment."] * bool(lost)
    return "\n".join([*head, *rows_shown, "", *shown_]).rstrip("\n")


def _gate_list(of: Comparison) -> Iterator[str]:
    """A line for each cell, with its verdict in words."""
    for gate in of.gates:
        yield f"- {gate_sign(gate)} {escaped(gate_line(gate, of.limit), LONGEST)}"


def _table(of: Comparison) -> Iterator[str]:
    gates = {(gate.run, gate.cell): gate for gate in of.gates}
    budget = [f"budget {of.limit * 100:.10g} %"] if of.limit is not None else []
    yield row("cell", "compared", "cost, reference → this", "changed by", "95 % interval", "verdict", *budget)
    yield row("---", "---", "---:", "---:", "---", "---", *(["---"] * bool(budget)))
    for pair in of.pairs:
        gate = gates.get((pair.run, pair.cells[1]))
        judged = [f"{gate_sign(gate)} {ENDS[gate.outcome]}" if gate else ""] if budget else []
        figures = next((each for each in shown(pair) if each[0] == pair.metric), None)
        said = (escaped(pair.reason, SHORT), "", "") if figures is None else (figures[4], figures[2], figures[3])
        run = f"run {pair.run}: " if len(of.runs) > 2 else ""
        yield row(
            escaped(f"{run}{pair.title}", SHORT),
            escaped(listed(pair.factors), SHORT),
            *said,
            pair.verdict or "none",
            *judged,
        )
    for alone in of.alone:
        yield row(
            escaped(f"{of.runs[alone.run].name}: {alone.title}", SHORT),
            "no partner",
            "",
            "",
            "",
            "none",
            *([""] * bool(budget)),
        )


def _folded(of: Comparison) -> Iterator[str]:
    sides = [
        item(
            f"{'reference' if not number else f'run {number}'}: {run.name}, {run.id}, {run.started}, {run.mode} mode: {run.command}"
        )
        for number, run in enumerate(of.runs)
    ]
    sides += [
        item(f"also differs, {of.runs[each.run].name}: {listed(each.run_facts)}")
        for each in of.differences
        if each.run_facts
    ]
    if of.gates and len(of.runs) > 1:
        sides += [item(gate_line(gate, of.limit)) for gate in of.gates]
    yield fold("the runs", sides)
    for pair in of.pairs:
        yield fold(pair.title + (f": {listed(pair.factors)}" if pair.factors else ""), _pair(pair, of))
    for alone in of.alone:
        if alone.nearest:
            yield fold(
                f"without a partner: {alone.title}",
                [item(f"most similar: {alone.nearest}, which differs in {listed(alone.differs)}")],
            )


def _pair(pair: Pair, of: Comparison) -> Iterator[str]:
    if pair.change:
        yield row("figure", "changed by", "95 % interval", "cost, reference → this")
        yield row("---", "---:", "---", "---:")
        for _, label, change, interval, both in shown(pair):
            yield row(label, change, interval, both)
        yield ""
    if words := left_out(pair):
        yield item(words)
    yield item(f"verdict: {verdict(pair, of.margin)}")
    for text in pair.mind:
        yield item(f"warning: {text}")
    if pair.also:
        yield item(f"also differs: {listed(pair.also)}")
