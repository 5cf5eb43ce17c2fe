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
    own = [each for each in result.figures if each.load is None]
    yield from table.sheets(msgspec.structs.replace(result, figures=own))
    swept = [each for each in result.figures if each.load is not None and each.workload != FIO]
    if swept:
        rows = _rows(swept, lambda each: f"{each.operation}, {each.load:.0f} client{'s' * (each.load != 1)}")
        head = (
            "\nplain → encrypted",
            "TPS as published\nhere",
            "TPS by our\nmethod",
            "changed, as\npublished here",
            "changed, our\nmethod (95 %)",
        )
        yield Sheet("TPS by rows and clients: every server", head, rows)
    if disk := [each for each in result.figures if each.workload == FIO]:
        note = "fio runs on both arms' directories without a server, with a file as large as the table and its index."
        yield Sheet(
            "Storage alone, by size", ("\nplain → encrypted", "level", "changed (95 %)"), list(_storage(disk)), note
        )


def _rows(figures: Sequence[StudyFigure], heading: Callable[[StudyFigure], str]) -> list[tuple[str, ...]]:
    """A heading for each point with a row for each server below."""
    rows: list[tuple[str, ...]] = []
    for title in dict.fromkeys(map(heading, figures)):
        rows.append((title,))
        own = [each for each in figures if heading(each) == title]
        for name in dict.fromkeys(each.mechanism for each in own):
            by_arm = {each.arm: each for each in own if each.mechanism == name}
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
    for operation in dict.fromkeys(each.operation for each in figures):
        for name in dict.fromkeys(each.mechanism for each in figures if each.operation == operation):
            own = [each for each in figures if (each.operation, each.mechanism) == (operation, name)]
            yield (f"{operation}, {name}",)
            for job in dict.fromkeys(each.figure for each in own):
                plain, encrypted, cost = [each for each in own if each.figure == job][:3]
                levels = table.pair([plain.ours, encrypted.ours])
                yield (f"{job}, {plain.unit}", levels, with_interval(cost))
