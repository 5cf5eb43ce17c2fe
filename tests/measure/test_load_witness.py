"""load_witness: a load without early requests where they are asked for ends the cell as unproven."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ciphercost.measure import load_witness
from ciphercost.measure.load_witness import Seen
from ciphercost.model.errors import Unproven
from ciphercost.model.spec import Arm
from ciphercost.provision.server_pair import ServerPair


def seen(connects: int, early: int) -> Seen:
    counts = Seen()
    counts.connects["encrypted"], counts.early["encrypted"] = connects, early
    return counts


def pair(resumption: str, other: str = "off", sides: Mapping[Arm, Arm] = {}) -> ServerPair:
    factors: dict[Arm, dict[str, str]] = {"plain": {"resumption": other}, "encrypted": {"resumption": resumption}}
    return ServerPair({}, [], "", asked_for=factors, sides=sides)


@pytest.mark.parametrize(
    ("resumption", "connects", "early"), [("0-rtt", 100, 98), ("0-rtt", 0, 0), ("tickets", 100, 0), ("off", 100, 0)]
)
def test_what_was_asked_for_passes(resumption: str, connects: int, early: int) -> None:
    load_witness.check_early(pair(resumption), seen(connects, early))


def test_no_early_request_is_unproven() -> None:
    with pytest.raises(Unproven, match="on none of 100 connections"):
        load_witness.check_early(pair("0-rtt"), seen(100, 0))


def test_of_two_encrypted_arms_each_keeps_its_own_promise() -> None:
    both: dict[Arm, Arm] = {"plain": "encrypted", "encrypted": "encrypted"}
    counts = seen(100, 98)
    counts.connects["plain"] = 100
    load_witness.check_early(pair("0-rtt", "off", both), counts)
    with pytest.raises(Unproven, match=r"plain arm, under load: .*none of 100"):
        load_witness.check_early(pair("0-rtt", "0-rtt", both), counts)
