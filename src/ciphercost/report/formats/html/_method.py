"""method: how a run was measured, in plain words with its own numbers. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ciphercost.model.result import Cell, Result
from ciphercost.model.slices import Witness
from ciphercost.plan import schedule
from ciphercost.report import words
from ciphercost.report.plots import Subject


def sentences(of: Subject) -> Iterator[str]:
    """A paragraph each."""
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
        share = f"{result.overhead_of_controller:.1%}".replace("%", " %")
        yield f"Between slices the tool's own work took {share} of the time under load."


def _imported(result: Result) -> Iterator[str]:
    yield (
        "Nothing of this was measured by ciphercost: the figures are those that other tools printed "
        f"({words.imported_basis(result.cells)}). Nobody asked a server, a wire or a disk what was encrypted."
    )
    if methods := dict.fromkeys(each.method for cell in result.cells for each in cell.overhead.values()):
        yield (
            "A ratio is encrypted ÷ plain, of the geometric means over runs. Its 95 % interval comes from how runs scatter within each arm "
            f"({'; '.join(methods)}); seconds within a run are no units. The arms' runs were not interleaved by us: what else changed "
            "between them is in the difference."
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
    }
    who = ", ".join(f"{names[each]} ({heard[each]})" for each in names if heard[each])
    lost = f"; {failed} failed, and cells where one failed have no number" if failed else ""
    yield (
        "Before any load both arms were proven: the encrypted one encrypted, the plain one in clear. "
        f"Witnesses that passed: {who or 'none'}{lost}."
    )


def _sessions(result: Result, known: list[Cell]) -> str:
    counts = sorted({cell.sessions for cell in known})
    spans = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    many = counts != [1]
    load = f", {result.spec.time:g} s of load a cell" if result.spec else ""
    told = {each.code for cell in known for each in cell.warnings}
    fresh = (
        "new connections to a server that is not ours to restart"
        if "not-restarted" in told
        else "a fresh start of the servers"
    )
    return (
        f"Each cell had {spans} session{'s' * many}{load}. Each session is {fresh}, so that what one start happens to do does not pass for "
        f"what encryption does. Every random choice comes from the seed {result.seed}."
    )


def _blocks(known: list[Cell]) -> str:
    lengths = sorted({cell.slice_seconds for cell in known if cell.slice_seconds})
    span = f"{lengths[0]:.3g} s" if len(lengths) == 1 else f"{lengths[0]:.3g} to {lengths[-1]:.3g} s" if lengths else ""
    blocks = sum(cell.blocks for cell in known)
    return (
        f"Load alternates between the arms in slices{f' of {span}' if span else ''}, four to a block, in mirrored order "
        "(plain, encrypted, encrypted, plain, or the other way round, by a coin), so that a machine that gets slower or faster favours "
        f"neither. There are {blocks:,} whole blocks here. Before each block runs a lead-in of {schedule.LEAD_IN:g} slices that is thrown "
        f"away, and of each slice the first {schedule.DISCARD:.0%} is not counted.".replace("%", " %")
    )


def _interval(result: Result, known: list[Cell]) -> str:
    methods = dict.fromkeys(
        cell.overhead[words.main_metric(cell)].method.split(";")[0] for cell in known if words.main_metric(cell)
    )
    unit = "blocks of this one pair of servers" if any(cell.mode == "quick" for cell in known) else "sessions"
    judged = f" Differences within {result.spec.margin:.0%} count as none.".replace("%", " %") if result.spec else ""
    several = " P-values are corrected for the number of cells (Holm)." if len(known) > 1 else ""
    return (
        f"A ratio is encrypted ÷ plain. Its 95 % interval comes from how {unit} scatter "
        f"({', '.join(methods)}).{judged}{several}"
    )


def _dropped(of: Subject) -> Iterator[str]:
    """What was thrown away, failed or is marked: of the slices, where they are at hand."""
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
        "steal": "the hypervisor took CPU away",
        "foreign-cpu": "other processes were busy",
        "jit": "Java compiled",
        "gc": "Java collected garbage",
    }
    marked = ", ".join(
        f"{count:,} {name}{f' ({why[name]})' if name in why else ''}" for name, count in marks.most_common()
    )
    yield (
        f"Slices counted: {counted:,}. Lead-ins thrown away: {lead_ins:,}. Failed slices: {failed:,}. Sessions run again and left out: "
        f"{void}. Marked as suspect, and counted all the same: {marked or 'none'}."
    )
