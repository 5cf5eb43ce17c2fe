"""Sentences on what a cell or a whole run shows, and how certain it is. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ciphercost.estimate import disturbance, failures, plausible
from ciphercost.estimate.imported import imported_metric
from ciphercost.estimate.notation import NO_CHANGE, TIMES, of_what
from ciphercost.estimate.statistics import ALPHA
from ciphercost.model.result import Cell, Imported, Parts, Result, UnitCost
from ciphercost.model.shares import in_percent
from ciphercost.report import objective_text
from ciphercost.report.words import added_sentences, added_text, pair_text, unit_cost_text
from ciphercost.report.words.cell_text import distinct, heading, is_control, names, places, server_name, without_number
from ciphercost.report.words.figure_text import (
    METRICS,
    bounds,
    cost,
    lead_metric,
    loss,
    main_metric,
    priced,
    quantity,
    resolution,
)


def verdict(cell: Cell) -> str:
    """The verdict as text, with the number of sessions and blocks behind it."""
    if cell.imported is not None:
        return imported_verdict(cell, cell.imported)
    rests = f"{cell.sessions} session{'s' * (cell.sessions != 1)}, {cell.blocks} blocks"
    if cell.mode == "quick":
        rests += "; this server pair only"
    what = next((name for name in ("duration", "throughput") if name in cell.overhead), "latency")
    words = {
        "differs": f"{what} differs",
        "equivalent": f"no difference in {what} larger than the margin (default: 1 %)",
        "unresolved": "unresolved",
    }.get(cell.verdict or "", "none")
    if cell.failures is not None and cell.failures.undecided:
        words += f": {failing(cell)}"
    elif by_itself(cell):
        words += f": {BY_ITSELF}"
    elif cell.totals_open:
        words += (
            f": {TOTALS_OPEN}{f', {cell.sessions_needed} sessions would resolve it' if cell.sessions_needed else ''}"
        )
    elif cell.verdict == "unresolved" and cell.smallest_effect:
        words += f": this run could have detected {cell.smallest_effect * 100:.1f} % or more"
        if cell.sessions_needed:
            words += f", {cell.sessions_needed} sessions would resolve it"
    if failures.differ(cell.failures) and not (cell.failures and cell.failures.undecided):
        words += f"; {failing(cell)}"
    return f"{words}{disturbed(cell)} ({rests})"


def failing(cell: Cell) -> str:
    """What failed and how far that can change the cost: `12 of 640 encrypted slices failed and 0 of 640 plain ones (p = 0.0003 if chance
    decided); with failed slices as slices without work it does 2.5 % fewer operations/s (95 % CI 1.2–3.8 %)`; empty: nothing failed.
    """
    of = cell.failures
    if of is None:
        return ""
    what_failed = failures.what(of) or failures.counted(of)
    if of.throughput is None:
        return what_failed
    change, known = cost("throughput", of.throughput), f"(95 % CI {bounds('throughput', of.throughput)})"
    does = (
        f"shows no change in operations/s {known}"
        if change == NO_CHANGE
        else f"does {of_what(change, 'operations/s')} {known}"
    )
    return f"{what_failed}; with failed slices as slices without work it {does}"


def disturbed(cell: Cell) -> str:
    """`; DISTURBED in 248 of 256 slices by other processes or the hypervisor`, or empty."""
    how = disturbance.state(cell)
    return f"; DISTURBED in {disturbance.counted(cell.disturbance)} by other processes or the hypervisor" if how else ""


TOTALS_OPEN = (
    "the typical block differs by less than the margin, but all slices together, stalls included, may differ by more"
)


BY_ITSELF = "it differs on its own, but not after the correction for the number of cells"


def by_itself(cell: Cell) -> bool:
    """Whether a cell is unresolved only because of the correction for several cells: its own interval excludes no change."""
    if cell.verdict != "unresolved" or not (key := main_metric(cell)):
        return False
    return cell.overhead[key].low > 1 or cell.overhead[key].high < 1


def runs_differ(cell: Cell) -> bool | None:
    """Whether an imported cell's arms differ after Holm's correction; None: only before the correction."""
    estimate = cell.overhead[imported_metric(cell.overhead)]
    alone = estimate.low > 1 or estimate.high < 1
    if alone and estimate.p_value is not None and estimate.p_value >= ALPHA:
        return None
    return alone


def imported_verdict(cell: Cell, imported: Imported) -> str:
    """The verdict on imported figures. At most they show that the runs differ."""
    if not cell.overhead:
        return "none: these figures have no interval"
    key = imported_metric(cell.overhead)
    imported_cost = imported.costs[key]
    what = next(label for name, label, *_ in METRICS if name == key)
    runs = f"{imported_cost.plain_runs} plain and {imported_cost.encrypted_runs} encrypted runs, not paired"
    needed = imported_cost.runs_needed
    need = f"; to resolve 5 %: {needed} runs of each arm" if needed else "; to resolve 5 %: more than a thousand runs"
    differ = runs_differ(cell)
    if differ is None:
        return f"none: {BY_ITSELF} ({runs}{need})"
    if differ:
        return f"none: the arms' runs differ in {what} by more than chance, but can't show that encryption is the cause ({runs}{need})"
    seen = (
        f": these runs could have detected {in_percent(cell.smallest_effect)} or more"
        if cell.smallest_effect and key == "throughput"
        else ""
    )
    return f"none: unresolved{seen} ({runs}{need})"


def imported_answer(cells: Sequence[Cell], known: Sequence[Cell]) -> str:
    """The headline for imported figures: what the runs show, and that they don't show the cause."""
    tools = ", ".join(dict.fromkeys(cell.imported.tool for cell in cells if cell.imported))
    if not known:
        return f"Imported from {tools}, not paired and not proven: these figures have no interval, so no cost can be stated."
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
        return f"{loud}: {shown}; these runs can't show whether encryption is the cause."
    text = f"the arms' runs differ in {len(differing)} of {len(known)} cells after Holm's correction for their number"
    text += f" ({alone} more before the correction only)" if alone else ""
    shown = "; ".join(f"{labels[id(cell)]}: encrypted {_does(cell, main_metric(cell))}" for cell in differing[:2])
    more = f"; {len(differing) - 2} more below" if len(differing) > 2 else ""
    return (
        f"{loud}: {text}{f': {shown}' if shown else ''}{more}; these runs can't show whether encryption is the cause."
    )


LISTED = 3
"""Up to this many cells of one mechanism the headline gives each cost; above it, the lowest and the highest."""


MOST_SENTENCES = 6
"""Mechanisms that get a sentence in the headline, at most."""


def told(result: Result) -> str:
    """The reason for which every cell has no number, which `sentences` gives once for all of them; empty: there are several reasons,
    or there is a number. Pure.
    """
    cells = [cell for cell in result.cells if not is_control(cell)] or list(result.cells)
    reasons = {(cell.status, cell.reason) for cell in cells}
    alike = len(reasons) == 1 and not any(cell.overhead or cell.imported for cell in cells)
    return cells[0].reason if alike else ""


def answer(result: Result, only: str = "") -> str:
    """What encryption costs in this run, as one line of `sentences`."""
    return " ".join(sentences(result, only))


def sentences(result: Result, only: str = "") -> list[str]:
    """What encryption costs in this run: a sentence per mechanism and server, with intervals.

    They never rank mechanisms, servers or workloads. `only`: the main metric of a plot that shows only this metric.
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
            why = without_number(cells[0])
            return [f"No cost was measured: {heading(cells[0])} {why}{'' if why.endswith('?') else '.'}"]
        if told(result):
            return [f"No cost was measured: each of the {len(cells)} cells {without_number(cells[0])}."]
        return [f"No cost was measured: none of the {len(cells)} cells has a number; see the reason given with each."]
    by_mechanism = [
        list(_of_one_mechanism(those, labels, only, _parts(result, those), unit_cost_text.of_cells(result, those)))
        for those, labels in _by_mechanism(cells, known)
    ]
    texts = [
        *failed(known),
        *doubts(known),
        *unseen(known),
        *(by_mechanism[0] if len(by_mechanism) == 1 else [group[0] for group in by_mechanism]),
    ]
    if len(texts) > MOST_SENTENCES:
        texts[MOST_SENTENCES - 1 :] = [f"{len(texts) - MOST_SENTENCES + 1} more mechanisms are in the table."]
    if len(known) == 1 and not only and (at := objective_text.sentence(known[0])):
        texts.append(at)
    lost = sum(not main_metric(cell) for cell in cells)
    # If each metric has its own sentences, cells without a number are counted only with the first metric.
    if lost and only in ("", next(main_metric(cell) for cell in cells if main_metric(cell))):
        texts.append(f"{lost} of {len(cells)} cells {'has' if lost == 1 else 'have'} no number{_which(cells)}.")
    return texts


def _which(cells: Sequence[Cell]) -> str:
    """`: mariadb aes-cbc-256`: the cells without a number; empty if there are many. Pure."""
    lost = [name for name, cell in zip(names(cells), cells, strict=True) if not main_metric(cell)]
    return f": {'; '.join(lost)}" if len(lost) <= LISTED else ""


def failed(cells: Sequence[Cell]) -> Iterator[str]:
    """One sentence if one arm fails more often than the other, which no ratio of what succeeded contains."""
    hit = [cell for cell in cells if failures.differ(cell.failures)]
    if hit and hit[0].failures is not None:
        where = (
            ""
            if len(cells) == 1
            else f" in {len(hit)} of {len(cells)} cells, {names(cells)[cells.index(hit[0])]} first"
        )
        arm = pair_text.name(hit[0], failures.more(hit[0].failures))
        yield f"THE {arm.upper()} ARM FAILS MORE OFTEN{where}, which the costs below leave out: {failing(hit[0])}."


def doubts(cells: Sequence[Cell]) -> Iterator[str]:
    """One sentence if cells show something else than what encryption costs, or hide it."""
    hit = [cell for cell in cells if doubt(cell)]
    if hit:
        where = (
            ""
            if len(cells) == 1
            else f" in {len(hit)} of {len(cells)} cells, {names(cells)[cells.index(hit[0])]} first"
        )
        yield (
            f"NOT THE COST OF ENCRYPTION{where}: {doubt(hit[0])}."
            if plausible.is_no_cost(hit[0])
            else f"HIDDEN COST{where}: {doubt(hit[0])}."
        )


def unseen(cells: Sequence[Cell]) -> Iterator[str]:
    """A sentence for each factor that a workload can't show, so that no difference is no answer about it."""
    texts = dict.fromkeys(
        warning.text for cell in cells for warning in cell.warnings if warning.code == "factor-not-shown"
    )
    yield from (f"Not an answer about {text.partition(' ')[0]}: {text}." for text in list(texts)[:2])


def doubt(cell: Cell) -> str:
    """Why a cell's ratios are not what encryption costs, or hide it, in short; empty: nothing says so."""
    codes = {warning.code for warning in cell.warnings}
    waits = plausible.waiting(cell)
    if plausible.WAITS in codes and (arm := plausible.one_waits(cell)):
        return (
            f"the {arm} arm waits for about {waits[arm].ms:.0f} ms in most of its time, in which nothing works"
            f"{', as with a delayed acknowledgement of TCP (a server without TCP_NODELAY)' * (38 <= waits[arm].ms < 48)}"
        )
    if plausible.FASTER in codes:
        why = next(plausible.reasons(cell), "no reason was found")
        return f"the encrypted arm is surely faster, which encryption can't cause; {why}"
    if plausible.BOTH_WAIT in codes and waits:
        return f"both arms wait for about {waits['plain'].ms:.0f} ms in most of their time, in which nothing works"
    return ""


def _by_mechanism(cells: Sequence[Cell], known: Sequence[Cell]) -> Iterator[tuple[list[Cell], list[str]]]:
    """The cells with a number, grouped by server and mechanism, with labels that are unique in the group."""
    labels = dict(zip(map(id, cells), names(cells, without=("engine", "mechanism")), strict=True))
    alike: dict[tuple[str, str, str, str], list[Cell]] = {}
    for cell in known:
        arms = pair_text.arrow(cell.pair) if cell.pair else ""
        alike.setdefault((server_name(cell), cell.engine, cell.mechanism, arms), []).append(cell)
    for those in alike.values():
        group_labels = [labels[id(cell)] for cell in those]
        yield those, group_labels if len(those) == 1 else distinct(those, group_labels)


def _parts(result: Result, cells: Sequence[Cell]) -> Parts | None:
    """What the server pays for a connection, an operation and a byte, if the run fitted that to some of these cells."""
    cell_numbers = places(result, cells)
    return next(
        (parts for parts in result.parts if parts.end == "server" and cell_numbers.issuperset(parts.cells)), None
    )


def _of_one_mechanism(
    cells: Sequence[Cell],
    labels: Sequence[str],
    only: str,
    parts: Parts | None = None,
    costs: Sequence[UnitCost] = (),
) -> Iterator[str]:
    """What encryption adds to an operation, then what that does to the rate; only the latter where CPU times are unknown."""
    named = list(zip(cells, labels, strict=True))
    added = (
        []
        if only
        else [labelled for labelled in named if "throughput" in labelled[0].overhead and added_text.of(labelled[0])]
    )
    others = [labelled for labelled in named if not any(labelled[0] is cell for cell, _ in added)]
    if added:
        yield from added_sentences.of(_who([cell for cell, _ in added]), added, parts, costs)
        if len(added) == 1:
            cell = added[0][0]
            core = "On one core, client included, it" if cell.regime == "one-core" and not cell.embedded else "It"
            key = "duration" if "duration" in cell.overhead else "throughput"
            yield f"{core} {_does(cell, key)}{_how_sure(cell, key)}."
    if others:
        yield _of_rates([cell for cell, _ in others], [label for _, label in others], only)


def _who(cells: Sequence[Cell]) -> str:
    """`postgresql 18.4 with tls`."""
    first = cells[0]
    # A host's name says nothing of what is compared, so its mechanism is written as people write it.
    mechanism = first.mechanism.upper() if first.place and first.mechanism == "tls" else first.mechanism
    if first.pair is not None:
        return f"{server_name(first)} with {first.pair.compared.name} instead of {first.pair.reference.name}"
    return f"{server_name(first)} with {mechanism}{' (a control)' * is_control(first)}"


def _of_rates(cells: Sequence[Cell], labels: Sequence[str], only: str) -> str:
    """`On one core, postgresql 18.4 with tls uses 37.3 % more server CPU per operation (95 % CI 36.2–38.5 %).`"""
    who = f"{'On one core, ' * all(cell.regime == 'one-core' for cell in cells)}{_who(cells)}"
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
        phrases: list[str] = []
        for cell, label in cells:
            estimate = cell.overhead[key]
            short = f"{cost(key, estimate)} ({bounds(key, estimate)})"
            unresolved = " (unresolved)" * (resolution(cell, key) == "unresolved")
            phrases.append(f"{short if phrases else _does(cell, key)}{f' for {label}' * bool(label)}{unresolved}")
        return f"{', '.join(phrases[:-1])} and {phrases[-1]}"
    # An unresolved cost is never the lowest or the highest.
    resolved = [labelled for labelled in cells if resolution(labelled[0], key) != "unresolved"] or list(cells)
    ordered = sorted(resolved, key=lambda labelled: loss(key, labelled[0].overhead[key])[0])
    (least, of_least), (most, of_most) = ordered[0], ordered[-1]
    lost = len(cells) - len(resolved)
    tail = f"; {lost} more {'is' if lost == 1 else 'are'} unresolved" if lost else ""
    if all(resolution(cell, key) == "unresolved" for cell, _ in cells):
        tail = "; none of them is resolved"
    if least is most:
        return f"{_does(least, key)} for {of_least}{tail}"
    low, high = least.overhead[key], most.overhead[key]
    short = f"{cost(key, high)} ({bounds(key, high)})"
    if low.low <= high.high and high.low <= low.high:
        return f"{_does(least, key)} to {short} in {len(resolved)} cells, whose intervals overlap{tail}"
    return f"{_does(least, key)} for {of_least} to {short} for {of_most}, in {len(resolved)} cells{tail}"


def _without(label: str, workload: str) -> str:
    """The label without the workload, which the sentence already has."""
    return " · ".join(word for word in label.split(" · ") if word != workload)


def _does(cell: Cell, key: str) -> str:
    """`does 24.9 % fewer operations/s (95 % CI 24.2–25.5 %)`, `uses 4.45 times the server CPU per operation (…)`."""
    estimate, what = cell.overhead[key], quantity(cell, key)
    change, known = cost(key, estimate), f"(95 % CI {bounds(key, estimate)})"
    if change == NO_CHANGE:
        return f"shows no change in {what} {known}"
    if key == "duration":
        return f"takes {change.replace(' shorter', ' less time')}{' as long' * change.endswith(TIMES)} {known}"
    verb = "does" if key == "throughput" else "uses" if "cpu" in key else "shows"
    return f"{verb} {of_what(change, what)} {known}"


def _how_sure(cell: Cell, key: str) -> str:
    """What a verdict other than `differs` means. On one core it adds throughput, which includes the client's own work."""
    main = main_metric(cell)
    if key != main:
        # An embedded database has no separate client.
        included = "" if cell.embedded else ", client included"
        throughput = f"; its {quantity(cell, main)}{included}: {priced(cell, main)}" if main else ""
        doubt = ", which is unresolved" * (resolution(cell, key) == "unresolved")
        return f"{doubt}{throughput}{_how_sure(cell, main) if main else ''}"
    if cell.verdict == "equivalent":
        return ", which is equivalent to no difference within the margin"
    if cell.verdict != "unresolved":
        return ""
    if cell.failures is not None and cell.failures.undecided:
        return (
            f", which is unresolved: {'one arm fails more often' if failures.differ(cell.failures) else failing(cell)}"
        )
    if by_itself(cell):
        return f", which is unresolved: {BY_ITSELF}"
    if cell.totals_open:
        return f", which is unresolved: {TOTALS_OPEN}"
    could = f": this run could have detected {cell.smallest_effect * 100:.1f} % or more" if cell.smallest_effect else ""
    return f", which is unresolved{could}"
