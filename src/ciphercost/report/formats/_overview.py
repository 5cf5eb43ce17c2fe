"""The terminal's table of all cells: what is added to an operation, to what, and what that does to the rate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ciphercost.model.result import Cell
from ciphercost.report.layout import WIDTH, named, wrap
from ciphercost.report.words import added_text, pair_text
from ciphercost.report.words.cell_text import in_common, names, standing
from ciphercost.report.words.figure_text import SHORT, bounds, cost, cpu_metric, lead_metric, priced

LEFT = ("95 % CI", "→")
"""What heads contain whose columns' texts begin below each other; of the others they end below each other."""


def lines(cells: Sequence[Cell]) -> Iterator[str]:
    """A line per cell, in the run's order; with the added CPU time if any cell has that, else with two ratios."""
    yield from wrap(in_common(cells) or "all cells")
    if not any(cell.overhead for cell in cells):
        for name, cell in zip(names(cells), cells, strict=True):
            yield from wrap(f"{name}: {standing(cell)}", "  ", "    ")
    elif any(added_text.of(cell) for cell in cells):
        yield from columned(
            ["adds to CPU/op", "95 % CI", pair_text.arrow(pair_text.of(cells)), "", "operations/s"],
            [(name, _added(cell)) for name, cell in zip(names(cells), cells, strict=True)],
        )
    else:
        yield from _ratios(cells)


def _added(cell: Cell) -> list[str] | str:
    if not cell.overhead:
        return standing(cell)
    if (added_cost := added_text.of(cell)) is None:
        return priced(cell)
    return [
        *added_text.figures(added_cost),
        added_text.levels(added_cost),
        cost(added_cost.key, added_cost.ratio),
        _figure(cell, "throughput" if "throughput" in cell.overhead else "")[0],
    ]


def _ratios(cells: Sequence[Cell]) -> Iterator[str]:
    metrics = _metrics(cells)
    shown: list[tuple[str, list[str] | str]] = []
    for name, cell in zip(names(cells), cells, strict=True):
        keys = [_in_column(cell, key) for key in metrics]
        if not cell.overhead:
            shown.append((name, standing(cell)))
        elif not keys[0]:
            shown.append((name, priced(cell)))
        else:
            shown.append((name, [text for key in keys for text in _figure(cell, key)]))
    embeds = any(_in_column(cell, "server_cpu_per_op") not in ("", "server_cpu_per_op") for cell in cells)
    heads = ["CPU/op" if key == "server_cpu_per_op" and embeds else SHORT.get(key, key) for key in metrics]
    yield from columned([heads[0], "95 % CI", heads[1], "95 % CI"], shown)


def _figure(cell: Cell, key: str) -> tuple[str, str]:
    return (cost(key, cell.overhead[key]), bounds(key, cell.overhead[key])) if key else ("–", "")


def _metrics(cells: Sequence[Cell]) -> list[str]:
    """The lead metric of most cells, then the other of throughput and server CPU."""
    leads = ["server_cpu_per_op" if "cpu" in key else key for cell in cells if (key := lead_metric(cell))]
    first = max(dict.fromkeys(leads), key=leads.count, default="throughput")
    return [first, "throughput" if first == "server_cpu_per_op" else "server_cpu_per_op"]


def _in_column(cell: Cell, key: str) -> str:
    """The cell's metric for a column, or empty. The CPU column has the CPU time of the database, however that was measured."""
    if key == "server_cpu_per_op":
        return cpu_metric(cell)
    return key if key in cell.overhead else ""


def columned(heads: Sequence[str], shown: Sequence[tuple[str, Sequence[str] | str]]) -> Iterator[str]:
    """Names with their columns, each as wide as its texts. A line with a single text has it after the name."""
    figures = [heads, *(texts for _, texts in shown if not isinstance(texts, str))]
    widths = [max(len(texts[at]) for texts in figures) for at in range(len(heads))]
    room = WIDTH - 2 - sum(widths) - 2 * len(widths)
    longest = max((len(name) for name, texts in shown if not isinstance(texts, str)), default=0)
    left = 2 + max(0, min(room, longest))
    places = []
    for head, width in zip(heads, widths, strict=True):
        places.append(left + 2 if any(mark in head for mark in LEFT) else -(left + 2 + width))
        left += 2 + width
    for name, texts in [("", heads), *shown]:
        if isinstance(texts, str):
            yield from wrap(f"{name}: {texts}", "  ", "    ")
        else:
            yield from named(name, min(room, longest), list(zip(texts, places, strict=True)))
