"""pause: stops the server whose arm is not being measured, so that each arm pays for its own checkpoints, purges and
vacuum. I/O by signals.

A stopped process uses no CPU and starts no I/O; what it had handed to the kernel is still written. This uses SIGSTOP
rather than the control group's freezer, because it needs no rights over control groups and a stopped process can be
killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from ciphercost.engines import Server
from ciphercost.host.procfs import tree
from ciphercost.model.spec import Arm

ROUNDS = 3
"""A server may start a process between being listed and being stopped, so repeat."""


class Pause:
    """Two servers of which at most one runs. Does nothing if one serves both arms, or if none is visible."""

    def __init__(self, by_arm: Mapping[Arm, Server], replicas: Mapping[Arm, Server] = MappingProxyType({})) -> None:
        """`replicas`: of each arm's server, which are paused with it."""
        self._by_arm = by_arm
        self._replicas = replicas
        self._stopped: dict[Arm, set[int]] = {}

    @property
    def _roots(self) -> dict[Arm, int]:
        """The server of each arm as it is now: it may have been restarted."""
        roots = {arm: server.pid for arm, server in self._by_arm.items()}
        return roots if all(roots.values()) and len(set(roots.values())) == 2 else {}

    def only(self, arm: Arm) -> None:
        """Let only this arm's server run."""
        for other in self._roots:
            if other == arm:
                self._go(other)
            else:
                self._halt(other)

    def none(self) -> None:
        """Stop both: another cell is being measured."""
        for arm in self._roots:
            self._halt(arm)

    def close(self) -> None:
        """Let both run."""
        for arm in self._roots:
            self._go(arm)

    def _halt(self, arm: Arm) -> None:
        stopped = self._stopped.setdefault(arm, set())
        for _ in range(ROUNDS):
            new = set(self._tree(arm)) - stopped
            if not new:
                break
            signal_all(new, signal.SIGSTOP)
            stopped |= new

    def _go(self, arm: Arm) -> None:
        # Signal all, even if this object has stopped none: cells that share a server stop it for each other.
        signal_all(self._stopped.pop(arm, set()) | set(self._tree(arm)), signal.SIGCONT)

    def _tree(self, arm: Arm) -> list[int]:
        replica = self._replicas.get(arm)
        return tree(self._roots[arm]) + (tree(replica.pid) if replica else [])


def signal_all(pids: Iterable[int], number: int) -> None:
    """Send a signal to those of these processes that still exist."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
