"""memory: a limit of the memory that a server and its client use together, by a control group that the supervisor removes. I/O.

What counts is what Linux counts: anonymous memory and the page cache of the files that they read and write, swapped pages not.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from pathlib import Path

from ciphercost.host.marks import CGROUP_PREFIX, memory_parent
from ciphercost.host.supervisor import Supervisor
from ciphercost.model.errors import UsageError


def check(where: str) -> None:
    """Raises UsageError where no limit can be set. `where`: the option that asks for one."""
    if memory_parent() is None:
        raise UsageError(
            f"{where}: no control group with a memory limit can be made here. Run as root, in a container with its own writable control "
            "groups, or under `systemd-run --user --scope -p Delegate=yes`; or leave the option out"
        )


@contextlib.contextmanager
def limited(supervisor: Supervisor, limit: int) -> Iterator[tuple[Path, ...]]:
    """A control group of `limit` bytes, into which the supervisor starts everything meanwhile; none where `limit` is 0. Raises RunError, UsageError.

    Whatever else is to be limited enters the yielded groups by itself.
    """
    if not limit:
        yield ()
        return
    check(f"a memory limit of {limit / 1e9:.3g} GB")
    found = memory_parent()
    assert found is not None
    parent, file = found
    group = parent / f"{CGROUP_PREFIX}{supervisor.run_id}-memory-{secrets.token_hex(4)}"
    with supervisor.within(group, {file: str(limit)}):
        yield (group,)
