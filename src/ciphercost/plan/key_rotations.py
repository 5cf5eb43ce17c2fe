"""key_rotations: what workload `rotate-key` asks for, and the cells that can't have it. Raises UsageError."""

from __future__ import annotations

import msgspec

from ciphercost.load import clients
from ciphercost.mechanisms._rest import AtRest
from ciphercost.model.errors import UsageError
from ciphercost.model.key_rotation import ROTATE_KEY
from ciphercost.model.spec import Mode
from ciphercost.plan.planned import PlannedCell

FULL, QUICK = 3, 10
"""Rotations of each session, beside the first, which is discarded: in full mode sessions are the unit, in quick mode rotations are."""
ABLE = "innodb-tde, mariadb-tde, sqlcipher or pg_tde"


def rotations(mode: Mode) -> int:
    """Rotations of a session, with the first, which is discarded. Pure."""
    return 1 + (FULL if mode == "full" else QUICK)


def with_rotations(planned: PlannedCell) -> PlannedCell:
    """The cell with the rotations that its workload implies. Raises UsageError."""
    cell, mechanism = planned.spec, planned.mechanism
    if cell.workload != ROTATE_KEY or cell.own_script:
        return planned
    where = f"workload {ROTATE_KEY}"
    if not isinstance(mechanism, AtRest):
        raise UsageError(f"{where} measures encryption at rest, and {cell.mechanism} is none; use {ABLE}")
    if not mechanism.gives_new_keys:
        raise UsageError(f"{where}: ciphercost can't give data a new key with {cell.mechanism}; use {ABLE}")
    if planned.client or (planned.reference and planned.reference.client):
        raise UsageError(f"{where}: only the Rust agent makes its load; remove {clients.option(cell)}")
    if planned.reference:
        raise UsageError(f"{where}: a new key has no counterpart in another arm; remove --versus")
    if planned.opens:
        raise UsageError(f"{where}: the running traffic keeps its connection; remove --per-request")
    if cell.objective:
        raise UsageError(f"{where} and --objective are two experiments; run one after the other")
    return msgspec.structs.replace(planned, rotates_key=True)
