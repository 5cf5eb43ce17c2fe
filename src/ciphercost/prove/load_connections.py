"""load_connections: checks that the connections that make the load are the ones that were proven."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ciphercost.engines import Engine
from ciphercost.engines.capabilities.connections import EncryptsConnections
from ciphercost.load.load_client import LoadClient
from ciphercost.mechanisms import Mechanism
from ciphercost.model.errors import Unproven
from ciphercost.model.spec import Arm
from ciphercost.prove.client_witness import CLIENT_CERTIFICATE, describe
from ciphercost.prove.session_witness import judge_sessions, server_end
from ciphercost.provision.server_pair import ServerPair


def load_connections(
    engine: Engine,
    mechanism: Mechanism,
    pair: ServerPair,
    agent: LoadClient,
    arm: Arm,
    answer: Mapping[str, Any],
    proven: Mapping[str, Any],
) -> None:
    """Check that the very connections that make the load match the proof. Raises Unproven.

    `answer`: of the load's `connect`; `proven`: of the encrypted arm's proof. Where connections stay open, the server
    is queried about each of them.
    """
    if not mechanism.witnesses:
        return
    if "client" not in mechanism.witnesses:
        if answer["encrypted"]:
            raise Unproven(
                f"client witness, {arm} arm: the connection is encrypted, but only the data on disk should be"
            )
        return
    if bool(answer["encrypted"]) != pair.legs(arm)[0]:
        state = "encrypted" if answer["encrypted"] else "unencrypted"
        raise Unproven(f"client witness, {arm} arm: the load's connections are {state}")
    if pair.legs(arm)[0] and (
        any(answer[name] != proven.get(name) for name in ("protocol", "cipher"))
        # A resumed session may report fewer facts about itself than the first one.
        or any(answer.get(name) and proven.get(name) and answer[name] != proven[name] for name in ("group", "peer_key"))
    ):
        raise Unproven(
            f"client witness, encrypted arm: the load negotiated {describe(answer)}, but the proof was for "
            f"{describe(proven)}"
        )
    if engine.caches_logins and answer.get("per_request") and answer.get("auth") != proven.get("auth"):
        # Where connections stay open, logins are no part of the load.
        raise Unproven(
            f"client witness, {arm} arm: the load logs in with {answer.get('auth')}, but the proof was for "
            f"{proven.get('auth')}: the arms would differ in more than encryption"
        )
    if mechanism.layer in ("transit", "control") and not answer.get("per_request") and "server" not in engine.mute:
        rows = EncryptsConnections.of(engine).sessions(pair.by_arm[arm], agent, arm, everywhere=True)
        mutual = arm == "encrypted" and CLIENT_CERTIFICATE in proven
        passed, detail = judge_sessions(rows, *server_end(pair, arm, answer), client_certificate=mutual)
        if not passed:
            raise Unproven(f"server witness, {arm} arm, the load's own sessions: {detail}")
