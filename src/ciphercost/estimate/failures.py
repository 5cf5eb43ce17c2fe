"""What failed in each arm, whether one arm's slices fail more often, and how far that can change the cost. Pure.

A failed slice has no rate, so the ratio of the others does not contain it. It is still part of the cost: in the worst case nothing was done in
it. METHODOLOGY.md, Failed slices, has the method and its simulations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from ciphercost.estimate import fisher, statistics
from ciphercost.estimate.rows import Rows
from ciphercost.estimate.statistics import Interval
from ciphercost.estimate.tally import Floats
from ciphercost.estimate.to_estimate import to_estimate
from ciphercost.estimate.totals import coin
from ciphercost.model.result import Failures, Warning_
from ciphercost.model.slices import AGENTS, TIMEOUT, SliceRecord
from ciphercost.model.spec import ARMS, Arm, Mode

ALPHA = 0.05
"""Level of the test that slices of one arm fail more often. It is exact, and they are few, so it finds much less than that in equal arms."""
OPERATIONS_ALPHA = 0.01
"""Level of the test that operations of one arm do. They are many."""
DIFFER = "failures-differ"
"""Code of a warning."""
FIELDS = ("slices", "failed", "timeouts", "errors", "done")
"""Of one arm in one block."""


class FailuresSoFar:
    """What failed in each block, whether the block is complete or not."""

    def __init__(self) -> None:
        self._rows = Rows(1 + len(ARMS) * len(FIELDS))
        self._block: tuple[str, int, int] | None = None
        self._row: list[float] = []

    def add(self, record: SliceRecord, *, failed: bool) -> None:
        """Add a slice of a counted phase, lead-ins included; they are in the order of their blocks."""
        if failed and AGENTS in record.marks:
            return  # the agents failed, whatever the server did
        here = (record.phase, record.session, record.block)
        if here != self._block:
            self._close()
            self._block, self._row = here, [float(record.session), *[0.0] * (len(ARMS) * len(FIELDS))]
        at = 1 + ARMS.index(record.arm) * len(FIELDS)
        agent = record.agent
        counts = [1, failed, failed and TIMEOUT in record.marks]
        if agent is not None and not failed:
            counts += [agent.errors, agent.operations]
        for offset, count in enumerate(counts):
            self._row[at + offset] += count

    def _close(self) -> None:
        if self._block is not None:
            self._rows.append(self._row)
        self._block = None

    def drop(self, session: int) -> None:
        """Remove a session."""
        self._close()
        kept = Rows(1 + len(ARMS) * len(FIELDS))
        for row in self._rows.values:
            if row[0] != session:
                kept.append(row.tolist())
        self._rows = kept

    def _table(self) -> tuple[Floats, dict[Arm, dict[str, Floats]]]:
        """Sessions (blocks,), and for each arm and field the count in each block (blocks,)."""
        self._close()
        rows = self._rows.values
        by_arm: dict[Arm, dict[str, Floats]] = {}
        for number, arm in enumerate(ARMS):
            at = 1 + number * len(FIELDS)
            by_arm[arm] = {name: rows[:, at + offset] for offset, name in enumerate(FIELDS)}
        return rows[:, 0], by_arm

    def lost(self, mode: Mode, most_nu: int | None = None) -> Interval | None:
        """log of the share of slices that did not fail, encrypted − plain; None if no slice failed, or with fewer than two units.

        Units are sessions in full mode, once there are two, else blocks. Each unit's part is linearised (delta method).
        """
        sessions, by_arm = self._table()
        if not any(by_field["failed"].sum() for by_field in by_arm.values()):
            return None
        by_session = mode == "full" and len(np.unique(sessions)) >= 2
        unit = np.unique(sessions, return_inverse=True)[1] if by_session else np.arange(len(sessions))
        n = int(unit.max()) + 1
        parts, centre = np.zeros(n), 0.0
        for arm, sign in zip(ARMS, (-1, 1), strict=True):
            slices = np.bincount(unit, by_arm[arm]["slices"], n)
            good = slices - np.bincount(unit, by_arm[arm]["failed"], n)
            if good.sum() <= 0 or n < 2:
                return None
            centre += sign * math.log(good.sum() / slices.sum())
            parts += sign * n * (good / good.sum() - slices / slices.sum())
        values: Floats = parts + centre
        if by_session:
            return statistics.session_interval(values, centre, most_nu)
        return statistics.block_interval(values, centre)

    def total(self, throughput: Interval | None, mode: Mode, most_nu: int | None = None) -> Failures | None:
        """What failed; None if nothing did. `throughput`: the log ratio of the slices that did not fail."""
        sessions, by_arm = self._table()
        total = {
            arm: {name: int(counts.sum()) for name, counts in by_field.items()} for arm, by_field in by_arm.items()
        }
        if not any(by_field["failed"] + by_field["errors"] for by_field in total.values()):
            return None
        hit = {arm: by_field["failed"] > 0 for arm, by_field in by_arm.items()}
        blocks = {arm: int((by_field["slices"] > 0).sum()) for arm, by_field in by_arm.items()}
        more = (
            by_arm["encrypted"]["errors"] * by_arm["plain"]["done"]
            - by_arm["plain"]["errors"] * by_arm["encrypted"]["done"]
        )
        lost = self.lost(mode, most_nu)
        whole = with_failures(throughput, lost)
        return Failures(
            plain=total["plain"]["failed"],
            plain_slices=total["plain"]["slices"],
            encrypted=total["encrypted"]["failed"],
            encrypted_slices=total["encrypted"]["slices"],
            p_value=fisher.p_value(
                int(hit["plain"].sum()), blocks["plain"], int(hit["encrypted"].sum()), blocks["encrypted"]
            ),
            blocks=len(sessions),
            plain_blocks=int(hit["plain"].sum()),
            encrypted_blocks=int(hit["encrypted"].sum()),
            sessions=len(np.unique(sessions[hit["plain"] | hit["encrypted"]])),
            plain_timeouts=total["plain"]["timeouts"],
            encrypted_timeouts=total["encrypted"]["timeouts"],
            plain_operations=total["plain"]["errors"],
            encrypted_operations=total["encrypted"]["errors"],
            operations_p_value=coin(int((more > 0).sum()), int((more < 0).sum())),
            succeeded=None if lost is None else to_estimate(lost, mode, "slices"),
            throughput=None if lost is None or whole is None else to_estimate(whole, mode, "operations/s"),
        )


def together(failed: Sequence[Failures | None]) -> Failures | None:
    """What failed on several machines, with the p-values of all their blocks; None if nothing did."""
    known = [failures for failures in failed if failures is not None]
    if len(known) <= 1:
        return known[0] if known else None
    counts = {
        name: sum(getattr(failures, name) for failures in known)
        for name in Failures.__struct_fields__
        if isinstance(getattr(known[0], name), int) and name != "undecided"
    }
    total = Failures(**counts, p_value=1.0)
    p = fisher.p_value(total.plain_blocks, total.blocks, total.encrypted_blocks, total.blocks)
    return msgspec.structs.replace(
        total,
        p_value=p,
        operations_p_value=min(1.0, len(known) * min(failures.operations_p_value for failures in known)),
    )


def key(metric: str) -> str:
    """The key of a metric's ratio with failures in a mapping of intervals by metric."""
    return f"{metric}, with failures"


def with_failures(interval: Interval | None, lost: Interval | None, *, more_is_better: bool = True) -> Interval | None:
    """The log ratio of throughput with each failed slice as one without work. `lost`: see `FailuresSoFar.lost`.

    Of a latency, as if each failed slice were tried again until it succeeds. The two are taken as independent: a slice that failed is in
    none of the blocks behind the first.
    """
    if interval is None or lost is None:
        return interval
    return statistics.against(lost._replace(centre=-lost.centre) if more_is_better else lost, interval)


# ── what it means ─────────────────────────────────────────────────────────────────────────────────────────────────────


def slices_differ(of: Failures | None) -> bool:
    """Whether slices of one arm fail more often, by more than chance."""
    return of is not None and of.p_value < ALPHA


def operations_differ(of: Failures | None) -> bool:
    """Whether operations of one arm fail more often, by more than chance, in slices that did not fail as a whole."""
    return of is not None and of.operations_p_value < OPERATIONS_ALPHA


def differ(of: Failures | None) -> bool:
    """Whether one arm fails more often, by more than chance: then the others' ratio alone is not what encryption costs."""
    return slices_differ(of) or operations_differ(of)


def more(of: Failures) -> Arm:
    """The arm that fails more often, by slices if these differ, else by operations."""
    if slices_differ(of) or not operations_differ(of):
        return "encrypted" if of.encrypted * of.plain_slices > of.plain * of.encrypted_slices else "plain"
    return "encrypted" if of.encrypted_operations > of.plain_operations else "plain"


def counted(of: Failures) -> str:
    """`12 of 640 encrypted slices failed (10 of them timed out) and 0 of 640 plain ones`."""
    clauses = []
    for arm, failed, slices, timeouts in (
        ("encrypted slices failed", of.encrypted, of.encrypted_slices, of.encrypted_timeouts),
        ("plain ones", of.plain, of.plain_slices, of.plain_timeouts),
    ):
        clauses.append(f"{failed:,} of {slices:,} {arm}{f' ({timeouts:,} of them timed out)' * bool(timeouts)}")
    return " and ".join(clauses)


def counted_operations(of: Failures) -> str:
    """`1,240 encrypted operations failed and 0 plain ones`."""
    return f"{of.encrypted_operations:,} encrypted operations failed and {of.plain_operations:,} plain ones"


def what(of: Failures) -> str:
    """What fails more often in one arm, with the p-values of chance."""
    clauses = []
    if slices_differ(of):
        clauses.append(f"{counted(of)} (p = {of.p_value:.2g} if chance decided)")
    if operations_differ(of):
        clauses.append(f"{counted_operations(of)} (p = {of.operations_p_value:.2g} if chance decided)")
    return "; ".join(clauses)


def warnings(of: Failures | None, incomplete: int) -> Iterator[Warning_]:
    """Which arm's slices failed, and in which direction that moves the cost. `incomplete`: blocks that don't count."""
    if of is not None and differ(of):
        arm = more(of)
        where = " All of them are in one session, so one pair of servers may be the cause." * (
            slices_differ(of) and of.sessions == 1 and "sessions" in (of.succeeded.method if of.succeeded else "")
        )
        yield Warning_(
            DIFFER,
            f"the {arm} arm fails more often than the other{_beyond_chance(of)}. Failures are part of the cost, and the arms' ratios don't "
            f"contain them.{where} Find out why they fail: see logs/ and slices.jsonl",
        )
    failed = 0 if of is None else of.plain + of.encrypted
    if failed or incomplete:
        which = f"{counted(of)}, lead-ins included" if of is not None and failed else "no slice failed"
        yield Warning_(
            "failed-slices",
            f"{which}; {incomplete:,} blocks are incomplete. They are in the record but not in the estimate; see logs/ for the reasons"
            + (direction(of) if of is not None and failed else ""),
        )


def _beyond_chance(of: Failures) -> str:
    """` (p = 0.0003 if chance decided)`; of operations also how many failed, which no other warning says by arm."""
    slices = f"p = {of.p_value:.2g} if chance decided" if slices_differ(of) else ""
    operations = f"{counted_operations(of)}, p = {of.operations_p_value:.2g}" if operations_differ(of) else ""
    return f" ({'; '.join(filter(None, (slices, operations)))})"


def direction(of: Failures) -> str:
    """In which direction slices that failed because they were slow move the cost."""
    if of.plain == of.encrypted:
        return ". If they failed because they were slow, both arms look faster than they are"
    arm, low = ("encrypted", "low") if of.encrypted > of.plain else ("plain", "high")
    slow = of.encrypted_timeouts if arm == "encrypted" else of.plain_timeouts
    why = "Slices that timed out were slow, so" if slow else "If they failed because they were slow,"
    text = f". {why} the {arm} arm looks faster than it is, and the cost too {low}"
    if of.throughput is not None:
        text += (
            f": with failed slices as slices without work the ratio of operations/s is {of.throughput.ratio:.4g} "
            f"(95 % interval {of.throughput.low:.4g} to {of.throughput.high:.4g})"
        )
    return text
