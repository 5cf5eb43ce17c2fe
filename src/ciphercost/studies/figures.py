"""Figures that several studies print: a rate of both arms with its cost, and the server's CPU time. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ciphercost.estimate.levels import level
from ciphercost.model.result import Cell, Estimate
from ciphercost.model.spec import ARMS, Arm
from ciphercost.model.study import StudyFigure
from ciphercost.studies.in_turn import ratio

OVER = " ÷ "
"""In the operation of a figure that compares one variant of the encrypted arm with another: `reconnect, 3.5 ÷ 3.0`."""
CPU = "server's CPU"
Known = Mapping[Arm, float | None]
"""A figure by arm."""


def rate(
    operation: str,
    figure: str,
    cell: Cell | None,
    here: Known,
    published: Known | None = None,
    source: str = "",
) -> list[StudyFigure]:
    """Operations per second of both arms and encrypted ÷ plain."""
    printed = published or {}
    known = cell.overhead.get("throughput") if cell else None
    levels = [
        StudyFigure(
            operation,
            figure,
            "",
            arm,
            printed.get(arm),
            here.get(arm),
            level(cell, arm, "throughput") if cell and known else None,
            source=source if printed.get(arm) is not None else "",
        )
        for arm in ARMS
    ]
    published_ratio = ratio(printed.get("encrypted"), printed.get("plain"))
    repeated_ratio = ratio(here.get("encrypted"), here.get("plain"))
    return [
        *levels,
        cost(operation, figure, known, published_ratio, repeated_ratio, source if published_ratio is not None else ""),
    ]


def cost(
    operation: str,
    figure: str,
    known: Estimate | None,
    published: float | None = None,
    here: float | None = None,
    source: str = "",
) -> StudyFigure:
    """One cost beside the published one."""
    cost_figure = StudyFigure(operation, figure, "ratio", "cost", published, here, source=source)
    if known is None:
        return cost_figure
    return msgspec.structs.replace(cost_figure, ours=known.ratio, low=known.low, high=known.high, n=known.n)


def inverse(known: Estimate | None) -> Estimate | None:
    """The ratio of times that belongs to a ratio of rates."""
    return Estimate(1 / known.ratio, 1 / known.high, 1 / known.low, n=known.n) if known else None


def server_cpu(operation: str, cell: Cell | None) -> list[StudyFigure]:
    """Server CPU per operation, by our method alone: other processes and the path between the ends hardly affect it."""
    return cpu(operation, CPU, "server_cpu", cell)


def cpu(operation: str, figure: str, end: str, cell: Cell | None) -> list[StudyFigure]:
    """CPU time per operation at one `end`, `server_cpu` or `client_cpu`, by our method alone; empty if it is unknown."""
    known = cell.overhead.get(f"{end}_per_op") if cell else None
    if cell is None or known is None:
        return []
    levels = [StudyFigure(operation, figure, "µs", arm, ours=cell.arms[arm].get(f"{end}_us_per_op")) for arm in ARMS]
    return [*levels, cost(operation, figure, known)]


def between(figures: Sequence[StudyFigure]) -> list[StudyFigure]:
    """The figures that compare two variants."""
    return [figure for figure in figures if OVER in figure.operation]


def own(figures: Sequence[StudyFigure]) -> list[StudyFigure]:
    """The other figures: those of each variant by itself."""
    return [figure for figure in figures if OVER not in figure.operation]
