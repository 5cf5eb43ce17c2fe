"""pause: of two servers, the one whose arm is not measured is stopped, with all its processes; both run afterwards."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from ciphercost.engines import Server
from ciphercost.host.procfs import tree
from ciphercost.measure.pause import Pause
from ciphercost.model.connection import Connection
from ciphercost.model.spec import Arm
from processes import wait_for

SCRIPT = "sleep 100 & sleep 100 & wait"


class Started(Server):
    def __init__(self, pid: int) -> None:
        self.pid = pid

    def connection(self) -> Connection:
        return Connection(driver="null")

    def stop(self) -> None: ...


@pytest.fixture
def pair() -> Iterator[dict[Arm, Server]]:
    with contextlib.ExitStack() as stack:
        servers: dict[Arm, Server] = {}
        for arm in ("plain", "encrypted"):
            process = stack.enter_context(subprocess.Popen(["sh", "-c", SCRIPT]))
            stack.callback(end, process.pid)
            servers[arm] = Started(process.pid)
            wait_for("three sleepers", partial(is_whole, servers[arm]))
        yield servers


def end(root: int) -> None:
    for pid in tree(root):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def is_whole(server: Server) -> bool:
    return len(tree(server.pid)) == 3 and states(server) == {"S"}


def states(server: Server) -> set[str]:
    """States of all its processes: `S`leeping, s`T`opped."""
    stats = [Path(f"/proc/{pid}/stat").read_text() for pid in tree(server.pid)]
    return {text.rpartition(")")[2].split()[0] for text in stats}


def test_only_the_current_arms_server_runs(pair: dict[Arm, Server]) -> None:
    pause = Pause(pair)
    pause.only("plain")
    wait_for("a turn", lambda: states(pair["encrypted"]) == {"T"})
    wait_for("a turn", lambda: states(pair["plain"]) == {"S"})
    pause.only("encrypted")
    wait_for("a turn", lambda: states(pair["plain"]) == {"T"} and states(pair["encrypted"]) == {"S"})
    pause.none()
    wait_for("a turn", lambda: states(pair["encrypted"]) == {"T"})
    pause.close()
    wait_for("a turn", lambda: states(pair["plain"]) == {"S"} and states(pair["encrypted"]) == {"S"})


def test_a_server_stopped_by_another_cell_runs_again(pair: dict[Arm, Server]) -> None:
    mine, other = Pause(pair), Pause(pair)
    other.none()
    mine.only("plain")
    wait_for("a turn", lambda: states(pair["plain"]) == {"S"})
    wait_for("a turn", lambda: states(pair["encrypted"]) == {"T"})


def test_one_server_for_both_arms_is_left_alone(pair: dict[Arm, Server]) -> None:
    pause = Pause({"plain": pair["plain"], "encrypted": pair["plain"]})
    pause.only("plain")
    wait_for("a turn", lambda: states(pair["plain"]) == {"S"})
