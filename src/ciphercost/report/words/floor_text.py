"""What the cipher alone costs, beside its part of a profile, in words. Pure."""

from __future__ import annotations

from collections.abc import Callable

from ciphercost.estimate import cipher_floor
from ciphercost.estimate.cipher_floor import RestFloor, StreamFloor
from ciphercost.estimate.notation import number
from ciphercost.model.cipher_work import CipherWork
from ciphercost.model.profile import EndProfile
from ciphercost.model.result import Cell

BEGINNING = "the cipher's own part against its floor measured in the run: "
NOTHING = 0.5
"""Fewer bytes per operation than this are none."""


def against_floor(cell: Cell, end: EndProfile, figure: Callable[[float], str]) -> str:
    """The cipher's part of a profile beside what the cipher alone costs for the same bytes; empty: unknown.

    `figure`: writes µs as the profile's table does.
    """
    taken = next((part.encrypted_us for part in end.parts if part.name == "cipher"), 0.0)
    floor = cipher_floor.of(cell, end.end)
    if isinstance(floor, RestFloor):
        return at_rest(floor, taken, figure)
    if floor is None or taken <= 0:
        return ""
    return (
        f"{BEGINNING}the cipher alone, in the agent's library, needs {number(floor.cost_ns)} ns per byte, {number(floor.us)} µs for an "
        f"operation's {number(floor.sent)} bytes; here cipher and MAC take {figure(taken)} µs, {times(taken, floor.us)}"
    )


def at_rest(floor: RestFloor, taken: float, figure: Callable[[float], str]) -> str:
    """With and without a count of bytes. Without one and without a sample in the cipher there is nothing to say."""
    if not floor.operations:
        return f"{BEGINNING}{uncounted(floor, taken, figure)}" if taken > 0 else ""
    worked = [stream for stream in floor.streams if max(stream.opened, stream.sealed) >= NOTHING]
    if not worked:
        return (
            f"{BEGINNING}in {floor.operations:,} operations the database read and wrote nothing that it encrypts, so the floor is 0; here cipher "
            f"and MAC take {figure(taken)} µs"
        )
    return (
        f"{BEGINNING}an operation {'; '.join(map(stream, worked))}. The ciphers alone, in the agent's library, need {number(floor.us)} µs for that; "
        f"here cipher and MAC take {figure(taken)} µs, {times(taken, floor.us)}. Counted by the database in {floor.operations:,} operations"
    )


def stream(floor: StreamFloor) -> str:
    """`decrypts 8,032 bytes at 1.7 ns per byte (pages: AES-256-CBC with HMAC-SHA512, 4,016 bytes at a time)`."""
    ways = [
        f"{verb} {amount:,.0f} bytes at {number(cost)} ns per byte"
        for verb, amount, cost in (("decrypts", floor.opened, floor.open_ns), ("encrypts", floor.sealed, floor.seal_ns))
        if amount >= NOTHING
    ]
    units = f"{floor.work.unit:,} bytes at a time"
    if floor.pieces:
        units = f"in pieces of any length; the floor has {units}"
    return f"{' and '.join(ways)} ({floor.kind}: {cipher(floor.work)}, {units})"


def uncounted(floor: RestFloor, taken: float, figure: Callable[[float], str]) -> str:
    """Without a count of bytes: the speed, and for how many bytes the CPU time would be enough."""
    speeds = "; ".join(
        f"{cipher(stream.work)} alone, in the agent's library, decrypts a byte of {stream.kind} in {number(stream.open_ns)} ns and encrypts one in "
        f"{number(stream.seal_ns)} ns"
        for stream in floor.streams
    )
    slowest = max(max(stream.open_ns, stream.seal_ns) for stream in floor.streams)
    fastest = min(min(stream.open_ns, stream.seal_ns) for stream in floor.streams)
    low, high = (f"{taken * 1e3 / cost:,.0f}" for cost in (slowest, fastest))
    enough = low if low == high else f"{low} to {high}"
    return (
        f"{speeds}. The {figure(taken)} µs that cipher and MAC take here would be enough for {enough} bytes per operation; how many there were "
        "was not counted"
    )


def times(taken: float, floor: float) -> str:
    return f"{number(taken / floor)} times that"


def cipher(work: CipherWork) -> str:
    """`AES-256-CBC with HMAC-SHA512`, as people write it."""
    name = work.cipher.upper()
    name = f"AES-{name[3:]}" if name.startswith("AES") else name
    return f"{name} with {work.mac.upper()}" if work.mac else name
