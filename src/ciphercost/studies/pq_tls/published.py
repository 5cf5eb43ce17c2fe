"""What the publication's abstract says. Pure."""

from __future__ import annotations

from typing import cast

import msgspec

from ciphercost.model.study import Bound
from ciphercost.studies import Study

ABSTRACT = "abstract"
SOURCES = {
    ABSTRACT: 'Kampanakis and Childs-Klein, "The impact of data-heavy, post-quantum TLS 1.3 on the time-to-last-byte of real-world '
    'connections" (2024), abstract at amazon.science and at eprint.iacr.org/2024/176. Its tables were not seen'
}
"""Where it was seen, and what it holds."""


class Claim(msgspec.Struct, frozen=True):
    """Post-quantum ÷ classical time."""

    bound: Bound
    ratio: float


def claims(study: Study) -> dict[tuple[str, str], Claim]:
    """By link and file. The increase of the time to the first byte is beside that of the smallest file."""
    return {
        (row["link"], row["file"]): Claim(cast("Bound", row["bound"]), 1 + float(row["percent"]) / 100)
        for row in study.rows("claims.csv")
    }
