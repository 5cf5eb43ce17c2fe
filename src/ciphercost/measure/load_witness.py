"""load_witness: what the load itself shows about encryption.

That is: resumed handshakes, early requests, and values that the agent encrypted.
"""

from __future__ import annotations

from collections.abc import Callable

from ciphercost.model.constrained_types import EARLY
from ciphercost.model.errors import Unproven
from ciphercost.model.facts import CellFacts
from ciphercost.model.slices import AgentSlice
from ciphercost.model.spec import ARMS, Arm
from ciphercost.provision.server_pair import ServerPair


def count_handshakes(facts: CellFacts, pair: ServerPair, wake: Callable[[Arm], None]) -> None:
    """Add the handshakes since the last call, from the server's log, to the facts. Raises Unproven if one was resumed although
    resumption is off.

    `wake`: lets an arm's server run, which may be stopped and then would not answer.
    """
    by_server: dict[int, list[Arm]] = {}
    for arm in ARMS:
        if pair.side(arm) == "encrypted":
            by_server.setdefault(id(pair.by_arm[arm]), []).append(arm)
    for arms in by_server.values():
        wake(arms[0])
        full, resumed = pair.by_arm[arms[0]].handshakes()
        if full or resumed:
            known = facts.handshakes
            facts.handshakes = {"full": known.get("full", 0) + full, "resumed": known.get("resumed", 0) + resumed}
        if resumed and all(pair.asked_for[arm].get("resumption") == "off" for arm in arms):
            raise Unproven(
                f"server witness, under load: the server's log shows {resumed} of {full + resumed} handshakes "
                "resumed, although resumption is off"
            )


class Seen:
    """What the answers to a session's slices show about encryption."""

    def __init__(self) -> None:
        self.sealed: dict[Arm, int] = dict.fromkeys(ARMS, 0)
        """Values that the agent encrypted or decrypted."""
        self.connects: dict[Arm, int] = dict.fromkeys(ARMS, 0)
        self.early: dict[Arm, int] = dict.fromkeys(ARMS, 0)
        """Connections that an arm opened, and on how many the server took the first request early (0-RTT)."""

    def add(self, arm: Arm, answer: AgentSlice) -> None:
        self.sealed[arm] += answer.sealed + answer.opened
        self.connects[arm] += answer.connects
        self.early[arm] += answer.early


def check_early(pair: ServerPair, seen: Seen) -> None:
    """If requests are to go before the handshake is complete (0-RTT): check that the server took them. Raises Unproven."""
    for arm in ARMS:
        asked = pair.side(arm) == "encrypted" and pair.asked_for[arm].get("resumption") == EARLY
        if asked and seen.connects[arm] and not seen.early[arm]:
            raise Unproven(
                f"client witness, {arm} arm, under load: on none of {seen.connects[arm]} connections did the server take the first request "
                f"before the handshake was complete, although resumption is {EARLY}"
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
