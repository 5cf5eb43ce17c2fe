"""load_witness: what the load itself shows about encryption: resumed handshakes, and values that the agent encrypted."""

from __future__ import annotations

from collections.abc import Mapping

from ciphercost.model.errors import Unproven
from ciphercost.model.facts import CellFacts
from ciphercost.model.spec import Arm
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


def check_sealed(pair: ServerPair, sealed: Mapping[Arm, int]) -> None:
    """If the agent itself encrypts: check that it did, under this very load, and in one arm only. Raises Unproven.

    `sealed`: values that it encrypted or decrypted in this session, by arm.
    """
    if pair.sealing is None or not pair.sealing.codec.client_side:
        return
    if sealed["plain"] or not sealed["encrypted"]:
        raise Unproven(
            f"client witness, under load: the agent encrypted or decrypted {sealed['plain']} values in the plain arm and "
            f"{sealed['encrypted']} in the encrypted arm"
        )
