"""resting: what tests of volumes share: a run's scratch and supervisor, and a word written below a volume."""

from __future__ import annotations

import contextlib
import secrets as randomness
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ciphercost import engines, mechanisms
from ciphercost.engines import StartRequest
from ciphercost.host import canary_scan, run_ownership, supervisor, tools
from ciphercost.host.installation import Installation
from ciphercost.host.supervisor import Supervisor
from ciphercost.host.volumes import fuse, image
from ciphercost.host.volumes.volume import Volume
from ciphercost.load.agent import Agent
from ciphercost.mechanisms._rest import ArmAtRest, AtRest, AtRestContext
from ciphercost.model import run_directory
from ciphercost.model.spec import Arm
from processes import wait_for

CANARY = "canary4f0c2a77d1be"
NAME = "a-name-to-be-found"
SIZE = 10 << 20


def mountable(name: str) -> None:
    """Raises CiphercostError with the reason if a volume of this name can't be made here."""
    if name == "fscrypt":
        image.check_rights()
    else:
        fuse.check_rights()
        tools.tool(name, fetch=False)
        fuse.passing(fetch=False)


@contextmanager
def resting(name: str, **factors: str) -> Iterator[tuple[AtRest, AtRestContext, Path]]:
    """A mechanism, what it may know, and a directory to mount in. Nothing may be left afterwards."""
    mechanism = mechanisms.get(name)
    assert isinstance(mechanism, AtRest)
    run_id = run_directory.new_id()
    with Supervisor(run_id) as made:
        scratch = supervisor.scratch(run_id, made)
        nothing = Installation("sqlite", "", "library", "")
        rest = AtRestContext(engines.get("sqlite"), nothing, mechanism.check(factors), scratch / "secrets", made)
        mechanism.prepare(rest)
        yield mechanism, rest, scratch
        check_nothing_is_left(run_id)
    assert made.problems == []
    assert not scratch.exists()


def left_of(run_id: str) -> list[str]:
    """Mounts and loop devices of this run."""
    return mounts_of(run_id) + loop_devices_of(run_id)


def mounts_of(run_id: str) -> list[str]:
    return [line for line in Path("/proc/mounts").read_text().splitlines() if run_id in line]


def loop_devices_of(run_id: str) -> list[str]:
    """The files below this run's loop devices."""
    backing = []
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):  # another test's, which is ending right now
            backing.append(path.read_text())
    return [file for file in backing if run_id in file]


def check_nothing_is_left(run_id: str) -> None:
    """No mount of this run is left, and its loop devices go: any process that copied the mounts meanwhile (`unshare --mount`, of
    another test) keeps one until it ends.
    """
    assert mounts_of(run_id) == []
    wait_for("the loop devices to go", lambda: loop_devices_of(run_id) == [])


def write(volume: Volume, rest: AtRestContext) -> None:
    """Write, as the user that servers run as, the data directory and in it the canary in a named file."""
    command = 'mkdir "$1" && echo "$2" > "$1/$3" && sync "$1/$3"'
    argv = ["sh", "-c", command, "sh", str(volume.path), CANARY, NAME]
    rest.supervisor.run(argv, user=run_ownership.server_user(), cwd=volume.path.parent)


def look(arm: Arm, volume: Volume, rest: AtRestContext, made: Agent) -> ArmAtRest:
    """A SQLite database there, with one table."""
    server = rest.engine.start(StartRequest(rest.installation, volume.path, rest.supervisor))
    fields = server.connection() | {"connections": 1, "threads": 1}
    name = f"look-{arm}-{randomness.token_hex(4)}"
    made.connect(name, fields)
    made.query(name, "CREATE TABLE IF NOT EXISTS t (x integer)")
    return ArmAtRest(arm, rest, volume, server, made, name, fields)


def done(seen: ArmAtRest) -> None:
    """Nothing is open any more."""
    seen.agent.disconnect(seen.name)


def found(mechanism: AtRest, volume: Volume, word: str = CANARY) -> int:
    """How often a word occurs in what the volume is stored in, file names included. At least one byte must have been
    scanned.
    """
    mechanism.flush(volume)
    files = list(canary_scan.below(volume.backing))
    seen = canary_scan.search(files, word)
    assert seen.size > 0
    return sum(seen.hits.values()) + sum(word in name for name, _ in files)


def both(mechanism: AtRest, rest: AtRestContext, scratch: Path) -> dict[Arm, tuple[int, int]]:
    """(canaries, names) readable below each arm, while both exist at once."""
    with (
        mechanism.volume("plain", scratch / "plain", rest, SIZE) as plain,
        mechanism.volume("encrypted", scratch / "encrypted", rest, SIZE) as encrypted,
    ):
        seen: dict[Arm, tuple[int, int]] = {}
        arms: dict[Arm, Volume] = {"plain": plain, "encrypted": encrypted}
        for arm, volume in arms.items():
            assert not volume.path.exists()
            write(volume, rest)
            seen[arm] = found(mechanism, volume), found(mechanism, volume, NAME)
            assert (volume.path / NAME).read_text().strip() == CANARY
        return seen
