"""The slices of complete blocks as rows of numbers, and their sums by arm, block and session. Pure."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ciphercost.estimate.histogram import Total, quantiles
from ciphercost.model import checked
from ciphercost.model.errors import UsageError
from ciphercost.model.histogram import Histogram, merge
from ciphercost.model.slices import AgentSlice, Counters, SliceRecord
from ciphercost.model.spec import ARMS, Arm, Mode

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

QUANTILES: tuple[tuple[str, float], ...] = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999))
ENOUGH = 50
"""A quantile q needs ENOUGH/(1 − q) requests per block and arm, so that about 50 lie beyond it."""
ENOUGH_OF_A_SESSION = 10
"""If blocks have too few and sessions are the unit, this many must lie beyond it per session and arm; see `Arms.unit_of`."""

HOST = (
    "user",
    "nice",
    "system",
    "iowait",
    "steal",
    "idle",
    "memory_available_bytes",
    "network_bytes_per_s",
    "disk_queue",
    "disk_busy",
    "throttled",
)
"""Host counters as sar prints them; SHARES are in per cent."""
SHARES = frozenset({*HOST[:6], "disk_busy", "throttled"})
FIELDS = (
    "operations", "work", "seconds", "errors", "rows", "client_user_ns", "client_system_ns", "wire_bytes", "segments",
    "connects", "resumed", "early", "late", "retries", "sampled", "server_cpu_ns", "server_user_ns", "server_system_ns", "read_bytes",
    "write_bytes", "foreign_cpu_ns", "hop_cpu_ns", "memory_bytes", "memory_samples", "switches", "faults", "scheduled_work", *HOST,
)  # fmt: skip
LONGEST_COUNT, LONGEST_WORD = 18, 80
"""Most digits of a number of errors, and characters of a damaged one in a message."""
COLUMN = {name: number for number, name in enumerate(FIELDS)}
UNSAMPLED = (0.0,) * (len(FIELDS) - COLUMN["sampled"])


def row(record: SliceRecord) -> tuple[float, ...]:
    """One slice's numbers in the order of FIELDS. The record must have an agent's answer."""
    agent, counters = record.agent, record.counters
    assert agent is not None
    head = (
        agent.operations,
        agent.done,
        agent.seconds,
        agent.errors,
        agent.rows,
        agent.cpu_user_ns,
        agent.cpu_system_ns,
        agent.bytes_sent + agent.bytes_received,
        agent.segments_sent + agent.segments_received,
        agent.connects,
        agent.resumed,
        agent.early,
        agent.late,
        agent.retries,
    )
    if counters is None:
        return head + UNSAMPLED
    return (
        *head,
        1,
        counters.server_cpu_ns,
        counters.server_user_ns,
        counters.server_system_ns,
        counters.server_read_bytes,
        counters.server_write_bytes,
        counters.foreign_cpu * counters.window_ns,
        counters.hop_cpu_ns,
        counters.server_memory_bytes,
        counters.server_memory_bytes > 0,
        *scheduled(agent, counters),
        counters.host_user,
        counters.host_nice,
        counters.host_system,
        counters.host_iowait,
        counters.host_steal,
        counters.host_idle,
        counters.memory_available_bytes,
        max(0, counters.network_bytes) / counters.window_ns * 1e9,
        counters.disk_queue,
        math.nan if counters.disk_busy is None else counters.disk_busy,
        math.nan if counters.throttled_ns is None else counters.throttled_ns / counters.window_ns,
    )


def scheduled(agent: AgentSlice, counters: Counters) -> tuple[float, float, float]:
    """Context switches, page faults, and the operations that they belong to: none if the counters are unknown.

    Where operations open connections, servers may start a process for each, whose counters nobody has read.
    """
    switches, faults = counters.server_switches, counters.server_faults
    if switches is None or faults is None or agent.connects > agent.operations / 2:
        return 0.0, 0.0, 0.0
    return switches, faults, agent.done


def error_kinds(record: SliceRecord) -> Counter[str]:
    """The number of failed operations of a slice by kind. Raises UsageError if the record is damaged."""
    return kinds_of(record.agent, checked.place(record))


def kinds_of(answer: AgentSlice | None, where: str) -> Counter[str]:
    """The number of failed operations of an agent's answer by kind. Raises UsageError, which begins with `where`, if it is damaged."""
    counts: Counter[str] = Counter()
    for word in answer.error_kinds.split() if answer is not None else ():
        kind, _, count = word.partition("=")
        if not kind or not count.isdecimal() or len(count) > LONGEST_COUNT:
            raise UsageError(f"{where}: error_kinds has '{word[:LONGEST_WORD]}', not CODE=COUNT")
        counts[kind] += int(count)
    return counts


class Arms(NamedTuple):
    """The blocks of one phase, by arm: `plain` and `encrypted` have shape (blocks, 2 slices, fields)."""

    sessions: Ints
    plain: Floats
    encrypted: Floats
    plain_ns: Floats
    """Latency quantiles of each block, shape (blocks, quantiles); of shape (0, quantiles) in the closed loop."""
    encrypted_ns: Floats
    session_plain_ns: Floats
    """Latency quantiles of each session as a whole, shape (sessions, quantiles), in the order of the sessions' numbers."""
    session_encrypted_ns: Floats

    def of(self, arm: Arm) -> Floats:
        return self.plain if arm == "plain" else self.encrypted

    def total(self, arm: Arm, *fields: str) -> float:
        return float(sum(self.of(arm)[:, :, COLUMN[field]].sum() for field in fields))

    def rates(self, arm: Arm) -> Floats:
        """Operations per second of each slice, shape (blocks, 2 slices)."""
        rates: Floats = self.of(arm)[:, :, COLUMN["work"]] / self.of(arm)[:, :, COLUMN["seconds"]]
        return rates

    def per_operation(self, arm: Arm, *fields: str) -> float:
        whole = self.total(arm, "operations")
        return self.total(arm, *fields) / whole if whole else 0.0

    def per_work(self, arm: Arm, *fields: str) -> float:
        """Per operation, including shares of those cut at the edges, for counters that are sampled at the edges."""
        return self.total(arm, *fields) / self.total(arm, "work")

    @property
    def machine(self) -> tuple[str, ...]:
        """Fields of the CPU time of the server, kernel threads and hops included; for an embedded database, that of the agent."""
        served = any(self.total(arm, "server_cpu_ns") for arm in ARMS)
        fields = ("server_cpu_ns",) if served else ("client_user_ns", "client_system_ns")
        return (*fields, "foreign_cpu_ns", "hop_cpu_ns")

    def by_session(self, mode: Mode) -> bool:
        """Whether sessions are the sample unit: in full mode, once there are two."""
        return mode == "full" and len(set(self.sessions.tolist())) >= 2

    def by_block(self, arm: Arm, *fields: str) -> Floats:
        """Sums over the two slices of each block, shape (blocks,)."""
        sums: Floats = self.of(arm)[:, :, [COLUMN[field] for field in fields]].sum(axis=(1, 2))
        return sums

    def by_unit(self, arm: Arm, mode: Mode, *fields: str) -> Floats:
        """Sums over each session, or each block if blocks are the unit."""
        sums = self.by_block(arm, *fields)
        if not self.by_session(mode):
            return sums
        _, unit = np.unique(self.sessions, return_inverse=True)
        grouped: Floats = np.bincount(unit, weights=sums).astype(np.float64)
        return grouped

    def enough_requests(self, share: float) -> bool:
        """Whether the median block has ENOUGH/(1 − share) requests in each arm.

        The median decides for all blocks, because leaving out single blocks with few requests would leave out the
        stalls.
        """
        if not len(self.sessions):
            return False
        return bool(np.median(self._fewest("quick")) * (1 - share) >= ENOUGH - 1e-6)

    def unit_of(self, share: float, mode: Mode) -> Literal["block", "session", ""]:
        """The unit that has enough requests for a latency quantile: blocks, else whole sessions, else neither.

        A session's quantile is that of all its requests of an arm, from the merged histograms of its blocks. It is as
        valid as a block's. The interval is t over sessions either way, so session values need only be drawn alike and
        centred on the ratio; their precision shows in the scatter. What the machine does in a session slows both arms
        alike, because their slices alternate, and cancels in the ratio. Few requests bias a tail quantile, but in both
        arms alike. With 10 requests beyond the quantile, the log ratio is off by less than 1 % where tails differ in
        shape, and intervals over 8 sessions keep their coverage (simulated: log-normal, Pareto and stalling requests;
        METHODOLOGY.md). All sessions together must have ENOUGH, as a block must.
        """
        if self.enough_requests(share):
            return "block"
        if not self.by_session(mode):
            return ""
        fewest = self._fewest(mode) * (1 - share)
        return "session" if np.median(fewest) >= ENOUGH_OF_A_SESSION and fewest.sum() >= ENOUGH - 1e-6 else ""

    def _fewest(self, mode: Mode) -> Floats:
        """Requests of each unit in the arm that has fewer."""
        fewest: Floats = np.minimum(
            self.by_unit("plain", mode, "operations"), self.by_unit("encrypted", mode, "operations")
        )
        return fewest


class Tally:
    """Complete blocks of one phase, appended one by one to compact arrays."""

    def __init__(self) -> None:
        self._rows = array("d")
        self._signs = array("d")
        self._sessions = array("q")
        self._quantiles = array("d")
        self._totals: dict[int, tuple[Total, Total]] = {}
        self._kinds: dict[tuple[int, str], Counter[str]] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def append(self, sign: int, records: Sequence[SliceRecord], latencies: tuple[Histogram, Histogram] | None) -> None:
        """Add a block of four slices, `sign` +1 for ABBA; `latencies`: plain, encrypted."""
        session = records[0].session
        for record in records:
            self._rows.extend(row(record))
            if kinds := error_kinds(record):
                self._kinds.setdefault((session, record.arm), Counter()).update(kinds)
        self._signs.append(sign)
        self._sessions.append(session)
        if latencies is not None:
            totals = self._totals.setdefault(session, (Total(), Total()))
            for histogram, total in zip(latencies, totals, strict=True):
                total.add(histogram)
                self._quantiles.extend(quantiles(histogram, [share for _, share in QUANTILES]))

    def drop(self, session: int) -> None:
        """Remove a session."""
        kept = np.array(self._sessions) != session
        if kept.all():
            return
        for name in ("_rows", "_signs", "_sessions", "_quantiles"):
            old = getattr(self, name)
            new = np.array(old).reshape(len(kept), -1)[kept] if len(old) else np.array(old)
            setattr(self, name, array(old.typecode, new.ravel().tolist()))
        self._totals.pop(session, None)
        self._kinds = {key: kinds for key, kinds in self._kinds.items() if key[0] != session}

    def arms(self) -> Arms:
        """All blocks, split by arm."""
        outer, inner = self._slices()[:, [0, 3]], self._slices()[:, [1, 2]]
        plain_outside = (np.array(self._signs) > 0)[:, None, None]
        latency = np.array(self._quantiles).reshape(-1, 2, len(QUANTILES))
        whole = self._of_sessions()
        return Arms(
            sessions=np.array(self._sessions),
            plain=np.where(plain_outside, outer, inner),
            encrypted=np.where(plain_outside, inner, outer),
            plain_ns=latency[:, 0],
            encrypted_ns=latency[:, 1],
            session_plain_ns=whole[:, 0],
            session_encrypted_ns=whole[:, 1],
        )

    def error_kinds(self, arm: Arm) -> dict[str, int]:
        """The number of failed operations of an arm by kind, the most frequent first."""
        counts = sum((kinds for (_, of), kinds in self._kinds.items() if of == arm), Counter[str]())
        return dict(counts.most_common())

    def histogram(self, arm: Arm, *, but: int | None = None) -> Histogram | None:
        """All latencies of an arm, over all sessions or all but one; None in the closed loop."""
        side = 0 if arm == "plain" else 1
        wanted = [totals[side].histogram() for session, totals in self._totals.items() if session != but]
        return merge(wanted) if wanted else None

    def _of_sessions(self) -> Floats:
        """Quantiles of each session and arm, shape (sessions, 2, quantiles)."""
        shares = [share for _, share in QUANTILES]
        levels = [
            [quantiles(side.histogram(), shares) for side in self._totals[session]] for session in sorted(self._totals)
        ]
        return np.array(levels).reshape(-1, 2, len(QUANTILES))

    def _slices(self) -> Floats:
        return np.array(self._rows).reshape(-1, 4, len(FIELDS))
