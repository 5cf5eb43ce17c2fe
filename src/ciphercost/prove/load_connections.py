"""load_connections: checks that the connections that make the load are the ones that were proven."""

from __future__ import annotations

from collections.abc import Mapping

from ciphercost.engines import Engine
from ciphercost.engines.capabilities.connections import EncryptsConnections
from ciphercost.load.load_client import LoadClient
from ciphercost.mechanisms import Mechanism
from ciphercost.model.connection import Connected
from ciphercost.model.errors import Unproven
from ciphercost.model.spec import Arm
from ciphercost.prove import client_certificate
from ciphercost.prove.client_witness import describe
from ciphercost.prove.session_witness import judge_sessions, server_end
from ciphercost.provision.server_pair import ServerPair


def load_connections(
    engine: Engine,
    mechanism: Mechanism,
    pair: ServerPair,
    agent: LoadClient,
    arm: Arm,
    answer: Connected,
    connected: Mapping[Arm, Connected],
) -> None:
    """Check that the very connections that make the load match the proof. Raises Unproven.

    `answer`: of the load's `connect`; `connected`: of each arm's proof. Where connections stay open, the server
    is queried about each of them.
    """
    per_request = pair.connect[arm].per_request
    if not mechanism.witnesses:
        return
    if "client" not in mechanism.witnesses:
        if answer.encrypted:
            raise Unproven(
                f"client witness, {arm} arm: the connection is encrypted, but only the data on disk should be"
            )
        return
    encrypted = pair.side(arm) == "encrypted"
    proven = proof_of(pair, arm, connected)
    as_proven(pair, arm, answer, proven)
    if engine.caches_logins and per_request and answer.auth != proven.auth:
        # Where connections stay open, logins are no part of the load.
        raise Unproven(
            f"client witness, {arm} arm: the load logs in with {answer.auth}, but the proof was for "
            f"{proven.auth}: the arms would differ in more than encryption"
        )
    if mechanism.layer in ("transit", "control") and not per_request and "server" not in engine.mute:
        witness = EncryptsConnections.of(engine)
        rows = witness.sessions(pair.by_arm[arm], agent, arm, everywhere=True)
        verified = encrypted and proven.client_certificate.startswith(client_certificate.VERIFIED)
        mutual = verified and witness.certificate_in_sessions
        passed, detail = judge_sessions(rows, *server_end(pair, arm, answer), client_certificate=mutual)
        if passed and verified:
            passed, detail = client_certificate.of_load(witness, agent, arm, pair.connect[arm])
        if not passed:
            raise Unproven(f"server witness, {arm} arm, the load's own sessions: {detail}")


def proof_of(pair: ServerPair, arm: Arm, connected: Mapping[Arm, Connected]) -> Connected:
    """What an arm's proof negotiated. A plain arm's leg that is encrypted all the same is compared with the encrypted arm's."""
    return connected[arm if pair.side(arm) == "encrypted" else "encrypted"]


def as_proven(pair: ServerPair, arm: Arm, answer: Connected, proven: Connected) -> None:
    """Check what connections of an arm negotiated against its proof, by the client's words alone. Raises Unproven."""
    if answer.encrypted != pair.legs(arm)[0]:
        state = "encrypted" if answer.encrypted else "unencrypted"
        raise Unproven(f"client witness, {arm} arm: the load's connections are {state}")
    if pair.legs(arm)[0] and (
        (answer.protocol, answer.cipher) != (proven.protocol, proven.cipher)
        # A resumed session may report fewer facts about itself than the first one.
        or any(
            now and then and now != then
            for now, then in ((answer.group, proven.group), (answer.peer_key, proven.peer_key))
        )
    ):
        raise Unproven(
            f"client witness, {arm} arm: the load negotiated {describe(answer)}, but the proof was for "
            f"{describe(proven)}"
        )
