"""words: figures -> the words in which every report says them. Pure; knows no page and no width."""

from __future__ import annotations

import functools
import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ciphercost import conditions, engines, mechanisms
from ciphercost.model import ARMS, Arm, Cell, Estimate, Finding, Imported, Part, Result, Severity
from ciphercost.statistics import ALPHA

SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low", "info")

METRICS: tuple[tuple[str, str, str, str], ...] = (
    # key, label, word where encrypted is more, word where it is less
    ("server_cpu_per_op", "server CPU per operation", "more", "less"),
    ("machine_cpu_per_op", "… with kernel threads", "more", "less"),
    ("client_cpu_per_op", "client CPU per operation", "more", "less"),
    ("throughput", "operations per second", "more", "fewer"),
    ("latency_p50", "latency p50", "longer", "shorter"),
    ("latency_p99", "latency p99", "longer", "shorter"),
    ("latency_mean", "latency, mean", "longer", "shorter"),
    ("host_busy", "CPU in use, machine", "more", "less"),
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


def rows(cell: Cell) -> Iterator[Row]:
    """Every figure of a cell, in the order in which reports show them."""
    # The agent is the database where it is embedded: first its own CPU time, then that with kernel threads.
    order = sorted(METRICS[:3], key=lambda metric: metric[0] == "machine_cpu_per_op" and embedded(cell))
    for key, label, more, less in (*order, *METRICS[3:]):
        if key in cell.overhead and not (cell.layer == "rest" and key == "disk_bytes_per_op"):
            estimate = cell.overhead[key]
            name = "process CPU per operation" if key == "client_cpu_per_op" and embedded(cell) else label
            yield Row(key, name, worded(estimate, more, less), interval(estimate), levels(cell, key), estimate)


def main_metric(cell: Cell) -> str:
    """What a cell's verdict is about: `throughput`, `latency_p50` of an open loop alone, or empty where it has no figure."""
    if cell.imported is not None:
        return imported_metric(cell.overhead)
    return next((key for key in ("throughput", "latency_p50") if key in cell.overhead), "")


def standing(cell: Cell) -> str:
    """`UNPROVEN`, `FAILED`, … of a cell whose status is not ok, be there figures or not; else empty."""
    return "" if cell.status == "ok" else cell.status.upper().replace("-", " ")


def cost(key: str, estimate: Estimate) -> str:
    """`12.3 % fewer`, in the words of that metric."""
    return worded(estimate, *MORE_LESS.get(key, ("more", "less")))


# A page asks hundreds of times, and each time would be a look through a directory.
_mechanisms = functools.cache(lambda: frozenset(mechanisms.names()))
_engines = functools.cache(lambda: frozenset(engines.names()))


def is_control(cell: Cell) -> bool:
    """A cell that failed before anything was known of it has no layer."""
    known = cell.mechanism in _mechanisms()
    return (cell.layer or (mechanisms.get(cell.mechanism).layer if known else "")) == "control"


def beside(estimate: Estimate) -> str:
    """`8.1 % fewer operations/s (7.2 to 9.0 %), p < 0.001`: a cell against the reference of its experiment."""
    p = estimate.p_value
    surely = "" if p is None else ", p < 0.001" if p < 0.001 else f", p = {p:.2g}"
    return f"{worded(estimate, 'more', 'fewer')} ({interval(estimate)}{surely})"


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
    """`49.3 % more` or `3.2 times`, of something counted and not estimated."""
    if ratio == 1:
        return "no more"
    return f"{ratio:.3g} times" if ratio >= 3 else f"{abs(ratio - 1) * 100:.1f} % {'more' if ratio > 1 else 'fewer'}"


COSTS: tuple[tuple[str, str], ...] = (
    ("throughput", "operations/s"),
    ("server_cpu_per_op", "server CPU/op"),
    ("client_cpu_per_op", "client CPU/op"),
    ("latency_p50", "latency p50"),
)
"""The figures that stand for a cost where there is little room, latency only where there is no throughput."""


def costs(cell: Cell) -> Iterator[str]:
    """The dearest figures of a cell, in words."""
    for key, what in COSTS:
        if key in cell.overhead and not (key == "latency_p50" and "throughput" in cell.overhead):
            yield f"{cost(key, cell.overhead[key])} {what}"
    for what, words, _ in stored(cell):
        yield f"{words} stored, {what}"


def protects(cell: Cell) -> Iterator[str]:
    """What the mechanism protects, and what was seen to be open all the same, by severity."""
    if cell.mechanism in _mechanisms():
        yield mechanisms.protection(mechanisms.get(cell.mechanism))
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
            change = worded(estimate, "longer", "shorter") if late else worded(estimate, "faster", "slower")
            scale, unit = (1.0, "µs") if late else (1e6, "MB/s")
            both = [cell.arms.get(arm, {}).get("storage", {}).get(key, 0.0) / scale for arm in ARMS]
            yield label, change, interval(estimate), f"{' → '.join(map(number, both))} {unit}"


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
            f"of it {name.replace('-', ' ')}: {worded(without, 'more', 'fewer')} ({interval(without)}); "
            f"{cell.mechanism.upper()} itself: {worded(left, 'more', 'fewer')} ({interval(left)})"
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


def worded(estimate: Estimate, more: str = "more", less: str = "less") -> str:
    """`12.3 % fewer`, `31 % more`, `8.4 times` of a ratio."""
    change = estimate.ratio - 1
    if estimate.ratio >= 3:
        return f"{estimate.ratio:.3g} times"
    return f"{abs(change) * 100:.{decimals(estimate)}f} % {more if change >= 0 else less}"


def interval(estimate: Estimate) -> str:
    """`11.8 to 12.9 %` in the direction of the estimate, or `-0.3 to +0.5 %` where it holds zero."""
    if estimate.ratio >= 3:
        return f"{estimate.low:.3g} to {estimate.high:.3g} times"
    digits = decimals(estimate)
    low, high = (estimate.low - 1) * 100, (estimate.high - 1) * 100
    if low > 0:
        return f"{low:.{digits}f} to {high:.{digits}f} %"
    if high < 0:
        return f"{-high:.{digits}f} to {-low:.{digits}f} %"
    return f"{low:+.{digits}f} to {high:+.{digits}f} %"


def decimals(estimate: Estimate) -> int:
    """As many digits as the interval's width lets one trust."""
    return decimals_of_width((estimate.high - estimate.low) * 100)


def decimals_of_width(width: float) -> int:
    """Of an interval, in percentage points."""
    return 0 if width > 20 else 1 if width > 0.5 else 2


def _typical(*names: str) -> Callable[[dict[str, Any]], float | None]:
    """Reads a level as the robust ratio beside it sees it; of other tools' runs, which have none such, the level itself."""

    def read(arm: dict[str, Any]) -> float | None:
        for found in (arm.get("typical", {}), arm):
            for name in names:
                found = found.get(name, {}) if isinstance(found, dict) else {}
            if isinstance(found, int | float):
                return float(found)
        return None

    return read


LEVELS: dict[str, tuple[Callable[[dict[str, Any]], float | None], str]] = {
    "throughput": (_typical("throughput"), "/s"),
    "server_cpu_per_op": (lambda arm: arm.get("server_cpu_us_per_op"), "µs"),
    "client_cpu_per_op": (lambda arm: arm.get("client_cpu_us_per_op"), "µs"),
    "latency_p50": (_typical("latency_ms", "p50"), "ms"),
    "latency_p99": (_typical("latency_ms", "p99"), "ms"),
    "latency_mean": (_typical("latency_ms", "mean"), "ms"),
    "host_busy": (lambda arm: arm.get("host_busy"), "%"),
    "host_cpu_per_op": (lambda arm: arm.get("host_cpu_us_per_op"), "µs"),
    "wire_bytes_per_op": (lambda arm: arm.get("wire_bytes_per_op"), "B"),
    "disk_bytes_per_op": (lambda arm: arm.get("read_bytes_per_op", 0.0) + arm.get("write_bytes_per_op", 0.0), "B"),
    "machine_cpu_per_op": (lambda arm: arm.get("machine_cpu_us_per_op"), "µs"),
    "disk_written_per_op": (lambda arm: arm.get("write_bytes_per_op"), "B"),
    "disk_read_per_op": (lambda arm: arm.get("read_bytes_per_op"), "B"),
    "memory": (lambda arm: arm.get("memory_bytes", 0.0) / 1e6 or None, "MB"),
    "start_time": (lambda arm: arm.get("start_s"), "s"),
}
"""How an arm's level of a metric is read from its facts."""


def level(cell: Cell, arm: Arm, key: str) -> float | None:
    """One arm's level of a metric, by the same estimator as the ratio: encrypted ÷ plain is `cell.overhead[key].ratio`."""
    return LEVELS[key][0](cell.arms.get(arm, {}))


def levels(cell: Cell, key: str) -> str:
    """`18.2 → 23.9 µs`, or nothing where an arm's level is not known."""
    unit = LEVELS[key][1]
    values = [level(cell, arm, key) for arm in ARMS]
    known = [value for value in values if value is not None]
    return " → ".join(number(value) for value in known) + f" {unit}" if len(known) == len(ARMS) else ""


def number(value: float) -> str:
    """Three significant digits, thousands apart."""
    if abs(value) >= 999.5:
        return f"{value:,.0f}"
    return f"{value:.3g}"


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
        words += f": this run could have seen {cell.smallest_effect:.1%} or more"
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


IMPORTED = ("throughput", "latency_mean", "latency_p50", "latency_p99", "host_busy")
"""What other tools' runs are judged by: the first of these that has an interval."""


def imported_metric(overhead: Mapping[str, Estimate]) -> str:
    """The figure that an imported cell is judged by; empty: it has none."""
    return next((key for key in (*IMPORTED, *overhead) if key in overhead), "")


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
    loud = f"Imported from {tools}, NOT PAIRED AND NOT PROVEN"
    differing = [cell for cell in known if runs_differ(cell)]
    alone = sum(runs_differ(cell) is None for cell in known)
    if len(known) <= 3:
        unresolved = {True: "", False: ", which is unresolved", None: f", but {BY_ITSELF}"}
        shown = "; ".join(f"{heading(cell)}: encrypted {_does(cell)}{unresolved[runs_differ(cell)]}" for cell in known)
        return f"{loud}: {shown}; whether encryption did it these runs can't tell."
    said = f"the arms' runs differ in {len(differing)} of {len(known)} cells after Holm's correction for their number"
    said += f" ({alone} more by themselves only)" if alone else ""
    shown = "; ".join(f"{heading(cell)}: encrypted {_does(cell)}" for cell in differing[:2])
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
    return f"{abs(ratio - 1) * 100:.1f} % {'more' if ratio > 1 else 'fewer'}"


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


def embedded(cell: Cell) -> bool:
    return engines.get(cell.engine).embedded if cell.engine in _engines() else False


# ── a whole run in one sentence
# ─────────────────────────────────────────────────────────────────────────────────────────


def priced(cell: Cell) -> str:
    """`24.9 % fewer operations per second (95 % interval 24.2 to 25.5 %)`; empty where the cell has no figure."""
    if not (key := main_metric(cell)):
        return ""
    estimate = cell.overhead[key]
    said = (LABELS[key], cost(key, estimate)) if key.startswith("latency") else (cost(key, estimate), LABELS[key])
    return f"{' '.join(said)} (95 % interval {interval(estimate)})"


def loss(key: str, estimate: Estimate) -> tuple[float, float, float]:
    """(cost, low, high) as shares, more is dearer: of throughput what is lost, of latency what is added."""
    if key == "throughput":
        return 1 - estimate.ratio, 1 - estimate.high, 1 - estimate.low
    return estimate.ratio - 1, estimate.low - 1, estimate.high - 1


def in_common(cells: Sequence[Cell]) -> str:
    """`postgresql 18.4 · tls · point-select`: what all cells share of their headings."""
    said = [heading_words(cell) for cell in cells]
    first = said[0] if said else {}
    return " · ".join(value for name, value in first.items() if value and len({each[name] for each in said}) == 1)


def names(cells: Sequence[Cell]) -> list[str]:
    """Of each cell what sets it apart from the others of its run: the words of its heading in which they differ, and its variant."""
    said = [heading_words(cell) for cell in cells]
    apart = [name for name in (said[0] if said else ()) if len({each[name] for each in said}) > 1]
    shown = apart or (["engine", "mechanism", "workload"] if len(cells) == 1 else [])
    found = []
    for cell, each in zip(cells, said, strict=True):
        # A control's variant names its mechanism too.
        parts = [each[name] for name in shown if each[name] and each[name] not in cell.variant.split()]
        found.append(" · ".join([*parts, *[cell.variant] * bool(cell.variant)]) or heading(cell))
    # Cells that no experiment has named differ in their factors.
    alike: dict[str, list[Cell]] = {}
    for cell, name in zip(cells, found, strict=True):
        alike.setdefault(name, []).append(cell)
    for number, those in enumerate([alike[name] for name in found]):
        own = [
            f"{name}={value}"
            for name, value in cells[number].factors.items()
            if value and len({each.factors.get(name) for each in those}) > 1
        ]
        found[number] = " · ".join([found[number], *own])
    twice = {name for name, count in Counter(found).items() if count > 1}
    return [f"{name} (cell {number})" if name in twice else name for number, name in enumerate(found, start=1)]


def answer(result: Result, only: str = "") -> str:
    """What encryption costs, of the whole run, in one sentence with its intervals; what is not known is said.

    `only`: of the cells whose main metric that is, where cells of the other have a place of their own.
    """
    cells = [cell for cell in result.cells if not is_control(cell)] or list(result.cells)
    if only and not any(main_metric(cell) == only for cell in cells):
        cells = list(result.cells)
    of = {key: [cell for cell in cells if main_metric(cell) == key] for key in ("throughput", "latency_p50")}
    told = [key for key, those in of.items() if those and only in ("", key)]
    if any(cell.imported for cell in cells):
        return imported_answer(cells, [cell for cell in cells if cell.overhead])
    known = [cell for cell in cells if main_metric(cell) in told]
    lost = sum(not main_metric(cell) for cell in cells)
    if not cells:
        return "This run measured nothing."
    if not known:
        if len(cells) == 1:
            return f"No cost was measured: {heading(cells[0])} {without_number(cells[0])}."
        return f"No cost was measured: none of the {len(cells)} cells has a number, for the reasons given with each."
    labels = dict(zip(map(id, cells), names(cells) if len(cells) > 1 else [""], strict=True))
    first, *further = (_of_one_metric(of[key], labels) for key in told)
    said = "; ".join([first, *(f"where latency alone was measured: {each[0].lower()}{each[1:]}" for each in further)])
    # What has no number is said once, with what comes first.
    if lost and not (only and only != next(key for key, those in of.items() if those)):
        said += f"; {lost} of {len(cells)} cells {'has' if lost == 1 else 'have'} no number"
    return f"{said}."


def _of_one_metric(known: Sequence[Cell], labels: dict[int, str]) -> str:
    """The same of cells whose costs can be set in one order."""
    if len(known) == 1:
        return _one(known[0], labels[id(known[0])])
    key = main_metric(known[0])
    # Of what was not resolved it can't be said that it is cheap, or dear.
    resolved = [cell for cell in known if cell.verdict != "unresolved"] or known
    alike = sorted(resolved, key=lambda cell: loss(key, cell.overhead[key])[0])
    cheapest, dearest = (labels[id(cell)] for cell in (alike[0], alike[-1]))
    unresolved = sum(cell.verdict == "unresolved" for cell in known)
    if unresolved == len(known):
        spans = f"{priced(alike[0])} with {cheapest} to {priced(alike[-1])} with {dearest}"
        return f"What encryption costs was resolved in none of {len(known)} cells: from {spans}"
    tail = f"; of {unresolved} more the cost was not resolved" if unresolved else ""
    if len(alike) == 1:
        return f"{_one(alike[0], cheapest)}{tail}"
    return (
        f"Encrypted, the cheapest of {len(alike)} cells ({cheapest}) {_does(alike[0])}, "
        f"the dearest ({dearest}) {_does(alike[-1])}{tail}"
    )


def _one(cell: Cell, name: str = "") -> str:
    """The same of one cell; `name`: what sets it apart from others that the sentence has nothing of."""
    who, what = (
        f"{cell.engine} {cell.version}".strip(),
        cell.mechanism + f" ({name})" * bool(name and name != cell.mechanism),
    )
    if cell.verdict == "unresolved":
        least = f"{cell.smallest_effect:.1%}".replace("%", " %") if cell.smallest_effect else ""
        could = f"; this run could have seen {least} or more" if least else ""
        could = f"; {BY_ITSELF}" if by_itself(cell) else f"; {TOTALS_OPEN}" if cell.totals_open else could
        return f"What {what} costs {who} was not resolved here: {priced(cell)}{could}"
    if cell.verdict == "equivalent":
        return f"With {what}, {who} does as well as without it, but for differences too small to matter: {priced(cell)}"
    return f"With {what}, {who} {_does(cell)}"


def _does(cell: Cell) -> str:
    """`does 24.9 % fewer operations per second (95 % interval …)`, or `takes 12 % longer …`."""
    key = main_metric(cell)
    estimate = cell.overhead[key]
    if key == "throughput":
        return f"does {priced(cell)}"
    if not key.startswith("latency"):
        return f"takes {cost(key, estimate)} ({LABELS.get(key, key)}; 95 % interval {interval(estimate)})"
    took = worded(estimate, "longer", "shorter") + (" as long" if estimate.ratio >= 3 else "")
    return f"takes {took} for an operation ({LABELS[key]}; 95 % interval {interval(estimate)})"


def without_number(cell: Cell) -> str:
    """`failed: the disk is full`: why a cell has none."""
    words = {"failed": "failed", "unproven": "was not proven", "no-steady-state": "never came to rest"}
    return f"{words.get(cell.status, cell.status)}{f': {cell.reason}' if cell.reason else ''}".rstrip(".")
