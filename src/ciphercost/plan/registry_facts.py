"""Facts about a cell from the current registries, for its record. Estimates and reports read only the record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from ciphercost import engines, mechanisms
from ciphercost.engines import Engine
from ciphercost.engines.capabilities.tls import HasTls
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.load import command_secrets, headers
from ciphercost.mechanisms import Factor, Mechanism
from ciphercost.model.constrained_types import DIRECT, PLAN_FORMAT
from ciphercost.model.errors import UsageError
from ciphercost.model.facts import UNREGISTERED, CellFacts, Registered, RunFacts
from ciphercost.model.run_directory import read_checkpoint, read_facts, read_imported
from ciphercost.model.spec import CellSpec
from ciphercost.plan import matrix, schedule, versus
from ciphercost.plan.planned import PlannedCell


def planned(cells: Sequence[PlannedCell]) -> list[CellFacts]:
    """The facts of cells before anything is measured."""
    specs = [cell.spec for cell in cells]
    return [
        CellFacts(
            command_secrets.recorded(cell.spec),
            msgspec.structs.replace(
                _of(cell.engine, cell.mechanism, cell.spec),
                fixed=fixed(cell),
                witnesses=[
                    witness for witness in cell.witnesses if witness not in cell.engine.silent(cell.mechanism.layer)
                ],
            ),
            control=matrix.control_of(specs, number),
            pair=versus.pair_of(cell),
            clients=cell.clients,
        )
        for number, cell in enumerate(cells)
    ]


def fixed(cell: PlannedCell) -> list[str]:
    """Factors of the cell without a choice: its server refuses every other value, or they follow from others."""
    fixed_factors = [factor.name for factor in cell.mechanism.factors if not _chosen(cell, factor)]
    derived = [name for name in cell.workload.derived if name not in cell.workload.parameters]
    return fixed_factors + [name for name in derived if name not in cell.parameters]


def _chosen(cell: PlannedCell, factor: Factor) -> bool:
    """Whether the factor could have had another value beside the other factors of the cell."""
    if not factor.acts_beside(cell.factors):
        return False
    return not factor.values or any(
        _fits(cell, factor.name, value) for value in factor.values if value != cell.factors[factor.name]
    )


def _fits(cell: PlannedCell, name: str, value: str) -> bool:
    try:
        cell.mechanism.fits(cell.engine, {**cell.factors, name: value})
    except UsageError:
        return False
    return True


BETWEEN = ("between client and server", "between primary and replica")
"""What TLS protects, and what it does on the link between two servers."""


def registered(spec: CellSpec) -> Registered:
    """Facts about the engine and mechanism of a cell. Raises UsageError if either is unknown."""
    return _of(engines.get(spec.engine), mechanisms.get(spec.mechanism), spec)


def _of(engine: Engine, mechanism: Mechanism, spec: CellSpec) -> Registered:
    return Registered(
        embedded=engine.embedded,
        tls_round_trips=engine.tls_round_trips
        if isinstance(engine, HasTls) and spec.factors.get("negotiation") != DIRECT
        else 0,
        layer=mechanism.layer,
        protects=mechanisms.protection(mechanism).replace(*BETWEEN)
        if schedule.replicated(spec)
        else mechanisms.protection(mechanism),
        witnesses=[
            witness for witness in mechanism.required(spec.factors) if witness not in engine.silent(mechanism.layer)
        ],
        factors=[factor.name for factor in mechanism.factors],
        place=engine.called(spec.url) if isinstance(engine, TakesUrl) else "",
        headers=list(headers.of(spec.headers, spec.headers_file)[0]),
    )


def imported(spec: CellSpec) -> Registered:
    """The same for a cell imported from another tool. Its engine and mechanism may be any words, and it has no witnesses."""
    facts = UNREGISTERED
    if spec.engine in engines.names():
        engine = engines.get(spec.engine)
        facts = msgspec.structs.replace(facts, embedded=engine.embedded)
    if (mechanism := mechanisms.find(spec.mechanism)) is not None:
        facts = msgspec.structs.replace(
            facts,
            layer=mechanism.layer,
            protects=mechanisms.protection(mechanism),
            factors=[factor.name for factor in mechanism.factors],
        )
    return facts


def read(directory: Path) -> RunFacts:
    """A run's facts in the current format. Raises UsageError if they are damaged or of a newer format."""
    return upgraded(read_facts(directory), others=read_imported(directory) is not None)


def checkpoint(directory: Path) -> RunFacts | None:
    """The facts as of each cell's last complete session; None if there is no checkpoint yet."""
    kept = read_checkpoint(directory)
    return None if kept is None else upgraded(kept)


def upgraded(facts: RunFacts, *, others: bool = False) -> RunFacts:
    """The facts in the current format. The current registries supply what format 1 lacks. `others`: an imported run.

    Raises UsageError if the registries no longer have the engine or mechanism of a run recorded in format 1.
    """
    if facts.format >= PLAN_FORMAT:
        return facts
    specs = [cell.spec for cell in facts.cells]
    cells = [
        msgspec.structs.replace(
            cell,
            registered=imported(cell.spec) if others else registered(cell.spec),
            control=None if others else matrix.control_of(specs, number),
        )
        for number, cell in enumerate(facts.cells)
    ]
    return msgspec.structs.replace(facts, format=PLAN_FORMAT, cells=cells)
