"""Reads other tools' files into one record of runs, each with its arm. Reads files; no statistics.

Each step refuses what is ambiguous; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ciphercost.importers import spreadsheet
from ciphercost.importers.assign_arms import arms
from ciphercost.importers.choices import Choices
from ciphercost.importers.headings import WARM_UP
from ciphercost.importers.input_files import Source, identity, sources_in
from ciphercost.importers.join_runs import join_runs
from ciphercost.importers.read_file import Unknown, read
from ciphercost.importers.wording import left_out, read_as
from ciphercost.model.constrained_types import FORMAT
from ciphercost.model.errors import UsageError
from ciphercost.model.imported import ImportedRecord, Reading
from ciphercost.model.result import ImportedFile, Warning_
from ciphercost.model.spec import Arm


def gather(files: Sequence[Path], wanted: Choices) -> tuple[ImportedRecord, list[str]]:
    """Return (the imported record, messages about how the files were read). Raises UsageError naming file and line."""
    given: tuple[tuple[Sequence[Path], Arm | None], ...] = (
        (files, wanted.only),
        (wanted.plain, "plain"),
        (wanted.encrypted, "encrypted"),
    )
    sources = [source for paths, arm in given for path in paths for source in sources_in(path, arm)]
    if sources:
        # A folder that contains all files says nothing about any of them.
        common = set.intersection(*(set(source.folders) for source in sources))
        sources = [
            source._replace(folders=tuple(folder for folder in source.folders if folder not in common))
            for source in sources
        ]
    if not sources:
        raise UsageError("nothing to import: name files or a folder of them, e.g. `ciphercost import plain/ tls/`")
    messages: list[str] = []
    left: list[tuple[str, str, str]] = []
    kept: list[tuple[Source, ImportedFile, list[Reading]]] = []
    seen: dict[tuple[int, int], Source] = {}
    alike: dict[str, Source] = {}
    for source in sources:
        if other := seen.get(identity(source.path)):
            if other.arm != source.arm:
                raise UsageError(f"{source.label} and {other.label} are the same file, given for both arms")
            left.append((source.label, "the same file as another", f"{source.label} is the same file as {other.label}"))
            continue
        if not source.named and WARM_UP.search(source.path.stem):
            text = f"{source.label} is a warm-up, as its name says; to import it, name the file itself"
            left.append((source.label, "warm-ups, as their names say", text))
            continue
        try:
            reader = spreadsheet.read if spreadsheet.is_one(source.path) else read
            name, readings, digest = reader(source.path, list(wanted.columns), header=wanted.header)
        except Unknown as error:
            if source.named:
                raise UsageError(str(error)) from None
            left.append((source.label, error.kind, str(error)))
            continue
        seen[identity(source.path)] = source
        if other := alike.get(digest):
            text = (
                f"it has the same content as {other.label}, but such coarse figures that two runs may share them, so it is counted; "
                "remove it if it is a copy"
            )
            readings[0].notes.append(Warning_("same-content", text))
            messages.append(f"{source.label} has the same content as {other.label}; copies of a run count once")
        alike.setdefault(digest, source)
        kept.append((source, ImportedFile(source.label, name, digest, [], ""), readings))
    if not kept:
        reasons = "\n".join(left_out(left))
        raise UsageError(f"none of these files is a result that ciphercost can import:\n{reasons}")
    messages += left_out(left)
    told = arms(kept, wanted)
    messages += read_as(told)
    readings = join_runs(told)
    return ImportedRecord(FORMAT, [file for _, file, _ in told], readings), messages
