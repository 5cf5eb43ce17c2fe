"""Wrecks: what tests leave of runs that they kill. `ciphercost clean` removes those of the whole machine, so also other workers'."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

LOCK = Path(f"/var/tmp/ciphercost-wrecks-{os.geteuid()}.lock")


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Meanwhile no other test on this machine makes a wreck or removes what it finds. Hold it shortly, and not twice."""
    lock = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        fcntl.flock(lock, fcntl.LOCK_UN)  # a forked process may have it open too
        os.close(lock)
