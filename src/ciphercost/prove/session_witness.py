"""session_witness: what the server says about our session -> whether it is what the arm's name says."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from ciphercost.engines import Engine
from ciphercost.engines.capabilities.connections import EncryptsConnections
from ciphercost.host import deadlines
from ciphercost.load.agent import Agent
from ciphercost.model.errors import AgentError
from ciphercost.model.spec import Arm
from ciphercost.prove.client_witness import CLIENT_CERTIFICATE
from ciphercost.prove.probe import Probe, single

CERTIFIED = 3
"""Column of `Engine.sessions` that only a session has whose client certificate was verified."""


def server_of_session(probe: Probe, arm: Arm) -> tuple[bool, str]:
    """What the server says of this very session."""
    rows = EncryptsConnections.of(probe.engine).sessions(probe.pair.by_arm[arm], probe.agent, f"prove-{arm}")
    fields = single(probe.pair.connect[arm])
    mutual = "tls_certificate" in fields
    passed, detail = judge_sessions(rows, arm, str(probe.connected[arm].get("cipher", "")), client_certificate=mutual)
    if not (passed and mutual):
        return passed, detail
    refused, words = without_certificate(probe, fields)
    if refused:
        probe.connected[arm][CLIENT_CERTIFICATE] = "verified by the server"
    return refused, f"{detail}; {words}"


def without_certificate(probe: Probe, fields: Mapping[str, object]) -> tuple[bool, str]:
    """Whether the server refuses a connection that is the same but for the client's certificate: (it does, how).

    TLS 1.3 tells a client only after its handshake, and nginx answers with a status: so a request is tried too. A connection with
    the certificate follows: a server that has died refuses everybody.
    """
    bare = {name: value for name, value in fields.items() if name not in ("tls_certificate", "tls_key")}
    if reason := refusal(probe.engine, probe.agent, bare):
        if with_it := refusal(probe.engine, probe.agent, fields):
            return False, f"but after a connection without a client certificate it also refuses one with it: {with_it}"
        return True, f"without a client certificate it refuses: {reason}"
    return False, "but it also serves a connection without a client certificate"


def refusal(engine: Engine, agent: Agent, fields: Mapping[str, object]) -> str:
    """How the server refuses a connection with these fields; empty: it serves it. Raises AgentError where it answers nothing in time."""
    try:
        agent.connect("refused", **fields)
        engine.greet(agent, "refused")
    except AgentError as error:
        if error.code == deadlines.TIMEOUT:
            raise
        return str(error)
    finally:
        with contextlib.suppress(AgentError):
            agent.disconnect("refused")
    return ""


def judge_sessions(
    rows: list[list[str | None]], arm: Arm, cipher: str, *, client_certificate: bool = False
) -> tuple[bool, str]:
    """Rows as of `Engine.sessions`: all must be what the arm's name says, and agree with the client. Pure.

    `client_certificate`: the server must say of each that it has verified one.
    """
    if not rows:
        return False, "the server says nothing of this session"
    on = [str(row[0]).lower() in ("t", "true", "1", "yes") for row in rows]
    said = f"{rows[0][1] or ''} {rows[0][2] or ''}".strip() or "no encryption"
    if arm == "plain":
        return not any(on), f"the server says: {said}" if any(on) else "the server says: not encrypted"
    if not all(on):
        return False, f"the server says: {on.count(False)} of {len(on)} sessions are not encrypted"
    ciphers = {str(row[2]) for row in rows}
    if ciphers != {cipher}:
        return False, f"the server says {', '.join(sorted(ciphers))}, the client says {cipher}"
    if client_certificate:
        lacking = sum(len(row) <= CERTIFIED for row in rows)
        if lacking:
            return False, f"the server says: {said}, and of {lacking} of {len(rows)} sessions no client certificate"
        said += ", client certificate verified"
    return True, f"the server says: {said}"
