"""What encryption adds to each unit of work in two runs: an operation, a byte, a connection, a page, a value. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ciphercost.estimate import added_together
from ciphercost.estimate.least_squares import DOUBTFUL
from ciphercost.model.result import Part, Result
from ciphercost.report.comparison_types import UnitChange
from ciphercost.report.words import added_sentences, unit_cost_text

Key = tuple[str, str, str, str]
"""Engine, mechanism, unit, whose time."""


def changes(reference: Result, other: Result, run: int) -> Iterator[UnitChange]:
    """The units that both runs tell, each once."""
    known, theirs = units(reference), units(other)
    for key, part in known.items():
        if key in theirs:
            engine, mechanism, unit, whose = key
            difference = added_together.difference(part, theirs[key])
            yield UnitChange(run, engine, mechanism, unit, whose, part, theirs[key], difference)


def units(of: Result) -> Mapping[Key, Part]:
    """What a run adds to each unit, µs, where a fit explains its cells. A unit of which the run tells two costs is left out."""
    told = list(_units(of))
    count = Counter(key for key, _ in told)
    return {key: part for key, part in told if count[key] == 1}


def _units(of: Result) -> Iterator[tuple[Key, Part]]:
    for parts in of.parts:
        if added_sentences.carry_over(parts, of.cells):
            byte = added_sentences.byte_us(parts)
            for unit, part in (("operation", parts.request_us), ("byte", byte), ("new connection", parts.handshake_us)):
                yield (parts.engine, parts.mechanism, unit, f"{parts.end} CPU"), part
    for cost in of.costs:
        if cost.worst <= DOUBTFUL:
            yield (cost.engine, cost.mechanism, unit_cost_text.unit(cost), unit_cost_text.whose(cost)), cost.us
