"""words: a result's figures -> the words that every report prints. Pure; independent of format and width."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from ciphercost.estimate.imported import imported_metric
from ciphercost.estimate.levels import LEVELS, level
from ciphercost.estimate.notation import NO_CHANGE as NO_CHANGE
from ciphercost.estimate.notation import by_factor as by_factor
from ciphercost.estimate.notation import decimals as decimals
from ciphercost.estimate.notation import decimals_of_width as decimals_of_width
from ciphercost.estimate.notation import interval as interval
from ciphercost.estimate.notation import number as number
from ciphercost.estimate.notation import of_what
from ciphercost.estimate.notation import percent as percent
from ciphercost.estimate.notation import worded as worded
from ciphercost.estimate.statistics import ALPHA
from ciphercost.model.result import Cell, Estimate, Imported, Part, Result
from ciphercost.model.slices import Finding, Severity
from ciphercost.model.spec import ARMS
from ciphercost.plan import conditions

SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low", "info")

METRICS: tuple[tuple[str, str, str, str], ...] = (
    # key, label, word where encrypted is more, word where it is less
    ("server_cpu_per_op", "server CPU per operation", "more", "less"),
    ("machine_cpu_per_op", "… with kernel threads", "more", "less"),
    ("client_cpu_per_op", "client CPU per operation", "more", "less"),
    ("throughput", "operations per second", "more", "fewer"),
    ("latency_p50", "latency p50", "higher", "lower"),
    ("latency_p99", "latency p99", "higher", "lower"),
    ("latency_mean", "mean latency", "higher", "lower"),
    ("host_busy", "machine CPU in use", "more", "less"),
    ("host_cpu_per_op", "machine CPU per operation", "more", "less"),
    ("wire_bytes_per_op", "bytes on the wire", "more", "fewer"),
    ("disk_bytes_per_op", "bytes from and to disk", "more", "fewer"),
    ("disk_written_per_op", "bytes written to disk", "more", "fewer"),
    ("disk_read_per_op", "bytes read from disk", "more", "fewer"),
    ("memory", "memory", "more", "less"),
    ("start_time", "time to start", "longer", "shorter"),
)


UNPRINTABLE = frozenset({"Cc", "Cf", "Cs"})
"""Unicode's categories of control and format characters (text's direction among these) and of lone surrogates."""


def printable(text: str) -> str:
    """The text with U+FFFD for each letter that steers what shows it, line ends and tabs left, or that XML forbids."""
    if text.isprintable():
        return text
    return "".join("\ufffd" if _steers(letter) else letter for letter in text)


def _steers(letter: str) -> bool:
    return letter not in "\n\t" and (unicodedata.category(letter) in UNPRINTABLE or letter in "\ufffe\uffff")


PROCESS_CPU = "process CPU per operation"
"""The client's CPU where the database runs inside it."""
MORE_LESS = {key: (more, less) for key, _, more, less in METRICS}
LABELS = {key: label for key, label, _, _ in METRICS}


class Row(NamedTuple):
    """One figure of a cell, in words."""

    key: str
    label: str
    cost: str
    interval: str
    levels: str
    """`18.2 → 23.9 µs`, or empty where an arm's level is not known."""
    estimate: Estimate


PAGE = 4096.0
"""Bytes that a database or a file system reads and writes at once."""
FLOORS = {
    "wire_bytes_per_op": 1.0,
    "disk_bytes_per_op": PAGE / 100,
    "disk_written_per_op": PAGE / 100,
    "disk_read_per_op": PAGE / 100,
}
"""Bytes an operation below which a change says nothing: a byte on the wire, one page in a hundred operations on the disk."""


def is_noise(cell: Cell, key: str) -> bool:
    """Whether a figure is left out of reports because both arms do next to nothing of it; result.json and CSV keep it.

    Both arms are below the metric's floor, and either the interval includes no change or both are below a tenth of the floor.
    """
    known = [value for arm in ARMS if key in FLOORS and (value := level(cell, arm, key)) is not None]
    if len(known) < len(ARMS) or max(known) >= FLOORS[key]:
        return False
    estimate = cell.overhead[key]
    return estimate.low <= 1 <= estimate.high or max(known) < FLOORS[key] / 10


def rows(cell: Cell) -> Iterator[Row]:
    """Every figure of a cell that is more than noise, in the order in which reports show them."""
    # The agent is the database where it is embedded: first its own CPU time, then that with kernel threads.
    order = sorted(METRICS[:3], key=lambda metric: metric[0] == "machine_cpu_per_op" and cell.embedded)
    for key, _, more, less in (*order, *METRICS[3:]):
        if key not in cell.overhead or (cell.layer == "rest" and key == "disk_bytes_per_op") or is_noise(cell, key):
            continue
        estimate = cell.overhead[key]
        yield Row(
            key, label(cell, key), worded(estimate, more, less), bounds(key, estimate), levels(cell, key), estimate
        )


def main_metric(cell: Cell) -> str:
    """What a cell's verdict is about: `throughput`, `latency_p50` of an open loop alone, or empty where it has no figure."""
    if cell.imported is not None:
        return imported_metric(cell.overhead)
    return next((key for key in ("throughput", "latency_p50") if key in cell.overhead), "")


def standing(cell: Cell) -> str:
    """`UNPROVEN`, `FAILED`, … of a cell whose status is not ok, be there figures or not; else empty."""
    return "" if cell.status == "ok" else cell.status.upper().replace("-", " ")


def lead_metric(cell: Cell) -> str:
    """The figure that a headline gives: the main metric, but on one core the server's CPU per operation.

    There the client shares the core, so throughput includes the client's own work.
    """
    if cell.regime == "one-core" and cell.imported is None:
        at_rest = ["machine_cpu_per_op"] if cell.layer == "rest" else []
        wanted = ["client_cpu_per_op"] if cell.embedded else [*at_rest, "server_cpu_per_op"]
        if found := next((key for key in wanted if key in cell.overhead), ""):
            return found
    return main_metric(cell)


def quantity(cell: Cell, key: str) -> str:
    """The name of a metric inside a sentence: `operations/s`, `server CPU per operation`, `latency p50`."""
    special = {"throughput": "operations/s", "machine_cpu_per_op": "CPU per operation, kernel threads included"}
    return special.get(key, label(cell, key))


def cost(key: str, estimate: Estimate) -> str:
    """`12.3 % fewer`, in the words of that metric."""
    return worded(estimate, *MORE_LESS.get(key, ("more", "less")))


def bounds(key: str, estimate: Estimate) -> str:
    """`11.8–12.9 %` or `1.2 % fewer to 0.8 % more`: the interval, in the words of that metric."""
    return interval(estimate, *MORE_LESS.get(key, ("more", "less")))


def both(first: str, second: str, between: str) -> str:
    """`24.9 → 53.0 % fewer`: two costs, the direction once where they share it, one cost where they are the same."""
    head, percent_, direction = first.partition(" % ")
    shared = percent_ and second.endswith(f" % {direction}")
    return first if first == second and between == " to " else f"{head if shared else first}{between}{second}"


def is_control(cell: Cell) -> bool:
    """Whether it measures an effect that is known, or none: it encrypts nothing."""
    return cell.layer == "control"


def beside(estimate: Estimate) -> str:
    """`8.1 % fewer (7.2–9.0 %, p < 0.001 after Holm)`: a cell against the reference of its experiment."""
    p = estimate.p_value
    surely = "" if p is None else ", p < 0.001 after Holm" if p < 0.001 else f", p = {p:.2g} after Holm"
    return f"{worded(estimate, 'more', 'fewer')} ({interval(estimate, 'more', 'fewer')}{surely})"


def logged(cell: Cell) -> Iterator[str]:
    """What the server's own log has of its handshakes."""
    full, resumed = cell.handshakes.get("full", 0), cell.handshakes.get("resumed", 0)
    if full + resumed:
        share = f"{resumed / (full + resumed):.1%}".replace("%", " %")
        yield f"server's log: {full + resumed:,} handshakes under load, {resumed:,} resumed ({share})"


def size(count: float) -> str:
    """`1 KB`, `250 MB` of bytes."""
    for unit, least in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= least:
            return f"{count / least:.3g} {unit}"
    return f"{count:.0f} B"


def plus(part: Part, unit: str) -> str:
    """`412 ± 8 µs`, as many digits as the interval lets one trust."""
    half = (part.high - part.low) / 2
    digits = max(0, min(3, 1 - math.floor(math.log10(half)))) if half > 0 else 2
    return f"{part.value:,.{digits}f} ± {half:,.{digits}f} {unit}"


def stored(cell: Cell) -> Iterator[tuple[str, str, str]]:
    """Of tables and indexes: (`tables`, `49.3 % more`, `164 → 246 KB`), where the server counts them."""
    for key, what in (("table_bytes", "tables"), ("index_bytes", "indexes")):
        plain, encrypted = (cell.stored.get(arm, {}).get(key, 0) for arm in ARMS)
        if plain and encrypted:
            both = f"{number(plain / 1e3)} → {number(encrypted / 1e3)} KB"
            yield what, growth(encrypted / plain), both


def growth(ratio: float) -> str:
    """`49.3 % more` or `×3.20`, of something counted and not estimated."""
    exact = Estimate(ratio, ratio, ratio)
    return worded(exact) if by_factor(exact) else percent(ratio, 1, "more", "fewer")


SHORT = {
    "throughput": "operations/s",
    "server_cpu_per_op": "server CPU/op",
    "client_cpu_per_op": "client CPU/op",
    "latency_p50": "latency p50",
}
"""Labels of metrics where there is little room."""
UNRESOLVED = " (unresolved)"


def label(cell: Cell, key: str) -> str:
    """A metric's name in a table of this cell: `operations per second`, `process CPU per operation`."""
    return PROCESS_CPU if key == "client_cpu_per_op" and cell.embedded else LABELS.get(key, key)


def short(cell: Cell, key: str) -> str:
    """The same where there is little room: `operations/s`, `process CPU/op`."""
    if key == "client_cpu_per_op" and cell.embedded:
        return "process CPU/op"
    return "CPU/op, kernel threads included" if key == "machine_cpu_per_op" else SHORT.get(key, label(cell, key))


def cost_metrics(cell: Cell) -> list[str]:
    """The figures that stand for a cell's cost where there is little room, its lead metric first."""
    lead = lead_metric(cell)
    known = [
        key for key in SHORT if key in cell.overhead and not (key == "latency_p50" and "throughput" in cell.overhead)
    ]
    return sorted(dict.fromkeys([*known, *[lead] * bool(lead)]), key=lambda key: key != lead)


def costs(cell: Cell) -> Iterator[str]:
    """The main figures of a cell, in words; an unresolved one says so."""
    for key in cost_metrics(cell):
        doubt = UNRESOLVED * (resolution(cell, key) == "unresolved")
        yield of_what(cost(key, cell.overhead[key]), short(cell, key)) + doubt
    for what, words, _ in stored(cell):
        yield f"{words} stored, {what}"


def protects(cell: Cell) -> Iterator[str]:
    """What the mechanism protects, and what was seen to be open all the same, by severity."""
    if cell.protects:
        yield cell.protects
    for each in by_severity(cell.findings):
        yield f"open, {each.severity}: {each.code}"


STORAGE: tuple[tuple[str, str], ...] = (
    ("sequential_read", "sequential read"),
    ("random_read", "random read"),
    ("sequential_write", "sequential write"),
    ("random_write", "random write"),
    ("fsync_latency", "write and fsync"),
)


def storage(cell: Cell) -> Iterator[tuple[str, str, str, str]]:
    """What fio says of both directories, without a server: (`random read`, `3.1 % slower`, its interval, both levels)."""
    for key, label in STORAGE:
        if estimate := cell.storage.get(key):
            late = key == "fsync_latency"
            direction = ("higher", "lower") if late else ("faster", "slower")
            scale, unit = (1.0, "µs") if late else (1e6, "MB/s")
            both = [cell.arms.get(arm, {}).get("storage", {}).get(key, 0.0) / scale for arm in ARMS]
            change, ends = worded(estimate, *direction), interval(estimate, *direction)
            yield label, change, ends, f"{' → '.join(map(number, both))} {unit}"


def taken_apart(cell: Cell, everything: Sequence[Cell]) -> Iterator[str]:
    """`of it no sendfile 12.0 % fewer (10.1 to 14.0 %), TLS itself 30 % …`: the cost beside that of its control."""
    for name, left in cell.beside.items():
        if cell.control is None or cell.control >= len(everything):
            continue
        control = everything[cell.control]
        if "throughput" not in control.overhead:
            continue
        without = control.overhead["throughput"]
        words = (
            f"of it {name.replace('-', ' ')}: {cost('throughput', without)} ({bounds('throughput', without)}); "
            f"{cell.mechanism.upper()} itself: {cost('throughput', left)} ({bounds('throughput', left)})"
        )
        own, theirs = cell.arms, control.arms
        cpu = [
            float(arm.get("server_cpu_us_per_op", 0)) for arm in (own["plain"], theirs["encrypted"], own["encrypted"])
        ]
        if all(cpu):
            words += f"; server CPU/op {' → '.join(map(number, cpu))} µs"
        yield words


def left_open(finding: Finding) -> str:
    """A finding, and what closes it."""
    return finding.text + (f". Closed by: {finding.closes}" if finding.closes else "")


def by_severity(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda one: SEVERITIES.index(one.severity))


def heading(cell: Cell, without: tuple[str, ...] = ()) -> str:
    """`postgresql 18.4 · tls · point-select · 4 clients · capacity`; `without`: what the cells under it differ in."""
    return " · ".join(word for name, word in heading_words(cell).items() if word and name not in without)


def heading_words(cell: Cell) -> dict[str, str]:
    """What a heading is made of, by name."""
    return {
        "engine": f"{cell.engine} {cell.version}".strip(),
        "mechanism": cell.mechanism,
        "workload": cell.workload,
        # Another tool may not have said how many there were.
        "clients": f"{cell.clients} client{'s' * (cell.clients != 1)}" if cell.clients or not cell.imported else "",
        "regime": cell.regime,
        "client": cell.client,
        "conditions": conditions.worded(cell.conditions),
        # Nothing else sets an imported cell apart from others.
        "factors": " ".join(f"{name}={value}" for name, value in cell.factors.items()) if cell.imported else "",
    }


def levels(cell: Cell, key: str) -> str:
    """`18.2 → 23.9 µs`, or nothing where an arm's level is not known."""
    unit = LEVELS[key][1]
    values = [level(cell, arm, key) for arm in ARMS]
    known = [value for value in values if value is not None]
    return " → ".join(number(value) for value in known) + f" {unit}" if len(known) == len(ARMS) else ""


def verdict(cell: Cell) -> str:
    """The verdict in words, and what it rests on."""
    if cell.imported is not None:
        return imported_verdict(cell, cell.imported)
    rests = f"{cell.sessions} session{'s' * (cell.sessions != 1)}, {cell.blocks} blocks"
    if cell.mode == "quick":
        rests += "; this server pair only"
    what = "throughput" if "throughput" in cell.overhead else "latency"
    words = {
        "differs": f"{what} differs",
        "equivalent": f"no difference in {what} larger than the margin (1 % unless told otherwise)",
        "unresolved": "unresolved",
    }.get(cell.verdict or "", "none")
    if by_itself(cell):
        words += f": {BY_ITSELF}"
    elif cell.totals_open:
        words += (
            f": {TOTALS_OPEN}{f', {cell.sessions_needed} sessions would resolve it' if cell.sessions_needed else ''}"
        )
    elif cell.verdict == "unresolved" and cell.smallest_effect:
        words += f": this run could have detected {cell.smallest_effect * 100:.1f} % or more"
        if cell.sessions_needed:
            words += f", {cell.sessions_needed} sessions would resolve it"
    return f"{words}{DISTURBED * cell.disturbed} ({rests})"


DISTURBED = "; DISTURBED in every slice by other processes or the hypervisor"


TOTALS_OPEN = (
    "the typical block differs by less than the margin, but all slices together, stalls included, may differ by more"
)
BY_ITSELF = "by itself it differs, but not after the correction for the number of cells"


def by_itself(cell: Cell) -> bool:
    """Whether a cell was called unresolved for the sake of the other cells alone: its own interval leaves out no cost at all."""
    if cell.verdict != "unresolved" or not (key := main_metric(cell)):
        return False
    return cell.overhead[key].low > 1 or cell.overhead[key].high < 1


def runs_differ(cell: Cell) -> bool | None:
    """Whether an imported cell's arms differ after Holm's correction; None: by itself alone."""
    estimate = cell.overhead[imported_metric(cell.overhead)]
    alone = estimate.low > 1 or estimate.high < 1
    if alone and estimate.p_value is not None and estimate.p_value >= ALPHA:
        return None
    return alone


def imported_verdict(cell: Cell, imported: Imported) -> str:
    """What figures of another tool can tell: never more than that its runs differ."""
    if not cell.overhead:
        return "none: these figures have no interval"
    key = imported_metric(cell.overhead)
    own = imported.costs[key]
    what = next(label for name, label, *_ in METRICS if name == key)
    runs = f"{own.plain_runs} plain and {own.encrypted_runs} encrypted runs, not paired"
    needed = own.runs_needed
    need = (
        f"; to resolve 5 %: {needed} runs of each arm"
        if needed
        else "; no number of runs below a thousand would resolve 5 %"
    )
    differ = runs_differ(cell)
    if differ is None:
        return f"none: {BY_ITSELF} ({runs}{need})"
    if differ:
        return f"none: the arms' runs differ in {what} by more than by chance; that encryption did it, they can't tell ({runs}{need})"
    seen = (
        f": {cell.smallest_effect:.1%} or more would have shown".replace("%", " %")
        if cell.smallest_effect and key == "throughput"
        else ""
    )
    return f"none: unresolved{seen} ({runs}{need})"


def imported_basis(cells: Iterable[Cell]) -> str:
    """`4 plain runs, 4 encrypted runs by pgbench 17.11`, of each cell: what other tools' figures rest on."""
    return "; ".join(dict.fromkeys(f"{runs_of(cell)} by {cell.imported.tool}" for cell in cells if cell.imported))


def runs_of(cell: Cell) -> str:
    """`3 plain runs, 1 encrypted run`."""
    counts = {arm: cell.arms[arm]["runs"] for arm in ARMS if arm in cell.arms}
    return ", ".join(f"{count} {arm} run{'s' * (count != 1)}" for arm, count in counts.items())


def imported_answer(cells: Sequence[Cell], known: Sequence[Cell]) -> str:
    """The same of other tools' figures: what their runs show, and that it is no answer."""
    tools = ", ".join(dict.fromkeys(cell.imported.tool for cell in cells if cell.imported))
    if not known:
        return f"Imported from {tools}, not paired and not proven: these figures have no interval, so that no cost can be stated."
    labels = dict(zip(map(id, cells), names(cells) if len(cells) > 1 else map(heading, cells), strict=True))
    loud = f"Imported from {tools}, NOT PAIRED AND NOT PROVEN"
    differing = [cell for cell in known if runs_differ(cell)]
    alone = sum(runs_differ(cell) is None for cell in known)
    if len(known) <= 3:
        unresolved = {True: "", False: ", which is unresolved", None: f", but {BY_ITSELF}"}
        shown = "; ".join(
            f"{labels[id(cell)]}: encrypted {_does(cell, main_metric(cell))}{unresolved[runs_differ(cell)]}"
            for cell in known
        )
        return f"{loud}: {shown}; whether encryption did it these runs can't tell."
    said = f"the arms' runs differ in {len(differing)} of {len(known)} cells after Holm's correction for their number"
    said += f" ({alone} more by themselves only)" if alone else ""
    shown = "; ".join(f"{labels[id(cell)]}: encrypted {_does(cell, main_metric(cell))}" for cell in differing[:2])
    more = f"; {len(differing) - 2} more below" if len(differing) > 2 else ""
    return f"{loud}: {said}{f': {shown}' if shown else ''}{more}; whether encryption did it these runs can't tell."


def prediction(cell: Cell) -> str:
    """`the link alone predicts: 3 round trips = 30 ms more an operation, 34.2 % fewer operations per second; measured: 37.4 ms more, …`."""
    link = cell.predicted
    trips = f"{number(link['round_trips'])} round trips, " if link["round_trips"] else ""
    words = f"the link alone predicts: {trips}{longer(link['added_ms'])} an operation"
    if "throughput" not in link:
        return words
    each = [cell.clients / (level(cell, arm, "throughput") or math.inf) * 1e3 for arm in ARMS]
    return (
        f"{words}, {share(link['throughput'])} operations per second; "
        f"measured: {longer(each[1] - each[0])}, {share(cell.overhead['throughput'].ratio)}"
    )


def longer(milliseconds: float) -> str:
    """`20 ms more` or `0.6 ms less`."""
    return f"{number(abs(milliseconds))} ms {'more' if milliseconds >= 0 else 'less'}"


def share(ratio: float) -> str:
    """`34.2 % fewer` of a ratio."""
    return growth(ratio)


def proof_line(cell: Cell) -> str:
    """`proven: TLSv1.3 TLS_AES_256_GCM_SHA384 …; plain arm in clear; witnesses: client, server, wire; OpenSSL …`."""
    if cell.mode == "imported":
        return "NOT PROVEN: nobody asked server, wire or disk whether encryption was on in one arm and off in the other"
    if cell.layer == "control":
        return "control: both arms are in clear; nothing to prove"
    said = [
        cell.encryption[name]
        for name in ("protocol", "cipher", "group", "peer_key", "implementation")
        if cell.encryption.get(name)
    ]
    if cell.encryption.get("verified"):
        said.append("peer verified" if cell.encryption["verified"] == "yes" else "peer NOT verified")
    if cell.encryption.get("client_certificate"):
        said.append(f"client certificate {cell.encryption['client_certificate']}")
    libraries = [
        f"{cell.encryption[f'{end}_library']} ({end})"
        for end in (("server", "client") if cell.layer != "rest" else ())
        if cell.encryption.get(f"{end}_library")
    ]
    witnesses = sorted({proof.witness for proof in cell.proofs if proof.passed})
    how = (", " if cell.layer == "rest" else " ").join(said)
    return (
        f"proven: {how}; plain arm in clear; witnesses: {', '.join(witnesses)}"
        + "; " * bool(libraries)
        + ", ".join(libraries)
    )


# ── a whole run in a few sentences
# ─────────────────────────────────────────────────────────────────────────────────────────


def priced(cell: Cell, key: str = "") -> str:
    """`24.9 % fewer operations/s (95 % CI 24.2–25.5 %)` of the cell's lead metric, or of `key` without its name; empty: no figure."""
    metric = key or lead_metric(cell)
    if not metric:
        return ""
    estimate = cell.overhead[metric]
    change = cost(metric, estimate)
    said = change if key else of_what(change, quantity(cell, metric))
    return f"{said} (95 % CI {bounds(metric, estimate)})"


def loss(key: str, estimate: Estimate) -> tuple[float, float, float]:
    """(cost, low, high) as shares, more is dearer: of throughput what is lost, of latency what is added."""
    if key == "throughput":
        return 1 - estimate.ratio, 1 - estimate.high, 1 - estimate.low
    return estimate.ratio - 1, estimate.low - 1, estimate.high - 1


def in_common(cells: Sequence[Cell]) -> str:
    """`postgresql 18.4 · tls · point-select`: what all cells share of their headings."""
    said = _headings(cells, shared=True)
    first = said[0] if said else {}
    return " · ".join(value for name, value in first.items() if value and len({each[name] for each in said}) == 1)


def _headings(cells: Sequence[Cell], *, shared: bool) -> list[dict[str, str]]:
    """Each cell's heading words; of its conditions and factors only those that all cells share, or only the others."""

    def some(pairs: Sequence[dict[str, str]]) -> list[dict[str, str]]:
        common = set.intersection(*(set(each.items()) for each in pairs)) if pairs else set()
        return [dict(pair for pair in each.items() if (pair in common) == shared) for each in pairs]

    own = zip(cells, some([each.conditions for each in cells]), some([each.factors for each in cells]), strict=True)
    return [
        heading_words(msgspec.structs.replace(cell, conditions=conditions_, factors=factors))
        for cell, conditions_, factors in own
    ]


def names(cells: Sequence[Cell], without: Sequence[str] = ()) -> list[str]:
    """Of each cell what sets it apart from the others of its run: the words in which they differ, and its variant.

    What all cells share is left out, as is what a label would say twice (`8 clients · clients=8`), and the words of `without`.
    Controls among other cells end in `(control)`.
    """
    if len(cells) == 1 and not without:
        (only,) = cells
        parts = [f"{only.engine} {only.version}".strip(), only.mechanism, only.workload]
        return [
            " · ".join(
                [*(part for part in parts if part and part not in only.variant.split()), *filter(None, [only.variant])]
            )
        ]
    said = _headings(cells, shared=False)
    apart = [name for name in (said[0] if said else ()) if len({each[name] for each in said}) > 1]
    tokens = [cell.variant.split() for cell in cells]
    common = set.intersection(*map(set, tokens)) if len(cells) > 1 else set()
    found = []
    for cell, each, own in zip(cells, said, tokens, strict=True):
        # A control's variant names its mechanism too, and a matrix's variant may repeat a word of the heading.
        parts = [each[name] for name in apart if each[name] and each[name] not in own and name not in without]
        said_already = {cell.mechanism} if "mechanism" in without else set()
        variant = [
            token for token in own if token not in common | said_already and not each.get(token.partition("=")[0])
        ]
        label = " · ".join([*parts, *[" ".join(variant)] * bool(variant)])
        found.append(label or "no further conditions" * ("conditions" in apart))
    if without:
        return found
    mixed = len({is_control(cell) for cell in cells}) > 1
    return [
        f"{name} (control)" if mixed and is_control(cell) else name
        for cell, name in zip(cells, _told_apart(cells, found), strict=True)
    ]


def _told_apart(cells: Sequence[Cell], found: list[str]) -> list[str]:
    """The same labels, those of several cells with the factors in which these differ, or else with the cells' numbers."""
    alike: dict[str, list[Cell]] = {}
    for cell, name in zip(cells, found, strict=True):
        alike.setdefault(name, []).append(cell)
    made = []
    for cell, name, those in zip(cells, found, [alike[name] for name in found], strict=True):
        own = [
            f"{factor}={value}"
            for factor, value in cell.factors.items()
            if value and len({each.factors.get(factor) for each in those}) > 1
        ]
        made.append(" · ".join(word for word in (name, *own) if word) or heading(cell))
    twice = {name for name, count in Counter(made).items() if count > 1}
    return [f"{name} (cell {number})" if name in twice else name for number, name in enumerate(made, start=1)]


LISTED = 3
"""Cells of one mechanism whose costs a headline gives one by one; of more it gives the ends."""
MOST_SENTENCES = 6
"""Mechanisms that a headline has a sentence for."""


def answer(result: Result, only: str = "") -> str:
    """What encryption costs in this run: the sentences of `sentences` in one line."""
    return " ".join(sentences(result, only))


def sentences(result: Result, only: str = "") -> list[str]:
    """What encryption costs in this run: a sentence for each mechanism on each server, with its intervals.

    Mechanisms, servers and workloads are never ranked against each other. `only`: a main metric, for a plot that shows this metric alone.
    """
    cells = [cell for cell in result.cells if not is_control(cell)] or list(result.cells)
    if only and not any(main_metric(cell) == only for cell in cells):
        cells = list(result.cells)
    if any(cell.imported for cell in cells):
        return [imported_answer(cells, [cell for cell in cells if cell.overhead])]
    if not cells:
        return ["This run measured nothing."]
    known = [cell for cell in cells if main_metric(cell) and only in ("", main_metric(cell))]
    if not known:
        if len(cells) == 1:
            return [f"No cost was measured: {heading(cells[0])} {without_number(cells[0])}."]
        return [f"No cost was measured: none of the {len(cells)} cells has a number, for the reasons given with each."]
    said = [_of_one_mechanism(those, labels, only) for those, labels in _by_mechanism(cells, known)]
    if len(said) > MOST_SENTENCES:
        said[MOST_SENTENCES - 1 :] = [f"{len(said) - MOST_SENTENCES + 1} more mechanisms are in the table."]
    lost = sum(not main_metric(cell) for cell in cells)
    # Cells without a number are counted once: with the first metric, where each metric has its own sentences.
    if lost and only in ("", next(main_metric(cell) for cell in cells if main_metric(cell))):
        said.append(f"{lost} of {len(cells)} cells {'has' if lost == 1 else 'have'} no number.")
    return said


def _by_mechanism(cells: Sequence[Cell], known: Sequence[Cell]) -> Iterator[tuple[list[Cell], list[str]]]:
    """The cells with a number by server and mechanism, each with the label that sets it apart from the other cells of its set."""
    labels = dict(zip(map(id, cells), names(cells, without=("engine", "mechanism")), strict=True))
    alike: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in known:
        alike.setdefault((cell.engine, cell.version, cell.mechanism), []).append(cell)
    for those in alike.values():
        own = [labels[id(cell)] for cell in those]
        yield those, own if len(those) == 1 else _told_apart(those, own)


def _of_one_mechanism(cells: Sequence[Cell], labels: Sequence[str], only: str) -> str:
    """`On one core, postgresql 18.4 with tls uses 37.3 % more server CPU per operation (95 % CI 36.2–38.5 %).`"""
    first = cells[0]
    who = f"{first.engine} {first.version}".strip()
    control = " (a control)" if is_control(first) else ""
    who = f"{'On one core, ' * all(each.regime == 'one-core' for each in cells)}{who} with {first.mechanism}{control}"
    by_metric: dict[str, list[tuple[Cell, str]]] = {}
    for cell, label in zip(cells, labels, strict=True):
        by_metric.setdefault(only or lead_metric(cell), []).append((cell, label))
    clauses = [_clause(key, those) for key, those in by_metric.items()]
    return f"{who} {'; it '.join(clauses)}."


def _clause(key: str, cells: Sequence[tuple[Cell, str]]) -> str:
    """`does 18.4 % fewer operations/s (95 % CI 4.5–21.0 %) for 1 client and 21.9 % fewer (14.0–33.6 %) for 8 clients`."""
    if len(cells) == 1:
        ((cell, label),) = cells
        return f"{_does(cell, key)}{f' for {label}' * bool(label)}{_how_sure(cell, key)}"
    by_workload: dict[str, list[tuple[Cell, str]]] = {}
    for cell, label in cells:
        by_workload.setdefault(cell.workload, []).append((cell, label))
    if len(cells) > LISTED and len(by_workload) > LISTED:
        return f"has costs for {len(by_workload)} workloads in {len(cells)} cells: see the table"
    if len(cells) > LISTED and len(by_workload) > 1:
        clauses = [
            f"under {workload} {_clause(key, [(cell, _without(label, workload)) for cell, label in those])}"
            for workload, those in by_workload.items()
        ]
        return "; it ".join(clauses)
    if len(cells) <= LISTED:
        said: list[str] = []
        for cell, label in cells:
            estimate = cell.overhead[key]
            short = f"{cost(key, estimate)} ({bounds(key, estimate)})"
            unresolved = " (unresolved)" * (resolution(cell, key) == "unresolved")
            said.append(f"{short if said else _does(cell, key)}{f' for {label}' * bool(label)}{unresolved}")
        return f"{', '.join(said[:-1])} and {said[-1]}"
    # An unresolved cost is neither a lower nor an upper end.
    resolved = [each for each in cells if resolution(each[0], key) != "unresolved"] or list(cells)
    ordered = sorted(resolved, key=lambda each: loss(key, each[0].overhead[key])[0])
    (least, of_least), (most, of_most) = ordered[0], ordered[-1]
    lost = len(cells) - len(resolved)
    tail = f"; {lost} more {'is' if lost == 1 else 'are'} unresolved" if lost else ""
    if all(resolution(each, key) == "unresolved" for each, _ in cells):
        tail = "; none of them is resolved"
    if least is most:
        return f"{_does(least, key)} for {of_least}{tail}"
    low, high = least.overhead[key], most.overhead[key]
    short = f"{cost(key, high)} ({bounds(key, high)})"
    if low.low <= high.high and high.low <= low.high:
        return f"{_does(least, key)} to {short} in {len(resolved)} cells, whose intervals overlap{tail}"
    return f"{_does(least, key)} for {of_least} to {short} for {of_most}, in {len(resolved)} cells{tail}"


def _without(label: str, workload: str) -> str:
    """The label without the workload, where that is already in the sentence."""
    return " · ".join(word for word in label.split(" · ") if word != workload)


def _does(cell: Cell, key: str) -> str:
    """`does 24.9 % fewer operations/s (95 % CI 24.2–25.5 %)`, `uses ×4.45 the server CPU per operation (…)`."""
    estimate, what = cell.overhead[key], quantity(cell, key)
    change, known = cost(key, estimate), f"(95 % CI {bounds(key, estimate)})"
    if change == NO_CHANGE:
        return f"shows no change in {what} {known}"
    verb = "does" if key == "throughput" else "uses" if "cpu" in key else "shows"
    return f"{verb} {change} {'the ' * by_factor(estimate)}{what} {known}"


def resolution(cell: Cell, key: str) -> str:
    """The cell's verdict; of a figure that the verdict is not about, `unresolved` where its interval includes no change."""
    if key == main_metric(cell):
        return cell.verdict or ""
    return "unresolved" if cell.overhead[key].low <= 1 <= cell.overhead[key].high else "differs"


def _how_sure(cell: Cell, key: str) -> str:
    """What a verdict other than `differs` means; on one core throughput too, which includes the client's own work."""
    main = main_metric(cell)
    if key != main:
        # An embedded database has no client apart from itself.
        included = "" if cell.embedded else ", client included"
        throughput = f"; its {quantity(cell, main)}{included}: {priced(cell, main)}" if main else ""
        doubt = ", which is unresolved" * (resolution(cell, key) == "unresolved")
        return f"{doubt}{throughput}{_how_sure(cell, main) if main else ''}"
    if cell.verdict == "equivalent":
        return ", too little to matter (equivalent within the margin)"
    if cell.verdict != "unresolved":
        return ""
    if by_itself(cell):
        return f", which is unresolved: {BY_ITSELF}"
    if cell.totals_open:
        return f", which is unresolved: {TOTALS_OPEN}"
    could = f": this run could have detected {cell.smallest_effect * 100:.1f} % or more" if cell.smallest_effect else ""
    return f", which is unresolved{could}"


def without_number(cell: Cell) -> str:
    """`failed: the disk is full`: why a cell has none."""
    words = {"failed": "failed", "unproven": "was not proven", "no-steady-state": "never came to rest"}
    return f"{words.get(cell.status, cell.status)}{f': {cell.reason}' if cell.reason else ''}".rstrip(".")
