"""agreement: published costs beside our intervals -> whether a study was replicated, by a criterion that is stated. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from ciphercost.model import StudyFigure

Agreement = Literal["within", "direction", "differs", "open", ""]
Verdict = Literal["replicated", "partly", "not", "open", ""]

SHORT: dict[Agreement, str] = {
    "within": "within interval",
    "direction": "same direction",
    "differs": "differs",
    "open": "not resolved",
    "": "-",
}
HEADS: dict[Verdict, str] = {
    "replicated": "Replicated",
    "partly": "Partly replicated",
    "not": "Not replicated",
    "open": "Not resolved",
    "": "Not judged",
}
CRITERION = (
    "Criterion: a published cost (encrypted ÷ plain) is replicated where it lies within the 95 % interval of our method and that interval "
    "excludes no cost; where both lie on the same side of no cost, only the direction is. The published figures come from other hardware "
    "and have no confidence interval: another size does not refute them."
)


def agreement(figure: StudyFigure) -> Agreement:
    """Of one cost; empty where it was not published or our method has no interval of it."""
    if figure.published is None or figure.ours is None or figure.low is None or figure.high is None:
        return ""
    holds = figure.low <= figure.published <= figure.high
    if figure.low <= 1 <= figure.high:
        return "open" if holds else "differs"
    if holds:
        return "within"
    return "direction" if (figure.published > 1) == (figure.low > 1) and figure.published != 1 else "differs"


def verdict(figures: Sequence[StudyFigure]) -> Verdict:
    """Of all published costs of a study together."""
    found = {each for each in map(agreement, figures) if each}
    if not found:
        return ""
    if found == {"within"}:
        return "replicated"
    if found == {"open"}:
        return "open"
    return "partly" if found & {"within", "direction"} else "not"


def counted(figures: Sequence[StudyFigure]) -> str:
    """`Partly replicated: of 4 published costs 1 lies within our 95 % interval, 3 have its direction but another size`."""
    counts = Counter(map(agreement, figures))
    published = sum(each.published is not None for each in figures)
    judged = sum(count for kind, count in counts.items() if kind)
    if not judged:
        return f"{HEADS['']}: this run has no 95 % interval of any published cost"
    one = ("lies", "has", "differs"), ("lie", "have", "differ")
    said = []
    for kind, words in (
        ("within", "{0} within our 95 % interval"),
        ("direction", "{1} its direction but another size"),
        ("differs", "{2} from it in direction, or where it finds no cost"),
        ("open", "can't be resolved: the interval holds both it and no cost"),
    ):
        if count := counts[kind]:
            said.append(f"{count} {words.format(*one[count > 1])}")
    if published > judged:
        said.append(f"{published - judged} {'was' if published - judged == 1 else 'were'} not measured")
    return f"{HEADS[verdict(figures)]}: of {published} published cost{'s' * (published != 1)} {', '.join(said)}"


def sentence(figures: Sequence[StudyFigure], published_on: str, here: str) -> str:
    """The same as a sentence that says what was compared."""
    kinds = ", ".join(dict.fromkeys(each.figure for each in figures if each.published is not None))
    where = f" on {here}" if here else ""
    return f"{counted(figures)}. Compared: {kinds or 'nothing'}, published on {published_on}, measured here{where}."
