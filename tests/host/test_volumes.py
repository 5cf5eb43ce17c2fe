"""volumes: mounts are removed whichever process is killed; where files are on a disk, and what is below them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from ciphercost.host import journal, leftovers, mounts, run_ownership, supervisor, volumes
from ciphercost.host.journal import Entry
from ciphercost.host.supervisor import Supervisor
from ciphercost.host.volumes import image, policy, raw, stack
from ciphercost.host.volumes.raw import Segment
from ciphercost.model import run_directory
from ciphercost.model.errors import RunError
from conftest import Require, RequirePossible
from processes import wait_for
from resting import CANARY, check_nothing_is_left, left_of, mountable

CONTROLLER = """
import sys
from ciphercost import engines
from ciphercost.host import supervisor
from ciphercost import mechanisms
from ciphercost.engines import Installation
from ciphercost.mechanisms._rest import AtRestContext
name, run_id, *given = sys.argv[1:]
run_supervisor = supervisor.Supervisor(run_id)
scratch = supervisor.scratch(run_id, run_supervisor)
mechanism = mechanisms.get(name)
factors = mechanism.check(dict(word.split("=") for word in given))
rest = AtRestContext(engines.get("sqlite"), Installation("sqlite", "", "library", ""), factors, scratch / "secrets", run_supervisor)
with mechanism.volume("plain", scratch / "plain", rest, 1 << 20), mechanism.volume("encrypted", scratch / "encrypted", rest, 1 << 20):
    print(run_supervisor.pid, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("name", ["fscrypt", "gocryptfs"])
@pytest.mark.parametrize("supervised", [True, False])
@pytest.mark.usefixtures("alone")
def test_nothing_stays_mounted_whichever_process_is_killed(
    name: str, supervised: bool, require_possible: RequirePossible
) -> None:
    """Kill the controller only: its supervisor undoes it. Kill both at once: `ciphercost clean` does."""
    require_possible(partial(mountable, name))
    run_id = run_directory.new_id()
    given = ["scrypt=10"] if name == "gocryptfs" else []
    argv = [sys.executable, "-c", CONTROLLER, name, run_id, *given]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as controller:
        assert controller.stdout is not None
        supervisor_pid = int(controller.stdout.readline())
        assert len(left_of(run_id)) == (4 if name == "fscrypt" else 2)
        assert [leftover for leftover in leftovers.leftovers() if run_id in str(leftover)] == []
        if not supervised:
            os.kill(supervisor_pid, signal.SIGSTOP)  # so that it can't begin to undo
        controller.send_signal(signal.SIGKILL)
        controller.wait()
        if not supervised:
            os.kill(supervisor_pid, signal.SIGKILL)
    wait_for("the supervisor to end", lambda: run_ownership.start_time(supervisor_pid) == "")
    if not supervised:
        assert left_of(run_id) != []
        remains = [leftover for leftover in leftovers.leftovers() if run_id in str(leftover)]
        assert {"mount", "directory"} <= {leftover.kind for leftover in remains}
        assert leftovers.remove(remains) == []
    check_nothing_is_left(run_id)
    assert not (run_ownership.scratch_base() / run_id).exists()
    assert [leftover for leftover in leftovers.leftovers() if run_id in str(leftover)] == []


def test_finds_what_a_killed_run_made_in_the_users_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIPHERCOST_SCRATCH", str(tmp_path / "scratch"))
    dead = tmp_path / "scratch" / "dead-run"
    dead.mkdir(parents=True)
    (dead / run_ownership.OWNER_FILE).write_text("1:1:another-boot:1\n")
    ours, innocent = tmp_path / "ciphercost-dead-run-ab12", tmp_path / "innocent"
    (ours / "cluster").mkdir(parents=True)
    innocent.mkdir()
    for place in (ours, innocent, tmp_path / "ciphercost-other-run-1"):
        journal.add(dead / journal.FILE, Entry("directory", str(place)))
    remains = leftovers.leftovers()
    assert {leftover.what for leftover in remains if leftover.run == "dead-run"} == {str(dead), str(ours)}
    assert leftovers.remove([leftover for leftover in remains if leftover.run == "dead-run"]) == []
    assert not ours.exists()
    assert innocent.exists()


@pytest.fixture
def run_supervisor() -> Iterator[tuple[Supervisor, Path]]:
    run_id = run_directory.new_id()
    with Supervisor(run_id) as run_supervisor:
        yield run_supervisor, supervisor.scratch(run_id, run_supervisor)
    assert run_supervisor.problems == []
    check_nothing_is_left(run_id)


def test_the_blocks_of_a_file_are_read_below_the_policy(
    run_supervisor: tuple[Supervisor, Path], require_possible: RequirePossible
) -> None:
    require_possible(partial(mountable, "fscrypt"))
    supervisor, scratch = run_supervisor
    seen = {}
    with image.mounted(supervisor, scratch / "m", 1 << 20):
        for name in ("plain", "encrypted"):
            directory = scratch / "m" / name
            directory.mkdir()
            if name == "encrypted":
                mode = policy.MODES["aes-256-xts"]
                policy.make(directory, mode, policy.add_key(scratch / "m", os.urandom(policy.KEY_BYTES)))
            path = directory / "file"
            path.write_bytes(CANARY.encode() * 10000)
            volumes.sync(directory)
            for content in ("first", "second"):  # the second content must not come from the device's cache of the first
                path.write_bytes(f"{content} {CANARY}".encode() * 10000)
                volumes.sync(directory)
                target = scratch / "blocks"
                written = raw.copy(iter([path]), stack.of(directory).device, target)
                assert written >= path.stat().st_size
                seen[name, content] = target.read_bytes().count(f"{content} {CANARY}".encode())
    assert seen["plain", "first"] == seen["plain", "second"] == 10000
    assert seen["encrypted", "first"] == seen["encrypted", "second"] == 0


def test_device_mapper_tables_show_where_bytes_are_below() -> None:
    crypt = "0 1000 crypt aes-xts-plain64 :64:logon:cryptsetup:key 0 259:2 32768 1 allow_discards\n"
    lower = os.makedev(259, 2)
    assert raw.parse_table(crypt) == [Segment(0, 512000, lower, 32768 * 512)]
    linear = "0 8 linear 254:0 2048\n8 8 linear 254:0 4096\n"
    upper, middle = os.makedev(254, 1), os.makedev(254, 0)
    tables = {
        upper: raw.parse_table(linear),
        middle: raw.parse_table("0 100000 crypt aes-xts-plain64 - 0 8:2 16 0\n"),
    }
    bottom = os.makedev(8, 2)
    assert list(raw.below(upper, tables, 2048, 4096)) == [
        (bottom, (2048 + 4 + 16) * 512, 2048),
        (bottom, (4096 + 16) * 512, 2048),
    ]
    assert list(raw.below(bottom, tables, 7, 9)) == [(bottom, 7, 9)]
    with pytest.raises(RunError, match="does not cover all blocks"):
        list(raw.below(upper, tables, 16 * 512, 512))
    with pytest.raises(RunError, match="striped"):
        raw.parse_table("0 8 striped 2 128 8:1 0 8:2 0\n")


def test_a_file_system_that_does_not_report_extents_is_an_error(tmp_path: Path, require: Require) -> None:
    place = Path("/dev/shm")
    require(place.is_dir() and os.access(place, os.W_OK), "no tmpfs here")
    path = place / f"ciphercost-test-{run_directory.new_id()}"
    path.write_bytes(b"something")
    try:
        with pytest.raises(RunError, match="does not report where"):
            list(raw.extents(path))
    finally:
        path.unlink()


def test_mounts_with_odd_names_are_parsed_correctly(
    run_supervisor: tuple[Supervisor, Path], require_possible: RequirePossible
) -> None:
    require_possible(partial(mountable, "fscrypt"))
    supervisor, scratch = run_supervisor
    place = scratch / "a b\\c ü"
    with image.mounted(supervisor, place, 1 << 20) as file:
        assert mounts.is_mounted(place)
        assert mounts.mount_of(place / "lost+found").point == str(place)
        assert image.backing(place.stat().st_dev) == str(file)
        assert str(stack.of(place)).startswith("ext4 on loop device of ")
    assert not mounts.is_mounted(place)


@pytest.mark.parametrize(
    ("mechanism", "mebibytes"),
    [("fscrypt", 300), ("fscrypt", 700), ("gocryptfs", 420)],
    ids=["load", "image", "session"],
)
def test_a_full_disk_is_a_clear_error_and_leaves_nothing(
    mechanism: str, mebibytes: int, tmp_path: Path, require_possible: RequirePossible, require_postgresql: object
) -> None:
    """Scratch is on a small image, which fills up while data is loaded, when the arms' images are made, or when data is
    copied.
    """
    require_possible(partial(mountable, "fscrypt"))
    require_possible(partial(mountable, mechanism))
    run_id = run_directory.new_id()
    with Supervisor(run_id) as run_supervisor:
        scratch = supervisor.scratch(run_id, run_supervisor)
        file, disk = scratch / "disk.ext4", scratch / "disk"
        disk.mkdir(mode=0o755)
        with file.open("xb") as opened:
            opened.truncate(mebibytes << 20)
        run_supervisor.run(["mkfs.ext4", "-q", "-m", "0", file])
        with image.attached(run_supervisor, file, disk):
            base = disk / "scratch"
            env = {**os.environ, "CIPHERCOST_SCRATCH": str(base)}
            arguments = [
                "run",
                f"postgresql:{mechanism}",
                "--workload",
                "tpcb",
                "--quick",
                "--time",
                "4s",
                "--no-latency",
            ]
            command = [sys.executable, "-m", "ciphercost", *arguments, "--set", "scale=10"]
            done = subprocess.run(
                command, capture_output=True, text=True, cwd=tmp_path, env=env, timeout=240, check=False
            )
            output = " ".join((done.stdout + done.stderr).split())
            assert done.returncode == 1, output
            assert any(words in output for words in ("disk full", "No space left on device", "no room for")), output
            assert "CIPHERCOST_SCRATCH" in output, output
            assert "Traceback" not in output
            assert "operations per second" not in done.stdout
            assert [line for line in Path("/proc/mounts").read_text().splitlines() if f"{base}/" in line] == []
            assert list(base.iterdir()) == []
    assert run_supervisor.problems == []
    check_nothing_is_left(run_id)
