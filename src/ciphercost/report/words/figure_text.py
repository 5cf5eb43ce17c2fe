"""Text on one figure of a cell: its name, cost, interval and levels. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from ciphercost.estimate.imported import imported_metric
from ciphercost.estimate.levels import LEVELS, level
from ciphercost.estimate.notation import TIMES, by_factor, decimals_of_half, interval, number, of_what, percent, worded
from ciphercost.model.facts import PAGE
from ciphercost.model.printable import printable as printable  # what shows text has it from here
from ciphercost.model.result import Cell, Estimate, Part
from ciphercost.model.spec import ARMS

METRICS: tuple[tuple[str, str, str, str], ...] = (
    # key, label, word where encrypted is more, word where it is less
    ("server_cpu_per_op", "server CPU per operation", "more", "less"),
    ("machine_cpu_per_op", "… with kernel threads", "more", "less"),
    ("client_cpu_per_op", "client CPU per operation", "more", "less"),
    ("hop_cpu_per_op", "the hop's CPU per operation", "more", "less"),
    ("duration", "duration", "longer", "shorter"),
    ("throughput", "operations per second", "more", "fewer"),
    ("rate_at_objective", "operations/s at the objective", "more", "fewer"),
    ("latency_p50", "latency p50", "higher", "lower"),
    ("latency_p99", "latency p99", "higher", "lower"),
    ("latency_mean", "mean latency", "higher", "lower"),
    ("tool_latency_p50", "latency p50, as the tool reports", "higher", "lower"),
    ("tool_latency_p99", "latency p99, as the tool reports", "higher", "lower"),
    ("tool_latency_mean", "mean latency, as the tool reports", "higher", "lower"),
    ("host_busy", "machine CPU in use", "more", "less"),
    ("host_cpu_per_op", "machine CPU per operation", "more", "less"),
    ("wire_bytes_per_op", "bytes on the wire", "more", "fewer"),
    ("segments_per_op", "segments on the wire", "more", "fewer"),
    ("switches_per_op", "context switches", "more", "fewer"),
    ("faults_per_op", "page faults", "more", "fewer"),
    ("disk_bytes_per_op", "bytes from and to disk", "more", "fewer"),
    ("disk_written_per_op", "bytes written to disk", "more", "fewer"),
    ("disk_read_per_op", "bytes read from disk", "more", "fewer"),
    ("memory", "memory", "more", "less"),
    ("start_time", "time to start", "longer", "shorter"),
)


DETAILS = frozenset({"segments_per_op", "switches_per_op", "faults_per_op"})
"""Metrics that say why an operation costs more rather than what it costs: the terminal leaves them to the other reports."""


PROCESS_CPU = "process CPU per operation"
"""The name of the client's CPU if the database is embedded in it."""


MORE_LESS = {key: (more, less) for key, _, more, less in METRICS}


LABELS = {key: label for key, label, _, _ in METRICS}


class Row(NamedTuple):
    """One figure of a cell, as text."""

    key: str
    label: str
    cost: str
    interval: str
    levels: str
    """`18.2 → 23.9 µs`; empty if an arm's level is unknown."""
    estimate: Estimate


FLOORS = {
    "wire_bytes_per_op": 1.0,
    "segments_per_op": 0.01,
    "switches_per_op": 0.01,
    "faults_per_op": 0.01,
    "disk_bytes_per_op": PAGE / 100,
    "disk_written_per_op": PAGE / 100,
    "disk_read_per_op": PAGE / 100,
}
"""Amounts per operation below which a change is meaningless: one byte on the wire, one page, switch or fault in a hundred operations."""


OF_THE_WIRE = frozenset({"wire_bytes_per_op", "segments_per_op"})
"""Metrics of the clients' connections."""


def is_noise(cell: Cell, key: str) -> bool:
    """Whether reports leave a figure out because both arms do almost nothing of it. result.json and CSV keep it.

    Both arms are below the metric's floor, and either the interval includes no change or both are below a tenth of the floor. With
    replication the bytes on the wire are the clients', which no arm encrypts: a reader would take them for the link's.
    """
    if cell.of_link and key in OF_THE_WIRE:
        return True
    most = most_of(cell, key)
    if most is None or most >= FLOORS[key]:
        return False
    estimate = cell.overhead[key]
    return estimate.low <= 1 <= estimate.high or most < FLOORS[key] / 10


def opening(cell: Cell) -> str:
    """`time to open: 1.1 → 126 ms, once for each connection`: of an embedded database; empty: unknown, or the operations contain it."""
    known = [float(cell.arms.get(arm, {}).get("start_s", 0)) * 1e3 for arm in ARMS]
    if not cell.embedded or not all(known) or any(cell.arms[arm].get("connects") for arm in ARMS):
        return ""
    took = " → ".join(map(number, known))
    return f"time to open: {took} ms, once for each connection; no operation contains it: --workload connect measures its CPU time"


def most_of(cell: Cell, key: str) -> float | None:
    """The higher level of both arms, of a metric that has a floor; None: it has none, or an arm's level is unknown."""
    known = [value for arm in ARMS if key in FLOORS and (value := level(cell, arm, key)) is not None]
    return max(known) if len(known) == len(ARMS) else None


def without_ratio(cell: Cell, *, details: bool = True) -> Iterator[str]:
    """`no ratio for bytes from and to disk (12 → 30 B): 1 of 16 plain slices and 1 of 16 encrypted slices had any; a longer --time may show one`.

    Only metrics that are more than noise. `details`: those of `DETAILS` too.
    """
    for key, reason in cell.too_few.items():
        most = most_of(cell, key)
        hidden = (cell.layer == "rest" and key == "disk_bytes_per_op") or (key in DETAILS and not details)
        if hidden or (most is not None and most < FLOORS[key]):
            continue
        both = levels(cell, key)
        yield f"no ratio for {label(cell, key)}{f' ({both})' if both else ''}: {reason}; a longer --time may show one"


def rows(cell: Cell) -> Iterator[Row]:
    """Every figure of a cell that is more than noise, in the order of reports."""
    # An embedded database runs in the agent: first its own CPU time, then that with kernel threads.
    order = sorted(METRICS[:3], key=lambda metric: metric[0] == "machine_cpu_per_op" and cell.embedded)
    for key, _, more, less in (*order, *METRICS[3:]):
        if key == "throughput" and "duration" in cell.overhead:
            continue  # one operation a slice: it is the inverse
        if key not in cell.overhead or (cell.layer == "rest" and key == "disk_bytes_per_op") or is_noise(cell, key):
            continue
        estimate = cell.overhead[key]
        yield Row(
            key, label(cell, key), worded(estimate, more, less), bounds(key, estimate), levels(cell, key), estimate
        )


def costs(cell: Cell) -> Iterator[Row]:
    """Those of `rows` that say what an operation costs, without `DETAILS`."""
    return (row for row in rows(cell) if row.key not in DETAILS)


def main_metric(cell: Cell) -> str:
    """The metric of a cell's verdict: `throughput`, or `latency_p50` if there is only an open loop; empty without figures."""
    if cell.imported is not None:
        return imported_metric(cell.overhead)
    return next((key for key in ("duration", "throughput", "latency_p50") if key in cell.overhead), "")


def lead_metric(cell: Cell) -> str:
    """The metric of the headline: the main metric, but on one core the server's CPU per operation.

    On one core the client shares the core, so throughput includes the client's own work.
    """
    cpu_key = cpu_metric(cell) if cell.regime == "one-core" and cell.imported is None else ""
    return cpu_key or main_metric(cell)


def cpu_metric(cell: Cell) -> str:
    """The metric of the CPU time that the database takes; empty if that is unknown.

    It is that of the server's processes, or of the process an embedded database runs in. At rest it is that with kernel threads and
    daemons, which may do the encryption; for an embedded database only if encryption then surely costs more, because otherwise that
    of the process has the narrower interval.
    """
    process_key = "client_cpu_per_op" if cell.embedded else "server_cpu_per_op"
    process = cell.overhead.get(process_key)
    whole = cell.overhead.get("machine_cpu_per_op") if cell.layer == "rest" else None
    if whole is not None and (not cell.embedded or process is None or whole.low > process.high):
        return "machine_cpu_per_op"
    return process_key if process is not None else ""


def quantity(cell: Cell, key: str) -> str:
    """The name of a metric inside a sentence: `operations/s`, `server CPU per operation`, `latency p50`."""
    special = {"throughput": "operations/s", "machine_cpu_per_op": "CPU per operation, kernel threads included"}
    return special.get(key, label(cell, key))


def cost(key: str, estimate: Estimate) -> str:
    """`12.3 % fewer`: the cost, with the metric's word for its direction."""
    return worded(estimate, *MORE_LESS.get(key, ("more", "less")))


def bounds(key: str, estimate: Estimate) -> str:
    """`11.8–12.9 %` or `1.2 % fewer to 0.8 % more`: the interval, with the metric's words."""
    return interval(estimate, *MORE_LESS.get(key, ("more", "less")))


def both(first: str, second: str, between: str) -> str:
    """`24.9 → 53.0 % fewer`: two costs. A shared direction is printed once, and so are equal costs."""
    head, percent_, direction = first.partition(" % ")
    shared = percent_ and second.endswith(f" % {direction}")
    if first.endswith(TIMES) and second.endswith(TIMES):
        head, shared = first.removesuffix(TIMES), True
    return first if first == second and between == " to " else f"{head if shared else first}{between}{second}"


def beside(estimate: Estimate) -> str:
    """`8.1 % fewer (7.2–9.0 %, p < 0.001 after Holm)`: a cell compared with the reference of its experiment."""
    p = estimate.p_value
    surely = "" if p is None else ", p < 0.001 after Holm" if p < 0.001 else f", p = {p:.2g} after Holm"
    return f"{worded(estimate, 'more', 'fewer')} ({interval(estimate, 'more', 'fewer')}{surely})"


def plus(part: Part, unit: str) -> str:
    """`412 ± 8 µs`, with as many digits as the interval supports."""
    half = (part.high - part.low) / 2
    digits = decimals_of_half(half)
    return f"{part.value:,.{digits}f} ± {half:,.{digits}f} {unit}"


def growth(ratio: float) -> str:
    """`49.3 % more` or `3.20 times`, of a counted, not estimated, quantity."""
    exact = Estimate(ratio, ratio, ratio)
    return worded(exact) if by_factor(exact) else percent(ratio, 1, "more", "fewer")


SHORT = {
    "throughput": "operations/s",
    "server_cpu_per_op": "server CPU/op",
    "client_cpu_per_op": "client CPU/op",
    "latency_p50": "latency p50",
}
"""Short labels of metrics."""


UNRESOLVED = " (unresolved)"


MORE_IS_BETTER = ("throughput", "rate_at_objective")
"""Metrics of which encryption costs some."""


def label(cell: Cell, key: str) -> str:
    """A metric's name in a table of this cell: `operations per second`, `process CPU per operation`."""
    if key == "rate_at_objective" and cell.objective is not None:
        return f"operations/s at {cell.objective.objective}"
    if key == "start_time" and cell.embedded:
        return "time to open"
    return PROCESS_CPU if key == "client_cpu_per_op" and cell.embedded else LABELS.get(key, key)


def short(cell: Cell, key: str) -> str:
    """A metric's short name: `operations/s`, `process CPU/op`."""
    if key == "client_cpu_per_op" and cell.embedded:
        return "process CPU/op"
    return "CPU/op, kernel threads included" if key == "machine_cpu_per_op" else SHORT.get(key, label(cell, key))


def cost_metrics(cell: Cell) -> list[str]:
    """The few metrics that summarise a cell's cost, its lead metric first."""
    lead = lead_metric(cell)
    known = [
        key for key in SHORT if key in cell.overhead and not (key == "latency_p50" and "throughput" in cell.overhead)
    ]
    return sorted(dict.fromkeys([*known, *[lead] * bool(lead)]), key=lambda key: key != lead)


def levels(cell: Cell, key: str) -> str:
    """`18.2 → 23.9 µs`; empty if an arm's level is unknown."""
    unit = LEVELS[key][1]
    values = [level(cell, arm, key) for arm in ARMS]
    known = [value for value in values if value is not None]
    return f"{' → '.join(number(value) for value in known)} {unit}".rstrip() if len(known) == len(ARMS) else ""


def prediction(cell: Cell) -> str:
    """`predicted from the link alone: 3 round trips, 30 ms more per operation, 34.2 % fewer operations per second; measured: …`."""
    link = cell.predicted
    trips = (
        f"{number(link['round_trips'])} round trip{'s' * (link['round_trips'] != 1)}, " if link["round_trips"] else ""
    )
    words = f"predicted from the link alone: {trips}{longer(link['added_ms'])} per operation"
    if "throughput" not in link:
        return words
    milliseconds = [cell.clients / (level(cell, arm, "throughput") or math.inf) * 1e3 for arm in ARMS]
    return (
        f"{words}, {share(link['throughput'])} operations per second; "
        f"measured: {longer(milliseconds[1] - milliseconds[0])}, {share(cell.overhead['throughput'].ratio)}"
    )


def longer(milliseconds: float) -> str:
    """`20 ms more` or `0.6 ms less`."""
    return f"{number(abs(milliseconds))} ms {'more' if milliseconds >= 0 else 'less'}"


def share(ratio: float) -> str:
    """A ratio as `34.2 % fewer`."""
    return growth(ratio)


def priced(cell: Cell, key: str = "") -> str:
    """`24.9 % fewer operations/s (95 % CI 24.2–25.5 %)` for the lead metric, or for `key` without its name; empty: no figure."""
    metric = key or lead_metric(cell)
    if not metric:
        return ""
    estimate = cell.overhead[metric]
    change = cost(metric, estimate)
    figure = change if key else of_what(change, quantity(cell, metric))
    return f"{figure} (95 % CI {bounds(metric, estimate)})"


def loss(key: str, estimate: Estimate) -> tuple[float, float, float]:
    """(cost, low, high) as shares, higher is worse: the loss of throughput, or the added latency."""
    if key in MORE_IS_BETTER:
        return 1 - estimate.ratio, 1 - estimate.high, 1 - estimate.low
    return estimate.ratio - 1, estimate.low - 1, estimate.high - 1


def resolution(cell: Cell, key: str) -> str:
    """The cell's verdict; for another metric than the verdict's, `unresolved` if its interval includes no change."""
    if key == main_metric(cell):
        return cell.verdict or ""
    return "unresolved" if cell.overhead[key].low <= 1 <= cell.overhead[key].high else "differs"
