"""wire_witness: checks whether the canary is in the bytes of a connection, captured by a relay."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ciphercost.host.datagram_relay import DatagramRelay, quic_sign
from ciphercost.host.relay import Relay, moved
from ciphercost.mechanisms import tls
from ciphercost.model.connection import Connection
from ciphercost.model.constrained_types import DIRECT
from ciphercost.model.errors import AgentError
from ciphercost.model.spec import Arm
from ciphercost.prove.probe import NULL_SEEN, Probe

NOT_ECHOED = "the server did not answer with the canary, so its absence would prove nothing"


def wire(probe: Probe, arm: Arm) -> tuple[bool, str]:
    """Capture the bytes between client and server: the canary must be in both directions, or in neither. With a hop: on each part
    of the way, through a second hop with the same settings.
    """
    pair = probe.pair
    if arm in pair.ways:
        with pair.ways[arm].watched() as chain:
            return _on_each_part(probe, arm, pair.ways[arm].connection(chain), chain.relays, pair.legs(arm))
    connection = pair.connect[arm].single
    if connection.http == "3":
        with DatagramRelay(*connection.address) as taken:
            return _by_datagrams(probe, arm, moved(connection, "127.0.0.1", taken.port), taken)
    with Relay.before(connection, pair.directory) as relay:
        passed, detail = _on_each_part(probe, arm, relay.moved(connection), (relay,), pair.legs(arm))
        if connection.socket:
            return passed, f"by the Unix socket: {detail}"
        if passed and connection.tls_at_once:
            return begins_at_once(bytes(relay.to_server), detail)
        return passed, detail


HANDSHAKE = b"\x16"
"""The first byte of a TLS record that holds a part of a handshake (RFC 8446, 5.1)."""


def begins_at_once(sent: bytes, detail: str) -> tuple[bool, str]:
    """Whether TLS begins with the first byte that the client has sent. Pure."""
    if sent.startswith(HANDSHAKE):
        return True, f"{detail}; TLS begins with the first byte"
    return False, f"{detail}, but TLS does not begin with the first byte, although negotiation is {DIRECT}"


def _on_each_part(
    probe: Probe, arm: Arm, connection: Connection, relays: Sequence[Relay], legs: Sequence[bool]
) -> tuple[bool, str]:
    """Send the canary through relays, the client's first, and judge what each has seen."""
    words = _echoed(probe, arm, connection)
    if not all(words):
        return False, NOT_ECHOED
    details = []
    for number, (relay, encrypted) in enumerate(zip(relays, legs, strict=True)):
        looks: Arm = "encrypted" if encrypted else "plain"
        passed, detail = judge_wire(bytes(relay.to_server), bytes(relay.to_client), words, looks, probe.mechanism.sign)
        where = f"{part(number, len(relays))}: " if len(relays) > 1 else ""
        details.append(f"{where}{detail}")
        if not passed:
            return False, details[-1]
    return True, "; ".join(details)


def _by_datagrams(probe: Probe, arm: Arm, connection: Connection, relay: DatagramRelay) -> tuple[bool, str]:
    """Send the canary through a relay of datagrams, and judge what it has seen."""
    words = _echoed(probe, arm, connection)
    if not all(words):
        return False, NOT_ECHOED
    seen = relay.datagrams

    def sign(sent: bytes, received: bytes) -> tuple[bool, str]:  # noqa: ARG001 - datagrams have borders, bytes have none
        return quic_sign(seen["to_server"], seen["to_client"])

    return judge_wire(relay.to_server, relay.to_client, words, probe.pair.side(arm), sign)


def _echoed(probe: Probe, arm: Arm, connection: Connection) -> tuple[str, str]:
    """The texts that the server has echoed over this connection; see `Engine.echoed`."""
    probe.agent.connect(f"wire-{arm}", connection.single)
    try:
        rows = probe.agent.query(f"wire-{arm}", probe.engine.echo(probe.pair.canary))
    except AgentError as error:
        if not probe.engine.echoes_in_errors or probe.pair.canary not in str(error):
            raise
        rows = [[probe.pair.canary]]
    probe.agent.disconnect(f"wire-{arm}")
    sent, received = probe.engine.echoed(rows, probe.pair.canary)
    return (probe.engine.said(connection) if sent else "") or sent, received


def part(number: int, parts: int) -> str:
    """The name of one part of a way through a hop, counted from the client. Pure."""
    if number == 0:
        return "between client and hop"
    return "between hop and server" if number == parts - 1 else "within the hop"


Sign = Callable[[bytes, bytes], tuple[bool, str]]
"""Takes the bytes of both directions. Returns whether they show that they are encrypted, and a description."""


def judge_wire(
    sent: bytes, received: bytes, canary: str | tuple[str, str], arm: Arm, sign: Sign = tls.MECHANISM.sign
) -> tuple[bool, str]:
    """Whether the bytes of both directions match the arm. `canary`: one for both directions, or one for each. Pure."""
    if not sent or not received:
        return False, NULL_SEEN
    words_ = (canary, canary) if isinstance(canary, str) else canary
    seen = sent.count(words_[0].encode()), received.count(words_[1].encode())
    size = f"{len(sent) + len(received)} bytes"
    if arm == "plain":
        if not all(seen):
            return False, f"the canary is not visible in {size} (compressed, or encrypted?)"
        return True, f"the canary is visible in both directions ({size})"
    if any(seen):
        return False, f"the canary is visible unencrypted: {seen[0]} times sent, {seen[1]} times received"
    shown, words = sign(sent, received)
    if not shown:
        return False, f"the canary is absent from {size}, but {words}"
    return True, f"the canary is absent; {words} in {size}"
