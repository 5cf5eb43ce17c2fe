"""Terminal report, 80 columns wide: the answer and a table of all cells, then each cell with its proofs and warnings."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from ciphercost.estimate import curves
from ciphercost.estimate.least_squares import DOUBTFUL
from ciphercost.estimate.notation import interval, number, worded
from ciphercost.host.volumes import disk
from ciphercost.measure import round_trips
from ciphercost.model.result import Cell, Curve, Part, Parts, Result
from ciphercost.model.sizes import size
from ciphercost.model.spec import ARMS
from ciphercost.report import disturbed, document, first_screen, money
from ciphercost.report.blocks import Note, Standing, Topic, only
from ciphercost.report.formats import _imported, _overview, _profile
from ciphercost.report.layout import WIDTH, named, row, wrap
from ciphercost.report.renderers import terminal as blocks_as_text
from ciphercost.report.words import cell_text, unit_cost_text
from ciphercost.report.words.cell_text import (
    failed_proof,
    heading,
    heading_words,
    is_control,
    no_number,
    proof_line,
    protects,
    reference_name,
)
from ciphercost.report.words.figure_text import (
    bounds,
    cost,
    levels,
    plus,
    printable,
)
from ciphercost.report.words.verdict_text import told

SHOWS_MONEY = True


def render(result: Result) -> str:
    """The answer and summary; every cell, with one table per experiment; where the cost comes from; the machine."""
    blocks = []
    above: Cell | None = None
    reasons_given = {told(result), *(cell.reason for cell in result.cells if result.study is not None)}
    for _, cells in itertools.groupby(result.cells, key=lambda cell: cell.group or id(cell)):
        together = list(cells)
        # A control that was measured with other cells appears in their lines; if it is the reference, it has a row of its own.
        controls = [] if all(map(is_control, together)) else [cell for cell in together[1:] if is_control(cell)]
        shown = [cell for cell in together if cell not in controls] or together
        alone = shown[0] if len(shown) == 1 else None
        text = block(alone, result.cells, above, reasons_given) if alone else table(shown, result.cells, reasons_given)
        above = alone
        blocks.append("\n".join([text, *lost(controls, reasons_given), *_profile.lines(shown)]))
    if where := list(parts(result)):
        blocks.append("\n".join(where))
    blocks += ["\n".join(curve(shown_curve)) for shown_curve in curves.shown(result.curves)]
    if result.study is not None:
        from ciphercost.report.formats import _study

        blocks = [
            _study.render(result.study, result.cells),
            "By our method:",
            *summary(result),
            *blocks,
        ]
    else:
        blocks = [*summary(result), *blocks]
    if warning := disturbed.warning(result.cells):
        blocks.insert(0, "\n".join(wrap(f"! {warning}", "", "  ")))
    return printable("\n\n".join([*blocks, footer(result)]))


def summary(result: Result) -> list[str]:
    """The first screen; for several cells also their costs and what each mechanism protects."""
    blocks = ["\n".join(first(first_screen.of(result)))]
    if len(result.cells) > 1 and not any(cell.imported for cell in result.cells):
        blocks.append("\n".join(_overview.lines(result.cells)))
    if protections := protected(result.cells):
        blocks.append("\n".join(protections))
    return blocks


RULE = f"── details {'─' * (WIDTH - 11)}"


def first(screen: first_screen.FirstScreen) -> Iterator[str]:
    """The answer, what it means elsewhere, what it protects, what limits it, and what to do next; details are below a rule."""
    for sentence in first_screen.in_order(screen):
        yield from wrap(sentence)
    yield from wrap(screen.basis)
    for text in screen.limits:
        yield from wrap(f"! {text}", "", "  ")
    if screen.further:
        yield from wrap(screen.further.line)
    yield RULE


def lost(controls: Iterable[Cell], reasons_given: set[str]) -> Iterator[str]:
    """Controls that failed for a reason that the report has not given yet. `reasons_given`: those that it has."""
    for cell in controls:
        if cell.status != "ok" and cell.reason not in reasons_given:
            name = cell.variant or cell.mechanism
            yield from wrap(f"! the control {name}: {no_number(cell, reasons_given)}", "  ", "    ")


def table(cells: list[Cell], everything: Sequence[Cell] = (), reasons_given: set[str] | None = None) -> str:
    """An experiment of several cells: a row per cell, the cheapest first, then proofs and warnings.

    `reasons_given`: see `no_number`.
    """
    return "\n".join(_rows(cells, everything, set() if reasons_given is None else reasons_given))


def _rows(cells: list[Cell], everything: Sequence[Cell], reasons_given: set[str]) -> Iterator[str]:
    reference = next((cell for cell in cells if not is_control(cell)), cells[0])
    several = len({cell.workload for cell in cells}) > 1
    words = [heading_words(cell) for cell in cells]
    yield from wrap(
        heading(
            reference, without=tuple(name for name in words[0] if len({cell_words[name] for cell_words in words}) > 1)
        )
    )
    shared = max(cell.sessions for cell in cells)
    sessions = f"{shared} session{'s' * (shared != 1)}"
    measured = any(cell.overhead for cell in cells)
    if measured:
        yield from wrap(f"one experiment: {len(cells)} cells in the same {sessions}, sorted by cost", "  ")
    first = reference_name(reference)
    names = {id(cell): cell.variant or first for cell in cells}
    if not several:
        yield from wrap(f"each is compared with {first}", "  ")
    closed = any("throughput" in cell.overhead for cell in cells)
    metric, more, less = ("throughput", "more", "fewer") if closed else ("latency_p50", "higher", "lower")
    if measured:
        yield from _of_table("", "operations/s" if closed else "latency p50", "95 % CI", "server CPU/op", "p (Holm)")
    shown = sorted((cell for cell in cells if metric in cell.overhead), key=lambda cell: cell.overhead[metric].ratio)
    notes = {id(cell): only(Note, document.of_cell(cell, everything)) for cell in shown}
    for cell in shown[::-1] if closed else shown:
        estimate = cell.overhead[metric]
        cpu = cell.overhead.get("server_cpu_per_op")
        p = "" if estimate.p_value is None else "<0.001" if estimate.p_value < 0.001 else f"{estimate.p_value:.3f}"
        server = worded(cpu) if cpu else ""
        yield from _of_table(names[id(cell)], worded(estimate, more, less), interval(estimate, more, less), server, p)
        for note in notes[id(cell)]:
            if note.topic in IN_TABLE and not (note.topic == "reference" and several):
                yield from wrap(str(note), "    ", "      ")
    for cell in cells:
        if cell not in shown:
            yield from wrap(f"{names[id(cell)]}: {no_number(cell, reasons_given)}", "  ")
    for text, where in _grouped(shown, ((names[id(cell)], proof_line(cell)) for cell in shown)):
        yield from wrap(f"{where}{text}", "  ")
    for cell in shown:
        for note in notes[id(cell)]:
            if note.topic in BELOW_TABLE:
                yield from wrap(f"{names[id(cell)]}: {note.text}", "  ")
    yield from _stored(shown, names)
    yield from _clients([cell for cell in cells if metric in cell.overhead], reference, names)
    for text, where in _grouped(
        cells, ((names[id(cell)], warning.text) for cell in cells for warning in cell.warnings)
    ):
        yield from wrap(f"! {where}{text}", "  ", "    ")


def _stored(cells: list[Cell], names: dict[int, str]) -> Iterator[str]:
    """How much larger tables and indexes are, and what stored values reveal, each once with the cells that it was seen in."""
    sizes = (
        (names[id(cell)], f"stored bytes, {what}: {growth} ({both})")
        for cell in cells
        for what, growth, both in cell_text.stored(cell)
    )
    for text, where in _grouped(cells, sizes):
        yield from wrap(f"{where}{text}", "  ", "    ")
    if any(cell.layer == "column" for cell in cells):
        found = (
            (names[id(cell)], f"{finding.severity}: {cell_text.left_open(finding)}")
            for cell in cells
            for finding in cell_text.by_severity(cell.findings)
        )
        for text, where in _grouped(cells, found):
            yield from wrap(f"finding, {where}{text}", "  ", "    ")


IN_TABLE: tuple[Topic, ...] = ("reference", "control", "prediction")
"""Notes below a cell's row."""
BELOW_TABLE: tuple[Topic, ...] = (
    "opening",
    "capacity",
    "money",
    "limit",
    "objective",
    "agents",
    "hop",
    "link",
    "log",
    "retries",
)
"""Notes below the table, each after the name of its cell."""
NAMES = 22
"""Longest cell name that fits beside its figures."""


def _of_table(name: str, cost: str, bounds: str, server: str, p: str) -> list[str]:
    return named(name, NAMES, [(cost, -37), (bounds, 39), (server, -71), (p, -80)])


def _of_clients(name: str, server: str, client: str, trips: str) -> list[str]:
    return named(name, NAMES, [(server, -42), (client, -60), (trips, -73)])


def _clients(cells: list[Cell], reference: Cell, names: dict[int, str]) -> Iterator[str]:
    """For a comparison of clients: the cost of each arm and what it sends."""
    shown = [cell for cell in cells if cell.chatter or cell.traffic]
    if not shown:
        return
    yield from _of_clients("per operation", "server CPU", "client CPU", "round trips")
    for cell in shown:
        trips = [f"{cell.traffic[arm]['round_trips']:g}" for arm in ARMS if arm in cell.traffic]
        both = trips[:1] if len(set(trips)) == 1 else trips
        server, client = (levels(cell, f"{end}_cpu_per_op") for end in ("server", "client"))
        yield from _of_clients(names[id(cell)], server, client, " → ".join(both))
    for cell in shown:
        for arm in ARMS:
            words = [
                f"{label} {worded(estimate)} ({interval(estimate)})"
                for key, label in (("server_cpu", "server CPU"), ("client_cpu", "client CPU"))
                if (estimate := cell.client_against_reference.get(f"{key}_{arm}"))
            ]
            if words:
                yield from wrap(
                    f"{names[id(cell)]} against {names[id(reference)]}, {arm}: {', '.join(words)}", "    ", "      "
                )
    for text, where in _grouped(
        shown, ((names[id(cell)], line) for cell in shown for line in round_trips.lines(cell.chatter))
    ):
        yield from wrap(f"{where}{text}", "  ", "    ")
    for cell in shown:
        for arm in ARMS:
            differ = round_trips.unlike(reference.chatter.get(arm, {}), cell.chatter.get(arm, {}))
            if cell is not reference and differ and cell.chatter.get(arm) and reference.chatter.get(arm):
                what = round_trips.differences(reference.chatter[arm], cell.chatter[arm])
                text = f"{names[id(cell)]}, {arm}: sends other statements than {names[id(reference)]}: {what}"
                yield from wrap(text, "  ", "    ")
                break


def _grouped(cells: list[Cell], named_texts: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Each text once, with the cells it applies to; empty if it applies to all."""
    variants: dict[str, list[str]] = {}
    for variant, text in named_texts:
        variants.setdefault(text, []).append(variant)
    for text, those in variants.items():
        yield text, "" if len(those) == len(cells) else f"{', '.join(those)}: "


def parts(result: Result) -> Iterator[str]:
    """What encryption adds to each unit of work, by end, and what the cipher alone would: connection, operation, byte; page, opening; value."""
    unknown = unit_cost_text.unknown(result.cells)
    if not result.parts and not result.costs and not unknown:
        return
    yield "where the cost comes from: CPU time that encryption adds, with 95 % intervals"
    if result.parts:
        yield from _in_transit(result.parts)
        yield "  `ciphercost predict` turns these into the figures of your own server"
    names: tuple[str, ...] = ()
    for unit_row in unit_cost_text.rows(result.costs):
        heads = tuple(
            f"per {unit_cost_text.unit(cost)}{' (time)' * (cost.measure == 'time')}" for cost in unit_row.costs
        )
        if heads != names:
            yield from _of_parts("", *heads)
            names = heads
        yield from _of_parts(f"{unit_row.name}, {unit_row.end}", *(with_error(cost.us) for cost in unit_row.costs))
        floors = ["" if cost.floor_us is None else f"{number(cost.floor_us)} µs" for cost in unit_row.costs]
        if any(floors):
            yield from _of_parts("  the cipher alone", *floors)
    if unknown:
        yield from wrap(f"! {unknown}", "  ", "    ")
    worst = max([*(fit.worst for fit in result.parts), *(cost.worst for cost in result.costs)], default=0.0)
    if worst > DOUBTFUL:
        yield from wrap(
            f"! a cell is {worst:.1f} standard errors off the fit: these parts do not explain all of the cost here",
            "  ",
            "    ",
        )


def _in_transit(fits: Sequence[Parts]) -> Iterator[str]:
    yield from _of_parts("", "per connection", "per operation", "per byte")
    for fit in fits:
        fitted = plus(fit.handshake_us, "µs"), plus(fit.request_us, "µs"), plus(fit.byte_ns, "ns")
        yield from _of_parts(f"{fit.engine} {fit.mechanism}, {fit.end}", *fitted)
        if fit.floor_ns is not None:
            yield f"  {'  the cipher alone, in the agent’s library':<62}{number(fit.floor_ns)} ns"
        if (even := fit.break_even_bytes) is not None:
            yield from wrap(
                f"a handshake costs as much as {size(even.value)} of response data ({size(even.low)} to {size(even.high)})",
                "    ",
            )


def with_error(part: Part) -> str:
    """`11.1 ± 0.5 µs`, in ms from 1,000 µs."""
    if max(abs(part.value), part.high - part.low) < 1_000:
        return plus(part, "µs")
    return plus(Part(part.value / 1e3, part.low / 1e3, part.high / 1e3), "ms")


def _of_parts(name: str, *figures: str) -> list[str]:
    return named(name, 25, list(zip(figures, (28, 46, 64), strict=False)))


BAR = 18
"""Length of the longest bar."""


def curve(of: Curve) -> Iterator[str]:
    """Cost against size or clients: a line per point, with a bar."""
    what = "response size" if of.along == "size" else "clients"
    yield from wrap(f"cost against {what}: {of.engine} {of.version} · {of.mechanism} · {of.workload}")
    yield from row(("operations/s", -25), ("95 % CI", 27), ("server CPU/op", 46))
    most = max(abs(1 - point.throughput.ratio) for point in of.points) or 1.0
    for point in of.points:
        name = size(point.x) if of.along == "size" else f"{point.x:.0f}"
        bar = "█" * round(BAR * abs(1 - point.throughput.ratio) / most)
        added = point.server_cpu_us
        cpu = "" if added is None else f"{'-' if added < 0 else '+'}{number(abs(added))} µs"
        change = cost("throughput", point.throughput)
        (*lines, last) = row((name, -11), (change, -25), (bounds("throughput", point.throughput), 27), (cpu, 46))
        yield from lines
        yield f"{last:<59} {bar}".rstrip()[:WIDTH]


def block(
    cell: Cell, everything: Sequence[Cell] = (), above: Cell | None = None, reasons_given: set[str] | None = None
) -> str:
    """One cell. It has figures only if it was proven.

    `above`: the cell printed before it, with perhaps the same proof; `reasons_given`: see `no_number`.
    """
    return "\n".join(_lines(cell, everything, above, set() if reasons_given is None else reasons_given))


def _lines(cell: Cell, everything: Sequence[Cell], above: Cell | None, reasons_given: set[str]) -> Iterator[str]:
    yield from wrap(heading(cell))
    if cell.imported is not None:
        yield from _imported.lines(cell, cell.imported)
        yield from wrap(money.line(cell), "  ", "    ")
        return
    known = document.of_cell(cell, everything, details=False)
    if not cell.overhead and cell.status != "ok":
        yield from wrap(f"this cell has no number: {no_number(cell, reasons_given)}", "  ")
        for status in only(Standing, known):
            for failed in status.failed:
                yield from wrap(failed_proof(failed), "  ")
        return
    if above is not None and not above.status == cell.status == "ok":
        above = None
    for cell_block in known:
        yield from blocks_as_text.block_lines(cell_block, above)


NAME_WIDTH = 24


def protected(cells: list[Cell]) -> list[str]:
    """What each mechanism protects, and its findings, if a run compares mechanisms; otherwise nothing."""
    shown = [cell for cell in cells if cell.overhead and cell.layer != "control" and cell.imported is None]
    if len({(cell.engine, cell.mechanism, cell.factors.get("iv")) for cell in shown}) < 2:
        return []
    alike: dict[str, list[str]] = {}
    for cell in shown:
        iv = f"iv={cell.factors['iv']}" if cell.layer == "column" and "iv" in cell.factors else ""
        name = " ".join(word for word in (cell.engine, cell.version, cell.mechanism, iv) if word)
        alike.setdefault(name, []).extend(protects(cell))
    lines = row(("", 2), ("what it protects", 3 + NAME_WIDTH))
    for name, texts in alike.items():
        if any(len(word) > NAME_WIDTH for word in name.split()):
            # The name is too long for its column, so it gets a line of its own.
            lines += wrap(name, "  ")
            name = ""
        columns = [
            wrap(name, "", "  ", NAME_WIDTH),
            [line for text in dict.fromkeys(texts) for line in wrap(text, "", "  ", WIDTH - NAME_WIDTH - 3)],
        ]
        for left, right in itertools.zip_longest(*columns, fillvalue=""):
            lines += row((left, 2), (right, 3 + NAME_WIDTH))
    return lines


def advice_line(text: str) -> list[str]:
    """One line of advice, wrapped with its indent."""
    text = printable(text)
    indent = " " * (len(text) - len(text.lstrip()))
    return wrap(text.lstrip(), indent, f"{indent}  ") or [""]


def footer(result: Result) -> str:
    """The machine, the run's id and its seed."""
    if any(cell.imported for cell in result.cells):
        return f"import {result.id}; to measure this, paired and proven:\n  {_imported.real_answer(result)}"
    machine = result.machine
    aes = "with AES instructions" if machine.get("aes") else "WITHOUT AES instructions"
    lines = [f"{machine.get('cpu')}, {machine.get('cores')} cores, {aes}, Linux {machine.get('kernel')}"]
    if disk_words := disk.words(machine):
        lines.append(disk_words)
    lines.append(f"run {result.id}, seed {result.seed}")
    return "\n".join(line for text in lines for line in wrap(text))
