"""Key rotation: what a mechanism does to give its data a new key, the record, the result. No logic."""

from __future__ import annotations

from typing import Literal

import msgspec

from ciphercost.model.constrained_types import Amount, Count, Ordinal
from ciphercost.model.estimate import Estimate, Part

ROTATE_KEY = "rotate-key"
"""The workload that asks for rotations by itself."""
Reach = Literal["keys", "data"]
"""Whether a rotation encrypts the keys of the data again, so that it takes equally long for any size, or the data themselves."""


class KeyRotationSlice(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of `rotation.jsonl`: one rotation in the encrypted arm. One that fails ends its cell."""

    cell: Count
    session: Ordinal
    number: Count
    """0: the first of a session, discarded."""
    reach: Reach
    how: str
    """The statement, without the key."""
    seconds: Amount = 0.0
    bytes: Count = 0
    """Size of the files of the data that were encrypted again; 0: only keys were."""
    quiet: Amount = 0.0
    """Operations per second of running traffic before the rotation; 0: there was none."""
    meanwhile: Amount = 0.0
    """The same during the rotation, over `meanwhile_s` seconds from its start: in slices that end before it, or in the first."""
    meanwhile_s: Amount = 0.0


class KeyRotation(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a new key takes in the encrypted arm; there is nothing to compare with in the plain one."""

    reach: Reach
    how: str
    rotations: int
    """Those that count."""
    sessions: int
    seconds: Part
    method: str
    """Of the intervals."""
    bytes: int = 0
    """Size of the data that one rotation encrypted again."""
    seconds_per_gb: Part | None = None
    """None: only keys were encrypted again."""
    quiet: float = 0.0
    """Operations per second of running traffic without a rotation, typically; 0: there was none."""
    meanwhile: Estimate | None = None
    """Operations per second during the rotation ÷ before it. None: there was no traffic."""
    meanwhile_s: float = 0.0
    """Seconds that `meanwhile` covers, typically."""
