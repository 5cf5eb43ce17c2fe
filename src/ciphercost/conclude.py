"""conclude: a run's record -> Result. Reads only the record, so any run can be estimated again, later and elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from ciphercost import (
    cache,
    checked,
    columns,
    conditions,
    curves,
    engines,
    estimate,
    fio,
    idle,
    imported,
    jdbc,
    mechanisms,
    parts,
    plan,
    prove,
    spec,
    statistics,
    totals,
)
from ciphercost.conditions import predict
from ciphercost.errors import UsageError
from ciphercost.mechanisms import tls
from ciphercost.mechanisms._rest import AtRest, Look
from ciphercost.model import (
    ARMS,
    FORMAT,
    Cell,
    CellEstimate,
    CellFacts,
    Estimate,
    Mode,
    Opening,
    Proof,
    Result,
    RunFacts,
    StorageSlice,
    Warning_,
)
from ciphercost.record import read_facts, read_imported, read_proofs, read_slices, read_storage
from ciphercost.statistics import Interval
from ciphercost.version import VERSION

if TYPE_CHECKING:
    from ciphercost.agent import Agent
    from ciphercost.provision import Bench, Twins


OLD_OPENSSL = ("OpenSSL 0.", "OpenSSL 1.")
OLD_OPENSSL_TEXT = (
    "the server is linked to OpenSSL {}; that series has had no support since September 2023 and lacks VAES and recent key exchange, so "
    "encryption may cost more here than with a current OpenSSL"
)
"""{}: its version."""


def conclude(directory: Path) -> Result:
    """The result of a run's directory, finished or cut off. Raises UsageError where the record is damaged."""
    return _concluded(directory)[0]


def with_intervals(directory: Path) -> tuple[Result, list[dict[str, Interval]]]:
    """The result, and of each of its cells every metric's log ratio with its standard errors, which a result no longer has.

    Nothing of a cell without a number, and no metric that the cell does not state. Raises UsageError where the record is damaged.
    """
    result, estimators = _concluded(directory)
    found: list[dict[str, Interval]] = [{} for _ in result.cells]
    for number, estimator in enumerate(estimators):
        mode = result.cells[number].mode
        # Other tools' figures have no estimator: what isn't proven is compared with nothing.
        if mode != "imported" and (overhead := result.cells[number].overhead):
            intervals = estimator.intervals(mode)
            found[number] = {name: each for name, each in intervals.items() if totals.metric_of(name) in overhead}
    return result, found


def _concluded(directory: Path) -> tuple[Result, list[estimate.CellEstimator]]:
    """As `conclude`, with the estimators of the cells. What can be read and not computed, or not to an end, is refused."""
    facts = read_facts(directory)
    with checked.computing(directory), np.errstate(all="ignore"):
        result, estimators = _estimated(directory, facts)
        checked.finite(result, directory)
    return result, estimators


def _estimated(directory: Path, facts: RunFacts) -> tuple[Result, list[estimate.CellEstimator]]:
    if (others := read_imported(directory)) is not None:
        # The spec names the cells; it is not how to measure them again.
        return msgspec.structs.replace(contract(facts, imported.cells(facts, others)), spec=None), []
    estimators = [
        estimate.CellEstimator(cell.void_sessions, sequential=bool(facts.spec.precision), recorded=True)
        for cell in facts.cells
    ]
    counted: set[tuple[int, int]] = set()
    for slice_record in read_slices(directory):
        estimators[slice_record.cell].add(slice_record)
        if slice_record.phase in ("capacity", "latency"):
            counted.add((slice_record.cell, slice_record.session))
    proofs = read_proofs(directory)
    storage = list(read_storage(directory))
    refuse_unproven(facts, counted, proofs)
    estimates: list[CellEstimate | None] = [
        estimator.finish(facts.spec.mode, facts.spec.margin)
        if cell.status in ("ok", None) and estimator.blocks
        else None
        for cell, estimator in zip(facts.cells, estimators, strict=True)
    ]
    corrected = iter(estimate.holm([each for each in estimates if each is not None]))
    cells = [
        with_storage(
            cell(facts, number, next(corrected) if found is not None else None, proofs),
            [each for each in storage if each.cell == number],
            facts.spec.mode,
        )
        for number, found in enumerate(estimates)
    ]
    cells = beside(facts, compared(facts, cells, estimators), estimators)
    return contract(facts, cells), estimators


def contract(facts: RunFacts, cells: list[Cell]) -> Result:
    """The contract, of a run's cells. Pure."""
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
        parts=parts.split(cells),
        curves=curves.curves(cells),
    )


def with_storage(made: Cell, slices: list[StorageSlice], mode: Mode) -> Cell:
    """The cell with what fio says of both arms' directories, where it ran and the cell may have numbers. Pure."""
    if made.status != "ok" or not slices:
        return made
    levels = fio.levels(slices, mode)
    arms = {arm: figures | {"storage": levels.get(arm, {})} for arm, figures in made.arms.items()}  # type: ignore[call-overload]
    return msgspec.structs.replace(made, storage=fio.estimate(slices, mode), arms=arms)


def compared(facts: RunFacts, cells: list[Cell], estimators: list[estimate.CellEstimator]) -> list[Cell]:
    """The cells, those that share their sessions compared with the first of them; p-values corrected for all of these. Pure."""
    against: dict[int, Estimate] = {}
    for first, *others in plan.groups(facts.spec):
        for number in others:
            if cells[number].layer == "control" and cells[first].layer != "control":
                continue
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


def beside(facts: RunFacts, cells: list[Cell], estimators: list[estimate.CellEstimator]) -> list[Cell]:
    """The cells, those that were measured with a control with what is left of their cost beside it. Pure."""
    made = list(cells)
    specs = [each.spec for each in facts.cells]
    for number, cell in enumerate(cells):
        control = spec.control_of(specs, number)
        if control is None or not cell.overhead or not cells[control].overhead:
            continue
        if left := estimators[number].against(estimators[control], facts.spec.mode):
            made[number] = msgspec.structs.replace(cell, beside={cells[control].mechanism: left}, control=control)
    return made


def refuse_unproven(facts: RunFacts, counted: set[tuple[int, int]], proofs: list[tuple[int, Proof]]) -> None:
    """A cell has a number only if every session that was counted has its proofs in the record. Changes the facts' status."""
    for number, known in enumerate(facts.cells):
        mechanism, mute = mechanisms.get(known.spec.mechanism), engines.get(known.spec.engine).mute
        for session in sorted(session for cell, session in counted if cell == number):
            heard = [proof for cell, proof in proofs if cell == number and proof.session == session]
            if known.status in ("ok", None) and (reason := prove.unproven(heard, mechanism, mute=mute)):
                known.status, known.reason = "unproven", f"session {session}: {reason}"


def cell(facts: RunFacts, number: int, found: CellEstimate | None, proofs: list[tuple[int, Any]]) -> Cell:
    """One row of the result: what is known of the cell, its proofs, and its estimate where there may be one."""
    known = facts.cells[number]
    if found is not None and any(each.code == "rows-differ" for each in found.warnings):
        known.status, found = "failed", None
        known.reason = (
            "the arms did not return the same number of rows for each operation: they do not do the same work"
        )
    own = [proof for cell, proof in proofs if cell == number]
    status, reason = known.status or "failed", known.reason
    if known.status == "ok" and found is None:
        status, reason = "failed", "its record has no slices that count: slices.jsonl is not whole"
    if known.status is None:
        reason = "the run was cut off" + (" (what it measured until then is shown)" if found else "")
        reason += "; `ciphercost resume` goes on with it"
    return Cell(
        engine=known.spec.engine,
        version=known.version,
        layer=known.layer,
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
        conditions=conditions.named(known.spec) | ({"idle": known.idle} if known.idle else {}),
        floor=known.floor,
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
        client=known.client,
        chatter=known.chatter,
        traffic=known.traffic,
        warnings=[*known.warnings, *(found.warnings if found else []), *not_resumed(known, found)],
        smallest_effect=found.smallest_effect if found else None,
        sessions_needed=found.sessions_needed if found else None,
        totals_open=found.totals_open if found else False,
        disturbed=found.disturbed if found else False,
        carryover=found.carryover if found else {},
        added=found.added if found else {},
        group=known.spec.group,
        variant=known.spec.variant,
    )


def predicted(known: CellFacts, found: CellEstimate) -> dict[str, float]:
    """What TLS should cost by the link alone. Pure."""
    if known.spec.mechanism != "tls":
        return {}
    negotiation = engines.get(known.spec.engine).tls_round_trips
    encrypted = found.arms["encrypted"]
    resumed = encrypted["resumed"] / encrypted["connects"] if encrypted["connects"] else 0.0
    trips = predict.round_trips(known.encryption, known.factors.get("group", ""), negotiation, resumed)
    return predict.predict(known.spec, trips, known.clients, found.arms)


def not_resumed(known: CellFacts, found: CellEstimate | None) -> list[Warning_]:
    """Where connections may resume a session and none did. Pure."""
    arm = found.arms.get("encrypted", {}) if found else {}
    if known.factors.get("resumption", "off") == "off" or not arm.get("connects") or arm.get("resumed"):
        return []
    text = "resumption is on, and yet no connection resumed a session: the server keeps or issues none"
    return [Warning_("not-resumed", text)]


def overhead(known: CellFacts, found: CellEstimate) -> dict[str, Estimate]:
    """The cell's ratios. Where one process serves both arms, its memory is no arm's own, so there is no ratio of it. Pure."""
    left_out = {"memory"} if not known.separate_processes else set()
    # In transit nobody works for the server but itself, and what a statement reads and writes is no question of encryption's.
    left_out |= set() if known.layer == "rest" else {"machine_cpu_per_op", "disk_written_per_op", "disk_read_per_op"}
    ratios = {name: each for name, each in found.overhead.items() if name not in left_out}
    start = opening(known)
    return ratios | ({"start_time": start} if start else {})


def arms(known: CellFacts, found: CellEstimate) -> dict[str, dict[str, Any]]:
    """What each arm did, and how long its server took to start: the geometric mean of sessions, as the ratio beside it has it. Pure."""
    both = starts(known)
    if not both:
        return found.arms
    means = np.exp(np.log(both).mean(axis=0))
    return {arm: found.arms[arm] | {"start_s": float(mean)} for arm, mean in zip(ARMS, means, strict=True)}


def starts(known: CellFacts) -> list[tuple[float, float]]:
    """Seconds from start to first answer, plain and encrypted, of each session that has both. Pure."""
    by_session: dict[int, dict[str, float]] = {}
    for each in known.openings:
        by_session.setdefault(each.session, {})[each.arm] = each.seconds
    return [(own["plain"], own["encrypted"]) for own in by_session.values() if len(own) == 2 and min(own.values()) > 0]


def first_and_failed(proofs: list[Any]) -> list[Any]:
    """The proofs of the first session, and every failed one: the others say the same and are in proofs.json. Pure."""
    first = min((proof.session for proof in proofs), default=0)
    return [proof for proof in proofs if proof.session == first or not proof.passed]


def describe(facts: CellFacts, bench: Bench) -> None:
    """What is known of a cell once its server was found and its data loaded."""
    same_server(facts, bench.installation.version)
    facts.version = bench.installation.version
    facts.source = bench.installation.source
    facts.layer = bench.mechanism.layer
    facts.clients = bench.clients
    facts.workload = bench.program.name
    facts.arrivals, facts.think_s = bench.program.arrivals, bench.program.think_s
    facts.rows = int(bench.program.parameters.get("rows", 0))
    # On a server of the user's only what was given is pinned; the rest is in `encryption`, as it came.
    own = {name: value for name, value in bench.factors.items() if not bench.cell.url or name in bench.cell.factors}
    facts.factors = {**own, **{name: str(value) for name, value in bench.program.parameters.items()}}
    facts.factors |= spec.choices(bench.cell) | spec.client_options(bench.cell) | spec.secrets_asked(bench.cell)
    if jdbc.asked(bench.cell):
        facts.client = jdbc.driver_of(bench.cell).title
        if chosen := jdbc.DRIVERS_CHOICE.get(bench.mechanism.name):
            facts.factors.pop(chosen, None)  # what it chose is in `encryption`
    if (
        bench.mask
        and bench.mechanism.layer != "control"
        and not bench.engine.embedded
        and not conditions.mask_provable(bench.cell)
    ):
        facts.warnings.append(
            Warning_(
                "cpu-crypto-unproven",
                "the server was told to leave out the CPU's AES instructions, but that it does is proven behind tls alone: a "
                "library other than OpenSSL, or the kernel, would not heed it",
            )
        )
    if bench.cell.url:
        facts.warnings += [
            Warning_("not-restarted", "each session is new connections only: this server is not ours to restart"),
            Warning_(
                "not-controlled", "this server is not ours: it was not started, stopped or configured for the run"
            ),
        ]
        if bench.cell.regime == "one-core":
            facts.warnings.append(
                Warning_("not-pinned", "one core is the agent's alone: where a server of yours runs is not ours to say")
            )
    # Of a run that is gone on with, most of this was known.
    facts.warnings = list(dict.fromkeys(facts.warnings))


def same_server(facts: CellFacts, version: str) -> None:
    """Of a cell that is gone on with. Raises UsageError where another server would answer than in the sessions that it has."""
    if facts.whole_sessions and facts.version and version and version != facts.version:
        raise UsageError(
            f"{facts.spec.engine} {version} is here, and the {len(facts.whole_sessions)} sessions that this cell has are of "
            f"{facts.version}: one cell is never of two servers. Bring back {facts.version} (--bindir, `ciphercost install`) and "
            "resume again, or run it anew"
        )


def describe_version(facts: CellFacts, version: str) -> None:
    """What the server itself says of its version; binaries of ours have said it before. Raises UsageError where another was asked for."""
    if (
        facts.source == "running"
        and facts.spec.version
        and version.partition(".")[0] != facts.spec.version.partition(".")[0]
    ):
        raise UsageError(f"the server behind --url is {facts.spec.engine} {version}, not {facts.spec.version}")
    if facts.source == "running":
        same_server(facts, version)
    facts.version = version if facts.source == "running" else facts.version or version


def describe_agent(facts: CellFacts, hello: Mapping[str, Any]) -> None:
    """A mask in the user's own environment reaches server and agent too, and would go unsaid."""
    asked = facts.spec.cpu_crypto == "off" or not hello["tls_library"]
    if asked or hello["aes"] or "aes" not in conditions.cpu_flags():
        return
    hidden = Warning_(
        "aes-hidden",
        "OpenSSL does not use this CPU's AES instructions, though it has them: the environment masks them (OPENSSL_ia32cap or "
        "OPENSSL_armcap); unset that, or say --cpu-crypto off, which also proves it",
    )
    warn(facts, hidden.code, [hidden])


def warn(facts: CellFacts, code: str, found: Iterable[Warning_]) -> None:
    """What a session found, in the place of what an earlier one did under this code."""
    facts.warnings = [*(each for each in facts.warnings if each.code != code), *found]


UNVERIFIED = "server-not-verified"
LOWERED = "security-level-lowered"
LOWERED_TEXT = "OpenSSL's security level was lowered to {} for {}, which its default level refuses: for measuring what they cost, not for use"


def weakened(factors: Mapping[str, str]) -> list[str]:
    """Those of a cell's factors that OpenSSL refuses at its default security level. Pure."""
    return [
        f"{name}={factors[name]}"
        for name, weak in (("version", tls.OLD), ("certificate", tls.WEAK))
        if factors.get(name) in weak
    ]


def describe_session(facts: CellFacts, twins: Twins, connected: dict[str, Any]) -> None:
    """What a session's twins turned out to be."""
    from ciphercost.provision import config_diff

    facts.config_diff = config_diff(twins.connect)
    facts.encryption = prove.negotiated(connected)
    if reason := prove.unverified(connected, twins.connect["encrypted"]):
        told = Warning_(UNVERIFIED, f"{reason[0].upper()}{reason[1:]}")
        warn(facts, UNVERIFIED, [told])
    if (level := twins.connect["encrypted"].get("tls_security_level")) is not None:
        told = Warning_(LOWERED, LOWERED_TEXT.format(level, " and ".join(weakened(facts.spec.factors))))
        warn(facts, LOWERED, [told])
    if twins.server is not None and twins.server.library:
        facts.encryption["server_library"] = twins.server.library
        warn(facts, "old-openssl", old_openssl(twins.server.library))
    facts.separate_processes = len({each.pid for each in twins.servers}) > 1 and not twins.embedded
    facts.cores = {"server": spell(twins.server_cpus), "agent": spell(twins.agent_cpus)}


def old_openssl(library: str) -> list[Warning_]:
    """What to mind where a server has loaded this library (`Server.library`). Pure."""
    if not library.startswith(OLD_OPENSSL):
        return []
    return [Warning_("old-openssl", OLD_OPENSSL_TEXT.format(library.split()[1]))]


def describe_client(facts: CellFacts, twins: Twins, agent: Agent) -> None:
    """Where a JDBC driver makes the load: what it is told differently in the two arms, in its own words."""
    if isinstance(agent, jdbc.JdbcAgent):
        facts.config_diff = jdbc.config_diff({arm: agent.translated(twins.connect[arm]) for arm in ARMS})


def describe_columns(facts: CellFacts, twins: Twins, agent: Agent) -> None:
    """Of values encrypted in columns: who encrypts; and once a cell what the stored bytes give away, and how many they are.

    The agent is connected to both arms.
    """
    assert twins.sealing is not None
    sealing = twins.sealing
    facts.encryption |= sealing.mechanism.implementation(sealing.engine, sealing.factors)
    if sealing.codec.client_side:
        facts.encryption["client_library"] = str(agent.hello.get("tls_library", ""))
    if facts.stored or facts.findings:
        return
    facts.findings = columns.findings(twins.sight("encrypted", agent, "encrypted"))
    facts.stored = columns.sizes(twins.sight(arm, agent, arm) for arm in ARMS)


def describe_idle(facts: CellFacts, twins: Twins) -> None:
    """Decide what idle cores do in this cell, once for all of its sessions. Raises UsageError where it can't be what it must be."""
    server, client = twins.server_cpus, twins.agent_cpus
    # Sessions recorded before this was known had halting cores.
    wish = facts.idle or ("halt" if facts.whole_sessions else facts.spec.idle)
    reason = "" if wish == "halt" else idle.obstacle(server, client)
    if wish == "poll" and reason:
        begun = f"the {len(facts.whole_sessions)} sessions that this cell has were measured with idle cores polling"
        raise UsageError(f"{begun if facts.whole_sessions else '--idle poll'}: {reason}")
    if facts.idle:
        return
    facts.idle = "halt" if wish == "halt" or reason else "poll"
    if facts.idle == "halt" and idle.kept_by_others(server | client):
        kept = (
            "idle cores were to halt, and another run or the machine's owner keeps some of them from it "
            "(pm_qos_resume_latency_us is n/a): these figures are not those of halting cores"
        )
        facts.warnings = [*facts.warnings, Warning_("cores-kept", kept)]
    # On one core nobody waits for another core to wake.
    if reason and server != client:
        halting = (
            "idle cores halt, and waking the client's core is part of the server's CPU per operation, in both arms "
            f"(METHODOLOGY.md, Idle cores): {reason}"
        )
        facts.warnings = [*facts.warnings, Warning_("cores-halt", halting)]


def describe_awake(facts: CellFacts, problem: str) -> None:
    """What is wrong with a session whose cores were to be kept from halting, if anything is."""
    if problem and facts.idle == "poll":
        others = [each for each in facts.warnings if each.code != "cores-halt"]
        facts.warnings = [*others, Warning_("cores-halt", problem)]


def describe_at_rest(facts: CellFacts, twins: Twins, agent: Agent) -> None:
    """What only the servers can tell of a session's twins: their settings, who does the encrypting, how long a start took.

    The agent is connected to both arms.
    """
    assert twins.rest is not None
    mechanism = mechanisms.get(facts.spec.mechanism)
    assert isinstance(mechanism, AtRest)
    looks = {arm: twins.look(arm, agent, arm, twins.connect[arm]) for arm in ARMS}
    if query := twins.rest.engine.variables:
        said = {arm: settings_in_force(look.query(query), look) for arm, look in looks.items()}
        facts.config_diff += [
            f"{name}: {said['plain'].get(name, 'not there')} | {said['encrypted'].get(name, 'not there')}"
            for name in sorted({*said["plain"], *said["encrypted"]})
            if said["plain"].get(name) != said["encrypted"].get(name)
        ]
    direct = mechanism.direct_io and twins.rest.engine.does_direct_io(twins.rest.installation.version)
    if text := cache.caveat(facts.spec, direct=direct, below=mechanism.loaded_once):
        kept = [each for each in facts.warnings if each.code != "page-cache"]
        facts.warnings = [*kept, Warning_("page-cache", text)]
    known = mechanism.implementation(looks["encrypted"])
    if warning := known.pop("warning", ""):
        kept = [each for each in facts.warnings if each.code != "implementation"]
        facts.warnings = [*kept, Warning_("implementation", warning)]
    facts.encryption |= known
    if not twins.embedded:
        session = len({each.session for each in facts.openings}) + 1
        facts.openings += [Opening(session, arm, seconds) for arm, seconds in twins.openings.items()]


def settings_in_force(rows: list[list[str | None]], look: Look) -> dict[str, str]:
    """Of a server's (name, value) rows those that can be compared with another's: no ports, no identifiers, paths within its own place."""
    found = {}
    place = str(look.volume.path)
    for name, value in rows:
        if name and not any(fnmatch(name, each) for each in look.rest.engine.unlike):
            found[name] = (value or "").replace(place, "DIR").replace(str(look.rest.secrets), "SECRETS")
    return found


def opening(known: CellFacts) -> Estimate | None:
    """What encryption does to the time from a server's start to its first answer. Pure; one value a session."""
    values = np.array([math.log(encrypted / plain) for plain, encrypted in starts(known)])
    if len(values) < 2:
        return None
    interval = statistics.session_interval(values)
    low, high = interval.bounds()
    return Estimate(
        math.exp(interval.centre), math.exp(low), math.exp(high), n=len(values), method=interval.method(), unit="start"
    )


def spell(cpus: set[int]) -> str:
    return ",".join(str(cpu) for cpu in sorted(cpus))


def tool() -> dict[str, str]:
    """Name and version of what measured."""
    return {"name": "ciphercost", "version": VERSION}
