"""The study's first table: what the published design can resolve. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ciphercost.model.study import StudyFigure, StudyResult
from ciphercost.studies.cybertec_tde_cost import compare
from ciphercost.studies.cybertec_tde_cost.findings import digits
from ciphercost.studies.sheet import Sheet

METHOD = (
    "What a design can show is the half-width of the 95 % interval of a difference of two averages, by Student's t from the scatter of the runs of the "
    "same arm. Its own interval is that of a standard deviation (chi-square). A difference smaller than that can't "
    "be told from none. Our method's interval is that of the same pair of arms in the same run."
)


def resolutions(result: StudyResult) -> Iterator[Sheet]:
    """What averages of one-minute runs can show here, beside our method."""
    by = {(figure.operation, figure.figure): figure for figure in result.figures if figure.arm == compare.DESIGN}
    names = dict.fromkeys(name for name, _ in by)
    rows = [
        (
            name,
            *(shown(by.get((name, figure))) for figure in (compare.CAN_SHOW, compare.NEEDED)),
            half(by.get((name, compare.INTERVAL))),
        )
        for name in names
    ]
    if rows:
        head = (
            "95 % intervals in brackets",
            "averages of\nthe runs here",
            "runs of each arm\nfor ±0.5 %",
            "our method\nin this run",
        )
        yield Sheet("The smallest difference that can be told from none", head, rows)


def shown(figure: StudyFigure | None) -> str:
    """`±0.62 % (0.40–1.2 %)`, `9 (3–40)`."""
    if figure is None or figure.ours is None or figure.low is None or figure.high is None:
        return "-"
    if figure.unit == "%":
        return f"±{digits(figure.ours)} % ({digits(figure.low)}–{digits(figure.high)} %)"
    return f"{figure.ours:,.0f} ({figure.low:,.0f}–{figure.high:,.0f})"


def half(figure: StudyFigure | None) -> str:
    return "-" if figure is None or figure.ours is None else f"±{digits(figure.ours)} %"
