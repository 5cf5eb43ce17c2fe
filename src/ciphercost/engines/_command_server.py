"""The server that commands load: the user's, seen from outside."""

from __future__ import annotations

from pathlib import Path

from ciphercost.engines import Server
from ciphercost.engines._network import YOURS
from ciphercost.host.control_groups import members
from ciphercost.host.ports import LOOPBACK, crypto_library, sole_listener
from ciphercost.host.standing import Standing
from ciphercost.load.command_place import places
from ciphercost.model.connection import Connection

DRIVER = "command"


class CommandsServer(Server):
    """A server that the user runs, as far as its processes can be seen."""

    def __init__(self, url: str) -> None:
        self._plain, encrypted = places(url)
        numeric = [(LOOPBACK if host == "localhost" else host, port) for host, port in (self._plain, encrypted)]
        self._found(sole_listener(numeric))
        self.other_ports = {"tls": {"host": encrypted[0], "port": encrypted[1]}}

    def _found(self, pid: int) -> None:
        self.pid = pid
        self.library = crypto_library(pid) if pid else ""
        self.standing = Standing(YOURS, pid) if pid else None

    def told(self, pid: int, cgroup: Path | None) -> None:
        """Take the processes that the user named instead: the tree of one, or all of a control group."""
        if pid:
            self._found(pid)
        if cgroup:
            self.cgroups = (cgroup,)
            inside = members(cgroup)
            if self.pid not in inside:  # another process listens, as for a container's published port
                self._found(inside[0] if 0 not in inside else 0)

    def connection(self) -> Connection:
        return Connection(driver=DRIVER, host=self._plain[0], port=self._plain[1])

    def stop(self) -> None:
        """Do nothing: ciphercost did not start this server."""
