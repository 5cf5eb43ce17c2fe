"""memory: limits the memory that a server and its client use together, with a control group that the supervisor
removes. I/O.

Linux counts anonymous memory and the page cache of the files that they read and write, but not swapped pages.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from pathlib import Path

from ciphercost.host.run_ownership import CGROUP_PREFIX, memory_parent
from ciphercost.host.supervisor import Supervisor
from ciphercost.model.errors import UsageError


def check(where: str) -> None:
    """Raises UsageError if no limit can be set. `where`: the option that requests one."""
    if memory_parent() is None:
        raise UsageError(
            f"{where}: no control group with a memory limit can be made here. Run as root, in a container with its "
            "own writable control groups, or under `systemd-run --user --scope -p Delegate=yes`; or leave the "
            "option out"
        )


@contextlib.contextmanager
def limited(supervisor: Supervisor, limit: int) -> Iterator[tuple[Path, ...]]:
    """A control group of `limit` bytes in which the supervisor starts everything meanwhile; none if `limit` is 0.
    Raises RunError, UsageError.

    Any other process to be limited enters the yielded groups by itself.
    """
    if not limit:
        yield ()
        return
    check(f"a memory limit of {limit / 1e9:.3g} GB")
    parent_and_file = memory_parent()
    assert parent_and_file is not None
    parent, file = parent_and_file
    group = parent / f"{CGROUP_PREFIX}{supervisor.run_id}-memory-{secrets.token_hex(4)}"
    with supervisor.within(group, {file: str(limit)}):
        yield (group,)
