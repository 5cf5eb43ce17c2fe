"""Which pairs of arms in a study's record are not proven, and how its procedure ended. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ciphercost import mechanisms
from ciphercost.model.study import StudyRecord
from ciphercost.prove import witnesses


def unproven(record: StudyRecord, names: Sequence[str]) -> dict[str, str]:
    """The pairs (by these names) whose arms are not proven, with the reason."""
    reasons = {}
    for session, (name, mechanism) in enumerate(zip(names, record.mechanisms, strict=True), 1):
        own = [proof for proof in record.proofs if proof.session == session]
        if reason := witnesses.unproven(own, mechanisms.get(mechanism)):
            reasons[name] = reason
    return reasons


def ending(record: StudyRecord, not_proven: Mapping[str, str], *, began: bool) -> str:
    """Why the procedure did not run, or not to its end; empty if it did."""
    if record.reason:
        return record.reason
    if not_proven and record.proofs:
        return "not proven: " + "; ".join(f"{name}: {reason}" for name, reason in not_proven.items())
    if not began:
        return "the run was cut off before the published procedure began"
    return "" if record.complete else "it was cut off"
