"""loops: which statement the loop runs, in which transaction, and by which cipher suite: the captured one, or one of ours. Pure."""

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
    """What `--set` says to the client, whichever driver and call."""
    tls: Mapping[str, str]
    """Factors of `tls` in the encrypted arm."""
    first_id: int
    """Of the empty table; 0: the server's own, 1."""
    words: str
    """What an insert is, for `a loop of N …`."""


CAPTURED = Loop(
    "captured",
    "jdbc-tls/captured",
    "words",
    {"autocommit": "false", "commit_every": END},
    {"version": "1.2", "cipher": "aes128-cbc", "verify": "require"},
    177_980,
    "inserts of one word as text, the captured statement, on one connection in one transaction",
)
"""Statement, transaction and record sizes are those of the post's debug output. Sizes fit every suite of AES-CBC with HMAC-SHA256;
that AES has 128 bits and keys come from ECDHE is our choice."""
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
LOOPS = {each.name: each for each in (CAPTURED, ROWS)}
FLAG = "captured"
"""In a record's settings: 1 where the loop is the captured one. Older records do not have it."""


def get(name: str) -> Loop:
    """The loop of that name. Raises UsageError with the nearest name."""
    if name not in LOOPS:
        raise UsageError(f"--loop {name}: {nearest(name, LOOPS)}")
    return LOOPS[name]


def of(record: StudyRecord) -> Loop:
    """The loop that a record was made by."""
    return CAPTURED if record.settings.get(FLAG) else ROWS
