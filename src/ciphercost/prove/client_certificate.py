"""client_certificate: checks that the server has verified the client's certificate, whose it was, and that it requires one."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import msgspec

from ciphercost.engines import Engine
from ciphercost.engines.capabilities.connections import EncryptsConnections
from ciphercost.host import client_identity, deadlines
from ciphercost.host.client_identity import ClientName
from ciphercost.load.agent import Agent
from ciphercost.load.load_client import LoadClient
from ciphercost.model.connection import Connection
from ciphercost.model.errors import AgentError
from ciphercost.model.spec import Arm
from ciphercost.prove.probe import Probe

VERIFIED = "verified by the server"
NOT_REQUIRED = f"{VERIFIED}, which does not require one"
NOT_REPORTED = "required by the server, which does not report whose it was"
PRESENTED = "offered, but the server does not require it"
NO_NAME = "the server does not report whose client certificate it was"
MOST_REPORTED = 63
"""Bytes of a subject that PostgreSQL reports."""


def witnessed(probe: Probe, arm: Arm) -> tuple[bool, str]:
    """Whether the server has verified the certificate of this very session, and refuses the same login without one.

    On the user's own server only the first must hold: it may serve clients without a certificate too, and may not ask at all.
    """
    connection = probe.pair.connect[arm].single
    on_users_server = probe.pair.place is not None
    engine = EncryptsConnections.of(probe.engine)
    details = [] if engine.certificate_in_sessions else [NO_NAME]
    reported = engine.certificate_in_sessions
    if engine.certificate_witness:
        rows = probe.agent.query(f"prove-{arm}", engine.certificate_witness)
        if on_users_server and not any(rows[0] if rows else ()):
            return True, "the server did not ask for the client certificate"
        passed, words = judge_names(rows, named(connection))
        if not passed:
            return False, words
        details, reported = [words], True
    refused, words = without_certificate(probe, connection)
    if not (refused or on_users_server):
        return False, "; ".join([*details, words])
    if refused:
        value = VERIFIED if reported else NOT_REPORTED
    else:
        value = NOT_REQUIRED if reported else PRESENTED
    probe.connected[arm] = msgspec.structs.replace(probe.connected[arm], client_certificate=value)
    return True, "; ".join([*details, words])


def named(connection: Connection) -> ClientName:
    """Whose certificate a connection presents."""
    return client_identity.name_in(client_identity.of(connection).pem.reveal().encode())


def judge_names(rows: Sequence[Sequence[str | None]], wanted: ClientName) -> tuple[bool, str]:
    """Judge rows of `certificate_witness`: each must name the client's own certificate. Pure."""
    lacking = sum(not any(row) for row in rows)
    if lacking or not rows:
        return False, f"the server reports no client certificate for {lacking} of {len(rows)} sessions"
    shown = wanted.subject.encode()[:MOST_REPORTED].decode(errors="ignore")
    for subject, serial, *_ in rows:
        if str(serial) != str(wanted.serial) or (subject or "").rstrip("\ufffd") not in (wanted.subject, shown):
            return False, f"the server reports the client certificate of {subject} ({serial}), not of {wanted.subject}"
    return True, f"client certificate verified, of {rows[0][0]}"


def of_load(engine: EncryptsConnections, agent: LoadClient, arm: Arm, connection: Connection) -> tuple[bool, str]:
    """The same for the connections that make the load; true if the server reports nothing about them."""
    if not (connection.mutual and engine.certificate_witness):
        return True, ""
    return judge_names(agent.query(arm, engine.certificate_witness, everywhere=True), named(connection))


def without_certificate(probe: Probe, connection: Connection) -> tuple[bool, str]:
    """Whether the server refuses the same connection without the client's certificate: (it does, how).

    TLS 1.3 reports this to a client only after its handshake, and nginx answers with a status, so a request is sent
    too. A connection with the certificate follows, because a server that has died refuses everybody.
    """
    bare = connection | {"tls_certificate": None, "tls_key": None, "tls_identity": None}
    if reason := refusal(probe.engine, probe.agent, bare, probe.pair.canary):
        if with_it := refusal(probe.engine, probe.agent, connection, probe.pair.canary):
            return False, f"but after a connection without a client certificate it also refuses one with it: {with_it}"
        return True, f"without a client certificate it refuses: {reason}"
    return False, "but it also accepts a connection without a client certificate"


def refusal(engine: Engine, agent: Agent, connection: Connection, word: str = "") -> str:
    """How the server refuses this connection. Empty: it accepts it. `word`: what a key-value store must echo.

    Raises AgentError if it does not answer in time.
    """
    try:
        agent.connect("refused", connection)
        engine.greet(agent, "refused")
        if engine.language == "kv" and word:  # it may have no login, so a first request must be answered
            agent.query("refused", engine.echo(word))
    except AgentError as error:
        if error.code == deadlines.TIMEOUT:
            raise
        return "" if word and engine.echoes_in_errors and word in str(error) else str(error)
    finally:
        with contextlib.suppress(AgentError):
            agent.disconnect("refused")
    return ""
