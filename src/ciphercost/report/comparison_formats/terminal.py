"""Terminal text, 80 columns wide: the answer, what else differs, then cell by cell."""

from __future__ import annotations

from collections.abc import Iterator

from ciphercost.report.comparison_formats import (
    LOUD,
    compared,
    disturbed,
    gate_line,
    headline,
    left_out,
    listed,
    machines,
    shown,
    verdict,
)
from ciphercost.report.comparison_types import Comparison, Pair
from ciphercost.report.layout import figure_rows, wrap
from ciphercost.report.words.figure_text import printable


def render(of: Comparison) -> str:
    return printable("\n".join(_lines(of)))


def _lines(of: Comparison) -> Iterator[str]:
    yield from wrap(disturbed(of))
    yield from wrap(headline(of))
    for gate in of.gates:
        yield from wrap(gate_line(gate, of.limit), "  ", "    ")
    if len(of.runs) < 2:
        return
    if of.limit is not None:
        yield from wrap(compared(of))
    yield ""
    for number, run in enumerate(of.runs):
        role = "reference" if not number else "compared run" if len(of.runs) == 2 else f"run {number}"
        cells = f"{run.cells} cell{'s' * (run.cells != 1)}"
        yield from wrap(f"{role}: {run.name} ({run.started}, {run.mode} mode, {cells})", "", "  ")
    for name, text in machines(of):
        yield from wrap(f"=== {LOUD} ===")
        yield from wrap(f"{name}: {text}", "    ", "      ")
    for each in of.differences:
        if each.run_facts:
            yield from wrap(f"also differs, {of.runs[each.run].name}: {listed(each.run_facts)}", "", "  ")
    for pair in of.pairs:
        yield ""
        yield from _pair(pair, of)
    if of.alone:
        yield ""
        yield "cells without a partner, not compared"
    for alone in of.alone:
        text = f"{of.runs[alone.run].name}: {alone.title}"
        text += f"; most similar: {alone.nearest}, which differs in {listed(alone.differs)}" if alone.nearest else ""
        yield from wrap(text, "  ", "    ")


def _pair(pair: Pair, of: Comparison) -> Iterator[str]:
    run = f"run {pair.run} · " if len(of.runs) > 2 else ""
    yield from wrap(f"{run}{pair.title}", "", "  ")
    if pair.factors:
        yield from wrap(f"compared: {listed(pair.factors)}", "  ", "    ")
    if pair.also:
        yield from wrap(f"also differs: {listed(pair.also)}", "  ", "    ")
    if pair.change:
        head = ("the cost changed by", "", "95 % CI", "reference → this")
        yield from figure_rows(
            [head, *((label, change, interval, both) for _, label, change, interval, both in shown(pair))]
        )
    yield from wrap(left_out(pair), "  ", "    ")
    yield from wrap(f"verdict: {verdict(pair, of.margin)}", "  ", "           ")
    for text in pair.mind:
        yield from wrap(f"! {text}", "  ", "    ")
