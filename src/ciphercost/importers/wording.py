"""Messages about the files that an import read or skipped. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ciphercost.importers.input_files import Source
from ciphercost.model.imported import Reading
from ciphercost.model.result import ImportedFile

FEW_LEFT, FEW_NAMED = 3, 3
"""Up to this many skipped files are listed one by one with their reasons; of more, this many names per kind of reason.
"""
MOST_SAID = 12
"""Most read files that are listed one by one."""


def left_out(files: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """Yield messages about skipped files (name, kind of reason, full reason); for many files, one line per kind. Pure."""
    kinds: dict[str, list[tuple[str, str]]] = {}
    for name, kind, reason in files:
        kinds.setdefault(kind, []).append((name, reason))
    for kind, skipped in kinds.items():
        if len(files) <= FEW_LEFT or len(skipped) == 1:
            yield from (f"skipped: {reason}" for _, reason in skipped)
        else:
            names = ", ".join(name for name, _ in skipped[:FEW_NAMED]) + (" …" if len(skipped) > FEW_NAMED else "")
            yield f"skipped: {count(len(skipped), 'file')}, {kind}: {names}"


def read_as(told: list[tuple[Source, ImportedFile, list[Reading]]]) -> Iterator[str]:
    """Yield how each file was read; for many files, how many of each kind. Pure."""
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
