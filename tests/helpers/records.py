"""Recorded runs of real servers, for tests of what is made from a run: `tests/records`.

Made with `ciphercost run TARGET … -o RUN` and `ciphercost book RUN --pack`.
"""

from __future__ import annotations

from pathlib import Path

from ciphercost.runs import archive

RECORDS = Path(__file__).parents[1] / "records"


def unpacked(name: str, into: Path) -> Path:
    """The directory of a run."""
    return archive.unpack(RECORDS / f"{name}.tar.xz", into)
