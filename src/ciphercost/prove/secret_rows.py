"""secret_rows: what the stored values of the user's own secret columns reveal, counted by the server. No value leaves it. I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from ciphercost.host import deadlines
from ciphercost.load.program import SecretColumn
from ciphercost.model.slices import Finding
from ciphercost.provision.columns import ArmView

RANDOM = "iv=random, or a mechanism that stores equal values differently"


class Counts(msgspec.Struct, frozen=True):
    """What one arm stores in one column."""

    rows: int
    values: int
    """Rows with a value: the others are NULL."""
    distinct: int
    lengths: int
    """Different lengths in bytes."""
    beginnings: int
    """Different beginnings of 16 bytes."""
    most: int
    """Rows that have the most frequent value."""


def findings(plain: ArmView, encrypted: ArmView, columns: Iterable[SecretColumn]) -> list[Finding]:
    """What the encrypted arm's columns reveal. Raises AgentError."""
    all_findings: list[Finding] = []
    for column in columns:
        stored = _counts(encrypted, column, column.name)
        texts = None if plain.encrypts else _counts(plain, column, column.name)
        entries = _counts(encrypted, column, column.blind) if column.blind else None
        all_findings += judged(column, stored, texts, entries, alike=encrypted.secrets.codec.alike)
    return all_findings


def _counts(arm_view: ArmView, column: SecretColumn, name: str) -> Counts:
    asked = (
        f"SELECT count(*), count({name}), count(DISTINCT {name}), count(DISTINCT {column.bytes_length.format(name)}), "
        f"count(DISTINCT {column.beginning.format(name)}), (SELECT max(n) FROM (SELECT count(*) AS n FROM {column.table} "
        f"WHERE {name} IS NOT NULL GROUP BY {name}) AS g) FROM {column.table}"
    )
    row = arm_view.agent.query(arm_view.name, asked, timeout=deadlines.check())[0]
    return Counts(*(int(count or 0) for count in row))


def judged(
    column: SecretColumn, stored: Counts, texts: Counts | None, entries: Counts | None, *, alike: bool
) -> Iterator[Finding]:
    """What these counts show of a column. `texts`: of the values themselves, None: unknown; `entries`: of its blind index, None: it has
    none; `alike`: the mechanism stores equal values alike. Pure.
    """
    title = column.title
    if stored.rows > stored.values:
        text = f"column {title}: {stored.rows - stored.values:,} of {stored.rows:,} rows store NULL: a reader sees which have no value"
        yield Finding("absence-shows", "low", text, "a value that stands for none, sealed as the others")
    if stored.distinct < stored.values:
        text = (
            f"column {title}: {stored.values:,} values are stored as {stored.distinct:,} different ones: a reader sees which rows have equal "
            f"values, and that the most frequent is in {_share(stored)} of them"
        )
        yield Finding("equal-rows-show", "medium", text, RANDOM)
    if alike and stored.beginnings < stored.distinct:
        text = (
            f"column {title}: its {stored.distinct:,} different values have {stored.beginnings:,} different beginnings of 16 bytes as stored: a "
            "reader sees which begin alike"
        )
        yield Finding("beginnings-show", "medium", text, RANDOM)
    if stored.lengths > 1:
        of = f" (the values have {texts.lengths:,})" if texts else ""
        exactly = (
            "how long each value is" if texts and texts.lengths <= stored.lengths else "about how long each value is"
        )
        text = f"column {title}: stored values have {stored.lengths:,} different lengths{of}: a reader sees {exactly}"
        yield Finding("length-shows", "low", text, "padding all values to one length before they are sealed")
    if entries is not None:
        yield from _of_index(column, entries, texts)


def _of_index(column: SecretColumn, entries: Counts, texts: Counts | None) -> Iterator[Finding]:
    title = f"blind index of column {column.title} ({column.bits} bits)"
    shared = texts.distinct - entries.distinct if texts else 0
    of = f" of {texts.distinct:,} different values" if texts else ""
    if entries.distinct < entries.values:
        text = (
            f"{title}: {entries.values:,} values have {entries.distinct:,} different entries{of}: a reader sees which rows "
            f"{'have' if texts and not shared else 'may have'} equal values, and that the most frequent entry is in {_share(entries)} of them"
        )
        yield Finding(
            "blind-index-shows",
            "medium",
            text,
            "fewer bits, so that more values share an entry; search=scan shows none",
        )
    if shared:
        text = (
            f"{title}: {texts.distinct if texts else 0:,} different values have {entries.distinct:,} entries: a search also decrypts rows with "
            "another value, and leaves them out"
        )
        yield Finding("blind-index-collides", "info", text, "more bits")


def _share(counts: Counts) -> str:
    return f"{counts.most:,}"
