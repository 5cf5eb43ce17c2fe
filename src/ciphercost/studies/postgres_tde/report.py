"""The study's tables: every figure of its own point, then the sweep over rows and clients, then fio. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from ciphercost.model.study import StudyFigure, StudyResult
from ciphercost.studies import table
from ciphercost.studies.costs import change, with_interval
from ciphercost.studies.sheet import Sheet

FIO = "fio"


def sheets(result: StudyResult) -> Iterator[Sheet]:
    unswept = [figure for figure in result.figures if figure.load is None]
    yield from table.sheets(msgspec.structs.replace(result, figures=unswept))
    swept = [figure for figure in result.figures if figure.load is not None and figure.workload != FIO]
    if swept:
        rows = _rows(swept, lambda figure: f"{figure.operation}, {figure.load:.0f} client{'s' * (figure.load != 1)}")
        head = (
            "\nplain → encrypted",
            "TPS, its\nprocedure here",
            "TPS by our\nmethod",
            "changed, its\nprocedure here",
            "changed, our\nmethod (95 %)",
        )
        yield Sheet("TPS by rows and clients: every server", head, rows)
    if disk := [figure for figure in result.figures if figure.workload == FIO]:
        note = "fio runs on both arms' directories without a server, with a file as large as the table and its index."
        yield Sheet(
            "Storage alone, by size", ("\nplain → encrypted", "level", "changed (95 %)"), list(_storage(disk)), note
        )


def _rows(figures: Sequence[StudyFigure], heading: Callable[[StudyFigure], str]) -> list[tuple[str, ...]]:
    """A heading for each point with a row for each server below."""
    rows: list[tuple[str, ...]] = []
    for title in dict.fromkeys(map(heading, figures)):
        rows.append((title,))
        group = [figure for figure in figures if heading(figure) == title]
        for name in dict.fromkeys(figure.mechanism for figure in group):
            by_arm = {figure.arm: figure for figure in group if figure.mechanism == name}
            plain, encrypted, cost = by_arm["plain"], by_arm["encrypted"], by_arm["cost"]
            rows.append(
                (
                    name,
                    table.pair([plain.here, encrypted.here]) or "-",
                    table.pair([plain.ours, encrypted.ours]) or "-",
                    change(cost.here, cost.figure),
                    with_interval(cost),
                )
            )
    return rows


def _storage(figures: Sequence[StudyFigure]) -> Iterator[tuple[str, ...]]:
    """A heading for each size and pair with a row for each job below; of cells at one size, the first."""
    for operation in dict.fromkeys(figure.operation for figure in figures):
        for name in dict.fromkeys(figure.mechanism for figure in figures if figure.operation == operation):
            group = [figure for figure in figures if (figure.operation, figure.mechanism) == (operation, name)]
            yield (f"{operation}, {name}",)
            for job in dict.fromkeys(figure.figure for figure in group):
                plain, encrypted, cost = [figure for figure in group if figure.figure == job][:3]
                levels = table.pair([plain.ours, encrypted.ours])
                yield (f"{job}, {plain.unit}", levels, with_interval(cost))
