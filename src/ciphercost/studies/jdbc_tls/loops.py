"""Which statement the loop runs, in which transaction and with which cipher suite: as captured, or a loop of our own. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ciphercost.load.jdbc.options import END
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.study import StudyRecord


class Loop(NamedTuple):
    """One loop, as `--loop` names it."""

    name: str
    workload: str
    table: str
    options: Mapping[str, str]
    """Client options, as for `--set`, for any driver and call."""
    tls: Mapping[str, str]
    """Factors of `tls` in the encrypted arm."""
    first_id: int
    """First id of the empty table; 0: the server's own, 1."""
    words: str
    """Completes `a loop of N …`."""


CAPTURED = Loop(
    "captured",
    "jdbc-tls/captured",
    "words",
    {"autocommit": "false", "commit_every": END},
    {"version": "1.2", "cipher": "aes128-cbc", "verify": "require"},
    177_980,
    "inserts of one word as text, the captured statement, on one connection in one transaction",
)
"""Statement, transaction and record sizes are those of the post's debug output. The sizes fit every suite of AES-CBC with HMAC-SHA256;
AES with 128 bits and ECDHE are our choice."""
ROWS = Loop(
    "insert-loop",
    "insert-loop",
    "loop_row",
    {},
    {"version": "1.2", "verify": "require"},
    0,
    "inserts of three values, one of them 80 letters, on one connection, each committed by itself",
)
"""TLS 1.2 is the newest version that the new driver knows; Java chooses the suite."""
LOOPS = {loop.name: loop for loop in (CAPTURED, ROWS)}
FLAG = "captured"
"""Key of a record's settings: 1 if the loop is the captured one. Older records lack it."""


def get(name: str) -> Loop:
    """Return the loop with that name. Raises UsageError with the nearest name."""
    if name not in LOOPS:
        raise UsageError(f"--loop {name}: {nearest(name, LOOPS)}")
    return LOOPS[name]


def of(record: StudyRecord) -> Loop:
    """The loop of a record."""
    return CAPTURED if record.settings.get(FLAG) else ROWS
