"""session_witness: checks what the server reports about ciphercost's own session."""

from __future__ import annotations

from ciphercost.engines.capabilities.connections import EncryptsConnections
from ciphercost.host.tls_names import EARLY_LOGGED, HTTP3_LOGGED
from ciphercost.model.connection import Connected, Connection
from ciphercost.model.spec import Arm
from ciphercost.prove import client_certificate
from ciphercost.prove.probe import Probe
from ciphercost.provision.server_pair import ServerPair

CERTIFIED = 3
"""Column of `Engine.sessions` that is present only if the client certificate was verified."""


NOT_RESUMED = (
    "resumption is on, but a second connection resumed no session: the server's session tickets are off, or it is too old (MySQL issues "
    "them since 8.0.29)"
)


EARLY_TRIES = 10
"""Resumed connections of which one must have an early request: a busy server may complete a handshake before it looks at the request."""


def server_of_session(probe: Probe, arm: Arm) -> tuple[bool, str]:
    """What the server reports about this very session."""
    rows = sessions(probe, arm, f"prove-{arm}")
    connection = probe.pair.connect[arm].single
    engine = EncryptsConnections.of(probe.engine)
    logged = connection.mutual and engine.certificate_in_sessions
    passed, detail = judge_sessions(rows, *server_end(probe.pair, arm, probe.connected[arm]), client_certificate=logged)
    if passed and (reason := other_http(rows, connection)):
        return False, f"{detail}: {reason}"
    if passed and connection.early_data:
        passed, words = early_request(probe, arm, connection)
        detail = f"{detail}; {words}"
    if passed and connection.resumption and probe.engine.language == "sql":
        passed, words = resumed_session(probe, arm, connection)
        detail = f"{detail}; {words}"
    if not (passed and connection.mutual):
        return passed, detail
    passed, words = client_certificate.witnessed(probe, arm)
    return passed, f"{detail}{', ' if words.startswith('client') else '; '}{words}"


def other_http(rows: list[list[str | None]], connection: Connection) -> str:
    """Why these rows don't fit the HTTP version of a `connect`; empty: they do. Pure."""
    by_quic = sum(HTTP3_LOGGED in str(row[1]) for row in rows)
    if connection.http == "3" and by_quic < len(rows):
        return f"{len(rows) - by_quic} of {len(rows)} requests did not come by HTTP/3"
    return f"{by_quic} requests came by HTTP/3" if connection.http != "3" and by_quic else ""


def early_request(probe: Probe, arm: Arm, connection: Connection) -> tuple[bool, str]:
    """Whether the server's log says that the first request of a resumed connection came before its handshake was complete."""
    name = f"early-{arm}"
    probe.agent.connect(name, connection | {"per_request": True})
    try:
        # The connection of the first request has the ticket for that of the second.
        for _ in range(1 + EARLY_TRIES):
            if any(EARLY_LOGGED in str(row[1]) for row in sessions(probe, arm, name)):
                return True, f"the first request of a resumed connection came by {EARLY_LOGGED}"
    finally:
        probe.agent.disconnect(name)
    return (
        False,
        f"of {EARLY_TRIES} resumed connections, no first request came before the handshake was complete ({EARLY_LOGGED})",
    )


def resumed_session(probe: Probe, arm: Arm, connection: Connection) -> tuple[bool, str]:
    """Whether a second connection resumes the session of a first one, by the client and by the server, if it reports that."""
    name, asks = f"resumed-{arm}", EncryptsConnections.of(probe.engine).resumed_witness
    answer = probe.agent.connect(name, connection | {"connections": 2})
    try:
        rows = probe.agent.query(name, asks, everywhere=True) if asks else []
    finally:
        probe.agent.disconnect(name)
    if answer.resumed != 1 or (asks and sorted(map(str, rows)) != ["['f']", "['t']"]):
        return False, NOT_RESUMED
    return (
        True,
        f"a second connection resumed the session of the first, by the {'server and the ' if asks else ''}client",
    )


def sessions(probe: Probe, arm: Arm, name: str) -> list[list[str | None]]:
    return EncryptsConnections.of(probe.engine).sessions(probe.pair.by_arm[arm], probe.agent, name)


def server_end(pair: ServerPair, arm: Arm, answer: Connected) -> tuple[Arm, str]:
    """What the server must report about an arm's sessions: (as which arm they look to it, the cipher; empty: any). `answer`:
    `connected`.
    """
    looks: Arm = "encrypted" if pair.legs(arm)[-1] else "plain"
    return looks, answer.cipher if pair.one_session(arm) else ""


def judge_sessions(
    rows: list[list[str | None]], arm: Arm, cipher: str, *, client_certificate: bool = False
) -> tuple[bool, str]:
    """Judge rows of `Engine.sessions`: all must match the arm and agree with the client. Pure.

    `cipher`: what the client reports; empty: another session than the client's reaches the server. `client_certificate`: the
    server must report for each session that it has verified one.
    """
    if not rows:
        return False, "the server reports nothing about this session"
    on = [str(row[0]).lower() in ("t", "true", "1", "yes") for row in rows]
    encryption = f"{rows[0][1] or ''} {rows[0][2] or ''}".strip() or "no encryption"
    if arm == "plain":
        return not any(on), f"the server reports: {encryption}" if any(on) else "the server reports: not encrypted"
    if not all(on):
        return False, f"the server reports: {on.count(False)} of {len(on)} sessions are not encrypted"
    ciphers = {row[2] for row in rows} - {None}  # NULL: the server does not report it
    if cipher and ciphers - {cipher}:
        return False, f"the server reports {', '.join(sorted(map(str, ciphers)))}, the client reports {cipher}"
    if client_certificate:
        lacking = sum(len(row) <= CERTIFIED for row in rows)
        if lacking:
            return (
                False,
                f"the server reports: {encryption}, and no client certificate for {lacking} of {len(rows)} sessions",
            )
        encryption += ", client certificate verified"
    return True, f"the server reports: {encryption}"
