"""What each arm did, and the warnings against a cell's numbers, from its blocks. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from ciphercost.estimate import totals
from ciphercost.estimate.histogram import quantiles
from ciphercost.estimate.statistics import Carryover, block_interval
from ciphercost.estimate.tally import COLUMN, ENOUGH, ENOUGH_OF_A_SESSION, HOST, QUANTILES, SHARES, Arms
from ciphercost.model.errors import kind
from ciphercost.model.histogram import Histogram
from ciphercost.model.result import Estimate, Warning_
from ciphercost.model.shares import in_percent
from ciphercost.model.spec import ARMS, Arm, Mode
from ciphercost.plan.schedule import LEAST_BLOCKS_QUICK, LEAST_SESSIONS

DISAGREE = 0.001
"""Log ratios closer than this agree, however narrow the interval is."""
LATE = 0.01
"""Above this share of late requests, the open loop could not keep its rate."""
ROWS_LEVEL = 0.999
FEW_OPERATIONS = 20
"""With fewer per slice, slices may be shorter than the longest operations."""

MARKS = {
    "client-bound": (
        "the load generator used more than 85 % of its cores in {n} of {all} slices: there the client is the limit, "
        "not encryption; try fewer --clients, or give the client more cores"
    ),
    "steal": (
        "the hypervisor took more than 5 % of the CPU in {n} of {all} slices; on a quieter machine the interval is "
        "narrower"
    ),
    "foreign-cpu": (
        "other processes used more than 5 % of the CPU in {n} of {all} slices; without them the interval is narrower"
    ),
    "throttled": (
        "a CPU quota held the server or the client back for more than 5 % of the time in {n} of {all} slices: rates and latencies are "
        "those that the quota allows; CPU time per operation carries over to a server without one"
    ),
    "jit": (
        "the client spent more than 10 % of the time compiling itself in {n} of {all} slices: it was not warm; try a longer --time"
    ),
    "gc": (
        "the client spent more than 10 % of the time collecting garbage in {n} of {all} slices: part of its cost is "
        "memory management"
    ),
}

DISTURBED = "disturbed"
"""Key in the counts: slices with a mark of `disturbance.MARKS`."""


# ── arms ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def describe(
    arm: Arm, main: Arms, latency: Arms, histogram: Histogram | None, mode: Mode, error_kinds: Mapping[str, int]
) -> dict[str, Any]:
    """Totals, figures per operation, latency quantiles (ms) and host counters of one arm.

    `main`: the blocks of the closed loop, or of the open loop where there are no others. `histogram`: all open-loop
    latencies in ns. Figures of the server and the host are left out if nothing was sampled.
    """
    operations, seconds = main.total(arm, "operations"), main.total(arm, "seconds")
    facts: dict[str, Any] = {
        "slices": int(main.of(arm).shape[0] * 2),
        "operations": int(operations),
        "errors": int(main.total(arm, "errors")),
        "error_kinds": dict(error_kinds),
        "seconds": seconds,
        "throughput": main.total(arm, "work") / seconds,
        "rows_per_op": main.per_operation(arm, "rows"),
        "client_cpu_us_per_op": main.per_work(arm, "client_user_ns", "client_system_ns") / 1e3,
        "client_user_us_per_op": main.per_work(arm, "client_user_ns") / 1e3,
        "client_system_us_per_op": main.per_work(arm, "client_system_ns") / 1e3,
        "wire_bytes_per_op": main.per_operation(arm, "wire_bytes"),
        "segments_per_op": main.per_operation(arm, "segments"),
        "connects": int(main.total(arm, "connects")),
        "resumed": int(main.total(arm, "resumed")),
    }
    if early := main.total(arm, "early"):
        facts["early"] = int(early)
    if retries := main.total(arm, "retries"):
        facts["retries"] = int(retries)
    if main.total(arm, "sampled"):
        facts |= {
            "server_cpu_us_per_op": main.per_work(arm, "server_cpu_ns") / 1e3,
            "server_user_us_per_op": main.per_work(arm, "server_user_ns") / 1e3,
            "server_system_us_per_op": main.per_work(arm, "server_system_ns") / 1e3,
            "machine_cpu_us_per_op": main.per_work(arm, *main.machine) / 1e3,
            "read_bytes_per_op": main.per_work(arm, "read_bytes"),
            "write_bytes_per_op": main.per_work(arm, "write_bytes"),
            "host": host(arm, main),
        }
    if main.total(arm, "hop_cpu_ns"):
        facts["hop_cpu_us_per_op"] = main.per_work(arm, "hop_cpu_ns") / 1e3
    if work := main.total(arm, "scheduled_work"):
        facts |= {f"{name}_per_op": main.total(arm, name) / work for name in ("switches", "faults")}
    if samples := main.total(arm, "memory_samples"):
        facts["memory_bytes"] = main.total(arm, "memory_bytes") / samples
    if histogram is not None and (total := histogram.total):
        shown = [(name, share) for name, share in QUANTILES if latency.unit_of(share, mode)]
        values = quantiles(histogram, [share for _, share in shown]) / 1e6
        facts["latency_ms"] = {name: float(value) for (name, _), value in zip(shown, values, strict=True)}
        facts["latency_requests"] = total
        facts["late"] = int(latency.total(arm, "late"))
    return facts


def host(arm: Arm, main: Arms) -> dict[str, dict[str, float]]:
    """Mean, variance and coefficient of variation over slices of each host counter, as the published studies print them."""
    slices = main.of(arm).reshape(-1, main.of(arm).shape[-1])
    slices = slices[slices[:, COLUMN["sampled"]] > 0]
    table = {}
    for name in HOST:
        values = slices[:, COLUMN[name]] * (100 if name in SHARES else 1)
        if np.isnan(values).any():
            continue  # not recorded
        mean, variance = float(values.mean()), float(values.var(ddof=1)) if len(values) > 1 else 0.0
        table[name] = {"mean": mean, "variance": variance, "cv": math.sqrt(variance) / mean if mean else 0.0}
    return table


def rows_differ(blocks: Arms) -> bool:
    """Whether the arms returned different numbers of rows per operation.

    If every block has the same number, any difference counts. If transactions are drawn at random, the difference must
    exceed their scatter (99.9 %). It is one of two ratios of sums: with few operations, the mean of the blocks' own ratios
    would weight a row by how few others ended with it.
    """
    operations = {arm: blocks.by_block(arm, "operations") for arm in ARMS}
    rows = {arm: blocks.by_block(arm, "rows") for arm in ARMS}
    # With slow operations, a block in which none ended has no rows to compare.
    some = (operations["plain"] > 0) & (operations["encrypted"] > 0)
    if not some.any():
        return False
    per_operation = {arm: rows[arm][some] / operations[arm][some] for arm in ARMS}
    if some.sum() < 2 or float(np.ptp(per_operation["encrypted"] - per_operation["plain"])) < 1e-12:
        return abs(float((per_operation["encrypted"] - per_operation["plain"]).mean())) > 1e-9
    ratio = {arm: rows[arm].sum() / operations[arm].sum() for arm in ARMS}
    # The delta method: what each block adds to the error of the ratio of sums.
    off = {arm: (rows[arm] - ratio[arm] * operations[arm]) / operations[arm].mean() for arm in ARMS}
    difference = float(ratio["encrypted"] - ratio["plain"])
    low, high = block_interval(difference + off["encrypted"] - off["plain"], difference).bounds(ROWS_LEVEL)
    return not low <= 0 <= high


def _rows_differ_text(blocks: Arms) -> str:
    text = "the arms returned different numbers of rows per operation: they did different work"
    fewest = min(float(blocks.by_block(arm, "operations").mean()) / 2 for arm in ARMS)
    if fewest < FEW_OPERATIONS:
        text += (
            f". Of one arm only {fewest:.2g} operations ended in a slice, so the longest may never have ended within one, and "
            "then they were not counted: try a longer --time, which allows longer slices, or fewer --rows"
        )
    return text


# ── warnings ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def warnings(
    counts: Counter[str],
    mode: Mode,
    overhead: dict[str, Estimate],
    differ: Mapping[str, float],
    carried: Carryover,
    capacity: Arms,
    latency: Arms,
    error_kinds: Counter[str],
) -> list[Warning_]:
    """What a reader must know before trusting the numbers. Each text suggests what to try next."""
    warnings = [
        Warning_(mark, text.format(n=counts[mark], all=counts["slices"]))
        for mark, text in MARKS.items()
        if counts[mark]
    ]

    def warn(code: str, text: str) -> None:
        warnings.append(Warning_(code, text))

    main = capacity if len(capacity.sessions) else latency
    blocks, sessions = len(main.sessions), len(set(main.sessions.tolist()))
    if counts["errors"]:
        by_arm = ", ".join(f"{counts[f'errors {arm}']} {arm}" for arm in ARMS)
        kinds = ", ".join(f"{count} × {kind(code)}" for code, count in error_kinds.most_common())
        warn(
            "errors",
            f"{counts['errors']} operations failed and are not counted{f' ({kinds})' if kinds else ''}; see "
            f"first_error in slices.jsonl; by arm: {by_arm}",
        )
    if rows_differ(main):
        warn("rows-differ", _rows_differ_text(main))
    if mode == "full" and sessions == 1:
        warn("one-session", "one session only: the interval holds for this server pair alone; try --sessions 8")
    elif mode == "full" and sessions < LEAST_SESSIONS:
        warn("few-sessions", f"{sessions} sessions give a wide interval; try --sessions {LEAST_SESSIONS}")
    if sessions == 1 and blocks < LEAST_BLOCKS_QUICK:
        warn(
            "few-blocks",
            f"{blocks} blocks: an interval from fewer than {LEAST_BLOCKS_QUICK} is rough; try a longer --time",
        )
    if carried.significant:
        warn(
            "carry-over",
            f"carry-over between arms: an encrypted slice changes the slice after it by {in_percent(math.expm1(carried.value), 2, '+')} "
            f"(p = {carried.p_value:.2g}); lead-ins balance most of it and longer slices dilute it; try a longer --time",
        )
    warnings += _totals(overhead, differ, totals.stalled(capacity)) + _open_loop(latency, mode)
    return warnings


def _totals(overhead: Mapping[str, Estimate], differ: Mapping[str, float], stalled: totals.Stalled) -> list[Warning_]:
    """Warnings if the robust ratio and the ratio of totals differ by more than chance, or slices of one arm stalled.

    `differ`: p-values of that difference, by metric.
    """
    warnings = []
    for name in ("throughput", *(key for key in overhead if key.startswith("latency_"))):
        estimate = overhead.get(name)
        if estimate is None or estimate.ratio_of_totals is None:
            continue
        apart = abs(math.log(estimate.ratio_of_totals / estimate.ratio)) > DISAGREE
        uneven = name == "throughput" and stalled.uneven
        counted = (
            f"slices that stalled (under half the usual rate): {stalled.encrypted} encrypted, {stalled.plain} plain"
        )
        if apart and (differ.get(name, 1.0) < totals.ALPHA or (uneven and stalled.p_value < totals.ALPHA)):
            text = (
                f"{name}: the typical block's ratio is {estimate.ratio:.4g}, that of all slices together {_of_totals(estimate)}: "
                f"more slices of one arm are far from typical than chance explains{f'; {counted}' if uneven else ''}; "
                "encryption may be the cause; see slices.jsonl, or try a longer --time"
            )
            warnings.append(Warning_("totals-disagree", text))
        elif apart and uneven:
            text = (
                f"{counted}: the typical block's ratio is {estimate.ratio:.4g}, that of all slices together {_of_totals(estimate)}; "
                f"such a split may be chance (p = {stalled.p_value:.2g}); "
                "see slices.jsonl, or try a longer --time"
            )
            warnings.append(Warning_("stalls", text))
    return warnings


def _of_totals(estimate: Estimate) -> str:
    """`0.982 (95 % interval 0.96 to 1.004)`."""
    if estimate.totals_low is None or estimate.totals_high is None:
        return f"{estimate.ratio_of_totals:.4g}"
    return f"{estimate.ratio_of_totals:.4g} (95 % interval {estimate.totals_low:.4g} to {estimate.totals_high:.4g})"


def _open_loop(latency: Arms, mode: Mode) -> list[Warning_]:
    """Warnings about the latency phase, if there was one."""
    if not len(latency.sessions):
        return []
    warnings = []
    missing = [name for name, share in QUANTILES[:3] if not latency.unit_of(share, mode)]
    if missing:
        share = dict(QUANTILES)[missing[0]]
        text = (
            f"{', '.join(missing)} not printed: {missing[0]} needs {ENOUGH / (1 - share):,.0f} requests per block and arm"
            + (f", or {ENOUGH_OF_A_SESSION / (1 - share):,.0f} per session and arm" if latency.by_session(mode) else "")
            + "; try a longer --time or a higher --rate"
        )
        warnings.append(Warning_("no-latency-quantile", text))
    late = sum(latency.total(arm, "late") for arm in ARMS) / sum(latency.total(arm, "operations") for arm in ARMS)
    if late > LATE:
        text = (
            f"{100 * late:.1f} % of the open loop's requests began more than 1 ms late (their latency includes it): "
            "the rate is near this machine's limit; try a lower --rate"
        )
        warnings.append(Warning_("late", text))
    return warnings
