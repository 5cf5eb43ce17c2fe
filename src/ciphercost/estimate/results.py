"""Computes a Result from a run's record. It reads only the record, so any run can be re-estimated later and elsewhere.

Only runs recorded in format 1 need today's registries (`plan.registry_facts.upgraded`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ciphercost.estimate import (
    arm_names,
    curves,
    imported,
    link_model,
    openings,
    parts,
    plausible,
    statistics,
    storage,
    totals,
    unit_costs,
)
from ciphercost.estimate.estimator import CellEstimator
from ciphercost.estimate.profile_estimates import profile
from ciphercost.estimate.statistics import Interval
from ciphercost.estimate.verdict import holm
from ciphercost.model import checked
from ciphercost.model.constrained_types import EARLY, FORMAT
from ciphercost.model.facts import CellFacts, Registered, RunFacts
from ciphercost.model.fleet import StartSkew
from ciphercost.model.profile import ProfileSlice
from ciphercost.model.result import Cell, CellEstimate, Estimate, Result, Warning_
from ciphercost.model.run_directory import read_imported, read_profile, read_proofs, read_slices, read_storage
from ciphercost.model.slices import Proof, SliceRecord, StorageSlice
from ciphercost.model.spec import ARMS, COUNTED, Mode
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
    found: list[dict[str, Interval]] = [{} for _ in result.cells]
    for number, estimator in enumerate(estimators):
        mode = result.cells[number].mode
        # Imported cells have no estimator and are never compared, because they are not proven.
        if mode != "imported" and (overhead := result.cells[number].overhead):
            intervals = estimator.intervals(mode)
            found[number] = {name: each for name, each in intervals.items() if totals.metric_of(name) in overhead}
    return result, found


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
    storage = list(read_storage(directory))
    refuse_unproven(facts, counted, proofs)
    estimates: list[CellEstimate | None] = [
        estimator.finish(facts.spec.mode, facts.spec.margin, lowest_rate(facts, cell))
        if cell.status in ("ok", None) and estimator.blocks
        else None
        for cell, estimator in zip(facts.cells, estimators, strict=True)
    ]
    corrected = iter(holm([each for each in estimates if each is not None]))
    cells = [
        with_storage(
            cell(facts, number, next(corrected) if found is not None else None, proofs),
            [each for each in storage if each.cell == number],
            facts.spec.mode,
        )
        for number, found in enumerate(estimates)
    ]
    cells = with_profiles(facts, cells, estimators, profiled, directory)
    cells = [plausible.checked(each, facts.spec.margin) for each in cells]
    cells = [with_skew(each, skews.get(number, [])) for number, each in enumerate(cells)]
    cells = beside(facts, compared(facts, cells, estimators), estimators)
    cells = [arm_names.named(each) for each in cells]
    by_session = [each.added_by_session(facts.spec.mode) for each in estimators]
    return contract(facts, cells, by_session), estimators


def lowest_rate(facts: RunFacts, known: CellFacts) -> float:
    """The lowest rate, operations/s, that the search for the cell's objective could try; 0 without an objective. Pure."""
    if (made := latency_objective.of(known.spec)) is None:
        return 0.0
    return latency_objective.lowest_rate(made, schedule.budget(facts.spec, known.spec).objective_s, known.slice_seconds)


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
        costs=unit_costs.split(cells, by_session, [openings.by_session(each) for each in facts.cells]),
        curves=curves.curves(cells),
    )


def with_storage(made: Cell, slices: list[StorageSlice], mode: Mode) -> Cell:
    """The cell with fio's measurement of both arms' directories, if fio ran and the cell may have numbers. Pure."""
    if made.status != "ok" or not slices:
        return made
    levels = storage.levels(slices, mode)
    arms = {arm: figures | {"storage": levels.get(arm, {})} for arm, figures in made.arms.items()}  # type: ignore[call-overload]
    return msgspec.structs.replace(made, storage=storage.estimate(slices, mode), arms=arms)


def with_profiles(
    facts: RunFacts,
    cells: list[Cell],
    estimators: Sequence[CellEstimator],
    slices: Mapping[int, list[SliceRecord]],
    directory: Path,
) -> list[Cell]:
    """The cells; those with a number and profiled slices get their profile."""
    samples: dict[int, list[ProfileSlice]] = {}
    for each in read_profile(directory) if slices else ():
        samples.setdefault(each.cell, []).append(each)
    made = list(cells)
    for number, own in samples.items():
        if made[number].added:
            void = facts.cells[number].void_sessions
            found = profile(
                own, slices.get(number, []), estimators[number].main()[0], made[number].added, facts.spec.mode, void
            )
            made[number] = msgspec.structs.replace(made[number], profile=found)
    return made


def with_skew(made: Cell, skews: list[float]) -> Cell:
    """The cell with the quantiles of its slices' start skews, if many agents made its load. Pure."""
    if made.fleet is None or not skews:
        return made
    p50, p99, most = (float(each) * 1e3 for each in np.quantile(skews, [0.5, 0.99, 1.0]))
    found = StartSkew(len(skews), p50, p99, most)
    return msgspec.structs.replace(made, fleet=msgspec.structs.replace(made.fleet, start_skew=found))


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
                found = estimators[number].against(estimators[first], facts.spec.mode)
                if found is not None:
                    against[number] = found
            if cells[first].overhead and cells[number].overhead and cells[number].traffic and cells[first].traffic:
                against_client = estimators[number].client_against(estimators[first], facts.spec.mode)
                cells[number] = msgspec.structs.replace(cells[number], client_against_reference=against_client)
    adjusted = iter(statistics.holm([each.p_value or 0.0 for each in against.values()]))
    for number, found in against.items():
        corrected = msgspec.structs.replace(found, p_value=next(adjusted))
        cells[number] = msgspec.structs.replace(cells[number], against_reference=corrected)
    return cells


def with_other_group(cell: Cell, reference: Cell) -> Cell:
    """The cell, with a warning if its library chose another key exchange than the reference's. Pure."""
    group, other = (str(each.encryption.get("group", "")) for each in (cell, reference))
    libraries = {each.factors.get("library", "") for each in (cell, reference)}
    if len(libraries) == 1 or not group or not other or group == other or cell.factors.get("group"):
        return cell
    text = (
        f"the key exchange is {group} here and {other} with {reference.variant or 'the first cell'}, because the libraries prefer different ones; "
        "name one with --set group=x25519 to compare the libraries alone"
    )
    return msgspec.structs.replace(cell, warnings=[*cell.warnings, Warning_("groups-differ", text)])


def beside(facts: RunFacts, cells: list[Cell], estimators: list[CellEstimator]) -> list[Cell]:
    """The cells; those measured with a control get the rest of their cost, their ratio ÷ the control's. Pure."""
    made = list(cells)
    for number, cell in enumerate(cells):
        control = facts.cells[number].control
        if control is None or not cell.overhead or not cells[control].overhead:
            continue
        if left := estimators[number].against(estimators[control], facts.spec.mode):
            made[number] = msgspec.structs.replace(cell, beside={cells[control].mechanism: left}, control=control)
    return made


def refuse_unproven(facts: RunFacts, counted: set[tuple[int, int]], proofs: list[tuple[int, Proof]]) -> None:
    """Set a cell's status to unproven unless every counted session has its proofs in the record."""
    for number, known in enumerate(facts.cells):
        required = registered(known).witnesses
        for session in sorted(session for cell, session in counted if cell == number):
            own = [proof for cell, proof in proofs if cell == number and proof.session == session]
            if known.status in ("ok", None) and (reason := proof_verdict.unproven(own, required)):
                known.status, known.reason = "unproven", f"session {session}: {reason}"


def registered(known: CellFacts) -> Registered:
    """The facts from the registries at the time of measurement. `plan.registry_facts.read` provides them for every format."""
    assert known.registered is not None
    return known.registered


def cell(facts: RunFacts, number: int, found: CellEstimate | None, proofs: list[tuple[int, Any]]) -> Cell:
    """One cell of the result: its facts, its proofs, and its estimate if it may have one."""
    known = facts.cells[number]
    differ = next((each.text for each in found.warnings if each.code == "rows-differ"), "") if found is not None else ""
    if differ:
        known.status, known.reason, found = "failed", differ, None
    own = [proof for cell, proof in proofs if cell == number]
    status, reason = known.status or "failed", known.reason
    if known.status == "ok" and found is None:
        status, reason = "failed", "its record has no counted slices: slices.jsonl is incomplete"
    if known.status is None:
        reason = "the run was cut off" + (" (showing what it measured until then)" if found else "")
        reason += "; `ciphercost resume` continues it"
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
        proofs=first_and_failed(own),
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
        predicted=predicted(known, found) if found else {},
        verdict=found.verdict if found else None,
        sessions=found.sessions if found else 0,
        blocks=found.blocks if found else 0,
        overhead=overhead(known, found) if found else {},
        arms=arms(known, found) if found else {},
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
            *(found.warnings if found else []),
            *not_resumed(known, found),
            *paced(facts.machine, known, found),
            *closing(known, found),
        ],
        smallest_effect=found.smallest_effect if found else None,
        sessions_needed=found.sessions_needed if found else None,
        totals_open=found.totals_open if found else False,
        disturbed=found.disturbed if found else False,
        disturbance=found.disturbance if found else None,
        failures=found.failures if found else None,
        carryover=found.carryover if found else {},
        waits=found.waits if found else {},
        too_few={name: why for name, why in found.too_few.items() if name not in left_out(known)} if found else {},
        added={name: each for name, each in found.added.items() if f"{name}_per_op" not in left_out(known)}
        if found
        else {},
        objective=found.objective if found else None,
        group=known.spec.group,
        variant=known.spec.variant,
        embedded=registered(known).embedded,
        protects=registered(known).protects,
        place=registered(known).place,
        mechanism_factors=registered(known).factors,
        fixed_factors=registered(known).fixed,
        pair=arm_names.with_encryption(known),
    )


def predicted(known: CellFacts, found: CellEstimate) -> dict[str, float]:
    """The predicted cost of TLS from the link alone; {} where the arms differ in more, as by HTTP/3 over QUIC. Pure."""
    if known.pair or known.spec.mechanism != "tls" or known.encryption.get("http") == "HTTP/3":
        return {}
    encrypted = found.arms["encrypted"]
    resumed = encrypted["resumed"] / encrypted["connects"] if encrypted["connects"] else 0.0
    trips = link_model.round_trips(
        known.encryption, known.factors.get("group", ""), registered(known).tls_round_trips, resumed
    )
    return link_model.predict(known.spec, trips, known.clients, found.arms)


CLOSES, SELDOM = 0.5, 0.02
"""Connections per request from which the server closes every one, and below which closing is not worth a word."""


def closing(known: CellFacts, found: CellEstimate | None) -> list[Warning_]:
    """The warning that the server closes connections that the load would keep. Pure."""
    if found is None or not known.keeps_connections:
        return []
    share = {}
    for arm, each in found.arms.items():
        requests = each.get("operations", 0) * max(1.0, each.get("rows_per_op", 1.0))
        share[arm] = each.get("connects", 0) / requests if requests else 0.0
    most = max(share.values(), default=0.0)
    if most < SELDOM:
        return []
    arms = " and ".join(arm for arm, each in share.items() if each >= most / 2)
    where = f"in the {arms} arm{'s' * (' ' in arms)}"
    if most >= CLOSES:
        text = (
            f"the server closes every connection after one request ({where}), so each request pays for a new one, which with encryption "
            "means a handshake; let the server keep connections alive to measure encryption on open ones"
        )
    else:
        after = round(1 / most)
        text = (
            f"the server closes a connection after about {after} requests ({where}), so one in {after} pays for a new one, which with "
            "encryption means a handshake"
        )
    return [Warning_("server-closes", text)]


def not_resumed(known: CellFacts, found: CellEstimate | None) -> list[Warning_]:
    """The warning that connections may resume a session but none did. Pure."""
    arm = found.arms.get("encrypted", {}) if found else {}
    asked = known.factors.get("resumption", "off")
    if arm and asked == EARLY and not arm.get("connects"):
        text = f"resumption is {EARLY}, but the workload keeps its connections, so no request was early; use --workload connect or --per-request"
        return [Warning_("not-early", text)]
    if asked == "off" or not arm.get("connects") or arm.get("resumed"):
        return []
    text = "resumption is on, but no connection resumed a session: the server keeps or issues none"
    return [Warning_("not-resumed", text)]


PACED_BYTES = 32 * 1024
"""Bytes of an operation from which pacing on loopback was seen to limit a server: 1 MB much, 10 KB not at all."""


def paced(machine: Mapping[str, Any], known: CellFacts, found: CellEstimate | None) -> list[Warning_]:
    """The warning that this machine paces connections within itself, which hides what encryption costs. Pure.

    BBR paces by its own timers (tcp_bbr.c in Linux), also on loopback: with responses of 1 MB, nginx without TLS reached a fifth of
    what it reaches with CUBIC on the machine where this was found.
    """
    size = found.arms["plain"].get("wire_bytes_per_op") if found else None
    if machine.get("congestion_control") != "bbr" or known.spec.url or not size or size < PACED_BYTES:
        return []
    text = (
        "TCP's bbr paces both arms; that may hide the cost, so run "
        "`sysctl -w net.ipv4.tcp_congestion_control=cubic` and measure again"
    )
    return [Warning_("paced", text)]


def left_out(known: CellFacts) -> set[str]:
    """Metrics that mean nothing in this cell. Pure."""
    shared = {"memory"} if not known.separate_processes else set()
    # In transit only the server works for its clients, and encryption doesn't change what a statement reads and writes.
    return shared | (
        set() if known.layer == "rest" else {"machine_cpu_per_op", "disk_written_per_op", "disk_read_per_op"}
    )


def overhead(known: CellFacts, found: CellEstimate) -> dict[str, Estimate]:
    """The cell's ratios. Pure."""
    ratios = {name: each for name, each in found.overhead.items() if name not in left_out(known)}
    start = openings.ratio(known)
    return ratios | ({"start_time": start} if start else {})


def arms(known: CellFacts, found: CellEstimate) -> dict[str, dict[str, Any]]:
    """What each arm did, and its server's start time: the geometric mean over sessions, to match its ratio. Pure."""
    both = list(openings.by_session(known).values())
    if not both:
        return found.arms
    means = np.exp(np.log(both).mean(axis=0))
    return {arm: found.arms[arm] | {"start_s": float(mean)} for arm, mean in zip(ARMS, means, strict=True)}


def first_and_failed(proofs: list[Any]) -> list[Any]:
    """The proofs of the first session and all failed ones. The others, in proofs.json, are equal. Pure."""
    first = min((proof.session for proof in proofs), default=0)
    return [proof for proof in proofs if proof.session == first or not proof.passed]


def tool() -> dict[str, str]:
    """Name and version of what measured."""
    return {"name": "ciphercost", "version": VERSION}
