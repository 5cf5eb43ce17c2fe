"""How a run was measured, as text with its own numbers. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ciphercost.model.result import Cell, Result
from ciphercost.model.shares import in_percent
from ciphercost.model.slices import Witness
from ciphercost.plan import schedule
from ciphercost.report.plots import Subject
from ciphercost.report.words import cell_text, figure_text, pair_text


def sentences(of: Subject) -> Iterator[str]:
    """The paragraphs, in order."""
    result = of.result
    known = [cell for cell in result.cells if cell.overhead]
    if any(cell.imported for cell in result.cells):
        yield from _imported(result)
        return
    yield from _proof(result)
    if known:
        yield _sessions(result, known)
        yield _blocks(known)
        yield _interval(result, known)
    yield from _dropped(of)
    if result.overhead_of_controller is not None:
        share = in_percent(result.overhead_of_controller)
        yield f"Between slices, ciphercost's own work took {share} of the load time."


def _imported(result: Result) -> Iterator[str]:
    yield (
        "ciphercost measured none of this: other tools printed these figures "
        f"({cell_text.imported_basis(result.cells)}). No server report, packet capture or disk scan shows what was encrypted."
    )
    if methods := dict.fromkeys(estimate.method for cell in result.cells for estimate in cell.overhead.values()):
        yield (
            "A ratio is encrypted ÷ plain, of the geometric means over runs. Its 95 % interval comes from the scatter of runs within each arm "
            f"({'; '.join(methods)}); the unit is the run, not a second within it. ciphercost did not interleave the arms, so the difference "
            "includes whatever else changed between the runs."
        )


def _proof(result: Result) -> Iterator[str]:
    heard = Counter(proof.witness for cell in result.cells for proof in cell.proofs if proof.passed)
    failed = sum(not proof.passed for cell in result.cells for proof in cell.proofs)
    if not heard and not failed:
        return
    names: dict[Witness, str] = {
        "server": "the server's report",
        "wire": "a packet capture",
        "disk": "a disk scan",
        "client": "the client's report",
        "process": "the libraries that the server's processes have mapped",
    }
    who = ", ".join(f"{names[witness]} ({heard[witness]})" for witness in names if heard[witness])
    lost = f"; {failed} failed, and a cell with a failed witness has no number" if failed else ""
    yield (f"Before any load, witnesses proved that {_proven(result)}. Witnesses that passed: {who or 'none'}{lost}.")


def _proven(result: Result) -> str:
    if pair_text.of(result.cells).kind == "versus":
        return "both arms were encrypted, each with its own setting"
    return "the encrypted arm was encrypted and the plain arm was not"


def _sessions(result: Result, known: list[Cell]) -> str:
    counts = sorted({cell.sessions for cell in known})
    spans = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    many = counts != [1]
    load = f", {result.spec.time:g} s of load per cell" if result.spec else ""
    codes = {warning.code for cell in known for warning in cell.warnings}
    fresh = (
        "a set of new connections to your server, which ciphercost does not restart"
        if "not-restarted" in codes
        else "a fresh start of the servers"
    )
    return (
        f"Each cell had {spans} session{'s' * many}{load}. Each session is {fresh}, so the peculiarities of one start are not mistaken for "
        f"an effect of encryption. Every random choice comes from the seed {result.seed}."
    )


def _blocks(known: list[Cell]) -> str:
    lengths = sorted({cell.slice_seconds for cell in known if cell.slice_seconds})
    span = f"{lengths[0]:.3g} s" if len(lengths) == 1 else f"{lengths[0]:.3g} to {lengths[-1]:.3g} s" if lengths else ""
    blocks = sum(cell.blocks for cell in known)
    arms = pair_text.of(known)
    one, other = arms.reference.name, arms.compared.name
    return (
        f"Load alternates between the arms in slices{f' of {span}' if span else ''}, four to a block, in mirrored order "
        f"({one}, {other}, {other}, {one}, or the reverse, by a coin toss), so a machine that gets slower or faster favours "
        f"neither arm. There are {blocks:,} complete blocks. A discarded lead-in of {schedule.LEAD_IN:g} slices precedes each block, "
        f"and the first {in_percent(schedule.DISCARD, 0)} of each slice is not counted."
    )


def _interval(result: Result, known: list[Cell]) -> str:
    methods = dict.fromkeys(
        cell.overhead[figure_text.main_metric(cell)].method.split(";")[0]
        for cell in known
        if figure_text.main_metric(cell)
    )
    unit = "blocks of this one server pair" if any(cell.mode == "quick" for cell in known) else "sessions"
    judged = f" Differences within {in_percent(result.spec.margin, 0)} count as equivalent." if result.spec else ""
    several = " P-values are corrected for the number of cells (Holm)." if len(known) > 1 else ""
    return (
        f"{pair_text.worded('A ratio is encrypted ÷ plain.', pair_text.of(known))} Its 95 % interval comes from the scatter of {unit} "
        f"({', '.join(methods)}).{judged}{several}"
    )


def _dropped(of: Subject) -> Iterator[str]:
    """How many slices were discarded, failed or marked, if the slices are available."""
    if not of.traces:
        return
    counted, lead_ins, failed, void = (
        sum(getattr(trace, name) for trace in of.traces) for name in ("counted", "lead_ins", "failed", "void_sessions")
    )
    if not counted and not failed:
        return
    marks: Counter[str] = Counter()
    for trace in of.traces:
        marks.update(trace.marked)
    why = {
        "client-bound": "the load generator was the limit",
        "steal": "the hypervisor took CPU time",
        "foreign-cpu": "other processes were busy",
        "throttled": "a CPU quota held server or client back",
        "jit": "Java compiled",
        "gc": "Java collected garbage",
    }
    marked = ", ".join(
        f"{count:,} {name}{f' ({why[name]})' if name in why else ''}" for name, count in marks.most_common()
    )
    yield (
        f"Slices counted: {counted:,}. Lead-ins discarded: {lead_ins:,}. Failed slices: {failed:,}. Sessions repeated and left out: "
        f"{void}. Marked as suspect, but counted: {marked or 'none'}."
    )
