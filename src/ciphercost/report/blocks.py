"""What a report is made of, whatever it reports: blocks in reading order, and documents of such blocks. No logic.

Builders make blocks (`document` of a cell, `comparison_document`, `trend_document`, `machines_document`), renderers lay them out
(`renderers/terminal`, `renderers/md`, `formats/html`). A builder decides what is said and in which order. A renderer decides how it looks, and
may leave out what another block of the same document says too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from ciphercost.model.slices import Finding, Proof

if TYPE_CHECKING:
    from ciphercost.report.plots import Plot

# ── of a cell ─────────────────────────────────────────────────────────────────────────────────────────────────────────

Topic = Literal[
    "no ratio", "opening", "prediction", "control", "reference", "capacity", "money", "limit", "objective", "verdict",
    "proof", "agents", "hop", "link", "log", "retries", "statements", "rotation", "client", "storm", "memory", "replication",
]  # fmt: skip
"""What a note on a cell is about."""
TopicOfRuns = Literal["added", "change", "cause", "differs", "left out", "between", "covers", "verdict"]
"""What a note on several runs or machines is about."""


class Standing(NamedTuple):
    """That a cell is not ok: why it has no figures, or why its figures are incomplete."""

    word: str
    """`FAILED`."""
    reason: str
    failed: list[Proof]
    """Those that the reason does not tell."""


class Figures(NamedTuple):
    """Lines of figures."""

    of: Literal["cost", "storage", "stored", "storm", "memory", "replication", "change", "level"]
    rows: list[tuple[str, str, str, str]]
    """(label, cost of encryption, 95 % interval, levels of both arms)"""
    head: tuple[str, str, str, str] = ("", "", "", "")
    """What the rows are, and their columns. A cell's costs name only the first and the last."""


class Note(NamedTuple):
    """A sentence about the cell."""

    topic: Topic | TopicOfRuns
    text: str
    label: str = ""
    """What stands before the text: `verdict`."""

    def __str__(self) -> str:
        return f"{self.label}: {self.text}" if self.label else self.text


class Curve(NamedTuple):
    """The load–latency curve of a cell with an objective."""

    head: tuple[str, str, str]
    rows: list[tuple[str, str, str]]


class Findings(NamedTuple):
    """What the mechanism leaves unprotected, the worst first."""

    findings: list[Finding]


class Warnings(NamedTuple):
    """Reasons to doubt the figures."""

    texts: list[str]


# ── of several runs ───────────────────────────────────────────────────────────────────────────────────────────────────


class Text(NamedTuple):
    """A paragraph."""

    text: str


class Alarm(NamedTuple):
    """A warning that may turn the answer over."""

    title: str
    lines: list[str]


class Item(NamedTuple):
    """One line of a list."""

    text: str
    details: str = ""
    """What only reports with room for it add."""
    sign: str = ""
    """An outcome as a sign, for reports that have signs."""


class Items(NamedTuple):
    """A list."""

    items: list[Item]
    summary: bool = False
    """Whether the sections below say the same; a report that shows these open leaves it out."""


class Table(NamedTuple):
    """A table of texts."""

    title: str
    head: tuple[str, ...]
    rows: list[tuple[str, ...]]
    kind: Literal["summary", "figures", "list"] = "list"
    """summary: of the sections below, which say the same; figures: each row a figure, its interval, what stands beside it, and notes; list: facts."""
    names: int = 1
    """First columns, which name a row."""
    notes: int = 0
    """Last columns, which a narrow report prints below a row."""
    narrow: int = 0
    """First columns that a narrow report has, because another block says what the others hold; 0: all."""
    right: frozenset[int] = frozenset()
    """Columns of figures."""
    minor: bool = False
    """Whether it is folded away."""
    many: str = ""
    """What a narrow report prints of more rows than it shows."""


class Plotted(NamedTuple):
    """A plot; a report without pictures has its table."""

    draw: Callable[[], Plot]
    table: Table
    legend: Sequence[tuple[str, str]] = ()
    """(mark in the plot, what it means)."""


class Section(NamedTuple):
    """Blocks below a heading."""

    title: str
    blocks: Sequence[Block]
    differs: str = ""
    """What the heading leaves open: the settings that are compared."""
    folded: bool = True
    """Whether a comment folds it."""
    background: bool = False
    """Whether a narrow report leaves it out."""


Block = Standing | Figures | Note | Curve | Findings | Warnings | Text | Alarm | Items | Table | Plotted | Section
B = TypeVar("B", bound=Block)


class Document(NamedTuple):
    """A whole report on several runs or machines."""

    kind: str
    """`trend`: what stands above the answer."""
    title: str
    answer: str
    blocks: list[Block]
    sign: str = ""
    """The outcome as a sign."""
    warning: str = ""
    """Above the answer: other processes disturbed a run."""
    command: str = ""
    """That which repeats it."""
    ended: str = ""


def only(kind: type[B], blocks: Sequence[Block]) -> list[B]:
    """The blocks of one kind."""
    return [block for block in blocks if isinstance(block, kind)]


def notes(blocks: Sequence[Block], *topics: Topic) -> list[Note]:
    """The notes on these topics, in the order of the document."""
    return [note for note in only(Note, blocks) if note.topic in topics]


def text_on(blocks: Sequence[Block], topic: Topic) -> str:
    """The text of the only note on this topic; empty if there is none."""
    return "".join(note.text for note in notes(blocks, topic))
