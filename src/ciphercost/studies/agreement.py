"""agreement: published costs beside our intervals -> whether a study was replicated, by a criterion that is stated. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

from ciphercost.model import StudyFigure

Agreement = Literal["within", "direction", "differs", "open", ""]
Verdict = Literal["replicated", "direction", "partly", "not", "open", ""]

SHORT: dict[Agreement, str] = {
    "within": "within interval",
    "direction": "same direction",
    "differs": "not confirmed",
    "open": "not resolved",
    "": "-",
}
HEADS: dict[Verdict, str] = {
    "replicated": "Replicated",
    "direction": "Replicated in direction only",
    "partly": "Partly replicated",
    "not": "Not replicated",
    "open": "Not resolved",
    "": "Not judged",
}
CRITERION = (
    "Criterion: a published cost is replicated where it lies within the 95 % interval of our method and that interval excludes no cost; "
    "where both only lie on the same side of no cost, its direction is; where neither holds, it is not confirmed, or not resolved if the "
    "interval holds both it and no cost. The published figures come from other hardware and have no confidence interval: another size "
    "does not refute them."
)
DIRECTION_ONLY = (
    "Criterion: a published cost and the 95 % interval of our method lie on the same side of no cost. Their sizes can't "
    "be compared."
)


class Judged(NamedTuple):
    """The published costs of a study, each beside ours."""

    figures: Sequence[StudyFigure]
    direction_only: bool = False
    """Where what was published and what is measured here are not the same quantity, or not the same product."""

    @property
    def criterion(self) -> str:
        return DIRECTION_ONLY if self.direction_only else CRITERION

    def of(self, figure: StudyFigure) -> Agreement:
        found = agreement(figure)
        return "direction" if found == "within" and self.direction_only else found


def agreement(figure: StudyFigure) -> Agreement:
    """Of one cost; empty where it was not published or our method has no interval of it."""
    if figure.published is None or figure.ours is None or figure.low is None or figure.high is None:
        return ""
    holds = figure.low <= figure.published <= figure.high
    # An interval that holds no cost can't confirm that there is one.
    if figure.low <= 1 <= figure.high:
        return "open" if holds else "differs"
    if holds:
        return "within"
    return "direction" if (figure.published > 1) == (figure.low > 1) and figure.published != 1 else "differs"


def verdict(judged: Judged) -> Verdict:
    """Of all published costs of a study together."""
    found = {each for each in map(judged.of, judged.figures) if each}
    if not found:
        return ""
    alone: dict[Agreement, Verdict] = {"within": "replicated", "direction": "direction", "open": "open"}
    if len(found) == 1 and (only := next(iter(found))) in alone:
        return alone[only]
    return "partly" if found & {"within", "direction"} else "not"


def counted(judged: Judged) -> str:
    """`Partly replicated: of 4 published costs 1 lies within our 95 % interval, 3 have its direction but another size`."""
    counts = Counter(map(judged.of, judged.figures))
    published = sum(each.published is not None for each in judged.figures)
    known = sum(count for kind, count in counts.items() if kind)
    if not known:
        return f"{HEADS['']}: this run has no 95 % interval of any published cost"
    same = "same direction as ours" if judged.direction_only else "same direction as ours but another size"
    words: dict[Agreement, tuple[str, str]] = {
        "within": ("lies within our 95 % interval", "lie within our 95 % interval"),
        "direction": (f"has the {same}", f"have the {same}"),
        "differs": ("was not confirmed", "were not confirmed"),
        "open": ("was not resolved here", "were not resolved here"),
    }
    said = [f"{counts[kind]} {words[kind][counts[kind] > 1]}" for kind in words if counts[kind]]
    if published > known:
        said.append(f"{published - known} {'was' if published - known == 1 else 'were'} not measured here")
    of = "the one published cost" if published == 1 else f"of {published} published costs,"
    return f"{HEADS[verdict(judged)]}: {of} {', '.join(said).removeprefix('1 ') if published == 1 else ', '.join(said)}"


def compared(judged: Judged, published_on: str, here: str) -> str:
    """What was compared with what, as a sentence."""
    kinds = "; ".join(dict.fromkeys(each.figure for each in judged.figures if each.published is not None))
    where = f" on {here}" if here else ""
    return f"Compared: {kinds or 'nothing'}, encrypted ÷ plain; published on {published_on}, measured here{where}."
