"""Predicts the cost of TLS over a link from its round-trip time and bandwidth, the protocol's round trips, and the bytes. Pure.

The prediction leaves out CPU on purpose: if it agrees with the measurement, the link explains the whole cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ciphercost.model.spec import CellSpec
from ciphercost.plan import conditions

HANDSHAKE = {"TLSv1.3": 1, "TLSv1.2": 2, "TLSv1.1": 2, "TLSv1": 2}
"""Round trips of a full handshake (RFC 8446, section 2; RFC 5246, section 7.3)."""
RESUMED = 1
FIRST_SHARES = frozenset({"X25519", "X25519MLKEM768"})
"""Groups for which the agent sends a key share at once. A server that wants another group needs one more round trip (RFC 8446, 4.1.4)."""
HEADERS = 66
"""Bytes of a segment that are not payload: Ethernet 14, IPv4 20, TCP with timestamps 32."""
FULL = 0.8
"""Share of the bandwidth above which the plain arm fills the link, so that bytes alone decide."""


def round_trips(encryption: Mapping[str, str], group_asked: str, negotiation: int, resumed: float = 0.0) -> float:
    """Round trips that TLS adds to opening a connection. `negotiation`: those of the database's protocol before TLS begins.

    `encryption`: protocol and group as in the result; `group_asked`: the only group offered, or ''; `resumed`: share of connections
    that resume a session. 0 if the protocol is unknown.
    """
    protocol = encryption.get("protocol", "")
    if protocol not in HANDSHAKE:
        return 0.0
    # Resumption also needs a key share (psk_dhe_ke), so it does not save this round trip.
    retried = protocol == "TLSv1.3" and not group_asked and encryption.get("group", "") not in FIRST_SHARES
    return negotiation + resumed * RESUMED + (1 - resumed) * HANDSHAKE[protocol] + retried


def predict(cell: CellSpec, trips: float, clients: int, arms: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """The cost of TLS per operation from the link alone; {} for a cell without --delay and --bandwidth,
    and for a link that loses packets.

    `trips`: added to each connection; `arms`: as in the result. Keys: `round_trips` and `added_ms` per operation;
    `throughput`: encrypted ÷ plain, in a closed loop.
    """
    plain, encrypted = arms.get("plain", {}), arms.get("encrypted", {})
    if (
        cell.loss
        or not (cell.delay or cell.bandwidth)
        or not plain.get("throughput")
        or not encrypted.get("operations")
    ):
        return {}
    each_way = conditions.bits_per_second(cell.bandwidth) if cell.bandwidth else float("inf")
    # Either every operation opens a connection or none does; at a slice's edges the counts may differ by one.
    added_trips = trips if encrypted.get("connects", 0) > encrypted["operations"] / 2 else 0.0
    seconds = {name: bytes_on_link(arm) * 8 / each_way for name, arm in (("plain", plain), ("encrypted", encrypted))}
    round_trip = conditions.round_trip(cell.delay) if cell.delay else 0.0
    added = added_trips * round_trip + seconds["encrypted"] - seconds["plain"]
    predicted = {"round_trips": added_trips, "added_ms": added * 1e3}
    if cell.regime != "latency":
        if plain["throughput"] * seconds["plain"] >= FULL:
            predicted["throughput"] = seconds["plain"] / seconds["encrypted"]
        else:
            alone = clients / plain["throughput"]
            predicted["throughput"] = alone / (alone + added)
    return predicted


def bytes_on_link(arm: Mapping[str, Any]) -> float:
    """Bytes per operation on the link, headers included. Nearly all go in one direction, which is the one that fills.

    A slice contains few complete slow operations but the bytes of all of them, so bytes are divided by shares of operations.
    """
    shown = float(arm.get("wire_bytes_per_op", 0.0)) + HEADERS * float(arm.get("segments_per_op", 0.0))
    work = float(arm["throughput"]) * float(arm.get("seconds", 0.0))
    return shown * float(arm["operations"]) / work if work else shown
