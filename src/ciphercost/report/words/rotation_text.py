"""Text on rotations of keys. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ciphercost.estimate.notation import interval, number, worded
from ciphercost.model.key_rotation import KeyRotation
from ciphercost.model.result import Cell, Part

RATE = ("more", "fewer")
SHORT_S = 0.1
MOST_SENTENCES = 3
"""Cells that the first screen speaks of at most."""


def lines(of: KeyRotation) -> Iterator[str]:
    """How long a new key takes, what it reaches, and what it costs running traffic."""
    text = f"{_level(of.seconds, 's')} for {of.how}"
    if of.seconds_per_gb is not None:
        text += f", which encrypts {of.bytes / 1e6:,.0f} MB again: {_level(of.seconds_per_gb, 's per GB')}"
    elif of.reach == "keys":
        text += ", which encrypts only the keys of the data again, so it takes as long for any size"
    yield text
    if of.meanwhile is not None:
        yield (
            f"running reads of one client, meanwhile: {worded(of.meanwhile, *RATE)} operations/s (95 % CI {interval(of.meanwhile, *RATE)}), "
            f"{number(of.quiet)} → {number(of.quiet * of.meanwhile.ratio)} /s over the {number(of.meanwhile_s)} s from its start"
        )
    yield (
        f"the encrypted arm alone, on a fresh server; {of.rotations} rotations in {of.sessions} session{'s' * (of.sessions != 1)} "
        f"({of.method})"
    )


def sentences(cells: Sequence[Cell]) -> Iterator[str]:
    """What the first screen says."""
    told = [cell for cell in cells if cell.key_rotation is not None][:MOST_SENTENCES]
    for cell in told:
        assert cell.key_rotation is not None
        yield (f"{cell.engine}: " if len(told) > 1 else "") + _sentence(cell.key_rotation)


def _sentence(of: KeyRotation) -> str:
    per = f", or {_level(of.seconds_per_gb, 's per GB')}" if of.seconds_per_gb is not None else ""
    text = f"A new key takes {_level(of.seconds, 's')}{per}"
    if of.meanwhile is not None:
        text += (
            f"; meanwhile a client does {worded(of.meanwhile, *RATE)} reads/s (95 % CI {interval(of.meanwhile, *RATE)})"
        )
    return f"{text}."


def _level(of: Part, unit: str) -> str:
    """`1.23 s (95 % CI 1.20–1.26)`; below a tenth of a second in ms."""
    scale, unit = (1e3, f"m{unit}") if of.value < SHORT_S else (1, unit)
    return f"{number(scale * of.value)} {unit} (95 % CI {number(scale * of.low)}–{number(scale * of.high)})"
