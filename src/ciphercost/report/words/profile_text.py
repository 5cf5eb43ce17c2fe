"""The texts and tables of a cell's CPU profile, the same in every report. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from ciphercost.estimate.profile_parts import PARTS, split
from ciphercost.model.profile import NAMELESS, EndProfile, ProfilePart
from ciphercost.model.result import Cell
from ciphercost.model.shares import in_percent
from ciphercost.report.words import floor_text

HEAD = ("µs per operation", "plain", "encrypted", "added", "95 % CI")
MOST_SYMBOLS = 10
"""Functions in the terminal; other reports have all that the result has."""
DEVIATES = 0.15
"""The report says so if the CPU time of profiled slices differs from that of the others by more than this share."""
FEW = 0.8
"""The report says so if fewer stacks than this share are whole."""


class Line(NamedTuple):
    """A row of a table: a name, both arms' CPU time, and the difference with its interval."""

    name: str
    plain: str
    encrypted: str
    added: str
    interval: str


def title(cell: Cell, end: EndProfile) -> str:
    """`where the server's CPU time goes: +179 µs per operation (156 to 201)`."""
    return f"where the {end_name(cell, end)}'s CPU time goes: {added(end)}"


def added(end: EndProfile) -> str:
    return (
        f"{plus(end.added_us, end)} µs per operation (95 % CI {figure(end.low_us, end)} to {figure(end.high_us, end)})"
    )


def end_name(cell: Cell, end: EndProfile) -> str:
    return "process" if cell.embedded else end.end


def digits(end: EndProfile) -> int:
    """Decimals of all figures of an end: three significant digits of its largest."""
    most = max(
        (abs(value) for part in end.parts for value in (part.plain_us, part.encrypted_us, part.added_us)), default=0.0
    )
    return max(0, min(4, 2 - math.floor(math.log10(most)))) if most > 0 else 0


def figure(value: float, end: EndProfile) -> str:
    text = f"{value:,.{digits(end)}f}".replace("-", "−")
    return text.lstrip("−") if float(text.replace(",", "").replace("−", "-")) == 0 else text


def plus(value: float, end: EndProfile) -> str:
    text = figure(value, end)
    return text if text.startswith("−") or float(text.replace(",", "")) == 0 else f"+{text}"


def parts(end: EndProfile) -> Iterator[Line]:
    """A row per part, and their sum, which is the cell's own figure."""
    yield from (line(part, end, PARTS.get(part.name, part.name)) for part in end.parts)
    plain, encrypted = (sum(getattr(part, f"{arm}_us") for part in end.parts) for arm in ("plain", "encrypted"))
    whole = ProfilePart("sum", plain, encrypted, end.added_us, end.low_us, end.high_us)
    yield line(whole, end, "sum")


def line(part: ProfilePart, end: EndProfile, name: str) -> Line:
    return Line(
        name,
        figure(part.plain_us, end),
        figure(part.encrypted_us, end),
        plus(part.added_us, end),
        f"{figure(part.low_us, end)} to {figure(part.high_us, end)}",
    )


def symbols(end: EndProfile, most: int = 0) -> Iterator[Line]:
    """The functions with the largest differences."""
    yield from (line(symbol, end, frame(symbol.name)) for symbol in end.symbols[: most or None])


def groups(end: EndProfile) -> Iterator[tuple[str, list[Line]]]:
    """CPU time by process and by library."""
    for name, rows in (("process", end.processes), ("library", end.libraries)):
        yield name, [line(row, end, PARTS.get(row.name, row.name)) for row in rows]


def frame(text: str) -> str:
    """`EVP_EncryptUpdate (libcrypto.so.3)`, `tcp_sendmsg (kernel)`, `libcrypto.so.3, no name`."""
    library, symbol = split(text)
    if not symbol:
        return PARTS.get(text, text)
    return f"{library}, no name" if symbol == NAMELESS else f"{symbol} ({library})"


def label(text: str) -> str:
    """A frame in a graph, as short as possible: the function, or its library if it has no name."""
    library, symbol = split(text)
    return symbol if symbol and symbol != NAMELESS else f"[{library}]"


def notes(cell: Cell, end: EndProfile) -> Iterator[str]:
    """How the profile was taken, and what it can't say."""
    assert cell.profile is not None
    taken = " and ".join(f"{count:,} {arm}" for arm, count in end.samples.items())
    unit = "block" if cell.profile.n == cell.profile.blocks and cell.mode == "quick" else "session"
    yield (
        f"samples: {taken}, in {cell.profile.blocks} blocks of their own; intervals over {cell.profile.n} {unit}s; "
        "the rows divide the CPU time that was measured without profiling"
    )
    if end.nameless >= 0.005:
        yield (
            f"{percent(end.nameless)} of the samples are in functions that their library does not name: they count to the function "
            "that called them; debug symbols (Debian: packages -dbgsym) would name them"
        )
    if end.whole < FEW:
        yield f"only {percent(end.whole)} of the stacks reach the start of their thread; the others are cut off"
    if not end.kernel:
        yield (
            "the kernel could not be sampled (kernel.perf_event_paranoid): its time is what the samples leave of the CPU time"
        )
    if end.lost >= 0.001:
        yield f"perf lost {percent(end.lost)} of the samples"
    if ratio := deviates(end):
        yield (
            f"in the profiled slices the {end_name(cell, end)} spent {ratio} CPU time per operation than in the others, so the shares may differ there too"
        )
    if named := floor_text.against_floor(cell, end, lambda value: figure(value, end)):
        yield named


def percent(share: float) -> str:
    return in_percent(share, 1 if share < 0.1 else 0)


def deviates(end: EndProfile) -> str:
    """By how much profiled slices differ from the others, in words; empty if not by much."""
    deviations = []
    for name, (arm, profiled) in zip(("plain_us", "encrypted_us"), end.profiled_us.items(), strict=False):
        level = sum(getattr(part, name) for part in end.parts)
        if level and profiled and abs(profiled / level - 1) > DEVIATES:
            deviations.append(
                f"{in_percent(abs(profiled / level - 1), 0)} {'more' if profiled > level else 'less'} ({arm})"
            )
    return " and ".join(deviations)
