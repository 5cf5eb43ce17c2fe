"""quiet: of two servers the one whose turn it isn't stands still, with all its processes, and both run afterwards."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from ciphercost.engines import Server
from ciphercost.model import Arm
from ciphercost.quiet import Quiet
from ciphercost.sample import tree

SCRIPT = "sleep 100 & sleep 100 & wait"


class Started(Server):
    def __init__(self, pid: int) -> None:
        self.pid = pid

    def connection(self) -> dict[str, object]:
        return {}

    def stop(self) -> None: ...


@pytest.fixture
def twins() -> Iterator[dict[Arm, Server]]:
    with contextlib.ExitStack() as stack:
        made: dict[Arm, Server] = {}
        for arm in ("plain", "encrypted"):
            process = stack.enter_context(subprocess.Popen(["sh", "-c", SCRIPT]))
            stack.callback(end, process.pid)
            made[arm] = Started(process.pid)
            wait(partial(is_whole, process.pid))
        yield made


def end(root: int) -> None:
    subprocess.run(["kill", "-9", *map(str, tree(root))], check=False)


def is_whole(root: int) -> bool:
    return len(tree(root)) == 3


def wait(condition: Callable[[], bool]) -> None:
    for _ in range(500):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come about in 5 s")


def states(server: Server) -> set[str]:
    """Of all its processes: `S`leeping, s`T`opped."""
    stats = [Path(f"/proc/{pid}/stat").read_text() for pid in tree(server.pid)]
    return {text.rpartition(")")[2].split()[0] for text in stats}


def test_only_the_arm_whose_turn_it_is_runs(twins: dict[Arm, Server]) -> None:
    quiet = Quiet(twins)
    assert quiet.acts
    quiet.only("plain")
    wait(lambda: states(twins["encrypted"]) == {"T"})
    assert states(twins["plain"]) == {"S"}
    quiet.only("encrypted")
    wait(lambda: states(twins["plain"]) == {"T"} and states(twins["encrypted"]) == {"S"})
    quiet.none()
    wait(lambda: states(twins["encrypted"]) == {"T"})
    quiet.close()
    wait(lambda: states(twins["plain"]) == {"S"} and states(twins["encrypted"]) == {"S"})


def test_another_cell_that_shares_the_server_may_have_stopped_it(twins: dict[Arm, Server]) -> None:
    mine, other = Quiet(twins), Quiet(twins)
    other.none()
    mine.only("plain")
    wait(lambda: states(twins["plain"]) == {"S"})
    assert states(twins["encrypted"]) == {"T"}


def test_one_server_for_both_arms_is_left_alone(twins: dict[Arm, Server]) -> None:
    quiet = Quiet({"plain": twins["plain"], "encrypted": twins["plain"]})
    assert not quiet.acts
    quiet.only("plain")
    assert states(twins["plain"]) == {"S"}
