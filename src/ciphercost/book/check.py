"""Checks a record before it enters the book: its shape, its hashes, and that its result follows from its slices. Reads only the record."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from ciphercost.model import checked
from ciphercost.model.errors import UsageError
from ciphercost.model.facts import RunFacts
from ciphercost.model.result import Cell, Result
from ciphercost.model.run_directory import ResultDecoder, hashes, is_id, read_facts
from ciphercost.model.version import VERSION
from ciphercost.runs import conclude

Hashed = Literal["complete", "abridged", "none"]
LABELS: dict[Hashed, str] = {
    "complete": "hashes match",
    "abridged": "hashes match; abridged",
    "none": "no hash",
}
NEEDED = ("plan.json", "slices.jsonl", "proofs.json", "result.json")
WORDS = [
    "engine",
    "version",
    "layer",
    "mechanism",
    "workload",
    "clients",
    "status",
    "mode",
    "verdict",
    "regime",
    "factors",
    "sessions",
    "blocks",
    "conditions",
]
"""Fields of a cell that must be the same in result.json, beside its figures."""
FIGURES = ["overhead", "arms", "added", "storage", "stored", "floor", "enciphered", "handshakes"]
TOLERANCE = 1e-6
"""Largest difference of two figures, as a share: another build of a numeric library rounds otherwise."""


class Checked(NamedTuple):
    """A record that passed."""

    facts: RunFacts
    result: Result
    """Estimated again from the slices. Pages print this, and never what result.json says."""
    hashed: Hashed

    @property
    def label(self) -> str:
        return LABELS[self.hashed]


def check(directory: Path) -> Checked:
    """Check a record. Raises UsageError with the reason if it may not enter the book."""
    for name in NEEDED:
        if not (directory / name).is_file():
            raise UsageError(f"its {name} is missing" + "; the run did not end" * (name == "result.json"))
    facts = read_facts(directory)
    if not is_id(facts.id):  # it becomes the name of files
        raise UsageError(f"its id {facts.id[:80]!r} is not one that ciphercost gives to a run")
    if (directory / "imported.json").is_file():
        raise UsageError("it holds figures that other tools printed, without slices to estimate them from")
    if not facts.ended:
        raise UsageError("the run did not end; `ciphercost resume RUN` continues it")
    hashed = _hashes(directory, facts)
    claimed = _result(directory / "result.json")
    result = conclude.result_of(directory)
    if differs := next(differences(claimed, result), ""):
        other = facts.tool.get("version", "unknown")
        versions = f" (recorded by version {other}, checked by {VERSION})" if other != VERSION else ""
        raise UsageError(f"result.json does not follow from the slices: {differs}{versions}")
    return Checked(facts, result, hashed)


def _result(path: Path) -> Result:
    return checked.decode(checked.read(path), ResultDecoder(), path.name)


def _hashes(directory: Path, facts: RunFacts) -> Hashed:
    """Whether the files are those that the plan's hashes are of. Raises UsageError if one is not."""
    if not facts.hashes:
        return "none"
    actual = hashes(directory)
    for name in sorted(facts.hashes.keys() | actual.keys()):
        if name not in actual:
            raise UsageError(f"its {name} is missing, but plan.json has a hash of it")
        if facts.hashes.get(name) != actual[name]:
            raise UsageError(f"{name} was changed after the run: its SHA-256 is not the one in plan.json")
    return "abridged" if facts.full_hashes else "complete"


def differences(claimed: Result, estimated: Result) -> Iterator[str]:
    """What result.json claims and the slices do not give, in words. Pure."""
    for name in ("id", "seed", "started", "machine"):
        if getattr(claimed, name) != getattr(estimated, name):
            yield f"`{name}` is not that of plan.json"
    if len(claimed.cells) != len(estimated.cells):
        yield f"it has {len(claimed.cells)} cells, and the record {len(estimated.cells)}"
        return
    for number, (one, other) in enumerate(zip(claimed.cells, estimated.cells, strict=True), start=1):
        yield from (f"cell {number}, {difference}" for difference in _cell(one, other))


def _cell(claimed: Cell, estimated: Cell) -> Iterator[str]:
    for name in WORDS:
        if getattr(claimed, name) != getattr(estimated, name):
            yield f"`{name}` is {getattr(claimed, name)!r} in result.json, and {getattr(estimated, name)!r} from the record"
    for name in FIGURES:
        yield from _values(name, *(msgspec.to_builtins(getattr(cell, name)) for cell in (claimed, estimated)))


def _values(place: str, one: Any, other: Any) -> Iterator[str]:
    """Compare two figures, or all in two mappings or lists."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for name in sorted(one.keys() | other.keys()):
            yield from _values(f"{place}.{name}", one.get(name), other.get(name))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        yield from (difference for pair in _pairs(one, other) for difference in _values(place, *pair))
    elif isinstance(one, int | float) and isinstance(other, int | float):
        if not math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=1e-12):
            yield f"`{place}` is {one:.6g} in result.json, and {other:.6g} from the slices"
    elif not isinstance(one, str) and one != other:
        yield f"`{place}` is {_shown(one)} in result.json, and {_shown(other)} from the slices"


def _pairs(one: Sequence[Any], other: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(one, other, strict=True)


def _shown(value: Any) -> str:
    return "absent" if value is None else "another kind of value" if isinstance(value, dict | list) else repr(value)
