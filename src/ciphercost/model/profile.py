"""CPU profiles: the record of a run's samples, and what the result says of them. No logic."""

from __future__ import annotations

from typing import Literal

import msgspec

from ciphercost.model.constrained_types import Amount, Count, Ordinal, Positive
from ciphercost.model.spec import Arm

End = Literal["server", "client", "hop"]
"""Whose CPU time a sample is. For an embedded database the client's process is the server too."""
ENDS: tuple[End, ...] = ("server", "client", "hop")

SEPARATOR = "`"
"""Between library and symbol in a frame's text, as in DTrace's folded stacks."""
KERNEL = "kernel"
"""The library of the kernel's frames."""
NAMELESS = "?"
"""The symbol of a function that its library does not name."""


class Stack(msgspec.Struct, array_like=True, frozen=True):
    """Samples with the same stack, in the shape of one folded line."""

    count: Count
    end: End
    process: str
    frames: list[Count]
    """Indices in the slice's `frames`, outermost first."""


class ProfileSlice(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of `profile.jsonl`: the samples of one slice of phase `profile`."""

    cell: Count
    session: Ordinal
    block: Count
    order: str
    position: Count
    """1 to 4, as in `slices.jsonl`."""
    arm: Arm
    period_ns: Positive
    """CPU time that one sample stands for."""
    frames: list[str]
    """`LIBRARY`SYMBOL`, each text once."""
    stacks: list[Stack]
    kernel: bool = True
    """Whether samples in the kernel could be taken. If not, its time is the rest of the CPU time."""
    whole: dict[End, Count] = {}
    """Samples whose stack reaches the start of its thread, by end."""
    lost: Count = 0
    """Samples that perf reports as lost."""


class ProfilePart(msgspec.Struct, frozen=True):
    """CPU time per operation of one part, process, library or symbol, µs, and its difference with a 95 % interval."""

    name: str
    plain_us: float
    encrypted_us: float
    added_us: float
    low_us: float
    high_us: float


class ProfileFrame(msgspec.Struct, frozen=True):
    """A frame in the tree of stacks. Callers come before what they call."""

    parent: int
    """Index of the caller; −1: none."""
    name: str
    plain_us: float
    """CPU time per operation of this frame with everything that it calls."""
    encrypted_us: float


class EndProfile(msgspec.Struct, frozen=True):
    """Where one end's CPU time goes."""

    end: End
    added_us: float
    """What encryption adds to an operation: the cell's own figure, measured without profiling. `parts` add up to it."""
    low_us: float
    high_us: float
    parts: list[ProfilePart]
    """A partition of the CPU time, in the order of `estimate.profile_parts.PARTS`."""
    processes: list[ProfilePart]
    libraries: list[ProfilePart]
    symbols: list[ProfilePart]
    """The largest differences, at most; the time in the function itself."""
    frames: list[ProfileFrame]
    samples: dict[Arm, int]
    whole: float
    """Share of the samples whose stack reaches the start of its thread."""
    nameless: float
    """Share of the samples in functions that their library does not name."""
    lost: float
    """Lost samples ÷ all."""
    kernel: bool
    """Whether samples in the kernel could be taken."""
    profiled_us: dict[Arm, Amount]
    """CPU time per operation in the profiled slices, to compare with the others."""


class Profile(msgspec.Struct, frozen=True):
    """A cell's CPU profile."""

    blocks: int
    n: int
    """Sessions (full mode) or blocks (quick mode) behind the intervals."""
    ends: list[EndProfile]
