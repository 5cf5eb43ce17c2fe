"""replication_witness: proves each arm's link between primary and replica: by what the replica reports (client), by what the primary reports
(server), and by the bytes of the link, captured by a relay (wire). Then the replica joins without the relay, and both report again.
"""

from __future__ import annotations

from collections.abc import Mapping

from ciphercost.engines.capabilities.replication import LinkEnd
from ciphercost.host.relay import Relay
from ciphercost.host.wire_streams import records, server_hello
from ciphercost.mechanisms import Mechanism
from ciphercost.model.connection import Connected
from ciphercost.model.errors import AgentError
from ciphercost.model.slices import Proof, Witness
from ciphercost.model.spec import Arm
from ciphercost.prove.wire_witness import judge_wire
from ciphercost.provision.replicas import JOIN_S, Replica


def prove(
    mechanism: Mechanism, replicas: Mapping[Arm, Replica], word: str, canary: str, session: int
) -> tuple[list[Proof], dict[Arm, Connected]]:
    """Run every witness for both arms' links. Returns the proofs and what each link negotiated. Raises RunError if a replica can't join.

    `word`: the statement that writes `:word`, in whose place the canary is looked for in the bytes.
    """
    proofs: list[Proof] = []
    connected: dict[Arm, Connected] = {}
    for arm, replica in replicas.items():
        passed, detail, negotiated = _wire(mechanism, replica, word.replace(":word", canary), canary)
        proofs.append(Proof(arm, "wire", passed, f"replication link: {detail}", session))
        before = replica.engine.accepted(replica.primary)
        replica.join(replica.link())
        ends = _ends(replica, before)
        mute = replica.engine.silent(mechanism.layer)
        for witness, end in ends.items():
            if witness not in mute or end.encrypted is not None:
                proofs.append(_proof(replica, witness, end, session))
        connected[arm] = _connected(replica, ends, *negotiated)
    return proofs, connected


def again(replicas: Mapping[Arm, Replica], session: int) -> list[Proof]:
    """What both ends report of the links that there are now, if it does not match the arm: a replica may have joined again since."""
    return [
        proof
        for replica in replicas.values()
        for witness, end in _ends(replica, -1).items()
        if end.encrypted is not None and not (proof := _proof(replica, witness, end, session)).passed
    ]


def _wire(mechanism: Mechanism, replica: Replica, statement: str, canary: str) -> tuple[bool, str, tuple[str, str]]:
    """Let the replica join through a relay, change a row, and look for the change in what the relay has seen.

    Also returns the protocol and the cipher that the primary chose, as the bytes show them.
    """
    with Relay(*replica.target) as relay:
        try:
            replica.join(replica.link("127.0.0.1", relay.port))
            replica.primary(statement)
            replica.catch_up(JOIN_S)
        except AgentError as error:
            return False, error.words, ("", "")
        sent, received = bytes(relay.to_server), bytes(relay.to_client)
    side: Arm = "encrypted" if replica.encrypted else "plain"
    passed, detail = judge_wire(sent, received, (replica.engine.link_word, canary), side, mechanism.sign)
    found = records(received)
    return passed, detail, server_hello(received[found.before :]) if found else ("", "")


def _ends(replica: Replica, accepted: int) -> dict[Witness, LinkEnd]:
    return {
        "client": replica.engine.replica_end(replica.replica),
        "server": replica.engine.primary_end(replica.primary, accepted),
    }


def _proof(replica: Replica, witness: Witness, end: LinkEnd, session: int) -> Proof:
    passed = end.encrypted is not None and end.encrypted is replica.encrypted
    whose = "the replica" if witness == "client" else "the primary"
    return Proof(replica.arm, witness, passed, f"{whose} reports: {end.words}", session)


def _connected(replica: Replica, ends: Mapping[Witness, LinkEnd], protocol: str, cipher: str) -> Connected:
    """What the link negotiated, as an end reports it, or else as its bytes show."""
    return Connected(
        arm=replica.arm,
        connections=1,
        encrypted=any(end.encrypted for end in ends.values()),
        protocol=next((end.protocol for end in ends.values() if end.protocol), protocol),
        cipher=next((end.cipher for end in ends.values() if end.cipher), cipher),
        verified=replica.encrypted,
    )
