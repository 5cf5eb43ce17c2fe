"""The study's own table: how narrow each interval is, and how long it takes until it is ±1 %. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ciphercost.model.study import StudyResult
from ciphercost.studies.pg_tde_small_cost import precision
from ciphercost.studies.sheet import Sheet

METHOD = (
    "Our method's interval is that over sessions: starts of both servers, which take turns in short slices. How long until it is ±1 %: the spread of "
    "the sessions is taken from its half-width, and each further session is as long as those here. The brackets hold the 95 % interval of that spread "
    "(chi-square). Times are those of the load of both arms; starts, data and proofs come on top. Averages of runs have the half-width of the 95 % "
    "interval of a difference of two averages, by Student's t from the scatter of the runs of the same arm; drift from one arm to the other is not in it."
)


def resolutions(result: StudyResult) -> Iterator[Sheet]:
    """What can be told from no difference here, and the time for one per cent."""
    by = {(figure.operation, figure.figure): figure for figure in result.figures if figure.arm == precision.DESIGN}
    names = dict.fromkeys(name for name, _ in by)
    rows = [(name, *(precision.shown(by.get((name, figure))) for figure in precision.OF_THE_DESIGN)) for name in names]
    if rows:
        head = (
            "95 % intervals in brackets",
            "our method\nin this run",
            "load\nuntil ±1 %",
            "averages of\nthe runs here",
            "runs\nuntil ±1 %",
        )
        yield Sheet("Can 1 % be measured here?", head, rows)
