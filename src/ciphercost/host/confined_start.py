# Importing pathlib would double the time that it takes to start.
# ruff: noqa: PTH100, PTH120, PTH123
"""confined_start: becomes a program that is confined and can't outlive the process that started it. Standard library only.

Started as `python -I -S confined_start.py WANTED PROGRAM [ARGUMENT…]`. WANTED is a JSON object (see `Wanted`). Whatever fails is
written, as one line of text, to the descriptor `errors`, which is closed when the program runs.

A process of its own does this because the controller would have to fork for it. A fork copies the page tables of a process that may be
large (0.1 s of CPU for half a gigabyte, measured on an AMD EPYC), and runs Python where other threads may hold locks.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn, TypedDict

CLONE_NEWNET = 0x40000000

if TYPE_CHECKING:
    from ciphercost.host import confinement
elif __name__ == "__main__":
    # A file beside this one: `python -I` does not look for it, and the package would take long to import.
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import confinement

    sys.path.pop()
else:
    from ciphercost.host import confinement

_libc = ctypes.CDLL(None, use_errno=True)


class Wanted(TypedDict):
    """What the program is to be."""

    parent: int
    """The process with which it ends."""
    groups: list[str]
    """`cgroup.procs` of the control groups that it is in."""
    netns: str
    """The file of its network namespace; empty: its parent's."""
    cpus: list[int]
    """The CPUs that it may use; empty: all."""
    errors: int
    """The descriptor for what fails."""


def command(wanted: Wanted, argv: Sequence[str]) -> list[str]:
    """The command that becomes `argv`."""
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), json.dumps(wanted), *argv]


def enter(netns: str) -> None:
    """Move this thread into a network namespace. Raises OSError."""
    descriptor = os.open(netns, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _libc.setns(descriptor, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), netns)
    finally:
        os.close(descriptor)


def become(wanted: Wanted, argv: list[str]) -> NoReturn:
    """Replace this process by the program. Raises OSError."""
    confinement.end_with(wanted["parent"])
    for group in wanted["groups"]:
        with open(group, "w", encoding="ascii") as file:
            file.write(str(os.getpid()))
    if wanted["netns"]:
        enter(wanted["netns"])
    if wanted["cpus"]:
        os.sched_setaffinity(0, wanted["cpus"])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump would hold the password
    confinement.enforce(confinement.agents())
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores these two, and the program would too
        signal.signal(number, signal.SIG_DFL)
    os.execv(argv[0], argv)  # noqa: S606


def main() -> None:
    wanted: Wanted = json.loads(sys.argv[1])
    os.set_inheritable(wanted["errors"], False)
    try:
        become(wanted, sys.argv[2:])
    except OSError as error:
        name = f": {error.filename}" if error.filename else ""
        os.write(wanted["errors"], f"{error.strerror or error}{name}".encode())
        os._exit(127)


if __name__ == "__main__":
    main()
