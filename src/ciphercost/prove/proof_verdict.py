"""proof_verdict: what recorded proofs prove. Pure and based on the proofs alone, so any run can be judged again later."""

from __future__ import annotations

from collections.abc import Sequence

from ciphercost.model.slices import Proof, Witness
from ciphercost.model.spec import ARMS, Arm


def unproven(proofs: Sequence[Proof], required: Sequence[Witness], arms: Sequence[Arm] = ARMS) -> str:
    """Why these proofs don't prove the arms (default: both). Empty if they do. `required`: the witnesses that must have
    reported.
    """
    if reason := failed(proofs):
        return reason
    known = {(proof.arm, proof.witness) for proof in proofs}
    missing = [f"{witness} witness, {arm} arm" for arm in arms for witness in required if (arm, witness) not in known]
    return f"no report from: {', '.join(missing)}" if missing else ""


def failed(proofs: Sequence[Proof]) -> str:
    """Which witnesses failed, with their details. Empty if none did."""
    return "; ".join(
        f"{proof.witness} witness, {proof.arm} arm: {proof.detail}" for proof in proofs if not proof.passed
    )
