"""replication_witness: proves each arm's link between primary and replica: by what the replica reports (client), by what the primary reports
(server), and by the bytes of the link, captured by a relay (wire). Then the replica joins without the relay, and both report again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from ciphercost.engines.capabilities.replication import LinkEnd
from ciphercost.host.relay import Relay
from ciphercost.host.wire_streams import Seen, Stream, seen, with_data
from ciphercost.mechanisms import Mechanism
from ciphercost.model.connection import Connected
from ciphercost.model.errors import AgentError
from ciphercost.model.slices import Proof, Witness
from ciphercost.model.spec import Arm
from ciphercost.provision.replicas import JOIN_S, Replica

NOTHING = Seen(encrypted=False, words="")


def prove(
    mechanism: Mechanism, replicas: Mapping[Arm, Replica], word: str, canary: str, session: int
) -> tuple[list[Proof], dict[Arm, Connected]]:
    """Run every witness for both arms' links. Returns the proofs and what each link negotiated. Raises RunError if a replica can't join.

    `word`: the statement that writes `:word`, in whose place the canary is looked for in the bytes.
    """
    proofs: list[Proof] = []
    connected: dict[Arm, Connected] = {}
    for arm, replica in replicas.items():
        passed, detail, negotiated = _wire(replica, word.replace(":word", canary), canary)
        proofs.append(Proof(arm, "wire", passed, f"replication link: {detail}", session))
        before = replica.engine.accepted(replica.primary)
        replica.join(replica.link())
        ends = _ends(replica, before)
        mute = replica.engine.silent(mechanism.layer)
        for witness, end in ends.items():
            if witness not in mute or end.encrypted is not None:
                proofs.append(_proof(replica, witness, end, session))
        connected[arm] = _connected(replica, ends, negotiated)
    return proofs, connected


def again(replicas: Mapping[Arm, Replica], session: int) -> list[Proof]:
    """What both ends report of the links that there are now, if it does not match the arm: a replica may have joined again since."""
    return [
        proof
        for replica in replicas.values()
        for witness, end in _ends(replica, -1).items()
        if end.encrypted is not None and not (proof := _proof(replica, witness, end, session)).passed
    ]


def _wire(replica: Replica, statement: str, canary: str) -> tuple[bool, str, Seen]:
    """Let the replica join through a relay, change a row, and judge what the relay has seen."""
    streams: defaultdict[int, Stream] = defaultdict(lambda: Stream(canary.encode()))

    def watch(number: int, data: bytes, by_client: bool) -> None:
        streams[number].add(data, by_client=by_client)

    with Relay(*replica.target, watch=watch) as relay:
        try:
            replica.join(replica.link("127.0.0.1", relay.port))
            replica.primary(statement)
            replica.catch_up(JOIN_S)
        except AgentError as error:
            return False, error.words, NOTHING
    return judge(list(streams.values()), replica.engine.link_word, encrypted=replica.encrypted)


def judge(streams: Sequence[Stream], word: str, *, encrypted: bool) -> tuple[bool, str, Seen]:
    """Whether the bytes of a link's connections match its arm, what they show, and what the first one is. Each connection is judged by
    itself. `word`: what a replica sends in clear if it is not encrypted; the streams count the canary. Pure.
    """
    streams = with_data(streams)
    if not streams:
        return False, "no bytes seen: the witness examined nothing", NOTHING
    found = [seen(stream) for stream in streams]
    size = f"{sum(stream.size for stream in streams):,} bytes"
    words = sum(bytes(stream.to_server.kept).count(word.encode()) for stream in streams)
    canaries = sum(stream.to_client.canaries for stream in streams)
    if not encrypted:
        if not words or not canaries:
            return False, f"the canary is not visible in {size} (compressed, or encrypted?)", found[0]
        return True, f"the canary is visible in {size}", found[0]
    if words or canaries:
        return False, f"the canary is visible unencrypted in {size}", found[0]
    if bare := [one for one in found if not one.encrypted]:
        return False, f"the canary is absent from {size}, but a connection has {bare[0].words}", found[0]
    return True, f"the canary is absent from {size} of {found[0].words}", found[0]


def _ends(replica: Replica, accepted: int) -> dict[Witness, LinkEnd]:
    return {
        "client": replica.engine.replica_end(replica.replica),
        "server": replica.engine.primary_end(replica.primary, accepted),
    }


def _proof(replica: Replica, witness: Witness, end: LinkEnd, session: int) -> Proof:
    passed = end.encrypted is not None and end.encrypted is replica.encrypted
    whose = "the replica" if witness == "client" else "the primary"
    return Proof(replica.arm, witness, passed, f"{whose} reports: {end.words}", session)


def _connected(replica: Replica, ends: Mapping[Witness, LinkEnd], bytes_: Seen) -> Connected:
    """What the link negotiated, as an end reports it, or else as its bytes show."""
    return Connected(
        arm=replica.arm,
        connections=1,
        encrypted=any(end.encrypted for end in ends.values()),
        protocol=next((end.protocol for end in ends.values() if end.protocol), bytes_.protocol),
        cipher=next((end.cipher for end in ends.values() if end.cipher), bytes_.cipher),
        verified=replica.encrypted,
    )
