"""witnesses: proves a server pair before any load, with three witnesses per arm, each of which can fail. I/O, no
statistics.

Both directions are checked: a probe that can't see the canary on the plain server proves nothing about the encrypted
one.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from ciphercost.engines import Engine
from ciphercost.engines.capabilities.connections import EncryptsConnections
from ciphercost.host import deadlines
from ciphercost.load.agent import Agent
from ciphercost.load.plaintext_guard import encrypted_first
from ciphercost.mechanisms import Mechanism
from ciphercost.model.connection import Connected
from ciphercost.model.errors import AgentError, Unproven
from ciphercost.model.slices import Proof, Witness
from ciphercost.model.spec import ARMS, Arm
from ciphercost.prove import column_checks, proof_verdict
from ciphercost.prove.client_witness import client
from ciphercost.prove.probe import Probe
from ciphercost.prove.process_witness import process
from ciphercost.prove.rest_witnesses import disk, server_at_rest
from ciphercost.prove.session_witness import server_of_session
from ciphercost.prove.wire_witness import wire
from ciphercost.provision.server_pair import ServerPair

NOTHING: Mapping[str, str] = MappingProxyType({})


def prove(
    engine: Engine, mechanism: Mechanism, pair: ServerPair, agent: Agent, session: int
) -> tuple[list[Proof], dict[Arm, Connected]]:
    """Run every witness of the mechanism for both arms. Returns the proofs and what each arm negotiated.

    Never raises for a failed witness: that is a proof with `passed` false. `unproven` gives the reason.
    """
    probe = Probe(engine, mechanism, pair, agent, session)
    proofs: list[Proof] = []
    prime(engine, pair, agent)
    for arm in encrypted_first(pair.connect):
        # The client witness goes first: without a connection the others have nothing to examine.
        probe.ended |= arm == "plain" and bool(pair.closed)
        chosen: set[Witness] = {"process"} if any((*pair.libraries.values(), *pair.fips.values())) else set()
        due = {*mechanism.witnesses, *chosen}.difference(engine.silent(mechanism.layer))
        for witness in sorted(due, key=lambda name: (name != "client", name)):
            if probe.ended:
                break
            proofs.append(_run_witness(probe, arm, witness))
            if not proofs[-1].passed and witness == "client":
                break
    _close(probe)
    return proofs, probe.connected


def prime(engine: Engine, pair: ServerPair, agent: Agent) -> None:
    """Log in once, as each user, if a server's first login after its start differs from later ones, so that neither arm pays for it."""
    if not engine.caches_logins:
        return
    # Unencrypted it would be an RSA exchange. And your own server gets nothing unencrypted before the encrypted arm has
    # logged in.
    arms: list[Arm] = encrypted_first(ARMS) if pair.refused is None else ["encrypted"]
    known = set()
    for arm in arms:
        if (user := pair.connect[arm].user) in known:
            continue
        # The client witness reports an arm that can't log in.
        with contextlib.suppress(AgentError):
            agent.connect("prime", pair.connect[arm].single)
            agent.disconnect("prime")
            known.add(user)


def unproven(
    proofs: list[Proof],
    mechanism: Mechanism,
    arms: tuple[Arm, ...] = ARMS,
    mute: tuple[Witness, ...] = (),
    factors: Mapping[str, str] = NOTHING,
) -> str:
    """Why these proofs don't prove the arms (default: both) of a cell with these factors. Empty if they do. Pure."""
    return proof_verdict.unproven(
        proofs, [witness for witness in mechanism.required(factors) if witness not in mute], arms
    )


def enforces(engine: Engine, proofs: list[Proof]) -> bool:
    """Whether your own server has refused the unencrypted arm because it is unencrypted, after the encrypted one got in. Pure.

    Any other failure of the plain arm proves nothing, nor does a refusal that the encrypted arm gets too.
    """
    encrypted = [proof for proof in proofs if proof.arm == "encrypted"]
    plain = [proof for proof in proofs if proof.arm == "plain"]
    codes = engine.refuses_clear if isinstance(engine, EncryptsConnections) else ()
    return bool(plain and encrypted and encrypted[0].passed and not plain[0].passed and plain[0].code in codes)


def instead(engine: Engine, mechanism: Mechanism, proofs: list[Proof], connected: Connected | None) -> str:
    """The target to measure if your own server refuses unencrypted connections; empty: it does not, or is a web site. Pure.

    `connected`: what the encrypted arm negotiated.
    """
    if engine.foreign or not enforces(engine, proofs):  # a web site's own advice says what to measure instead
        return ""
    version = connected.server_version if connected else ""
    match = re.match(r"\d+" if engine.dialect == "postgresql" else r"\d+\.\d+", version)
    return f"{engine.name}{f'@{match[0]}' if match else ''}:{mechanism.name}"


def require(
    proofs: list[Proof],
    mechanism: Mechanism,
    mute: tuple[Witness, ...] = (),
    closed: str = "",
    required: Sequence[Witness] = (),
    enforced: str = "",
    advice: Callable[[], str] = str,
) -> None:
    """Raises Unproven, naming the witness, unless both arms are proven by the `required` witnesses (default: the mechanism's). `closed`: why one was not
    tried (`ServerPair.closed`); `enforced`: the target that ciphercost could start instead of your own server, which refuses
    unencrypted connections; `advice`: returns what the user can do, or "".
    """
    if enforced:
        raise Unproven(
            "the server refuses unencrypted connections, so it has no unencrypted arm to measure. Compare two encrypted settings instead "
            "(--versus version=1.2), allow unencrypted connections from this machine on a test copy, or measure a server that ciphercost "
            f"starts: ciphercost run {enforced}"
        )
    due = [witness for witness in required or mechanism.witnesses if witness not in mute]
    if reason := proof_verdict.unproven(proofs, due):
        more = closed or advice()
        raise Unproven(f"{reason}. {more}" if more else reason)


def _run_witness(probe: Probe, arm: Arm, witness: Witness) -> Proof:
    code = ""
    try:
        passed, detail = WITNESSES[probe.mechanism.layer, witness](probe, arm)
    except AgentError as error:
        probe.ended |= error.code == deadlines.TIMEOUT  # every further witness would wait just as long
        probe.pair.failures.setdefault(arm, error)
        if probe.pair.side(arm) == "encrypted":
            probe.pair.note(error, arm)
        passed, detail, code = False, error.words, error.code
        if probe.pair.connect[arm].socket:  # by which a refusal does not mean that the server demands encryption
            code = f"socket {code}"
    if witness == "client" and probe.pair.side(arm) == "encrypted" and not passed:
        probe.pair.note(AgentError(detail, code or "agent"), arm)
    return probe.proof(arm, witness, passed, detail, code)


def _close(probe: Probe) -> None:
    for arm in probe.connected:
        # A witness may have lost its connection; then there is nothing to close.
        with contextlib.suppress(AgentError):
            probe.agent.disconnect(f"prove-{arm}")


OF_CONNECTIONS: dict[Witness, Callable[[Probe, Arm], tuple[bool, str]]] = {
    "client": client,
    "server": server_of_session,
    "wire": wire,
    "process": process,
}
WITNESSES: dict[tuple[str, Witness], Callable[[Probe, Arm], tuple[bool, str]]] = {
    **{(layer, name): witness for layer in ("transit", "control") for name, witness in OF_CONNECTIONS.items()},
    ("rest", "client"): client,
    ("rest", "server"): server_at_rest,
    ("rest", "disk"): disk,
    ("column", "server"): lambda probe, arm: column_checks.server(probe.arm_view(arm)),
    ("column", "disk"): lambda probe, arm: column_checks.disk(probe.arm_view(arm)),
}
