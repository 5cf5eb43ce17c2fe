"""load_witness: a load without early requests where they are asked for ends the cell as unproven."""

from __future__ import annotations

import pytest

from ciphercost.measure import load_witness
from ciphercost.measure.load_witness import Seen
from ciphercost.model.errors import Unproven
from ciphercost.model.facts import CellFacts
from ciphercost.model.spec import CellSpec


def seen(connects: int, early: int) -> Seen:
    made = Seen()
    made.connects, made.early = connects, early
    return made


def facts(resumption: str) -> CellFacts:
    return CellFacts(spec=CellSpec("caddy", "tls"), factors={"resumption": resumption})


@pytest.mark.parametrize(
    ("resumption", "connects", "early"), [("0-rtt", 100, 98), ("0-rtt", 0, 0), ("tickets", 100, 0), ("off", 100, 0)]
)
def test_what_was_asked_for_passes(resumption: str, connects: int, early: int) -> None:
    load_witness.check_early(facts(resumption), seen(connects, early))


def test_no_early_request_is_unproven() -> None:
    with pytest.raises(Unproven, match="on none of 100 connections"):
        load_witness.check_early(facts("0-rtt"), seen(100, 0))
