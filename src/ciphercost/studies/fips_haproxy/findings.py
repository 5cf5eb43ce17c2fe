"""What the RFC could not show, computed from its own figures and from its repetition here. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ciphercost.model.result import Cell
from ciphercost.model.study import StudyRecord
from ciphercost.studies import in_turn
from ciphercost.studies.costs import bounds, change
from ciphercost.studies.fips_haproxy import ways

if TYPE_CHECKING:
    from ciphercost.studies import Study

Ours = Mapping[str, Cell]
"""Our cells, by the name of the way to connect."""


def findings(study: Study, record: StudyRecord, ours: Ours) -> list[str]:
    """Findings of a few sentences each, with computed figures. The last says what would tell more."""
    return [
        study.finding("cost"),
        one_run(study, record),
        key_exchange(study, ours),
        *map(study.finding, ("cpu", "not-reached", "summary", "not-here", "would-tell")),
    ]


def one_run(study: Study, record: StudyRecord) -> str:
    text = study.finding("one-run")
    widest = in_turn.widest(record)
    if widest is not None:
        text += f" Here the fastest run of one mode, compared with its slowest: {change(widest, 'connections/s')}."
    return text


def key_exchange(study: Study, ours: Ours) -> str:
    """The finding, and how much the mode alone and the mode with its own key exchange cost here."""
    text = study.finding("key-exchange")
    rates = [cell.overhead.get("throughput") if (cell := ours.get(way.name)) else None for way in (ways.SAME, ways.OWN)]
    if rates[0] is None or rates[1] is None:
        return text
    alone, both = (bounds(rate.low, rate.high, "connections/s") for rate in rates if rate)
    return f"{text} Here (95 %): the mode alone {alone}; with the key exchange {both}."
