"""Costs per operation: ratios of totals, encrypted ÷ plain, and the CPU time that encryption adds. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ciphercost.estimate import rare, statistics, student_t, totals
from ciphercost.estimate.statistics import Interval
from ciphercost.estimate.tally import Arms, Floats
from ciphercost.model.result import Added
from ciphercost.model.spec import ARMS, Mode

# machine_cpu_per_op has no fields here: `Arms.machine` names them. It includes everything that is neither agent nor controller. At rest,
# kernel threads may do the encryption, and they are no server's processes. In transit only the server works, so there it is noise.
RATIOS: tuple[tuple[str, tuple[str, ...], str, str], ...] = (
    ("server_cpu_per_op", ("server_cpu_ns",), "work", "CPU time/operation"),
    ("client_cpu_per_op", ("client_user_ns", "client_system_ns"), "work", "CPU time/operation"),
    ("hop_cpu_per_op", ("hop_cpu_ns",), "work", "CPU time/operation"),
    ("wire_bytes_per_op", ("wire_bytes",), "operations", "bytes/operation"),
    ("segments_per_op", ("segments",), "operations", "segments/operation"),
    ("switches_per_op", ("switches",), "scheduled_work", "switches/operation"),
    ("faults_per_op", ("faults",), "scheduled_work", "faults/operation"),
    ("machine_cpu_per_op", (), "work", "CPU time/operation"),
    ("disk_bytes_per_op", ("read_bytes", "write_bytes"), "work", "bytes/operation"),
    ("disk_written_per_op", ("write_bytes",), "work", "bytes/operation"),
    ("disk_read_per_op", ("read_bytes",), "work", "bytes/operation"),
    ("memory", ("memory_bytes",), "memory_samples", "bytes"),
)
"""(metric, fields of the numerator, field of the denominator, unit). The ratio of totals is the estimate of these metrics."""
ADDED: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("server_cpu", ("server_cpu_ns",), "work"),
    ("client_cpu", ("client_user_ns", "client_system_ns"), "work"),
    ("hop_cpu", ("hop_cpu_ns",), "work"),
    ("machine_cpu", (), "work"),
)
"""As in RATIOS."""


def ratio_of_totals(
    arms: Arms, numerator: Sequence[str], denominator: str, mode: Mode, most_nu: int | None = None
) -> Interval | None:
    """log of (Σ numerator ÷ Σ denominator), encrypted − plain, with its interval; None if a total is 0 or n < 2.

    The interval comes from the scatter of the units' parts, by the same rule as that of throughput.
    """
    log_ratio, values = parts_of_totals(arms, numerator, denominator, mode)
    if len(values) < 2:
        return None
    if arms.by_session(mode):
        return statistics.session_interval(values, log_ratio, most_nu)
    return statistics.block_interval(values, log_ratio)


def parts_of_totals(arms: Arms, numerator: Sequence[str], denominator: str, mode: Mode) -> tuple[float, Floats]:
    """log R of (Σ numerator ÷ Σ denominator), encrypted − plain, and each unit's part in it, shape (units,).

    The log ratio is linearised (delta method): unit i, a session or a block, adds n · (xᵢ/Σx) for each of the four
    totals, with its sign. The mean of these parts is exactly log R. If a total is 0, there are no parts.
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


def without_ratio(arms: Arms) -> dict[str, str]:
    """By metric of RATIOS: why it has no ratio although an arm has some of it, because few events decide."""
    reasons = {name: rare.too_few(arms, fields or arms.machine, per) for name, fields, per, _ in RATIOS}
    return {name: reason for name, reason in reasons.items() if reason}


def throughput_differs(blocks: Arms) -> float:
    """p-value that the typical block and all slices together show the same cost in throughput.

    `blocks`: two or more blocks of the closed loop.
    """
    plain, encrypted = (np.log(blocks.rates(arm)).mean(axis=1) for arm in ARMS)
    _, parts = parts_of_totals(blocks, ("work",), "seconds", "quick")
    return totals.one_sided(totals.far_off(encrypted - plain, parts, blocks.sessions))


def added(arms: Arms, mode: Mode) -> dict[str, Added]:
    """CPU per operation, encrypted − plain, in µs, with its t interval over sessions (quick mode: blocks).

    It is the difference of both arms' totals, which are the printed levels. Its error is linearised like that of their ratio.
    """
    added_cpu: dict[str, Added] = {}
    for name, parts in parts_of_added(arms, mode).items():
        if len(parts) >= 2:
            mean, error = float(parts.mean()), statistics.t_error(parts)
            half = error.standard * student_t.quantile(0.975, error.nu)
            added_cpu[name] = Added(mean, mean - half, mean + half, error.standard, len(parts))
    return added_cpu


def parts_of_added(arms: Arms, mode: Mode) -> dict[str, Floats]:
    """Each unit's part in what `added` gives, shape (units,); their mean is the difference of both arms' totals."""
    parts_by_name: dict[str, Floats] = {}
    for name, fields, per in ADDED:
        # Of a hop that only one arm goes through, the other has none.
        enough = max if name == "hop_cpu" else min
        fields = fields or arms.machine
        if enough(arms.total(arm, *fields) for arm in ARMS) <= 0 or min(arms.total(arm, per) for arm in ARMS) <= 0:
            continue
        mean, parts = 0.0, np.zeros(len(arms.by_unit("plain", mode, per)))
        for arm, sign in zip(ARMS, (-1, 1), strict=True):
            cpu, operations = arms.by_unit(arm, mode, *fields) / 1e3, arms.by_unit(arm, mode, per)
            level = float(cpu.sum() / operations.sum())
            mean += sign * level
            parts += sign * (cpu - level * operations) * len(cpu) / float(operations.sum())
        parts_by_name[name] = parts + mean
    return parts_by_name


def added_by_session(arms: Arms, mode: Mode) -> dict[str, dict[int, float]]:
    """The same by the session's number; empty where sessions are not the unit."""
    if not arms.by_session(mode):
        return {}
    numbers = np.unique(arms.sessions).tolist()
    return {name: dict(zip(numbers, parts.tolist(), strict=True)) for name, parts in parts_of_added(arms, mode).items()}
