"""terminal: a result as plain words and figures, 80 columns wide; cost first, then proof, then what to mind."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ciphercost import chatter, conditions, engines, mechanisms
from ciphercost.model import ARMS, Cell, Curve, Estimate, Finding, Part, Result, Severity

WIDTH = 80
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low", "info")
DOUBTFUL = 3.0
"""Standard errors between a cell and the fit of the parts above which the fit is doubted aloud."""

METRICS: tuple[tuple[str, str, str, str], ...] = (
    # key, label, word where encrypted is more, word where it is less
    ("server_cpu_per_op", "server CPU per operation", "more", "less"),
    ("machine_cpu_per_op", "… with kernel threads", "more", "less"),
    ("client_cpu_per_op", "client CPU per operation", "more", "less"),
    ("throughput", "operations per second", "more", "fewer"),
    ("latency_p50", "latency p50", "longer", "shorter"),
    ("latency_p99", "latency p99", "longer", "shorter"),
    ("wire_bytes_per_op", "bytes on the wire", "more", "fewer"),
    ("disk_bytes_per_op", "bytes from and to disk", "more", "fewer"),
    ("disk_written_per_op", "bytes written to disk", "more", "fewer"),
    ("disk_read_per_op", "bytes read from disk", "more", "fewer"),
    ("memory", "memory", "more", "less"),
    ("start_time", "time to start", "longer", "shorter"),
)


def render(result: Result) -> str:
    """Every cell, cells of one experiment as one table; where the cost comes from; the machine and how to see it again."""
    blocks = []
    for _, cells in itertools.groupby(result.cells, key=lambda cell: cell.group or id(cell)):
        together = list(cells)
        controls = [cell for cell in together if is_control(cell)] if len(together) > 1 else []
        # A control that was measured beside others stands in their lines.
        shown = [cell for cell in together if cell not in controls] or together
        made = block(shown[0], result.cells) if len(shown) == 1 else table(shown, result.cells)
        blocks.append("\n".join([made, *lost(controls, shown)]))
    if result.parts:
        blocks.append("\n".join(parts(result)))
    blocks += ["\n".join(curve(each)) for each in result.curves]
    if protections := protected(result.cells):
        blocks.append("\n".join(protections))
    if result.study is not None:
        from ciphercost import studies

        blocks = [studies.get(result.study.study).table(result.study), "By our method:", *blocks]
    return "\n\n".join([*blocks, footer(result)])


def is_control(cell: Cell) -> bool:
    """A cell that failed before anything was known of it has no layer."""
    known = cell.mechanism in mechanisms.names()
    return (cell.layer or (mechanisms.get(cell.mechanism).layer if known else "")) == "control"


def lost(controls: Iterable[Cell], shown: Iterable[Cell]) -> Iterator[str]:
    """Controls that failed, where that is not what the cells say themselves."""
    said = {cell.reason for cell in shown}
    for cell in controls:
        if cell.status != "ok" and cell.reason not in said:
            name = cell.variant or cell.mechanism
            yield from wrap(
                f"! the control {name}: {cell.status.upper().replace('-', ' ')}: {cell.reason}", "  ", "    "
            )


def table(cells: list[Cell], everything: Sequence[Cell] = ()) -> str:
    """An experiment of several cells: a row a cell, the cheapest first; below it the proofs and what to mind."""
    return "\n".join(_rows(cells, everything))


def _rows(cells: list[Cell], everything: Sequence[Cell]) -> Iterator[str]:
    reference = cells[0]
    several = len({cell.workload for cell in cells}) > 1
    words = [heading_words(cell) for cell in cells]
    yield heading(reference, without=tuple(name for name in words[0] if len({each[name] for each in words}) > 1))
    shared = max(cell.sessions for cell in cells)
    sessions = f"{shared} session{'s' * (shared != 1)}"
    yield from wrap(f"one experiment: {len(cells)} cells share {sessions}; cheapest first", "  ")
    names = {id(cell): cell.variant if several or cell is not reference else "the reference" for cell in cells}
    if not several:
        yield from wrap(f"the reference: {reference.variant}", "  ")
    closed = any("throughput" in cell.overhead for cell in cells)
    metric, more, less = ("throughput", "more", "fewer") if closed else ("latency_p50", "longer", "shorter")
    yield (
        f"  {'':<22}{'operations/s' if closed else 'latency p50':>13}  {'95 % interval':<18}{'server CPU/op':>14}{'p (Holm)':>9}"
    )
    shown = sorted((cell for cell in cells if metric in cell.overhead), key=lambda cell: cell.overhead[metric].ratio)
    for cell in shown[::-1] if closed else shown:
        estimate = cell.overhead[metric]
        cpu = cell.overhead.get("server_cpu_per_op")
        p = "" if estimate.p_value is None else "<0.001" if estimate.p_value < 0.001 else f"{estimate.p_value:.3f}"
        server = worded(cpu) if cpu else ""
        yield f"  {names[id(cell)]:<22.22}{worded(estimate, more, less):>13}  {interval(estimate):<18}{server:>14}{p:>9}"
        if cell.against_reference is not None and not several:
            yield from wrap(f"against the reference {beside(cell.against_reference)}", "    ", "      ")
        yield from taken_apart(cell, everything, "    ")
        if cell.predicted:
            yield from wrap(prediction(cell), "    ", "      ")
    for cell in cells:
        if cell not in shown:
            yield from wrap(f"{names[id(cell)]}: {cell.status.upper().replace('-', ' ')}: {cell.reason}", "  ")
    for text, where in _told(shown, ((names[id(cell)], proof_line(cell)) for cell in shown)):
        yield from wrap(f"{where}{text}", "  ")
    for cell in shown:
        for said in logged(cell):
            yield from wrap(f"{names[id(cell)]}: {said}", "  ")
    yield from _clients([cell for cell in cells if metric in cell.overhead], reference, names)
    for text, where in _told(cells, ((names[id(cell)], each.text) for cell in cells for each in cell.warnings)):
        yield from wrap(f"! {where}{text}", "  ", "    ")


def _clients(cells: list[Cell], reference: Cell, names: dict[int, str]) -> Iterator[str]:
    """Where clients are compared: what each arm of each costs, and what they send."""
    shown = [cell for cell in cells if cell.chatter or cell.traffic]
    if not shown:
        return
    yield f"  {'each operation':<22}{'server CPU':>18}{'client CPU':>18}{'round trips':>13}"
    for cell in shown:
        trips = [f"{cell.traffic[arm]['round_trips']:g}" for arm in ARMS if arm in cell.traffic]
        both = trips[:1] if len(set(trips)) == 1 else trips
        costs = [levels(cell, f"{end}_cpu_per_op") for end in ("server", "client")]
        yield f"  {names[id(cell)]:<22.22}{costs[0]:>18}{costs[1]:>18}{' → '.join(both):>13}"
    for cell in shown:
        for arm in ARMS:
            words = [
                f"{label} {worded(each)} ({interval(each)})"
                for key, label in (("server_cpu", "server CPU"), ("client_cpu", "client CPU"))
                if (each := cell.client_against_reference.get(f"{key}_{arm}"))
            ]
            if words:
                yield from wrap(f"{names[id(cell)]} against the reference, {arm}: {', '.join(words)}", "    ", "      ")
    for text, where in _told(
        shown, ((names[id(cell)], each) for cell in shown for each in chatter.lines(cell.chatter))
    ):
        yield from wrap(f"{where}{text}", "  ", "    ")
    for cell in shown:
        for arm in ARMS:
            differ = chatter.unlike(reference.chatter.get(arm, {}), cell.chatter.get(arm, {}))
            if cell is not reference and differ and cell.chatter.get(arm) and reference.chatter.get(arm):
                text = f"{names[id(cell)]}, {arm}: other statements than the reference sends: {chatter.differences(reference.chatter[arm], cell.chatter[arm])}"
                yield from wrap(text, "  ", "    ")
                break


def _told(cells: list[Cell], said: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Each text once, and of which cells it is true: nothing where it is true of all."""
    variants: dict[str, list[str]] = {}
    for variant, text in said:
        variants.setdefault(text, []).append(variant)
    for text, those in variants.items():
        yield text, "" if len(those) == len(cells) else f"{', '.join(those)}: "


def beside(estimate: Estimate) -> str:
    """`8.1 % fewer operations/s (7.2 to 9.0 %), p < 0.001`: a cell against the reference of its experiment."""
    p = estimate.p_value
    surely = "" if p is None else ", p < 0.001" if p < 0.001 else f", p = {p:.2g}"
    return f"{worded(estimate, 'more', 'fewer')} ({interval(estimate)}{surely})"


def taken_apart(cell: Cell, everything: Sequence[Cell], indent: str) -> Iterator[str]:
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
        yield from wrap(words, indent, f"{indent}  ")


def logged(cell: Cell) -> Iterator[str]:
    """What the server's own log has of its handshakes."""
    full, resumed = cell.handshakes.get("full", 0), cell.handshakes.get("resumed", 0)
    if full + resumed:
        share = f"{resumed / (full + resumed):.1%}".replace("%", " %")
        yield f"server's log: {full + resumed:,} handshakes under load, {resumed:,} resumed ({share})"


def parts(result: Result) -> Iterator[str]:
    """Handshake, request and byte at both ends, and the cipher's own floor."""
    yield "where the cost comes from: CPU that encryption adds, with 95 % intervals"
    yield f"  {'':<26}{'a connection':<18}{'an operation':<18}{'a byte':<18}"
    for each in result.parts:
        name = f"{each.engine} {each.mechanism}, {each.end}"
        yield f"  {name:<26}{plus(each.handshake_us, 'µs'):<18}{plus(each.request_us, 'µs'):<18}{plus(each.byte_ns, 'ns'):<18}".rstrip()
        if each.floor_ns is not None:
            yield f"  {'  the cipher alone, in the agent’s library':<62}{number(each.floor_ns)} ns"
        if (even := each.break_even_bytes) is not None:
            yield from wrap(
                f"a handshake costs as much as {size(even.value)} of an answer ({size(even.low)} to {size(even.high)})",
                "    ",
            )
    worst = max(each.worst for each in result.parts)
    if worst > DOUBTFUL:
        yield from wrap(
            f"! a cell lies {worst:.1f} of its standard errors from the fit: the three parts do not tell all of the cost here",
            "  ",
            "    ",
        )


BAR = 18
"""Letters of the longest bar."""


def curve(of: Curve) -> Iterator[str]:
    """Cost against size or clients: a line a point, with a bar."""
    what = "the size of an answer" if of.along == "size" else "clients"
    yield f"cost against {what}: {of.engine} {of.version} · {of.mechanism} · {of.workload}"
    yield f"  {'':>9}{'operations/s':>14}  {'95 % interval':<18} {'server CPU/op'}"
    most = max(abs(1 - point.throughput.ratio) for point in of.points) or 1.0
    for point in of.points:
        name = size(point.x) if of.along == "size" else f"{point.x:.0f}"
        bar = "█" * round(BAR * abs(1 - point.throughput.ratio) / most)
        added = point.server_cpu_us
        cpu = "" if added is None else f"{'-' if added < 0 else '+'}{number(abs(added))} µs"
        cost = worded(point.throughput, "more", "fewer")
        yield f"  {name:>9}{cost:>14}  {interval(point.throughput):<18} {cpu:<13} {bar}".rstrip()


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


def block(cell: Cell, everything: Sequence[Cell] = ()) -> str:
    """One cell. No figure stands here unless the cell was proven."""
    return "\n".join(_lines(cell, everything))


def _lines(cell: Cell, everything: Sequence[Cell]) -> Iterator[str]:
    yield heading(cell)
    if cell.status != "ok" and not cell.overhead:
        yield from wrap(f"{cell.status.upper().replace('-', ' ')}: {cell.reason}", "  ")
        yield from wrap("no number is printed for this cell", "  ")
        for proof in cell.proofs:
            if not proof.passed:
                yield from wrap(f"FAILED {proof.witness} witness, {proof.arm} arm: {proof.detail}", "  ")
        return
    if cell.status != "ok":
        yield from wrap(f"{cell.status.upper()}: {cell.reason}", "  ")
    yield f"  {'what encryption costs':<25}{'':>14}  {'95 % interval':<17} plain → encrypted"
    # The agent is the database where it is embedded: first its own CPU time, then that with kernel threads.
    order = sorted(METRICS[:3], key=lambda metric: metric[0] == "machine_cpu_per_op" and embedded(cell))
    for key, label, more, less in (*order, *METRICS[3:]):
        if key in cell.overhead and not (cell.layer == "rest" and key == "disk_bytes_per_op"):
            estimate = cell.overhead[key]
            name = "process CPU per operation" if key == "client_cpu_per_op" and embedded(cell) else label
            yield f"  {name:<25}{worded(estimate, more, less):>14}  {interval(estimate):<17} {levels(cell, key)}".rstrip()
    if cell.predicted:
        yield from wrap(prediction(cell), "  ", "    ")
    yield from taken_apart(cell, everything, "  ")
    yield from wrap(f"verdict: {verdict(cell)}", "  ", "           ")
    yield from wrap(proof_line(cell), "  ", "          ")
    for words in (*logged(cell), *chatter.lines(cell.chatter, cell.traffic)):
        yield from wrap(words, "  ", "          ")
    yield from storage(cell)
    for what, words, both in stored(cell):
        yield f"  {f'stored bytes, {what}':<25}{words:>14}  {'':<17} {both}"
    if "rotation_s" in cell.key_life:
        yield f"  a new key for the encrypted data: {number(cell.key_life['rotation_s'])} s"
    yield from findings_lines(cell.findings)
    for warning in cell.warnings:
        yield from wrap(f"! {warning.text}", "  ", "    ")


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


NAME_WIDTH, COST_WIDTH, PROTECTS_WIDTH = 20, 24, 32


def protected(cells: list[Cell]) -> list[str]:
    """What it costs and what it protects side by side, where a run compares mechanisms; nothing where it doesn't."""
    shown = [cell for cell in cells if cell.overhead and cell.layer != "control"]
    if len({(cell.engine, cell.mechanism, cell.factors.get("iv")) for cell in shown}) < 2:
        return []
    lines = [_row("", "what it costs", "what it protects")]
    for cell in shown:
        iv = f"iv={cell.factors['iv']}" if cell.layer == "column" and "iv" in cell.factors else ""
        names = [f"{cell.engine} {cell.version}", cell.mechanism, cell.workload, iv, cell.variant]
        columns = [
            [line for name in names if name for line in textwrap.wrap(name, NAME_WIDTH)],
            [line for cost in costs(cell) for line in textwrap.wrap(cost, COST_WIDTH, subsequent_indent="  ")],
            [line for text in protects(cell) for line in textwrap.wrap(text, PROTECTS_WIDTH, subsequent_indent="  ")],
        ]
        lines += [_row(*line) for line in itertools.zip_longest(*columns, fillvalue="")]
    return lines


def _row(name: str, cost: str, protection: str) -> str:
    return f"  {name:<{NAME_WIDTH}} {cost:<{COST_WIDTH}} {protection}".rstrip()


def costs(cell: Cell) -> Iterator[str]:
    """The dearest figures of a cell, in words."""
    for key, what, more, less in (
        ("throughput", "operations/s", "more", "fewer"),
        ("server_cpu_per_op", "server CPU/op", "more", "less"),
        ("client_cpu_per_op", "client CPU/op", "more", "less"),
        ("latency_p50", "latency p50", "longer", "shorter"),
    ):
        if key in cell.overhead and not (key == "latency_p50" and "throughput" in cell.overhead):
            yield f"{worded(cell.overhead[key], more, less)} {what}"
    for what, words, _ in stored(cell):
        yield f"{words} stored, {what}"


def protects(cell: Cell) -> Iterator[str]:
    """What the mechanism protects, and what was seen to be open all the same, by severity."""
    if cell.mechanism in mechanisms.names():
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


def storage(cell: Cell) -> Iterator[str]:
    """What fio says of both directories, without a server."""
    if cell.storage:
        yield "  the same directories without a server (fio)"
    for key, label in STORAGE:
        if key not in cell.storage:
            continue
        estimate = cell.storage[key]
        latency = key == "fsync_latency"
        words = worded(estimate, "longer", "shorter") if latency else worded(estimate, "faster", "slower")
        scale, unit = (1.0, "µs") if latency else (1e6, "MB/s")
        both = [cell.arms.get(arm, {}).get("storage", {}).get(key, 0.0) / scale for arm in ARMS]
        yield f"  {label:<25}{words:>14}  {interval(estimate):<17} {' → '.join(map(number, both))} {unit}"


def by_severity(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda one: SEVERITIES.index(one.severity))


def findings_lines(findings: list[Finding]) -> Iterator[str]:
    """What the encryption leaves open, the worst first, each with what closes it."""
    if findings:
        yield "  what it leaves open"
    for each in by_severity(findings):
        closes = f" Closed by: {each.closes}." if each.closes else ""
        yield from wrap(f"{each.severity}: {each.text}.{closes}", "    ", "      ")


def heading(cell: Cell, without: tuple[str, ...] = ()) -> str:
    """`postgresql 18.4 · tls · point-select · 4 clients · capacity`; `without`: what the cells under it differ in."""
    return " · ".join(word for name, word in heading_words(cell).items() if word and name not in without)


def heading_words(cell: Cell) -> dict[str, str]:
    """What a heading is made of, by name."""
    return {
        "engine": f"{cell.engine} {cell.version}".strip(),
        "mechanism": cell.mechanism,
        "workload": cell.workload,
        "clients": f"{cell.clients} client{'s' * (cell.clients != 1)}",
        "regime": cell.regime,
        "client": cell.client,
        "conditions": conditions.worded(cell.conditions),
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


LEVELS: dict[str, tuple[Callable[[dict[str, Any]], float | None], str]] = {
    "throughput": (lambda arm: arm.get("throughput"), "/s"),
    "server_cpu_per_op": (lambda arm: arm.get("server_cpu_us_per_op"), "µs"),
    "client_cpu_per_op": (lambda arm: arm.get("client_cpu_us_per_op"), "µs"),
    "latency_p50": (lambda arm: arm.get("latency_ms", {}).get("p50"), "ms"),
    "latency_p99": (lambda arm: arm.get("latency_ms", {}).get("p99"), "ms"),
    "wire_bytes_per_op": (lambda arm: arm.get("wire_bytes_per_op"), "B"),
    "disk_bytes_per_op": (lambda arm: arm.get("read_bytes_per_op", 0.0) + arm.get("write_bytes_per_op", 0.0), "B"),
    "machine_cpu_per_op": (lambda arm: arm.get("machine_cpu_us_per_op"), "µs"),
    "disk_written_per_op": (lambda arm: arm.get("write_bytes_per_op"), "B"),
    "disk_read_per_op": (lambda arm: arm.get("read_bytes_per_op"), "B"),
    "memory": (lambda arm: arm.get("memory_bytes", 0.0) / 1e6 or None, "MB"),
    "start_time": (lambda arm: arm.get("start_s"), "s"),
}
"""How an arm's level of a metric is read from its facts."""


def levels(cell: Cell, key: str) -> str:
    """`18.2 → 23.9 µs`, or nothing where an arm's level is not known."""
    read, unit = LEVELS[key]
    values = [read(cell.arms.get(arm, {})) for arm in ARMS]
    known = [value for value in values if value is not None]
    return " → ".join(number(value) for value in known) + f" {unit}" if len(known) == len(ARMS) else ""


def number(value: float) -> str:
    """Three significant digits, thousands apart."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def verdict(cell: Cell) -> str:
    """The verdict in words, and what it rests on."""
    rests = f"{cell.sessions} session{'s' * (cell.sessions != 1)}, {cell.blocks} blocks"
    if cell.mode == "quick":
        rests += "; this server pair only"
    what = "throughput" if "throughput" in cell.overhead else "latency"
    words = {
        "differs": f"{what} differs",
        "equivalent": f"no difference in {what} larger than the margin (1 % unless told otherwise)",
        "unresolved": "unresolved",
    }.get(cell.verdict or "", "none")
    if cell.verdict == "unresolved" and cell.smallest_effect:
        words += f": this run could have seen {cell.smallest_effect:.1%} or more"
        if cell.sessions_needed:
            words += f", {cell.sessions_needed} sessions would resolve it"
    return f"{words} ({rests})"


def prediction(cell: Cell) -> str:
    """`the link alone predicts: 3 round trips = 30 ms more an operation, 34.2 % fewer operations per second; measured: 37.4 ms more, …`."""
    link = cell.predicted
    trips = f"{number(link['round_trips'])} round trips, " if link["round_trips"] else ""
    words = f"the link alone predicts: {trips}{longer(link['added_ms'])} an operation"
    if "throughput" not in link:
        return words
    each = [cell.clients / cell.arms[arm]["throughput"] * 1e3 for arm in ARMS]
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
    return engines.get(cell.engine).embedded if cell.engine in engines.names() else False


def footer(result: Result) -> str:
    """The machine, the seed, and where the run is."""
    machine = result.machine
    aes = "with AES instructions" if machine.get("aes") else "WITHOUT AES instructions"
    lines = [f"{machine.get('cpu')}, {machine.get('cores')} cores, {aes}, Linux {machine.get('kernel')}"]
    lines.append(f"run {result.id}, seed {result.seed}")
    return "\n".join(line for text in lines for line in wrap(text))


def wrap(text: str, indent: str = "", further: str | None = None) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=further if further is not None else indent + "  ",
        break_on_hyphens=False,
    )
