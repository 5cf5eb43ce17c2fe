"""What the published runs could not show, computed from what was seen of them and from their repetition here. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciphercost.model.study import StudyRecord
from ciphercost.studies import in_turn
from ciphercost.studies.costs import change

if TYPE_CHECKING:
    from ciphercost.studies import Study


def findings(study: Study, record: StudyRecord) -> list[str]:
    """Findings of a few sentences each."""
    fixed = ("limits", "no-plain-arm", "key-exchange", "not-seen", "not-here")
    return [in_order(study, record), *map(study.finding, fixed)]


def in_order(study: Study, record: StudyRecord) -> str:
    text = study.finding("in-order")
    widest = in_turn.widest(record)
    if widest is not None:
        text += f" Here the fastest run of one operation and version, compared with its slowest: {change(widest, 'queries/s')}."
    return text
