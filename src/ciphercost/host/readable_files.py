"""readable_files: while a run is going on, the user whom servers run as can read what it makes for them, whatever umask root has."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

from ciphercost.host.run_ownership import server_user

OTHERS = 0o055
"""Reading, and entering a directory, for the group and others."""

_lock = threading.Lock()
_within = 0
_before = 0


@contextlib.contextmanager
def readable_files() -> Iterator[None]:
    """Meanwhile, new files and directories are readable if servers run as another user. May be entered again, by any thread.

    As under the umask 022. Keys, passwords, data and the run's directory have modes of their own, which a umask does not widen.
    """
    global _within, _before
    if server_user() is None:
        yield
        return
    with _lock:
        if not _within:
            _before = os.umask(0o077)
            os.umask(_before & ~OTHERS)
        _within += 1
    try:
        yield
    finally:
        with _lock:
            _within -= 1
            if not _within:
                os.umask(_before)


def own_umask() -> int:
    """The umask that this process was started with, for commands of the user's; −1, which `subprocess` takes for "unchanged", if it holds."""
    with _lock:
        return _before if _within else -1
