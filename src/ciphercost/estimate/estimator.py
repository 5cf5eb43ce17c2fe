"""estimator: slices, one by one -> ratios with intervals, verdict, warnings. Pure; the method is in METHODOLOGY.md.

Only complete blocks count: four good slices at positions 1 to 4 of phase `capacity` or `latency`. Each block is kept as
four rows of numbers, never as records, so that a run of 100,000 slices is estimated in about 20 MB.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from ciphercost.estimate import statistics, student_t, totals
from ciphercost.estimate.histogram import Histogram, decode, merge, quantiles
from ciphercost.estimate.statistics import ALPHA, Carryover, Interval
from ciphercost.estimate.tally import QUANTILES, Arms, Floats, Tally, error_kinds
from ciphercost.estimate.warnings import DISTURBANCES, DISTURBED, describe, warnings
from ciphercost.model import checked
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Added, CellEstimate, Estimate
from ciphercost.model.slices import SliceRecord
from ciphercost.model.spec import ARMS, Arm, Mode
from ciphercost.model.terms import Verdict
from ciphercost.plan.schedule import LEAST_BLOCKS_QUICK, LEAST_SESSIONS

# machine_cpu_per_op: of the server (an embedded one's is the agent) and of all that is neither agent nor controller. At rest a
# kernel's threads may do the encrypting, which are no process of the server's; in transit nobody works for it but itself: there it is noise.
# Beside throughput: totals of one field ÷ totals of another, encrypted ÷ plain. The ratio of totals is the estimate.
RATIOS: tuple[tuple[str, tuple[str, ...], str, str], ...] = (
    ("server_cpu_per_op", ("server_cpu_ns",), "work", "CPU time/operation"),
    ("client_cpu_per_op", ("client_user_ns", "client_system_ns"), "work", "CPU time/operation"),
    ("wire_bytes_per_op", ("wire_bytes",), "operations", "bytes/operation"),
    ("segments_per_op", ("segments",), "operations", "segments/operation"),
    ("machine_cpu_per_op", (), "work", "CPU time/operation"),
    ("disk_bytes_per_op", ("read_bytes", "write_bytes"), "work", "bytes/operation"),
    ("disk_written_per_op", ("write_bytes",), "work", "bytes/operation"),
    ("disk_read_per_op", ("read_bytes",), "work", "bytes/operation"),
    ("memory", ("memory_bytes",), "memory_samples", "bytes"),
)
UNITS = {"throughput": "operations/s"} | {name: unit for name, _, _, unit in RATIOS}
QUANTILES_BY_METRIC = {f"latency_{name}": share for name, share in QUANTILES}
OFFERED, MOST_OFFERED = 0.6, 0.75
"""Rate of the open loop ÷ capacity: of the plain arm, and at most of the encrypted one."""
MOST_THINKING = 0.8
"""Share of the clients that may be thinking: the rest is for those that wait for the server."""
PAIR_ONLY = "this server pair only"
WHOLE_SESSIONS = "each session's requests together"
RESAMPLED = 64
"""Up to this many sessions the pooled latency quantile is computed once more without each of them."""


class CellEstimator:
    """Takes the slices of one cell in the order of the record and answers at any time.

    `void_sessions`: numbers of sessions that were run again; their slices are passed over. `sequential`: the run may
    stop on precision, for which its intervals of more than LEAST_SESSIONS sessions pay in degrees of freedom. `recorded`:
    slices come from a file, so their histograms are checked too.
    """

    def __init__(self, void_sessions: Iterable[int] = (), *, sequential: bool = False, recorded: bool = False) -> None:
        self.counts: Counter[str] = Counter()
        """slices, failed, errors (operations), incomplete (blocks), and one for each mark."""
        self.error_kinds: Counter[str] = Counter()
        """The errors among them, by what they failed by."""
        self._void = set(void_sessions)
        self._recorded = recorded
        self._most_nu = LEAST_SESSIONS - 1 if sequential else None
        self._tallies = {"capacity": Tally(), "latency": Tally()}
        self._values: dict[int, array[float]] = defaultdict(lambda: array("d"))
        self._centres: dict[int, tuple[int, float]] = {}
        self._other: defaultdict[str, float] = defaultdict(float)
        self._open: tuple[str, int, int] | None = None
        self._pending: dict[int, SliceRecord] = {}
        self._broken = False

    # ── in ────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def add(self, record: SliceRecord) -> None:
        """Take one slice. Raises UsageError where its histogram is damaged."""
        if record.session in self._void:
            return
        agent = record.agent
        failed = bool(record.error) or agent is None or agent.done <= 0 or agent.seconds <= 0
        if record.phase not in self._tallies:
            if agent is not None and not failed and record.arm == "plain":
                self._other["work"] += agent.done
                self._other["seconds"] += agent.seconds
            return
        here = (record.phase, record.session, record.block)
        if here != self._open:
            self._close_block()
            self._open = here
        counts = self.counts
        if failed:
            counts["failed"] += 1
            self._broken = True  # A lead-in that failed spoils its block too: what it was there for did not happen.
        if agent is not None:
            counts["errors"] += agent.errors
            if agent.error_kinds:
                self.error_kinds.update(error_kinds(record))
        if record.position == 0 or failed:
            return
        counts["slices"] += 1
        for mark in record.marks:
            counts[mark] += 1
        counts[DISTURBED] += any(mark in DISTURBANCES for mark in record.marks)
        self._pending[record.position] = record
        if len(self._pending) == 4 and not self._broken:
            self._complete(here, [self._pending[position] for position in (1, 2, 3, 4)])
            self._pending, self._open = {}, None

    def void(self, session: int) -> None:
        """Take a session out of the estimate: it is run again."""
        self._void.add(session)
        self._values.pop(session, None)
        for tally in self._tallies.values():
            tally.drop(session)
        self._close_block()

    def _close_block(self) -> None:
        if self._pending or self._broken:
            self.counts["incomplete"] += 1
        self._pending, self._open, self._broken = {}, None, False

    def _complete(self, here: tuple[str, int, int], records: list[SliceRecord]) -> None:
        phase, session, _ = here
        first, second = records[0].arm, records[1].arm
        if first == second or [record.arm for record in records] != [first, second, second, first]:
            self.counts["incomplete"] += 1
            return
        sign = 1 if first == "plain" else -1
        latencies = None
        if phase == "latency":
            latencies = self._histograms(records, sign)
            if latencies is None:
                self.counts["incomplete"] += 1
                return
        rates = self._tallies[phase].append(session, sign, records, latencies)
        if phase == "capacity":
            self._values[session].append(sign * (rates[1] + rates[2] - rates[0] - rates[3]) / 2)

    def _histograms(self, records: list[SliceRecord], sign: int) -> tuple[Histogram, Histogram] | None:
        """Both arms' histograms of a block (plain, encrypted), or None where a slice has none."""
        texts = [record.agent.histogram for record in records if record.agent is not None]
        if not all(texts):
            return None
        try:
            decoded = [decode(text) for text in texts]
            if self._recorded:
                for record, one in zip(records, decoded, strict=True):
                    checked.histogram(record, one.total)
            outer, inner = merge([decoded[0], decoded[3]]), merge([decoded[1], decoded[2]])
        except ValueError as error:
            raise UsageError(f"session {records[0].session}, block {records[0].block}: {error}") from None
        if not len(outer.counts) or not len(inner.counts):
            return None
        return (outer, inner) if sign > 0 else (inner, outer)

    # ── at any time ───────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def blocks(self) -> int:
        """Complete blocks, of capacity or, where there are none, of latency."""
        return sum(map(len, self._values.values())) or len(self._tallies["latency"])

    def throughput_interval(self, mode: Mode = "full") -> Estimate | None:
        """Encrypted ÷ plain operations a second with its 95 % interval so far; None with too few blocks."""
        interval = self._throughput(mode)
        return None if interval is None else stated(interval, mode, "operations/s")

    def precise(self, target: float, mode: Mode = "full") -> bool:
        """Whether a run may stop: half-width of throughput's log ratio ≤ `target`, with blocks or sessions enough."""
        interval = self._throughput(mode)
        least = LEAST_SESSIONS if mode == "full" else LEAST_BLOCKS_QUICK
        return interval is not None and interval.n >= least and interval.half() <= target

    def plain_capacity(self) -> float:
        """Operations a second of the plain arm: of its capacity slices, else of warm-up and pilot; 0 where none ran."""
        rows = self._tallies["capacity"].arms()
        if len(rows.plain):
            return float(rows.total("plain", "work") / rows.total("plain", "seconds"))
        return self._other["work"] / self._other["seconds"] if self._other["seconds"] else 0.0

    def open_loop_rate(self, fallback: float = 0.0, *, clients: int = 0, think_s: float = 0.0) -> float:
        """Operations a second to ask of both arms: OFFERED of what the plain arm can do, or less where the encrypted one can do so little.

        More than an arm can do lengthens its queue for as long as the phase lasts, and its latency says nothing but how long that was.
        Who thinks, `think_s` an operation, keeps a connection: of `clients` there must be some left.
        `fallback`: the plain arm's capacity where no slice has told it.
        """
        rate = OFFERED * (self.plain_capacity() or fallback)
        rows = self._tallies["capacity"].arms()
        if len(rows.encrypted):
            rate = min(rate, MOST_OFFERED * rows.total("encrypted", "work") / rows.total("encrypted", "seconds"))
        if think_s > 0 and clients:
            rate = min(rate, MOST_THINKING * clients / think_s)
        return rate

    def carryover(self, session: int | None = None) -> Carryover:
        """λ with its p-value, of one session or of all capacity blocks so far."""
        signs, sessions, rates = self._tallies["capacity"].log_rates()
        mine = np.ones(len(signs), bool) if session is None else sessions == session
        return statistics.carryover(rates[mine], signs[mine])

    def carries_over(self, session: int) -> bool:
        """Whether what one arm left undone slowed the other in this session (λ ≠ 0)."""
        return self.carryover(session).found

    def session_estimates(self) -> dict[int, Estimate]:
        """Throughput of each session by itself, for plots: Hodges–Lehmann value and signed-rank interval of its
        blocks."""
        found: dict[int, Estimate] = {}
        for session, values in self._values.items():
            own = np.frombuffer(values)
            low, high = statistics.hodges_lehmann_interval(own)
            centre = statistics.hodges_lehmann(own)
            found[session] = Estimate(
                math.exp(centre), math.exp(low), math.exp(high), n=len(own), method="signed ranks of blocks"
            )
        return found

    def _throughput(self, mode: Mode) -> Interval | None:
        if mode == "full" and len(self._values) >= 2:
            centres = np.array([self._centre(session) for session in self._values])
            return statistics.session_interval(centres, most_nu=self._most_nu)
        every = np.concatenate([np.array(values) for values in self._values.values()] or [np.empty(0)])
        return statistics.block_interval(every) if len(every) >= 2 else None

    def _centre(self, session: int) -> float:
        """Session value, worked out again only when the session has grown: sessions that are over cost nothing."""
        values = self._values[session]
        known = self._centres.get(session)
        if known is None or known[0] != len(values):
            known = (len(values), statistics.hodges_lehmann(np.array(values)))
            self._centres[session] = known
        return known[1]

    # ── at the end ────────────────────────────────────────────────────────────────────────────────────────────────────

    def finish(self, mode: Mode = "full", margin: float = 0.01) -> CellEstimate:
        """The cell's estimate; equivalence is judged within ± log(1 + `margin`).

        Raises UsageError without a complete block.
        """
        self._close_block()
        capacity, latency = (self._tallies[phase].arms() for phase in ("capacity", "latency"))
        main, tally = (capacity, "capacity") if len(capacity.sessions) else (latency, "latency")
        if not len(main.sessions):
            raise UsageError(
                "no complete block of four good slices: there is nothing to estimate; give the run more --time"
            )
        overhead: dict[str, Estimate] = {}
        log_ratios = self.intervals(mode)
        for name, interval in log_ratios.items():
            if name not in UNITS and name not in QUANTILES_BY_METRIC:
                continue
            estimate = stated(interval, mode, UNITS.get(name, "latency"))
            if (share := QUANTILES_BY_METRIC.get(name)) and latency.unit_of(share, mode) == "session":
                estimate = msgspec.structs.replace(estimate, method=f"{estimate.method}; {WHOLE_SESSIONS}")
            overhead[name] = with_totals(estimate, log_ratios.get(totals.key(name)))
        primary = "latency_p50" if latency is main and "latency_p50" in log_ratios else "throughput"
        judged = judge(log_ratios.get(primary), log_ratios.get(totals.key(primary)), mode, margin)
        levels = self.typical(mode)
        carried = self.carryover()
        sessions = len(set(main.sessions.tolist()))
        return CellEstimate(
            verdict=judged.verdict,
            sessions=sessions,
            blocks=len(main.sessions),
            overhead=overhead,
            arms={
                arm: describe(
                    arm,
                    main,
                    latency,
                    self._tallies["latency"].histogram(arm),
                    mode,
                    self._tallies[tally].error_kinds(arm),
                )
                | {"typical": levels[arm]}
                for arm in ARMS
            },
            warnings=warnings(
                self.counts, mode, overhead, self.disagreements(mode), carried, capacity, latency, self.error_kinds
            ),
            smallest_effect=judged.smallest_effect,
            sessions_needed=judged.sessions_needed,
            totals_open=judged.totals_open,
            disturbed=0 < self.counts["slices"] == self.counts[DISTURBED],
            carryover={"lambda": carried.value, "p_value": carried.p_value},
            added=added(main, mode),
        )

    def intervals(self, mode: Mode = "full") -> dict[str, Interval]:
        """The log ratio of every metric, encrypted - plain, with its standard errors: what `finish` states, and what `compare` sets
        against another run's. The ratio of totals of what is stated robustly has the key `totals.key(metric)`."""
        capacity, latency = (self._tallies[phase].arms() for phase in ("capacity", "latency"))
        main = capacity if len(capacity.sessions) else latency
        found: dict[str, Interval | None] = {"throughput": self._throughput(mode)}
        if found["throughput"]:
            all_of_it = ratio_of_totals(capacity, ("work",), "seconds", mode, self._most_nu)
            found[totals.key("throughput")] = all_of_it
        pooled = self._pooled_latency(latency, mode)
        for column, (name, share) in enumerate(QUANTILES):
            if of := latency.unit_of(share, mode):
                own = self._latency(latency, column, mode, whole=of == "session")
                found[f"latency_{name}"] = own
                if own is not None:
                    found[totals.key(f"latency_{name}")] = pooled.interval(column, own, self._most_nu)
        for name, numerator, denominator, _ in RATIOS:
            found[name] = ratio_of_totals(main, numerator or main.machine, denominator, mode, self._most_nu)
        return {name: interval for name, interval in found.items() if interval is not None}

    def against(self, reference: CellEstimator, mode: Mode) -> Estimate | None:
        """This cell's throughput ratio ÷ the reference's, of the sessions that they shared; None with fewer than two.

        In full mode the differences of session values, in quick mode those of blocks in their order: blocks of one round lie
        side by side in time, so the weather that they have in common cancels.
        """
        if mode == "full":
            shared = [session for session in self._values if session in reference._values]
            values = np.array([self._centre(session) - reference._centre(session) for session in shared])
            interval = statistics.session_interval(values, most_nu=self._most_nu) if len(values) >= 2 else None
        else:
            pairs = [
                (mine, theirs)
                for session in self._values
                for mine, theirs in zip(self._values[session], reference._values.get(session, ()), strict=False)
            ]
            values = np.array([mine - theirs for mine, theirs in pairs])
            interval = statistics.block_interval(values) if len(values) >= 2 else None
        return None if interval is None else stated(interval, mode, "ratio of ratios")

    def client_against(self, reference: CellEstimator, mode: Mode) -> dict[str, Estimate]:
        """What this cell's client costs, ÷ the reference's, arm by arm: `throughput_plain`, `server_cpu_plain`, `client_cpu_plain`, ….

        Of the sessions that they shared (full mode), or of blocks in their order (quick mode), as `against`.
        """
        mine, theirs = (each._tallies["capacity"].arms() for each in (self, reference))
        found = {}
        for arm in ARMS:
            for name, (above, below) in CLIENT_FIGURES.items():
                own, other = (_by_session(each, arm, above, below, mode) for each in (mine, theirs))
                pairs = [pair for session in own for pair in zip(own[session], other.get(session, ()), strict=False)]
                values = np.array([a - b for a, b in pairs if math.isfinite(a) and math.isfinite(b)])
                if len(values) < 2:
                    continue
                interval = (
                    statistics.session_interval(values, most_nu=self._most_nu)
                    if mode == "full"
                    else statistics.block_interval(values)
                )
                found[f"{name}_{arm}"] = stated(interval, mode, "client ÷ reference")
        return found

    def _latency(self, latency: Arms, column: int, mode: Mode, *, whole: bool) -> Interval | None:
        """Log ratio of one quantile: by blocks as throughput is, sessions' Hodges–Lehmann values included.

        `whole`: of sessions as a whole, where their blocks have too few requests.
        """
        if whole or latency.by_session(mode):
            return statistics.session_interval(_session_latency(latency, column, whole=whole)[1], most_nu=self._most_nu)
        values = np.log(latency.encrypted_ns[:, column] / latency.plain_ns[:, column])
        return statistics.block_interval(values) if len(values) >= 2 else None

    # ── one estimator for levels and ratio ────────────────────────────────────────────────────────────────────────────

    def typical(self, mode: Mode = "full") -> dict[Arm, dict[str, Any]]:
        """Both arms' levels as the robust ratio sees them: `throughput` in operations/s, `latency_ms` by quantile.

        The level of both arms together is estimated exactly as their ratio is (Hodges–Lehmann over blocks, mean over sessions), and half
        of the log ratio lies on either side of it. So encrypted ÷ plain is the printed ratio.
        """
        found: dict[Arm, dict[str, Any]] = {arm: {} for arm in ARMS}
        if interval := self._throughput(mode):
            _, sessions, rates = self._tallies["capacity"].log_rates()
            middles = rates.mean(axis=1)
            groups = [sessions == each for each in np.unique(sessions)] if mode == "full" else [sessions == sessions]
            level = float(np.mean([statistics.hodges_lehmann(middles[own]) for own in groups]))
            for arm, value in around(level, interval.centre).items():
                found[arm]["throughput"] = value
        latency = self._tallies["latency"].arms()
        for column, (name, share) in enumerate(QUANTILES):
            of = latency.unit_of(share, mode)
            if not of or (own := self._latency(latency, column, mode, whole=of == "session")) is None:
                continue
            if latency.by_session(mode):
                level = float(_session_latency(latency, column, whole=of == "session")[0].mean())
            else:
                level = statistics.hodges_lehmann(np.log(latency.plain_ns * latency.encrypted_ns)[:, column] / 2)
            for arm, value in around(level, own.centre).items():
                found[arm].setdefault("latency_ms", {})[name] = value / 1e6
        return found

    # ── what the robust ratio leaves out ──────────────────────────────────────────────────────────────────────────────

    def disagreements(self, mode: Mode = "full") -> dict[str, float]:
        """By metric: p-value that the typical block and all slices together show one cost; absent: not tested."""
        found: dict[str, float] = {}
        capacity, latency = (self._tallies[phase].arms() for phase in ("capacity", "latency"))
        if len(capacity.sessions) >= 2:
            found["throughput"] = throughput_differs(capacity)
        pooled = self._pooled_latency(latency, mode)
        for column, (name, share) in enumerate(QUANTILES):
            if not (of := latency.unit_of(share, mode)):
                continue
            if latency.by_session(mode):
                if len(pooled.parts):
                    _, centres = _session_latency(latency, column, whole=of == "session")
                    error = statistics.t_error(pooled.parts[:, column] - centres, "sessions")
                    apart = float(pooled.log_ratio[column] - centres.mean())
                    found[f"latency_{name}"] = Interval(apart, (error,), len(centres)).p_value()
            else:
                values = np.log(latency.encrypted_ns[:, column] / latency.plain_ns[:, column])
                found[f"latency_{name}"] = totals.one_sided(totals.far_off(values, values, latency.sessions))
        return found

    def _pooled_latency(self, latency: Arms, mode: Mode) -> Pooled:
        """Quantiles of all requests together; each session's part in their log ratio by the jackknife."""
        kept, shares = self._tallies["latency"], [share for _, share in QUANTILES]

        def log_ratio(but: int | None = None) -> Floats:
            plain, encrypted = (kept.histogram(arm, but=but) for arm in ARMS)
            if plain is None or encrypted is None:
                return np.full(len(shares), np.nan)
            found: Floats = np.log(quantiles(encrypted, shares) / quantiles(plain, shares))
            return found

        whole, sessions = log_ratio(), np.unique(latency.sessions).tolist()
        if not latency.by_session(mode) or len(sessions) > RESAMPLED:
            return Pooled(whole, np.empty((0, len(shares))))
        n = len(sessions)
        return Pooled(whole, np.array([n * whole - (n - 1) * log_ratio(each) for each in sessions]))


def watching(void_sessions: Iterable[int], sequential: bool) -> CellEstimator:
    """An estimator for a cell that is being measured. `sequential`: it may stop before its time is over."""
    return CellEstimator(void_sessions, sequential=sequential)


def throughput_differs(blocks: Arms) -> float:
    """p-value that the typical block and all slices together show one cost in throughput; `blocks`: of the closed loop, two or more."""
    plain, encrypted = (np.log(blocks.rates(arm)).mean(axis=1) for arm in ARMS)
    _, parts = _parts(blocks, ("work",), "seconds", "quick")
    return totals.one_sided(totals.far_off(encrypted - plain, parts, blocks.sessions))


class Pooled(NamedTuple):
    """Latency quantiles of all requests together, as log ratios, encrypted − plain."""

    log_ratio: Floats
    """Shape (quantiles,)."""
    parts: Floats
    """Shape (sessions, quantiles): jackknife pseudo-values; (0, quantiles) where blocks are the unit."""

    def interval(self, column: int, robust: Interval, most_nu: int | None) -> Interval:
        """Of one quantile. Blocks keep no histograms: over blocks the standard error is the robust estimate's own."""
        centre = float(self.log_ratio[column])
        if not len(self.parts):
            return robust._replace(centre=centre, mean=None)
        return statistics.session_interval(self.parts[:, column], centre, most_nu)


def _session_latency(latency: Arms, column: int, *, whole: bool) -> tuple[Floats, Floats]:
    """Of each session one quantile: log level of both arms together, and log ratio; `whole`: of its requests merged, not of its blocks."""
    if whole:
        plain, encrypted = np.log(latency.session_plain_ns[:, column]), np.log(latency.session_encrypted_ns[:, column])
        return (plain + encrypted) / 2, encrypted - plain
    plain, encrypted = np.log(latency.plain_ns[:, column]), np.log(latency.encrypted_ns[:, column])
    centres = [
        [statistics.hodges_lehmann(each[latency.sessions == session]) for session in np.unique(latency.sessions)]
        for each in ((plain + encrypted) / 2, encrypted - plain)
    ]
    return np.array(centres[0]), np.array(centres[1])


def around(level: float, log_ratio: float) -> dict[Arm, float]:
    """Both arms' levels of a log level of both together: their quotient is the ratio."""
    return {"plain": math.exp(level - log_ratio / 2), "encrypted": math.exp(level + log_ratio / 2)}


CLIENT_FIGURES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "throughput": (("work",), ("seconds",)),
    "server_cpu": (("server_cpu_ns",), ("work",)),
    "client_cpu": (("client_user_ns", "client_system_ns"), ("work",)),
}
"""What is compared between two clients: sums, and what they are divided by."""


def _by_session(
    blocks: Arms, arm: Arm, above: tuple[str, ...], below: tuple[str, ...], mode: Mode
) -> dict[int, list[float]]:
    """Log of the sums' ratio of one arm: one value a session (full mode), or one a block. Pure."""
    over, under = blocks.by_block(arm, *above), blocks.by_block(arm, *below)
    found: dict[int, list[float]] = {}
    for session in dict.fromkeys(blocks.sessions.tolist()):
        here = blocks.sessions == session
        a, b = (
            (over[here], under[here])
            if mode == "quick"
            else (over[here].sum(keepdims=True), under[here].sum(keepdims=True))
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            found[int(session)] = [float(each) for each in np.log(a / b)]
    return found


def holm(cells: Sequence[CellEstimate]) -> list[CellEstimate]:
    """The same cells with the p-values of their verdicts corrected for their number (Holm).

    A cell that `differs` by itself and no longer among the others becomes `unresolved`, and what it could have seen by itself is
    no longer said; equivalence is left as it is, as each claim of equivalence is a claim about one cell.
    """
    keys = ["throughput" if "throughput" in cell.overhead else "latency_p50" for cell in cells]
    raw = [cell.overhead[key].p_value if key in cell.overhead else None for cell, key in zip(cells, keys, strict=True)]
    adjusted = iter(statistics.holm([p for p in raw if p is not None]))
    result = []
    for cell, key, p in zip(cells, keys, raw, strict=True):
        if p is None:
            result.append(cell)
            continue
        p_value = next(adjusted)
        overhead = {**cell.overhead, key: msgspec.structs.replace(cell.overhead[key], p_value=p_value)}
        cell = msgspec.structs.replace(cell, overhead=overhead)
        if cell.verdict == "differs" and p_value >= ALPHA:
            cell = msgspec.structs.replace(cell, verdict="unresolved", smallest_effect=None, sessions_needed=None)
        result.append(cell)
    return result


ADDED: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("server_cpu", ("server_cpu_ns",), "work"),
    ("client_cpu", ("client_user_ns", "client_system_ns"), "work"),
)


def added(arms: Arms, mode: Mode) -> dict[str, Added]:
    """CPU per operation, encrypted − plain, µs, with its t interval over sessions (quick mode: blocks).

    The difference of both arms' totals, which are the printed levels; its error is linearised as that of their ratio is.
    """
    found: dict[str, Added] = {}
    for name, fields, per in ADDED:
        if min(arms.total(arm, *fields) for arm in ARMS) <= 0 or min(arms.total(arm, per) for arm in ARMS) <= 0:
            continue
        mean, parts = 0.0, np.zeros(len(arms.by_unit("plain", mode, per)))
        for arm, sign in zip(ARMS, (-1, 1), strict=True):
            cpu, operations = arms.by_unit(arm, mode, *fields) / 1e3, arms.by_unit(arm, mode, per)
            level = float(cpu.sum() / operations.sum())
            mean += sign * level
            parts += sign * (cpu - level * operations) * len(cpu) / float(operations.sum())
        if len(parts) >= 2:
            error = statistics.t_error(parts)
            half = error.standard * student_t.quantile(0.975, error.nu)
            found[name] = Added(mean, mean - half, mean + half, error.standard, len(parts))
    return found


def ratio_of_totals(
    arms: Arms, numerator: Sequence[str], denominator: str, mode: Mode, most_nu: int | None = None
) -> Interval | None:
    """log of (Σ numerator ÷ Σ denominator), encrypted − plain, with its interval; None where a total is 0 or n < 2.

    The scatter of the units' parts is the interval's, by the same rule as throughput's.
    """
    log_ratio, values = _parts(arms, numerator, denominator, mode)
    if len(values) < 2:
        return None
    if arms.by_session(mode):
        return statistics.session_interval(values, log_ratio, most_nu)
    return statistics.block_interval(values, log_ratio)


def _parts(arms: Arms, numerator: Sequence[str], denominator: str, mode: Mode) -> tuple[float, Floats]:
    """log R of (Σ numerator ÷ Σ denominator), encrypted − plain, and each unit's part in it; no parts where a total is 0.

    The log ratio is linearised (delta method): unit i, a session or a block, adds n · (xᵢ/Σx) for each of the four
    totals, with its sign. These parts have mean log R exactly.
    """
    n = len(arms.by_unit("plain", mode, denominator))
    parts, log_ratio = np.zeros(n), 0.0
    for arm, sign in zip(ARMS, (-1, 1), strict=True):
        for fields, side in ((numerator, 1), ((denominator,), -1)):
            by_unit = arms.by_unit(arm, mode, *fields)
            total = float(by_unit.sum())
            if total <= 0:
                return 0.0, np.empty(0)
            log_ratio += sign * side * math.log(total)
            parts += sign * side * (n * by_unit / total - 1)
    return log_ratio, parts + log_ratio


def with_totals(estimate: Estimate, of_totals: Interval | None) -> Estimate:
    """The estimate with the ratio of totals beside it; without one the ratio of totals is the estimate itself."""
    if of_totals is None:
        return msgspec.structs.replace(estimate, ratio_of_totals=estimate.ratio)
    low, high = of_totals.bounds()
    return msgspec.structs.replace(
        estimate, ratio_of_totals=math.exp(of_totals.centre), totals_low=math.exp(low), totals_high=math.exp(high)
    )


def stated(interval: Interval, mode: Mode, unit: str) -> Estimate:
    """A log ratio's interval as it is printed: the ratio, its bounds, and of whom it speaks."""
    low, high = interval.bounds()
    method = interval.method()
    if len(interval.errors) > 1 or mode == "quick":
        method += f"; {PAIR_ONLY}"
    return Estimate(
        ratio=math.exp(interval.centre),
        low=math.exp(low),
        high=math.exp(high),
        n=interval.n,
        method=method,
        p_value=interval.p_value(),
        unit=unit,
    )


class Judged(NamedTuple):
    """Verdict, smallest effect that could have been found, the sessions that would resolve it, and what kept it open."""

    verdict: Verdict
    smallest_effect: float | None = None
    sessions_needed: int | None = None
    totals_open: bool = False
    """The typical block is within the margin; all slices together may not be."""


def judge(interval: Interval | None, of_totals: Interval | None, mode: Mode, margin: float) -> Judged:
    """Equivalence goes first: an effect that is surely there and surely within the margin is, by the margin's meaning, none. It takes both
    estimates: the robust one hides stalls that encryption causes, and the ratio of totals has them.
    """
    if interval is None:
        return Judged("unresolved")
    bound = math.log1p(margin)
    smallest = math.expm1(interval.smallest_effect())
    within = interval.tost(bound) < ALPHA
    if within and (of_totals is None or of_totals.tost(bound) < ALPHA):
        return Judged("equivalent", smallest)
    if interval.p_value() < ALPHA:
        return Judged("differs", smallest)
    open_ = within and of_totals is not None
    if within and of_totals is not None:
        # What is open is the totals' cost: what this run could see of it decides.
        interval = of_totals
        smallest = math.expm1(interval.smallest_effect())
    # One session says nothing of the scatter between sessions; what it knows of its own error is the least that it
    # can be.
    between = math.sqrt(interval.n) if mode == "full" and len(interval.errors) == 1 else 1.0
    sd = between * max(error.standard for error in interval.errors)
    needed = statistics.sessions_needed(interval.centre, sd, bound)
    return Judged("unresolved", smallest, None if needed is None else max(needed, LEAST_SESSIONS), open_)
