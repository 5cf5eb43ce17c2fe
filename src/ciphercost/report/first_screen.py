"""What a reader with ten seconds must see of a run: the answer, what it means elsewhere, what it protects and what limits it. Pure.

Terminal, Markdown and page render it before anything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ciphercost.estimate import plausible, unit_prediction
from ciphercost.model.constrained_types import BY_SOCKET
from ciphercost.model.result import Cell, Part, Result
from ciphercost.report import disturbed
from ciphercost.report.words import added_sentences, added_text, cell_text, unit_cost_text, verdict_text

LIMITING = (
    BY_SOCKET,
    "paced",
    "link-overflowed",
    "server-closes",
    "not-resumed",
    "not-early",
    "groups-differ",
    "rows-differ",
    "cost-changed",
    "aes-hidden",
    "cpu-crypto-unproven",
    "server-not-verified",
    "security-level-lowered",
)
"""Warnings that can change the conclusion, the gravest first. The others say how precise a figure is."""
MOST_LIMITS = 2
PREDICT = "ciphercost predict latest --rate 2000/s --cpu 1ms"
MOST_PROTECTIONS = 2


class Further(NamedTuple):
    """A command, and what it is for: `with your figures`."""

    words: str
    command: str

    @property
    def line(self) -> str:
        return f"Next, {self.words}: {self.command}"


class FirstScreen(NamedTuple):
    """Sentences, in reading order."""

    disturbed: str
    """Set if other processes disturbed the run."""
    answer: list[str]
    """The first is the answer; for several mechanisms each has its own."""
    elsewhere: str
    """Whether it is worth worrying about: what the same addition means for operations of other lengths. Empty where that is unknown."""
    behind: int
    """After how many of the answers it stands: behind that of the parts, or behind all."""
    protects: list[str]
    basis: str
    """Whether it can be trusted: what was proven, and what the intervals contain."""
    limits: list[str]
    further: Further | None
    """What answers the reader's next question."""


def in_order(screen: FirstScreen) -> list[str]:
    """The answers, with what the first of them about TLS means elsewhere behind it, then what each mechanism protects."""
    first, others = screen.answer[: screen.behind], screen.answer[screen.behind :]
    return [each for each in (*first, screen.elsewhere, *others, *screen.protects) if each]


def of(result: Result) -> FirstScreen:
    """The first screen of a run."""
    added = carried(result)
    answer = verdict_text.sentences(result)
    by_parts = [added_sentences.by_parts(each) for each in result.parts if each.end == "server"]
    leads = (place for place, said in enumerate(answer, start=1) if any(each in said for each in by_parts))
    return FirstScreen(
        disturbed=disturbed.warning(result.cells),
        answer=answer,
        behind=next(leads, len(answer)),
        elsewhere=added_sentences.by_the_second(result.costs) if added is None else added_sentences.elsewhere(added),
        protects=list(protects(result.cells)),
        basis=basis(result.cells),
        limits=list(limits(result.cells)),
        further=Further("with your figures", PREDICT) if added is not None else further(result),
    )


def further(result: Result) -> Further | None:
    """What to do next where no addition carries over to every operation; None: nothing was measured."""
    for each in result.costs:
        if unit_cost_text.sure(each) and (options := unit_prediction.asks(each.unit)):
            return Further("with your figures", f"{PREDICT} {options[0]} 100/s")
    for cell in result.cells:
        if cell.overhead and cell.imported is None and not cell_text.is_control(cell):
            target = f"ciphercost run {cell.engine}:{cell.mechanism}"
            if cell.engine == "url":
                return None
            if cell.layer == "transit":
                return Further("what carries over to your server", f"{target} --split")
            return Further("with your own statements", f"{target} --sql FILE")
    return None


def carried(result: Result) -> Part | None:
    """What encryption in transit adds to each operation, µs, whatever the operation costs; None: unknown, or surely below 0.

    At rest and in columns it depends on the pages and values that an operation handles, so it does not carry over to other operations.
    """
    if len({(cell.engine, cell.mechanism) for cell in result.cells if cell.layer == "transit"}) != 1:
        return None
    for each in result.parts:
        if each.end == "server" and added_sentences.carry_over(each, result.cells):
            return each.request_us
    own = [found for cell in result.cells if cell.layer == "transit" and (found := added_text.of(cell))]
    return added_text.part(own[0].added) if len(own) == 1 and own[0].added.high > 0 else None


def protects(cells: Sequence[Cell]) -> Iterator[str]:
    """`tls protects data on the network from being read or changed …`; of several mechanisms without what they don't protect."""
    said: dict[str, str] = {}
    for cell in cells:
        if cell.overhead and cell.protects and cell.imported is None and not cell_text.is_control(cell):
            said.setdefault(cell.mechanism, cell.protects)
    if 1 <= len(said) <= MOST_PROTECTIONS:
        texts = said.items() if len(said) == 1 else [(name, text.partition(";")[0]) for name, text in said.items()]
        yield f"{'; '.join(f'{mechanism} protects {text}' for mechanism, text in texts)}."
    elif said:
        yield f"What each of the {len(said)} mechanisms protects is in a table below."


def basis(cells: Sequence[Cell]) -> str:
    """Whether the answer can be trusted: what was proven, what the intervals contain, and whether a warning changes it."""
    known = [cell for cell in cells if cell.overhead]
    if not known:
        return ""
    if any(cell.imported for cell in known):
        return f"Trust: {cell_text.imported_basis(known)}. Neither arm was proven, and the runs are not paired."
    if any(cell.status == "unproven" for cell in known):
        proven = "none. NOT PROVEN that encryption was on in one arm and off in the other"
    elif all(cell.layer == "control" for cell in known):
        proven = "these are controls, so neither arm is encrypted"
    else:
        proven = "proven on in one arm, off in the other"
        if disturbed.warning(cells):
            proven += ", but other processes disturbed the run"
        elif any(map(plausible.is_no_cost, known)):
            proven += ", but some figures are not its cost: see above"
    sessions = max(cell.sessions for cell in known)
    if any(cell.mode == "quick" for cell in known) and sessions == 1:
        covered = "A restart may change the figures."
    else:
        covered = f"The intervals cover {sessions} starts of the server."
    count = sum(len(cell.warnings) for cell in cells)
    if not count or next(limits(cells), ""):
        return f"Trust: {proven}. {covered}"
    one = "1 warning below is on a single figure" if count == 1 else f"{count} warnings below are on single figures"
    return f"Trust: {proven}. {covered} {one}."


def limits(cells: Sequence[Cell]) -> Iterator[str]:
    """Warnings that can change the conclusion, the gravest first, each once."""
    found = sorted(
        (each for cell in cells for each in cell.warnings if each.code in LIMITING),
        key=lambda each: LIMITING.index(each.code),
    )
    texts = list({each.code: each.text for each in reversed(found)}.items())[::-1]
    yield from (text.partition("; ")[0] for _, text in texts[:MOST_LIMITS])
    if len(texts) > MOST_LIMITS:
        yield f"{len(texts) - MOST_LIMITS} more warnings are below"
