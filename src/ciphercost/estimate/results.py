"""Computes a Result from a run's record. It reads only the record, so any run can be re-estimated later and elsewhere.

Only runs recorded in format 1 need today's registries (`plan.registry_facts.upgraded`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ciphercost.estimate import (
    arm_names,
    connection_memory,
    connection_warnings,
    curves,
    imported,
    key_rotation,
    link_model,
    openings,
    parts,
    plausible,
    replication,
    statistics,
    storage,
    storms,
    totals,
    unit_costs,
    written_bytes,
)
from ciphercost.estimate.estimator import CellEstimator
from ciphercost.estimate.profile_estimates import profile
from ciphercost.estimate.statistics import Interval
from ciphercost.estimate.verdict import holm
from ciphercost.model import checked
from ciphercost.model.connection_memory import MemoryLevel
from ciphercost.model.constrained_types import FORMAT
from ciphercost.model.facts import CellFacts, Registered, RunFacts
from ciphercost.model.fleet import StartSkew
from ciphercost.model.key_rotation import KeyRotationSlice
from ciphercost.model.profile import ProfileSlice
from ciphercost.model.replication import ReplicationEvent
from ciphercost.model.result import Cell, CellEstimate, Estimate, Result, Warning_
from ciphercost.model.run_directory import (
    read_beside,
    read_imported,
    read_proofs,
    read_slices,
)
from ciphercost.model.slices import UNSEEN, Proof, SliceRecord, StorageSlice, Witness
from ciphercost.model.spec import ARMS, COUNTED, Mode
from ciphercost.model.storms import StormSlice
from ciphercost.model.version import VERSION
from ciphercost.plan import conditions, latency_objective, registry_facts, schedule
from ciphercost.prove import proof_verdict


def conclude(directory: Path) -> Result:
    """The result of a run's directory, complete or cut off. Raises UsageError if the record is damaged."""
    return _concluded(directory)[0]


def with_intervals(directory: Path) -> tuple[Result, list[dict[str, Interval]]]:
    """The result, and for each cell the log ratio of each metric with its standard errors, which a result does not contain.

    A cell without a number has none, and only metrics in the result are included. Raises UsageError if the record is damaged.
    """
    result, estimators = _concluded(directory)
    by_cell: list[dict[str, Interval]] = [{} for _ in result.cells]
    for number, estimator in enumerate(estimators):
        mode = result.cells[number].mode
        # Imported cells have no estimator and are never compared, because they are not proven.
        if mode != "imported" and (overhead := result.cells[number].overhead):
            intervals = estimator.intervals(mode)
            by_cell[number] = {
                name: interval for name, interval in intervals.items() if totals.metric_of(name) in overhead
            }
    return result, by_cell


def _concluded(directory: Path) -> tuple[Result, list[CellEstimator]]:
    """As `conclude`, with the cells' estimators. Raises UsageError if the record is readable but can't be computed."""
    facts = registry_facts.read(directory)
    with checked.computing(directory), np.errstate(all="ignore"):
        result, estimators = _estimated(directory, facts)
        checked.finite(result, directory)
    return result, estimators


def _estimated(directory: Path, facts: RunFacts) -> tuple[Result, list[CellEstimator]]:
    if (others := read_imported(directory)) is not None:
        # The spec only names the cells; it can't repeat their measurement.
        return msgspec.structs.replace(contract(facts, imported.cells(facts, others)), spec=None), []
    skews: dict[int, list[float]] = {}
    estimators = [
        CellEstimator(cell.void_sessions, sequential=bool(facts.spec.precision), objective=cell.spec.objective)
        for cell in facts.cells
    ]
    counted: set[tuple[int, int]] = set()
    profiled: dict[int, list[SliceRecord]] = {}
    for slice_record in read_slices(directory):
        if slice_record.phase == "profile":
            profiled.setdefault(slice_record.cell, []).append(slice_record)
        estimators[slice_record.cell].add(slice_record)
        if slice_record.phase in COUNTED:
            counted.add((slice_record.cell, slice_record.session))
            if slice_record.start_skew is not None:
                skews.setdefault(slice_record.cell, []).append(slice_record.start_skew)
    proofs = read_proofs(directory)
    storage = list(read_beside(directory, StorageSlice))
    refuse_unproven(facts, counted, proofs)
    estimates: list[CellEstimate | None] = [
        estimator.finish(facts.spec.mode, facts.spec.margin, lowest_rate(facts, cell))
        if cell.status in ("ok", None) and estimator.blocks
        else None
        for cell, estimator in zip(facts.cells, estimators, strict=True)
    ]
    corrected = iter(holm([estimate for estimate in estimates if estimate is not None]))
    cells = [
        with_storage(
            cell(facts, number, next(corrected) if estimate is not None else None, proofs),
            [storage_slice for storage_slice in storage if storage_slice.cell == number],
            facts.spec.mode,
        )
        for number, estimate in enumerate(estimates)
    ]
    cells = with_connections(facts, cells, directory)
    cells = with_profiles(facts, cells, estimators, profiled, directory)
    cells = [plausible.checked(cell, facts.spec.margin) for cell in cells]
    cells = [with_skew(cell, skews.get(number, [])) for number, cell in enumerate(cells)]
    cells = beside(facts, compared(facts, cells, estimators), estimators)
    cells = [arm_names.named(cell) for cell in cells]
    by_session = [estimator.added_by_session(facts.spec.mode) for estimator in estimators]
    return contract(facts, cells, by_session), estimators


def lowest_rate(facts: RunFacts, known: CellFacts) -> float:
    """The lowest rate, operations/s, that the search for the cell's objective could try; 0 without an objective. Pure."""
    if (objective := latency_objective.of(known.spec)) is None:
        return 0.0
    return latency_objective.lowest_rate(
        objective, schedule.budget(facts.spec, known.spec).objective_s, known.slice_seconds
    )


def contract(facts: RunFacts, cells: list[Cell], by_session: Sequence[parts.BySession] = ()) -> Result:
    """The result, in its public format, from a run's cells. `by_session`: as in `parts.split`. Pure."""
    return Result(
        format=FORMAT,
        id=facts.id,
        started=facts.started,
        ended=facts.ended,
        tool=facts.tool,
        machine=facts.machine,
        seed=facts.seed,
        cells=cells,
        command=facts.command,
        spec=facts.spec,
        overhead_of_controller=facts.idle_seconds / facts.load_seconds if facts.load_seconds else None,
        parts=parts.split(cells, by_session),
        costs=unit_costs.split(cells, by_session, [openings.by_session(known) for known in facts.cells]),
        curves=curves.curves(cells),
    )


def with_storage(cell: Cell, slices: list[StorageSlice], mode: Mode) -> Cell:
    """The cell with fio's measurement of both arms' directories, if fio ran and the cell may have numbers. Pure."""
    if cell.status != "ok" or not slices:
        return cell
    levels = storage.levels(slices, mode)
    arms = {arm: figures | {"storage": levels.get(arm, {})} for arm, figures in cell.arms.items()}  # type: ignore[call-overload]
    return msgspec.structs.replace(cell, storage=storage.estimate(slices, mode), arms=arms)


def with_connections(facts: RunFacts, cells: list[Cell], directory: Path) -> list[Cell]:
    """The cells with their storms, memory per connection, rotations of keys and replicas, without the sessions that do not count."""
    new_cells, mode = list(cells), facts.spec.mode
    for kind, with_records in WITH_RECORDS.items():
        records: dict[int, list[Any]] = {}
        for record in read_beside(directory, kind):
            if record.session not in facts.cells[record.cell].void_sessions:
                records.setdefault(record.cell, []).append(record)
        for number, of_cell in records.items():
            new_cells[number] = with_records(new_cells[number], of_cell, mode)
    return new_cells


WITH_RECORDS: dict[type[Any], Callable[[Cell, list[Any], Mode], Cell]] = {
    StormSlice: storms.with_storm,
    MemoryLevel: connection_memory.with_memory,
    ReplicationEvent: replication.with_replication,
    KeyRotationSlice: key_rotation.with_rotation,
}
"""By the kind of record, what adds a cell's records to it."""


def with_profiles(
    facts: RunFacts,
    cells: list[Cell],
    estimators: Sequence[CellEstimator],
    slices: Mapping[int, list[SliceRecord]],
    directory: Path,
) -> list[Cell]:
    """The cells; those with a number and profiled slices get their profile."""
    samples: dict[int, list[ProfileSlice]] = {}
    for profile_slice in read_beside(directory, ProfileSlice) if slices else ():
        samples.setdefault(profile_slice.cell, []).append(profile_slice)
    new_cells = list(cells)
    for number, cell_samples in samples.items():
        if new_cells[number].added:
            void = facts.cells[number].void_sessions
            cell_profile = profile(
                cell_samples,
                slices.get(number, []),
                estimators[number].main()[0],
                new_cells[number].added,
                facts.spec.mode,
                void,
            )
            new_cells[number] = msgspec.structs.replace(new_cells[number], profile=cell_profile)
    return new_cells


def with_skew(cell: Cell, skews: list[float]) -> Cell:
    """The cell with the quantiles of its slices' start skews, if many agents made its load. Pure."""
    if cell.fleet is None or not skews:
        return cell
    p50, p99, most = (float(quantile) * 1e3 for quantile in np.quantile(skews, [0.5, 0.99, 1.0]))
    start_skew = StartSkew(len(skews), p50, p99, most)
    return msgspec.structs.replace(cell, fleet=msgspec.structs.replace(cell.fleet, start_skew=start_skew))


def compared(facts: RunFacts, cells: list[Cell], estimators: list[CellEstimator]) -> list[Cell]:
    """The cells; those with common sessions are compared with the first of them that is no control, with corrected p-values. Pure."""
    against: dict[int, Estimate] = {}
    for group in schedule.groups(facts.spec):
        first = next((number for number in group if cells[number].layer != "control"), group[0])
        for number in group:
            if number == first or (cells[number].layer == "control" and cells[first].layer != "control"):
                continue
            cells[number] = with_other_group(cells[number], cells[first])
            if cells[first].overhead and cells[number].overhead:
                estimate = estimators[number].against(estimators[first], facts.spec.mode)
                if estimate is not None:
                    against[number] = estimate
            if cells[first].overhead and cells[number].overhead and cells[number].traffic and cells[first].traffic:
                against_client = estimators[number].client_against(estimators[first], facts.spec.mode)
                cells[number] = msgspec.structs.replace(cells[number], client_against_reference=against_client)
    adjusted = iter(statistics.holm([estimate.p_value or 0.0 for estimate in against.values()]))
    for number, estimate in against.items():
        corrected = msgspec.structs.replace(estimate, p_value=next(adjusted))
        cells[number] = msgspec.structs.replace(cells[number], against_reference=corrected)
    return cells


def with_other_group(cell: Cell, reference: Cell) -> Cell:
    """The cell, with a warning if its library chose another key exchange than the reference's. Pure."""
    group, other = (str(one.encryption.get("group", "")) for one in (cell, reference))
    libraries = {one.factors.get("library", "") for one in (cell, reference)}
    if len(libraries) == 1 or not group or not other or group == other or cell.factors.get("group"):
        return cell
    text = (
        f"the key exchange is {group} here and {other} with {reference.variant or 'the first cell'}, because the libraries prefer different ones; "
        "name one with --set group=x25519 to compare the libraries alone"
    )
    return msgspec.structs.replace(cell, warnings=[*cell.warnings, Warning_("groups-differ", text)])


def beside(facts: RunFacts, cells: list[Cell], estimators: list[CellEstimator]) -> list[Cell]:
    """The cells; those measured with a control get the rest of their cost, their ratio ÷ the control's. Pure."""
    new_cells = list(cells)
    for number, cell in enumerate(cells):
        control = facts.cells[number].control
        if control is None or not cell.overhead or not cells[control].overhead:
            continue
        if left := estimators[number].against(estimators[control], facts.spec.mode):
            new_cells[number] = msgspec.structs.replace(cell, beside={cells[control].mechanism: left}, control=control)
    return new_cells


def refuse_unproven(facts: RunFacts, counted: set[tuple[int, int]], proofs: list[tuple[int, Proof]]) -> None:
    """Set a cell's status to unproven unless every counted session has its proofs in the record."""
    for number, known in enumerate(facts.cells):
        required: list[Witness] = registered(known).witnesses
        for session in sorted(session for cell, session in counted if cell == number):
            session_proofs = [proof for cell, proof in proofs if cell == number and proof.session == session]
            if known.spec.command and known.spec.command.unproven:
                session_proofs = [proof for proof in session_proofs if proof.code != UNSEEN]
                required = []
            if known.status in ("ok", None) and (reason := proof_verdict.unproven(session_proofs, required)):
                known.status, known.reason = "unproven", f"session {session}: {reason}"


def registered(known: CellFacts) -> Registered:
    """The facts from the registries at the time of measurement. `plan.registry_facts.read` provides them for every format."""
    assert known.registered is not None
    return known.registered


def cell(facts: RunFacts, number: int, estimate: CellEstimate | None, proofs: list[tuple[int, Any]]) -> Cell:
    """One cell of the result: its facts, its proofs, and its estimate if it may have one."""
    known = facts.cells[number]
    differ = (
        next((warning.text for warning in estimate.warnings if warning.code == "rows-differ"), "")
        if estimate is not None
        else ""
    )
    if differ:
        known.status, known.reason, estimate = "failed", differ, None
    cell_proofs = [proof for cell, proof in proofs if cell == number]
    status, reason = known.status or "failed", known.reason
    if known.status == "ok" and estimate is None:
        status, reason = "failed", "its record has no counted slices: slices.jsonl is incomplete"
    if known.status is None:
        reason = "the run was cut off" + (" (showing what it measured until then)" if estimate else "")
        reason += "; `ciphercost resume` continues it"
    if status == "ok" and (unseen := [proof for proof in cell_proofs if proof.code == UNSEEN]):
        status, reason = "unproven", f"measured without proof (--unproven): {unseen[0].detail}"
    return Cell(
        engine=known.spec.engine,
        version=known.version,
        layer=known.layer or registered(known).layer,
        mechanism=known.spec.mechanism,
        workload=known.workload or known.spec.workload,
        clients=known.clients,
        status=status,
        mode=facts.spec.mode,
        regime=known.spec.regime,
        factors=known.factors,
        rows=known.rows,
        slice_seconds=known.slice_seconds,
        config_diff=known.config_diff,
        proofs=first_and_failed(cell_proofs),
        reason=reason,
        encryption=known.encryption,
        cores=known.cores,
        conditions=conditions.named(known.spec)
        | ({"headers": ", ".join(registered(known).headers)} if registered(known).headers else {})
        | ({"idle": known.idle} if known.idle else {}),
        floor=known.floor,
        enciphered=known.enciphered,
        values=known.values,
        statements=known.statements,
        predicted=predicted(known, estimate) if estimate else {},
        verdict=estimate.verdict if estimate else None,
        sessions=estimate.sessions if estimate else 0,
        blocks=estimate.blocks if estimate else 0,
        overhead=overhead(known, estimate) if estimate else {},
        arms=arms(known, estimate) if estimate else {},
        findings=known.findings,
        key_life=known.key_life,
        stored=known.stored,
        handshakes=known.handshakes,
        link=known.link,
        client=known.client,
        chatter=known.chatter,
        traffic=known.traffic,
        fleet=known.fleet,
        warnings=[
            *known.warnings,
            *(estimate.warnings if estimate else []),
            *(written_bytes.warnings(known, estimate.arms) if estimate else []),
            *connection_warnings.warnings(facts.machine, known, estimate),
        ],
        smallest_effect=estimate.smallest_effect if estimate else None,
        sessions_needed=estimate.sessions_needed if estimate else None,
        totals_open=estimate.totals_open if estimate else False,
        disturbed=estimate.disturbed if estimate else False,
        disturbance=estimate.disturbance if estimate else None,
        failures=estimate.failures if estimate else None,
        carryover=estimate.carryover if estimate else {},
        waits=estimate.waits if estimate else {},
        too_few={name: why for name, why in estimate.too_few.items() if name not in left_out(known)}
        if estimate
        else {},
        added={name: added for name, added in estimate.added.items() if f"{name}_per_op" not in left_out(known)}
        if estimate
        else {},
        objective=estimate.objective if estimate else None,
        group=known.spec.group,
        variant=known.spec.variant,
        embedded=registered(known).embedded,
        protects=registered(known).protects,
        place=registered(known).place,
        mechanism_factors=registered(known).factors,
        fixed_factors=registered(known).fixed,
        pair=arm_names.with_encryption(known),
    )


def predicted(known: CellFacts, estimate: CellEstimate) -> dict[str, float]:
    """The predicted cost of TLS from the link alone; {} where the arms differ in more, as by HTTP/3 over QUIC. Pure."""
    if known.pair or known.spec.command or known.spec.mechanism != "tls" or known.encryption.get("http") == "HTTP/3":
        return {}
    encrypted = estimate.arms["encrypted"]
    resumed = encrypted["resumed"] / encrypted["connects"] if encrypted["connects"] else 0.0
    trips = link_model.round_trips(
        known.encryption, known.factors.get("group", ""), registered(known).tls_round_trips, resumed
    )
    return link_model.predict(known.spec, trips, known.clients, estimate.arms)


def left_out(known: CellFacts) -> set[str]:
    """Metrics that mean nothing in this cell. Pure."""
    shared = {"memory"} if not known.separate_processes else set()
    if not known.counts_writes:
        shared |= written_bytes.FIGURES
    # In transit only the server works for its clients, and encryption doesn't change what a statement reads and writes.
    return shared | (
        set() if known.layer == "rest" else {"machine_cpu_per_op", "disk_written_per_op", "disk_read_per_op"}
    )


def overhead(known: CellFacts, estimate: CellEstimate) -> dict[str, Estimate]:
    """The cell's ratios. Pure."""
    ratios = {name: ratio for name, ratio in estimate.overhead.items() if name not in left_out(known)}
    start = openings.ratio(known)
    return ratios | ({"start_time": start} if start else {})


def arms(known: CellFacts, estimate: CellEstimate) -> dict[str, dict[str, Any]]:
    """What each arm did, and its server's start time: the geometric mean over sessions, to match its ratio. Pure."""
    done = written_bytes.stated(known, estimate.arms)
    both = list(openings.by_session(known).values())
    if not both:
        return done
    means = np.exp(np.log(both).mean(axis=0))
    return {arm: done[arm] | {"start_s": float(mean)} for arm, mean in zip(ARMS, means, strict=True)}


def first_and_failed(proofs: list[Any]) -> list[Any]:
    """The proofs of the first session and all failed ones. The others, in proofs.json, are equal. Pure."""
    first = min((proof.session for proof in proofs), default=0)
    return [proof for proof in proofs if proof.session == first or not proof.passed]


def tool() -> dict[str, str]:
    """Name and version of what measured."""
    return {"name": "ciphercost", "version": VERSION}
