"""`ciphercost prove`: check whether a target is encrypted, with every witness and without load."""

from __future__ import annotations

import msgspec

from ciphercost import engines, mechanisms
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.host import supervisor
from ciphercost.load.agent import Agent
from ciphercost.load.connection_string import UNENFORCED, ConnectionString
from ciphercost.mechanisms._column import Columns
from ciphercost.mechanisms._rest import AtRest
from ciphercost.model.errors import UsageError
from ciphercost.model.proof_row import ProofRow
from ciphercost.model.run_directory import new_id
from ciphercost.model.slices import Finding, Proof
from ciphercost.model.spec import ARMS, CellSpec, Spec
from ciphercost.plan import specs
from ciphercost.prove import client_witness, column_checks, destructive_test, witnesses
from ciphercost.provision import server_pairs, users_server
from ciphercost.provision.experiment_resources import ExperimentResources
from ciphercost.provision.prepared_cell import PreparedCell
from ciphercost.provision.server_pair import ServerPair
from ciphercost.report.layout import wrap
from ciphercost.report.renderers.terminal import findings_lines
from ciphercost.runs import prove_facts

ALSO_CLEAR = (
    "That is this connection. The server accepted an unencrypted one too (the control above), so a client that asks for "
    "no encryption gets none."
)
"""Below the verdict on a server that the user runs."""
BY_SOCKET = (
    "The control above is the server's Unix socket, which no network sees. Whether the server accepts unencrypted connections by TCP was not "
    "tried."
)
"""The same where the unencrypted control does not go by TCP."""


def examine(cell: CellSpec, asked: ConnectionString | None = None, row: ProofRow | None = None) -> tuple[bool, str]:
    """(proven, text to print). `asked`: what the clients make of the cell's connection string; `row`: takes the facts.

    Raises CiphercostError if the target can't be reached or started.
    """
    mechanism = mechanisms.get(cell.mechanism)
    if mechanism.layer == "control" and cell.engine in engines.names():
        encrypting = [
            name for name in mechanisms.of(engines.get(cell.engine)) if mechanisms.get(name).layer != "control"
        ]
        instead = f"name one that encrypts, e.g. {cell.engine}:{encrypting[0]}" if encrypting else "it encrypts nothing"
        raise UsageError(
            f"{cell.engine}:{cell.mechanism} has nothing to prove: {mechanism.title}; {instead}. "
            f"`ciphercost calibrate {cell.engine}` measures plain against plain"
        )
    if isinstance(mechanism, Columns):
        cell = msgspec.structs.replace(cell, workload=mechanism.workload)  # needed for a valid cell, but never run
    (planned,) = specs.plan(Spec(cells=[cell], mode="quick", sessions=1), load=False).cells
    run_id = new_id()
    with supervisor.Supervisor(run_id) as run_supervisor:
        scratch = supervisor.scratch(run_id, run_supervisor)
        logs = scratch / "logs"
        logs.mkdir(mode=0o700)
        shared = ExperimentResources(scratch / "secrets" / "group-0")
        with (
            server_pairs.bench(planned, run_supervisor, scratch, logs, 0, shared, data=False) as bench,
            shared.session(),
        ):
            closely = destructive_test.run(bench) if isinstance(bench.mechanism, AtRest) else destructive_test.Outcome()
            alone = users_server.no_plain_arm(bench)
            pair = server_pairs.start(bench, 1, set(), set(), ("encrypted",) if alone else ARMS)
            with bench.agent(pair) as agent:
                proofs, by_arm = witnesses.prove(bench.engine, bench.mechanism, pair, agent, 1)
                connected = by_arm.get("encrypted")
                better = {"better": asked.stronger} if asked and asked.level else {}
                unverified = client_witness.unverified(connected, pair.connect["encrypted"], **better)
                certified = connected.client_certificate if connected else ""
                proven, text = judge(
                    [*proofs, *closely.proofs], bench, unverified, pair.closed, asked, alone, certified
                )
                if row is not None:
                    prove_facts.note(
                        row, bench, proofs, connected, pair, asked, alone, proven=proven, unverified=unverified
                    )
                findings = in_columns(pair, agent) if pair.sealing and proven else closely.findings
            return proven, "\n".join([text, *findings_lines(findings)])


def not_enforced(asked: ConnectionString, *, in_clear: bool) -> list[str]:
    """The verdict on a string with which its client also connects unencrypted. `in_clear`: it did so just now. Pure."""
    whoever = "whoever is in the path can turn it off"
    if in_clear:
        verdict = (
            f"NOT ENCRYPTED: with {asked.said} the client asks for no encryption first, and this server accepted that; encryption "
            f"is not enforced: {whoever}"
        )
    else:
        verdict = f"ENCRYPTED NOW, but not enforced: with {asked.said}, {whoever}, and then read and change everything"
    return [*wrap(verdict, "  ", "    "), *wrap(f"To enforce it, {asked.stronger}.", "  ")]


def in_columns(pair: ServerPair, agent: Agent) -> list[Finding]:
    """What encrypted values reveal."""
    agent.connect("encrypted", pair.connect["encrypted"].single)
    return column_checks.findings(pair.arm_view("encrypted", agent, "encrypted"))


def exceptions_of(bench: PreparedCell) -> str:
    """What the options leave unencrypted, as part of the verdict, or ""."""
    left = bench.mechanism.left_in_clear(bench.rest) if isinstance(bench.mechanism, AtRest) else {}
    return f" except {', '.join(left)} ({', '.join(dict.fromkeys(left.values()))})" if left else ""


BY_CERTIFICATE = (
    "This user logs in by the client certificate, which an unencrypted connection can't present, and no password was given: so there is "
    "no unencrypted control."
)


def no_control(bench: PreparedCell, plain: Proof, certified: str = "") -> str:
    """Why a failed plain arm says nothing about a server that the user runs; empty: it does. `certified`: what the server made of
    the client's certificate.
    """
    engine = bench.engine
    if not isinstance(engine, TakesUrl):
        return ""
    if certified and engine.refuses_anonymous and engine.refuses_anonymous in plain.detail:
        return BY_CERTIFICATE
    return engine.no_control(bench.cell.url, plain.code)


def judge(
    proofs: list[Proof],
    bench: PreparedCell,
    unverified: str = "",
    closed: str = "",
    asked: ConnectionString | None = None,
    alone: str = "",
    certified: str = "",
) -> tuple[bool, str]:
    """(proven, text to print). `unverified`: what was not verified about the server's identity (`client_witness.unverified`).
    `closed`: why nothing was sent unencrypted (`ServerPair.closed`). `asked`: what the clients make of the connection string.
    `alone`: why there is no plain arm (`Server.no_plain_arm`). `certified`: what the server made of the client's certificate.

    The encrypted arm decides. The plain arm is the control: it shows that the witnesses detect unencrypted data. A server that
    the user runs may refuse the plain arm: then it enforces encryption, and there is no control.
    """
    encrypted = [proof for proof in proofs if proof.arm == "encrypted"]
    plain = [proof for proof in proofs if proof.arm == "plain"]
    lines = [f"{' '.join(filter(None, (bench.engine.name, bench.installation.version)))} · {bench.mechanism.name}"]
    for title, heard in (("encrypted arm", encrypted), ("plain arm (control)", plain)):
        lines += [f"  {title}"] if heard else []
        for proof in heard:
            lines += wrap(
                f"{'ok    ' if proof.passed else 'FAILED'} {proof.witness}: {proof.detail}", "    ", "           "
            )
    both = bool(bench.cell.url and plain and encrypted)
    elsewhere = no_control(bench, plain[0], certified) if both and encrypted[0].passed and not plain[0].passed else ""
    elsewhere = alone if alone and encrypted[0].passed else elsewhere
    refused = bool(elsewhere) or (bool(bench.cell.url) and witnesses.enforces(bench.engine, proofs))
    if refused:
        lines += wrap(
            elsewhere
            or "The server refuses unencrypted connections: it enforces encryption, so there is no unencrypted control.",
            "  ",
        )
    mechanism, mute = bench.mechanism, bench.engine.silent(bench.mechanism.layer)
    proven = not (
        witnesses.unproven(
            encrypted if refused else proofs, mechanism, ("encrypted",) if refused else ARMS, mute, bench.factors
        )
    )
    others = " and ".join(witness for witness in ("server", "client") if witness not in mute)
    by = f"by {others}; the wire witness had no control" if refused else "by every witness"
    if mute:
        by += f"; there is no {' or '.join(mute)} witness" if refused else f" (there is no {' or '.join(mute)} witness)"
    if closed:
        lines += wrap(f"{closed}.", "  ")
    verdict = f"ENCRYPTED{exceptions_of(bench)}, {f'but {unverified}. Encryption is ' if unverified else ''}proven {by}"
    lines += wrap(verdict if proven else "NOT PROVEN", "  ", "    ")
    if proven and asked and asked.level in UNENFORCED:
        in_clear = asked.level == "allow" and bool(plain) and plain[0].passed
        return False, "\n".join([*lines[: -len(wrap(verdict, "  ", "    "))], *not_enforced(asked, in_clear=in_clear)])
    if proven and bench.cell.url and plain and not refused and mechanism.layer == "transit":
        lines += wrap(BY_SOCKET if asked and asked.plain_socket else ALSO_CLEAR, "  ")
    return proven, "\n".join(lines)
