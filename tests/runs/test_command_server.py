"""The server that a command loads, named by a control group or a systemd unit: its CPU time is that of the group."""

from __future__ import annotations

import contextlib
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ciphercost.host import control_groups
from ciphercost.host.procfs import tree
from conftest import Require, RequireServer
from test_real_command import cell_of, pgbench, refusal, run
from userservers import UserServer, user_server


@pytest.fixture(scope="module")
def server(require_server: RequireServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[UserServer]:
    require_server("postgresql")
    with user_server("postgresql", tmp_path_factory.mktemp("postgresql")) as found:
        found.pgbench("-i", "-q")
        yield found


def hierarchy() -> Path | None:
    """Where the groups are that count CPU time."""
    return next(
        (each.mount for each in control_groups.hierarchies("cpuacct") if control_groups.counts_cpu(each.mount)), None
    )


@pytest.fixture
def unit(require: Require) -> Iterator[Path]:
    """A group where systemd would have that of a service."""
    mount = hierarchy()
    place = (mount or Path("/nowhere")) / "system.slice" / f"ciphercost-{secrets.token_hex(4)}.service"
    made = not place.parent.exists()
    try:
        place.mkdir(parents=True)
    except OSError as error:
        require(None, f"no control group can be made here: {error.strerror}")
    yield place
    for pid in control_groups.members(place):
        with contextlib.suppress(OSError):
            (place.parents[1] / "cgroup.procs").write_text(str(pid))
    place.rmdir()
    if made:
        with contextlib.suppress(OSError):
            place.parent.rmdir()


def move(root: int, group: Path) -> None:
    """Put a process and what it has started into a group; what it starts later follows."""
    for pid in tree(root):
        with contextlib.suppress(ProcessLookupError):  # it has ended
            (group / "cgroup.procs").write_text(str(pid))


def cpu_us(directory: Path) -> float:
    cell = cell_of(directory)
    assert "server-not-seen" not in {warning["code"] for warning in cell["warnings"]}
    found: float = cell["arms"]["plain"]["server_cpu_us_per_op"]
    return found


@pytest.mark.parametrize("named", ["server_unit", "server_cgroup"])
def test_the_servers_cpu_time_is_that_of_its_group(server: UserServer, unit: Path, named: str, tmp_path: Path) -> None:
    move(server.server.pid, unit)
    name = {"server_unit": unit.name.removesuffix(".service"), "server_cgroup": str(unit)}[named]
    done = run(server, tmp_path, pgbench(server, "disable"), "", mechanism="none", ca=False, **{named: name})
    assert done.returncode == 0, done.stdout + done.stderr
    assert cpu_us(tmp_path) > 5


def test_only_the_group_counts(server: UserServer, unit: Path, tmp_path: Path) -> None:
    """A process that sleeps uses no CPU time, whoever listens on the port."""
    with subprocess.Popen(["sleep", "600"]) as sleeper:
        move(sleeper.pid, unit)
        named = {"server_cgroup": str(unit)}
        done = run(server, tmp_path, pgbench(server, "disable"), "", mechanism="none", ca=False, **named)
        sleeper.kill()
    assert done.returncode == 0, done.stdout + done.stderr
    assert cpu_us(tmp_path) == 0


def test_a_group_or_unit_that_is_not_there_is_named(server: UserServer, unit: Path, tmp_path: Path) -> None:
    for number, (named, words) in enumerate(
        (
            ({"server_unit": "nosuchunit"}, "--server-unit nosuchunit: "),
            ({"server_cgroup": str(tmp_path)}, "not the directory of a control group"),
            ({"server_cgroup": str(unit)}, "no process is in this control group"),
        )
    ):
        directory = tmp_path / str(number)
        directory.mkdir()
        done = run(server, directory, pgbench(server, "disable"), "", mechanism="none", ca=False, **named)
        assert words in refusal(done, directory)
