"""Decide by a stated criterion whether a study was replicated: published costs against our intervals. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from ciphercost.estimate import disturbance, notation
from ciphercost.model.result import Cell
from ciphercost.model.study import StudyFigure

Agreement = Literal["within", "direction", "differs", "holds", "fails", "open", ""]
Verdict = Literal["replicated", "partly", "direction", "direction-partly", "not", "not-partly", "open", ""]

SHORT: dict[Agreement, str] = {
    "within": "within interval",
    "direction": "same direction",
    "differs": "not confirmed",
    "holds": "limit holds",
    "fails": "limit fails",
    "open": "not resolved",
    "": "-",
}
HEADS: dict[Verdict, str] = {
    "replicated": "Replicated in direction and size",
    "partly": "Partly replicated in direction and size",
    "direction": "Replicated in direction only",
    "direction-partly": "Replicated in direction only, and only in part",
    "not": "Replicated neither in direction nor in size",
    "not-partly": "Replicated neither in direction nor in size, as far as this run shows",
    "open": "Direction and size not resolved",
    "": "Direction and size not judged",
}
HEADS_OF_LIMITS: dict[Verdict, str] = {
    "replicated": "Published limits hold",
    "partly": "Published limits hold in part",
    "not": "Published limits do not hold",
    "not-partly": "Published limits do not hold, as far as this run shows",
    "open": "Published limits not resolved",
    "": "Published limits not judged",
}
"""The same for a study that published limits only."""
LEAST_FAVOURABLE: tuple[Agreement, ...] = ("fails", "differs", "open", "direction", "holds", "within", "")
CRITERION = (
    "Criterion: a published cost is replicated if it lies within the 95 % interval of our method and that interval excludes no change. "
    "If both only lie on the same side of no change, its direction is replicated. Otherwise it is not confirmed, or not resolved if the "
    "interval includes both the published cost and no change. The published figures come from other hardware and have no confidence interval: "
    "a different size does not refute them."
)
LIMITS = (
    "Criterion: a published limit holds if the whole 95 % interval of our method is within it, and fails if the whole interval is beyond it. "
    "Otherwise it is not resolved."
)
DIRECTION_ONLY = (
    "Criterion: a published cost and the 95 % interval of our method lie on the same side of no change. A cost is not resolved if that "
    "interval includes no change. Their sizes can't be compared."
)
ALONE = "If our interval includes no change, the table prints it without an estimate."


class Judged(NamedTuple):
    """The published costs of a study, each beside ours."""

    figures: Sequence[StudyFigure]
    direction_only: bool = False
    """True if the published and our figures measure different quantities or products."""
    printed_once: bool = False
    """True if the study printed each figure once, so that several of our costs are compared with the same published one."""
    changed: str = "encryption"
    """What made the difference between the arms."""
    ratios: Mapping[str, str] = {}
    """What was compared, by figure, if it isn't simply the figure, encrypted ÷ plain."""

    @property
    def criterion(self) -> str:
        limits = {bool(figure.bound) for figure in self.figures if figure.published is not None}
        if self.direction_only:
            return DIRECTION_ONLY
        if True not in limits:
            return CRITERION
        return f"{CRITERION} {LIMITS.replace('Criterion: a', 'A', 1)}" if False in limits else LIMITS

    @property
    def limits_only(self) -> bool:
        """Whether all published costs are limits."""
        published = [figure for figure in self.figures if figure.published is not None]
        return bool(published) and all(figure.bound for figure in published)

    def of(self, figure: StudyFigure) -> Agreement:
        agreed = agreement(figure)
        if not agreed or not self.direction_only:
            return agreed
        if _includes_no_change(figure):
            return "open"
        return "direction" if agreed == "within" else agreed

    def published(self) -> list[Agreement]:
        """The agreement of each published cost; of several costs measured beside it, the least favourable counts."""
        by_cost: dict[object, list[Agreement]] = {}
        for number, figure in enumerate(self.figures):
            if figure.published is not None:
                by_cost.setdefault(figure.figure if self.printed_once else number, []).append(self.of(figure))
        return [min(agreements, key=LEAST_FAVOURABLE.index) for agreements in by_cost.values()]


def agreement(figure: StudyFigure) -> Agreement:
    """Agreement of one cost; empty if it was not published or our method has no interval for it."""
    if figure.published is None or figure.ours is None or figure.low is None or figure.high is None:
        return ""
    if figure.bound:
        least = {"most": 0.0, "least": figure.published, "either": 1 / figure.published}[figure.bound]
        most = math.inf if figure.bound == "least" else figure.published
        if least <= figure.low and figure.high <= most:
            return "holds"
        return "fails" if figure.high < least or most < figure.low else "open"
    holds = figure.low <= figure.published <= figure.high
    # An interval that includes no change can't confirm that there is one.
    if _includes_no_change(figure):
        return "open" if holds else "differs"
    if holds:
        return "within"
    return "direction" if (figure.published > 1) == (figure.low > 1) and figure.published != 1 else "differs"


def _includes_no_change(figure: StudyFigure) -> bool:
    return figure.low is not None and figure.high is not None and figure.low <= 1 <= figure.high


def verdict(judged: Judged) -> Verdict:
    """Verdict on all published costs of a study. Unqualified only if each cost was measured and all of them agree."""
    agreements = set(judged.published())
    whole = len(agreements) == 1
    if not agreements - {""}:
        return ""
    if agreements & {"within", "holds"}:
        return "replicated" if agreements <= {"within", "holds"} else "partly"
    if "direction" in agreements:
        return "direction" if whole else "direction-partly"
    if agreements & {"differs", "fails"}:
        return "not" if agreements <= {"differs", "fails"} else "not-partly"
    return "open"


def head(judged: Judged) -> str:
    """The verdict in words."""
    return (HEADS_OF_LIMITS if judged.limits_only else HEADS)[verdict(judged)]


def counted(judged: Judged) -> str:
    """`Partly replicated: of 4 published costs, 1 lies within our 95 % interval, 3 have its direction but another size`."""
    counts = Counter(judged.published())
    published = sum(counts.values())
    if not published - counts[""]:
        return f"{head(judged)}: this run has no 95 % interval for any published cost"
    same = "same direction as ours" if judged.direction_only else "same direction as ours but another size"
    words: dict[Agreement, tuple[str, str]] = {
        "within": ("lies within our 95 % interval", "lie within our 95 % interval"),
        "direction": (f"has the {same}", f"have the {same}"),
        "differs": ("was not confirmed", "were not confirmed"),
        "holds": ("holds as a limit", "hold as limits"),
        "fails": ("does not hold as a limit", "do not hold as limits"),
        "open": ("was not resolved here", "were not resolved here"),
        "": ("was not measured here", "were not measured here"),
    }
    kinds = [kind for kind in words if counts[kind]]
    if published == 1:
        text = f"the one published cost {words[kinds[0]][0]}"
    elif len(kinds) == 1:
        one, several = words[kinds[0]]
        positive = one.replace("was not", "was")
        text = (
            f"all {published} published costs {several}"
            if one == positive
            else f"none of the {published} published costs {positive}"
        )
    else:
        text = f"of {published} published costs, " + ", ".join(
            f"{counts[kind]} {words[kind][counts[kind] > 1]}" for kind in kinds
        )
    measured = sum(bool(judged.of(figure)) for figure in judged.figures)
    if judged.printed_once and measured > published:
        text += f", compared with each of {measured} costs measured here"
    if judged.direction_only:
        text += f"; {'its size' if published == 1 else 'their sizes'} cannot be compared"
    return f"{head(judged)}: {text}"


def unreliable(cells: Sequence[Cell]) -> str:
    """Sentence to add to a verdict if the machine was disturbed in most slices, or one arm more than the other; empty otherwise."""
    hit = sum(bool(disturbance.state(cell)) for cell in cells)
    every = all(cell.disturbed for cell in cells if disturbance.state(cell))
    if not hit:
        return ""
    which = (
        f" of {notation.every(hit, 'cells')}"
        if hit == len(cells) > 1
        else f" of {hit} of {len(cells)} cells"
        if len(cells) > 1
        else ""
    )
    return f"This verdict is unreliable: {'every slice' if every else 'most slices, or slices of one arm,'}{which} {'was' if every else 'were'} disturbed."


def compared(judged: Judged, published_on: str, here: str) -> str:
    """What was compared with what, as a sentence."""
    figures = dict.fromkeys(figure.figure for figure in judged.figures if figure.published is not None)
    kinds = "; ".join(judged.ratios.get(figure, f"{figure}, encrypted ÷ plain") for figure in figures)
    where = f" on {here}" if here else ""
    return f"Compared: {kinds or 'nothing'}; published on {published_on}, measured here{where}."
