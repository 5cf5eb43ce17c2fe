"""Whether a cell's ratio can be a cost of encryption: fixed waits in its arms, and an encrypted arm that is surely faster. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from ciphercost.estimate import bottleneck
from ciphercost.estimate.notation import number
from ciphercost.model.result import Cell, Estimate, Wait, Warning_
from ciphercost.model.spec import ARMS, Arm

IDLE = 0.5
"""An arm waits only while no resource is busier than this."""
FASTER, WAITS, BOTH_WAIT = "faster-encrypted", "fixed-wait", "fixed-wait-in-both-arms"
"""Codes of warnings."""
NO_COST = frozenset({FASTER, WAITS})
"""With these warnings, a cell's ratios are not what encryption costs, so nothing is computed from them."""
DELAYED_ACK = (
    "the delayed acknowledgement of TCP takes 40 ms on Linux. Usually the server writes an answer in two parts without TCP_NODELAY, so the "
    "second part waits until the client has acknowledged the first. Set TCP_NODELAY there, or write each answer at once, and measure again"
)
RETRANSMISSION = (
    "TCP's delayed acknowledgement takes 200 ms on some systems, and so does its shortest retransmission timeout. Set TCP_NODELAY on the "
    "server, look for lost packets, and measure again"
)
LOST_SYN = (
    "TCP repeats a lost SYN after 1 s: the server may drop new connections because its queue is full. Give it a longer backlog, and "
    "measure again"
)
CAUSES = ((38.0, 48.0, DELAYED_ACK), (190.0, 240.0, RETRANSMISSION), (950.0, 1200.0, LOST_SYN))
"""(from, to, cause and what to do): waits whose length is known, in ms."""
UNKNOWN = "a timer, a sleep or a distant service, not work. Find and remove it, and measure again"
SAME = 0.02
"""Bytes per operation that differ by less than this share are the same answer."""


def checked(cell: Cell, margin: float) -> Cell:
    """The cell with warnings if its ratio can't be, or need not be, what encryption costs."""
    if not cell.overhead or cell.layer == "control" or cell.imported is not None:
        return cell
    warnings = [*_waits(cell), *_faster(cell, margin)]
    return msgspec.structs.replace(cell, warnings=[*warnings, *cell.warnings]) if warnings else cell


def is_no_cost(cell: Cell) -> bool:
    """Whether a warning says that the cell's ratios are not what encryption costs."""
    return any(warning.code in NO_COST for warning in cell.warnings)


def tells_cost(cell: Cell) -> bool:
    """Whether the cell measured what encryption costs against none, so that costs of other work may be computed from it."""
    return cell.status == "ok" and cell.pair is None and not is_no_cost(cell)


# ── waits ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def waiting(cell: Cell) -> dict[Arm, Wait]:
    """The arms that wait for a fixed time while nothing works. A link with a delay of its own is no such wait."""
    if {"delay", "loss", "bandwidth"} & set(cell.conditions):
        return {}
    return {arm: cell.waits[arm] for arm in ARMS if arm in cell.waits and _idle(cell, arm)}


def _idle(cell: Cell, arm: Arm) -> bool:
    """Whether no resource that this arm uses is busy, and neither the client nor the server (as far as it is known) uses a core for more than
    half of the time.
    """
    return (
        all(use.share < IDLE for use in bottleneck.uses(cell, arm) if use.short != "disk" or _may_use_disk(cell, arm))
        and max(_busy(cell, arm).values(), default=0) < IDLE
    )


def _may_use_disk(cell: Cell, arm: Arm) -> bool:
    """Whether the arm's operations may wait for a disk that is busy, possibly with what other processes write.

    They don't if the server reads and writes nothing. Nor, in transit, if the other arm has no such wait beside a disk that is as busy.
    """
    if not bottleneck.moves_pages(cell.arms.get(arm, {})):
        return False
    other = next(other for other in ARMS if other != arm)
    both_busy = any(use.short == "disk" and use.share >= IDLE for use in bottleneck.uses(cell, other))
    return not (cell.layer == "transit" and both_busy and other not in cell.waits)


def _busy(cell: Cell, arm: Arm) -> dict[str, float]:
    """How many cores client and server use; an end that is not known has none."""
    facts = cell.arms.get(arm, {})
    used = {
        end: facts.get(f"{end}_cpu_us_per_op", 0.0) * facts.get("throughput", 0.0) / 1e6 for end in ("client", "server")
    }
    return {end: cores for end, cores in used.items() if cores > 0}


def one_waits(cell: Cell) -> Arm | None:
    """The arm that waits, if only one does or if it waits longer than the other by more than the band of one wait."""
    waits = waiting(cell)
    if len(waits) == 1:
        return next(iter(waits))
    if len(waits) == len(ARMS) and abs(math.log(waits["encrypted"].ms / waits["plain"].ms)) > math.log(1.3):
        return max(waits, key=lambda arm: waits[arm].ms)
    return None


def wait_text(wait: Wait) -> str:
    """`95 % of its time is in operations that take 44 ms each`."""
    return f"{100 * wait.time:.0f} % of its time is in operations that take about {number(round(wait.ms))} ms each"


def cause(wait: Wait) -> str:
    """What such a wait is, and what to do."""
    return next((text for low, high, text in CAUSES if low <= wait.ms < high), UNKNOWN)


def _cores(cell: Cell, arm: Arm) -> str:
    """`, while the client used 0.01 cores and the server 0.02`."""
    used = _busy(cell, arm)
    if not used:
        return ""
    words = " and ".join(
        f"the {end} {'used ' * (not at)}{max(cores, 0.01):.2f}{' cores' * (not at)}"
        for at, (end, cores) in enumerate(used.items())
    )
    return f", while {words}{'' if 'server' in used or cell.embedded else ' (those of the server are not known)'}"


def _waits(cell: Cell) -> Iterator[Warning_]:
    waits = waiting(cell)
    if arm := one_waits(cell):
        other = next(other for other in ARMS if other != arm)
        yield Warning_(
            WAITS,
            f"the {arm} arm waits and the {other} arm does not: {wait_text(waits[arm])}{_cores(cell, arm)}. This is a wait of a fixed length, so the arms' "
            f"ratio shows the wait and not encryption: {cause(waits[arm])}",
        )
    elif len(waits) == len(ARMS):
        yield Warning_(
            BOTH_WAIT,
            f"both arms wait: of the plain arm {wait_text(waits['plain'])}{_cores(cell, 'plain')}. This hides what encryption costs in operations per "
            f"second and latency; CPU per operation does not contain it. It is the round trip to a distant server, or else: {cause(waits['plain'])}",
        )


# ── faster with encryption ────────────────────────────────────────────────────────────────────────────────────────────


def _faster(cell: Cell, margin: float) -> Iterator[Warning_]:
    if cell.pair or not faster(cell, margin) or one_waits(cell) == "plain":
        return  # two settings may well differ so; and a wait is the reason for itself
    causes = list(reasons(cell))
    why = (
        "; ".join(causes)
        if causes
        else "no reason was found in what this run recorded; compare what both ports of the server do"
    )
    yield Warning_(
        FASTER,
        "the encrypted arm is surely faster than the plain one, which encryption can't cause, so this is not its cost. "
        f"{'Found' if causes else 'Looked for waits, other bytes, other connections and what limits the plain arm'}: {why}",
    )


def faster(cell: Cell, margin: float) -> bool:
    """Whether the encrypted arm is surely faster by more than the margin."""
    if (rate := cell.overhead.get("throughput")) is not None:
        return _lowest(rate) > 1 + margin
    latency = cell.overhead.get("latency_p50")
    return latency is not None and _highest(latency) < 1 / (1 + margin)


def _lowest(estimate: Estimate) -> float:
    return min(estimate.low, estimate.low if estimate.totals_low is None else estimate.totals_low)


def _highest(estimate: Estimate) -> float:
    return max(estimate.high, estimate.high if estimate.totals_high is None else estimate.totals_high)


def reasons(cell: Cell) -> Iterator[str]:
    """What the run recorded that can make the plain arm slower without encryption."""
    plain, encrypted = (cell.arms.get(arm, {}) for arm in ARMS)
    http = cell.encryption.get("http", "")
    if http.startswith(("HTTP/2", "HTTP/3")):
        yield f"the plain arm speaks HTTP/1.1, the encrypted one {http}"
    sizes = [facts.get("wire_bytes_per_op", 0.0) for facts in (plain, encrypted)]
    if sizes[1] < sizes[0] * (1 - SAME):
        yield f"the plain arm's answers are larger: {sizes[0]:,.0f} bytes on the wire per operation, {sizes[1]:,.0f} with encryption"
    opened = [facts.get("connects", 0) / max(1, facts.get("operations", 0)) for facts in (plain, encrypted)]
    if opened[0] > 2 * opened[1] and opened[0] > 0.01:
        yield f"the plain arm opens {number(opened[0])} connections per operation, the encrypted one {number(opened[1])}: its port closes them"
    failed = [facts.get("errors", 0) for facts in (plain, encrypted)]
    if failed[0] > 2 * failed[1] + 10:
        yield f"{failed[0]:,} operations of the plain arm failed, {failed[1]:,} of the encrypted one"
    full, other = (bottleneck.limits(bottleneck.uses(cell, arm)) for arm in ARMS)
    for use in full:
        if use.short in ("link", "disk", "client") and use.short not in {other_use.short for other_use in other}:
            yield f"the plain arm is limited by {use.name}, the encrypted one is not"
    if not one_waits(cell) and bottleneck.uses(cell, "plain") and _idle(cell, "plain") and not _idle(cell, "encrypted"):
        yield "in the plain arm nothing is busy: it waits for something that is not a core, a disk or the link"
