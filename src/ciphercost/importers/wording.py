"""wording: how an import reports which files it read, and which it left out. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ciphercost.importers.input_files import Source
from ciphercost.model.imported import Reading
from ciphercost.model.result import ImportedFile

FEW_LEFT, FEW_NAMED = 3, 3
"""Files left out that are named one by one, each with its reason; of more, so many of each reason."""
MOST_SAID = 12
"""Files that are told one by one of how they were read."""


def left_out(files: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """What is to be said of files (name, kind of reason, reason in full) that were left out: of many, a line for each kind. Pure."""
    kinds: dict[str, list[tuple[str, str]]] = {}
    for name, kind, reason in files:
        kinds.setdefault(kind, []).append((name, reason))
    for kind, own in kinds.items():
        if len(files) <= FEW_LEFT or len(own) == 1:
            yield from (f"left out: {reason}" for _, reason in own)
        else:
            names = ", ".join(name for name, _ in own[:FEW_NAMED]) + (" …" if len(own) > FEW_NAMED else "")
            yield f"left out: {count(len(own), 'file')}, {kind}: {names}"


def read_as(told: list[tuple[Source, ImportedFile, list[Reading]]]) -> Iterator[str]:
    """As what each file was read; of many, how many of each kind. Pure."""
    alike: dict[str, list[tuple[Source, int]]] = {}
    for source, file, readings in told:
        alike.setdefault(f"{' and '.join(file.arms)} by {file.how} ({file.format})", []).append((source, len(readings)))
    for what, files in alike.items():
        if len(told) <= MOST_SAID:
            yield from (f"{source.label}: {count(runs, 'run')}, {what}" for source, runs in files)
        else:
            yield f"{count(len(files), 'file')}, {count(sum(runs for _, runs in files), 'run')}, {what}: {files[0][0].label} …"


def count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
