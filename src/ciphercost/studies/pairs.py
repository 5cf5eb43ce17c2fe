"""Which arms of a study's record are not proven, and how its procedure ended. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ciphercost import mechanisms
from ciphercost.model.slices import Witness
from ciphercost.model.spec import CellSpec
from ciphercost.model.study import StudyRecord
from ciphercost.plan.registry_facts import registered
from ciphercost.prove import proof_verdict


def witnesses_of(record: StudyRecord, cells: Sequence[CellSpec] = ()) -> dict[str, list[Witness]]:
    """Witnesses that must report, by mechanism: written into the record before anything runs. `cells`: the procedure's.

    A server that can't be asked has no server witness, and a server with another OpenSSL has a process witness. If several cells
    have the same mechanism, those that all of them have.
    """
    by_mechanism = {name: list(mechanisms.get(name).witnesses) for name in [record.mechanism, *record.mechanisms]}
    for name in {cell.mechanism for cell in cells}:
        by_cell = [registered(cell).witnesses for cell in cells if cell.mechanism == name]
        by_mechanism[name] = [witness for witness in by_cell[0] if all(witness in witnesses for witnesses in by_cell)]
    return by_mechanism


def unproven(record: StudyRecord) -> str:
    """Why the record's only pair of arms is not proven; empty if it is."""
    return proof_verdict.unproven(record.proofs, _required(record, record.mechanism))


def unproven_pairs(record: StudyRecord, names: Sequence[str]) -> dict[str, str]:
    """The pairs (by these names) whose arms are not proven, with the reason."""
    reasons = {}
    for session, (name, mechanism) in enumerate(zip(names, record.mechanisms, strict=True), 1):
        proofs = [proof for proof in record.proofs if proof.session == session]
        if reason := proof_verdict.unproven(proofs, _required(record, mechanism)):
            reasons[name] = reason
    return reasons


def _required(record: StudyRecord, mechanism: str) -> Sequence[Witness]:
    """Witnesses that must have reported. Older records don't have them: they need the mechanism itself."""
    return record.witnesses[mechanism] if mechanism in record.witnesses else mechanisms.get(mechanism).witnesses


def ending(record: StudyRecord, not_proven: Mapping[str, str], *, began: bool) -> str:
    """Why the procedure did not run, or not to its end; empty if it did."""
    reasons = "; ".join(f"{name}: {reason}" for name, reason in not_proven.items())
    return not_run(record, reasons, began=began) or ("" if record.complete else "it was cut off")


def not_run(record: StudyRecord, not_proven: str, *, began: bool) -> str:
    """Why the procedure did not run; empty if it did, also if it was cut off. `not_proven`: why its arms are not proven."""
    if record.reason:
        return record.reason
    if not_proven and record.proofs:
        return f"not proven: {not_proven}"
    return "" if began else "the run was cut off before the published procedure began"
