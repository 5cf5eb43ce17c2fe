"""The content of each section of the page, as text, tables and drawn plots. Pure except for the drawing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from ciphercost.model.result import Cell, Result
from ciphercost.plan import toml
from ciphercost.report import advice, first_screen, plots
from ciphercost.report.formats.html import _method
from ciphercost.report.formats.html._cell_details import Shown, shown_cell
from ciphercost.report.formats.html._figure import Figure, figure
from ciphercost.report.formats.html._run_details import command, machine, versions
from ciphercost.report.plots import Subject, Table
from ciphercost.report.plots._draw import patterns
from ciphercost.report.words import added_text, cell_text, figure_text, pair_text, verdict_text
from ciphercost.studies.sheet import Report

MOST_NAMED = 12
"""Cells named in a row of cost and protection, at most."""


class Protection(NamedTuple):
    """Cells with the same protection: their names and anchors, their costs, and what they protect."""

    cells: list[tuple[str, str]]
    more: int
    """Number of cells that are not named."""
    costs: list[str]
    protects: list[str]


class Entry(NamedTuple):
    """A line of the table of contents, and the lines below it."""

    anchor: str
    name: str
    below: Sequence[tuple[str, str]] = ()
    """(anchor, name)"""


AGAIN = Entry("h-again", "How to repeat it")
"""Of the section that the macro `again` makes."""


class Page(NamedTuple):
    """Everything that the template shows."""

    title: str
    subtitle: str
    warning: str
    warning_means: str
    """What follows from it, folded, so that the answer stays on a phone's first screen."""
    """Set if every slice of a cell was disturbed."""
    answer: Markup
    picture: list[Figure]
    also: list[Markup]
    """Further sentences of the answer: whether the cost is worth worrying about, then other mechanisms."""
    protects: list[Markup]
    limits: list[str]
    """Warnings that can change the conclusion."""
    budget: str
    basis: Markup
    further: first_screen.Further | None
    where_measured: Markup
    advice: list[tuple[bool, str]]
    """With a budget: (whether the line belongs to the one above, the line)."""
    patterns: Markup
    costs: str
    """What the section of costs is called: imported figures show no cost."""
    forest: list[Figure]
    protection: list[Protection]
    where: list[Figure]
    curves: list[Figure]
    experiments: list[Table]
    cells: list[Shown]
    failed: list[Shown]
    """Empty if the answer names the only cell, or gives the only reason."""
    told: str
    """The reason that the answer gives for all of them; empty: each has its own."""
    study: Report | None
    published: list[Figure]
    """Plots of its costs beside ours."""
    machine: list[tuple[str, str]]
    method: list[str]
    command: str
    spec: str
    versions: list[tuple[str, str]]
    ended: str
    contents: Sequence[Entry] = ()


def page(of: Subject) -> Page:
    result = of.result
    drawn = list(plots.every(of))
    labels = cell_text.names(result.cells)
    cells = [shown_cell(result, number, labels[number], drawn) for number in range(len(result.cells))]
    kinds = {
        kind: [figure(plot) for plot in drawn if plot.name.startswith(kind) and plot.cell is None]
        for kind in plots.KINDS
    }
    study = _study(result)
    arms = pair_text.of(result.cells)
    screen = first_screen.of(result)
    answer = [_unbroken(sentence) for sentence in screen.answer]
    head, _, means = screen.disturbed.partition(". ")
    content = Page(
        title=f"{pair_text.worded('What encryption costs', arms)} · {result.id}",
        subtitle=cell_text.in_common(result.cells),
        warning=f"{head}." if means else screen.disturbed,
        warning_means=means,
        answer=_unbroken(study.verdict) if study else answer[0],
        picture=[] if study else kinds["elsewhere"],
        also=_also(screen, answer, of_study=study is not None),
        protects=[_stressed(sentence) for sentence in screen.protects],
        limits=screen.limits,
        budget=_budget(of),
        basis=_stressed(screen.basis),
        further=screen.further,
        where_measured=_stressed(screen.machine),
        advice=_advice(of),
        patterns=Markup(patterns("var(--server)", "var(--client)", "var(--ink)", "var(--strong)", "var(--page)")),  # noqa: S704 - contains nothing from the record
        costs="What these runs show"
        if any(cell.imported for cell in result.cells)
        else "What it costs"
        if arms.kind == "off-on"
        else "What differs",
        forest=kinds["forest"],
        protection=list(_protection(result, labels)),
        where=kinds["where"],
        curves=kinds["curve"],
        experiments=list(_experiments(result, labels)),
        cells=cells,
        failed=[] if len(cells) == 1 or verdict_text.told(result) else [cell for cell in cells if not cell.ok],
        told=verdict_text.told(result),
        study=study,
        published=kinds["published"],
        machine=list(machine(result)),
        method=list(_method.sentences(of)),
        command=command(result),
        spec=toml.dump(result.spec) if result.spec else "",
        versions=list(versions(result)),
        ended=result.ended or "cut off before its end",
    )
    return content._replace(contents=tuple(_contents(content)))


def _also(screen: first_screen.FirstScreen, answer: list[Markup], *, of_study: bool) -> list[Markup]:
    """What follows the headline, with what the cost means elsewhere behind the sentence that it explains."""
    sentences = [Markup("By our method: ") + answer[0], *answer[1:]] if of_study else answer[1:]
    place = screen.behind if of_study else screen.behind - 1
    means = [_stressed(screen.elsewhere)] if screen.elsewhere else []
    return [*sentences[:place], *means, *sentences[place:]]


def _contents(content: Page) -> Iterator[Entry]:
    """The sections of the page, in order."""
    sections: tuple[tuple[Any, str, str, list[tuple[str, str]]], ...] = (
        (content.study, "h-study", "Published study", []),
        (content.forest, "h-cost", content.costs, []),
        (content.advice, "h-advice", "Cheapest mechanisms within the budget", []),
        (content.failed, "h-failed", "Cells without a number", []),
        (content.protection, "h-protects", "Cost and protection", []),
        (content.where, "h-where", "Where the cost comes from", []),
        (content.curves, "h-curves", "Cost against size or clients", []),
        (content.experiments, "h-experiment", "Comparison of cells", []),
        (content.cells, "h-cells", "Cells", [(cell.anchor, cell.name) for cell in content.cells]),
        (content.method, "h-method", "How it was measured", []),
        (content.machine, "h-machine", "Machine", []),
        (True, AGAIN.anchor, AGAIN.name, []),
    )
    yield from (Entry(anchor, name, below) for there, anchor, name, below in sections if there)


UNBROKEN = re.compile(
    r"(95 % CI|[\d.,]+–[\d.,]*\d(?: %)?|[\d.,–]*\d (?:%|times)|[+−]?[\d.,]+ [nµm]?s(?![\w])|--[a-z-]+)"
)
"""What stays on one line: a figure with its unit, an interval, an option."""
STRESSED = re.compile(
    r"((?:Not w|Perhaps w|W)orth worrying about|not worth worrying about|protects|^Not proven|^NOT PROVEN|^Proven|^Nothing to prove"
    r"|^Measured on)"
)
"""The words by which a reader finds an answer on the first screen."""


def _unbroken(text: str) -> Markup:
    """The text with markup that keeps a figure and its % on one line."""
    parts = UNBROKEN.split(text)
    return Markup("").join(Markup("<span>{}</span>").format(part) if n % 2 else part for n, part in enumerate(parts))


def _stressed(text: str) -> Markup:
    """The same with the words stressed by which a reader finds the answer."""
    parts = STRESSED.split(text)
    return Markup("").join(
        Markup("<strong>{}</strong>").format(part) if n % 2 else _unbroken(part) for n, part in enumerate(parts)
    )


def _budget(of: Subject) -> str:
    """How many cells are certainly within the budget, by their intervals."""
    if of.budget is None:
        return ""
    cells = [cell for cell in of.result.cells if not cell_text.is_control(cell)] or of.result.cells
    known = [(figure_text.main_metric(cell), cell) for cell in cells if figure_text.main_metric(cell)]
    bounds = [figure_text.loss(key, cell.overhead[key])[1:] for key, cell in known]
    within = sum(high <= of.budget for _, high in bounds)
    over = sum(low > of.budget for low, _ in bounds)
    if not bounds:
        return ""
    counts = (
        (within, "certainly within it"),
        (over, "certainly over it"),
        (len(bounds) - within - over, "not resolved"),
    )
    tally = ", ".join(f"{count} {what}" for count, what in counts if count)
    measured = "the one measured cell is" if len(bounds) == 1 else f"of {len(bounds)} measured cells"
    return f"Budget {of.budget * 100:g} %: {measured} {tally.removeprefix('1 ') if len(bounds) == 1 else tally}, by the ends of the 95 % intervals."


def _advice(of: Subject) -> list[tuple[bool, str]]:
    """The cheapest mechanisms within the budget, for each set of alternatives."""
    if of.budget is None:
        return []
    lines = advice.lines(advice.advise(of.result, (), of.budget), of.result)[
        1:
    ]  # the first line repeats the requirements
    return [(line.startswith(" "), line.strip()) for line in lines if line.strip()]


def _protection(result: Result, labels: Sequence[str]) -> Iterator[Protection]:
    """Cells grouped by protection, with their lowest and highest costs."""
    alike: dict[tuple[str, ...], list[int]] = {}
    for number, cell in enumerate(result.cells):
        if cell.overhead and cell.layer != "control" and cell.imported is None:
            times = Counter(cell_text.protects(cell))
            texts = tuple(f"{text} ({count} times)" if count > 1 else text for text, count in times.items())
            alike.setdefault(texts, []).append(number)
    for protects, numbers in alike.items():
        cells = [result.cells[number] for number in numbers]
        shown = [(labels[number], f"cell-{number + 1}") for number in numbers]
        costs = list(cell_text.costs(cells[0])) if len(cells) == 1 else list(_spans(cells))
        yield Protection(shown[:MOST_NAMED], max(0, len(shown) - MOST_NAMED), costs, list(protects))


def _spans(cells: Sequence[Cell]) -> Iterator[str]:
    """`operations/s: 15.8 to 75.4 % fewer`, for each main cost. Unresolved costs are counted, not ranked."""
    added = [added_cost.added for cell in cells if (added_cost := added_text.of(cell)) is not None]
    surely = sorted((amount for amount in added if amount.low > 0), key=lambda amount: amount.mean)
    if surely:
        span = [added_text.time(amount.mean, (amount.high - amount.low) / 2) for amount in (surely[0], surely[-1])]
        yield f"adds {' to '.join(dict.fromkeys(span))} to an operation"
    for key in dict.fromkeys(key for cell in cells for key in figure_text.cost_metrics(cell)):
        if added and "cpu" in key:
            continue
        known = [cell for cell in cells if key in figure_text.cost_metrics(cell)]
        resolved = [cell for cell in known if figure_text.resolution(cell, key) != "unresolved"]
        shown = sorted((cell.overhead[key] for cell in resolved or known), key=lambda estimate: estimate.ratio)
        ends = (shown[-1], shown[0]) if key == "throughput" else (shown[0], shown[-1])
        least, most = (figure_text.cost(key, estimate) for estimate in ends)
        lost = len(known) - len(resolved)
        doubt = figure_text.UNRESOLVED if not resolved else f" ({lost} more unresolved)" * bool(lost)
        yield f"{figure_text.short(known[0], key)}: {figure_text.both(least, most, ' to ')}{doubt}"


def _experiments(result: Result, labels: Sequence[str]) -> Iterator[Table]:
    """Cells with common sessions, each compared with the first of its experiment."""
    named = list(zip(result.cells, labels, strict=True))
    first = {cell.group: label for cell, label in reversed(named)}
    first |= {cell.group: label for cell, label in reversed(named) if not cell_text.is_control(cell)}
    rows = []
    for cell, label in named:
        reference = first[cell.group]
        if cell.against_reference is not None:
            rows.append((label, reference, figure_text.beside(cell.against_reference)))
    if rows:
        head = ("cell", "compared with", "ratio of throughput (encrypted ÷ plain) against that")
        yield Table(pair_text.worded(head, pair_text.of(result.cells)), rows)


def _study(result: Result) -> Report | None:
    if result.study is None:
        return None
    from ciphercost import studies

    return studies.get(result.study.study).report(result.study, result.cells)
