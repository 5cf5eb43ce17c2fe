"""load_witness: what the load itself shows about encryption.

That is: resumed handshakes, early requests, and values that the agent encrypted.
"""

from __future__ import annotations

from ciphercost.model.constrained_types import EARLY
from ciphercost.model.errors import Unproven
from ciphercost.model.facts import CellFacts
from ciphercost.model.slices import AgentSlice
from ciphercost.model.spec import ARMS, Arm
from ciphercost.provision.server_pair import ServerPair


def count_handshakes(facts: CellFacts, pair: ServerPair) -> None:
    """Add the handshakes since the last call, from the server's log, to the facts. Raises Unproven if one was resumed although
    resumption is off.
    """
    full, resumed = pair.by_arm["encrypted"].handshakes()
    if full or resumed:
        known = facts.handshakes
        facts.handshakes = {"full": known.get("full", 0) + full, "resumed": known.get("resumed", 0) + resumed}
    if resumed and facts.factors.get("resumption") == "off":
        raise Unproven(
            f"server witness, under load: the server's log shows {resumed} of {full + resumed} handshakes "
            "resumed, although resumption is off"
        )


class Seen:
    """What the answers to a session's slices show about encryption."""

    def __init__(self) -> None:
        self.sealed: dict[Arm, int] = dict.fromkeys(ARMS, 0)
        """Values that the agent encrypted or decrypted."""
        self.connects = self.early = 0
        """Connections that the encrypted arm opened, and on how many the server took the first request early (0-RTT)."""

    def add(self, arm: Arm, answer: AgentSlice) -> None:
        self.sealed[arm] += answer.sealed + answer.opened
        if arm == "encrypted":
            self.connects += answer.connects
            self.early += answer.early


def check_early(facts: CellFacts, seen: Seen) -> None:
    """If requests are to go before the handshake is complete (0-RTT): check that the server took them. Raises Unproven."""
    if facts.factors.get("resumption") == EARLY and seen.connects and not seen.early:
        raise Unproven(
            f"client witness, under load: on none of {seen.connects} connections did the server take the first request before the "
            f"handshake was complete, although resumption is {EARLY}"
        )


def check_sealed(pair: ServerPair, seen: Seen) -> None:
    """If the agent itself encrypts: check that it did, under this very load, and in one arm only. Raises Unproven."""
    if pair.sealing is None or not pair.sealing.codec.client_side:
        return
    sealed = seen.sealed
    if sealed["plain"] or not sealed["encrypted"]:
        raise Unproven(
            f"client witness, under load: the agent encrypted or decrypted {sealed['plain']} values in the plain arm and "
            f"{sealed['encrypted']} in the encrypted arm"
        )
