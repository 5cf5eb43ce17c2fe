"""After a power cut at any moment of a run, `ciphercost clean` removes everything that the disk still has of it.

The disk is a loop device. FS_IOC_SHUTDOWN ends its file system at once, without writing what is only in memory, as a power cut
does. The next mount replays the file system's own journal.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

import wrecks
from ciphercost.host import run_ownership, volumes
from ciphercost.host.supervisor import Supervisor
from ciphercost.host.volumes import image, policy
from ciphercost.model import run_directory
from conftest import RequirePossible
from directories import let_through
from processes import marked, wait_for

SHUTDOWN, WITHOUT_FLUSH = 0x8004587D, struct.pack("I", 2)
"""FS_IOC_SHUTDOWN, and FS_GOING_FLAGS_NOLOGFLUSH: neither data nor the file system's journal is written."""
SIZE = 300 << 20
BEGUN: dict[str, Callable[[Disks, Path], bool]] = {
    "its scratch directory exists": lambda disks, _: any(disks.scratch.glob("2*")),
    "it has made a directory of yours": lambda disks, _: any(disks.plain.iterdir()),
    "it has made both": lambda disks, _: any(disks.encrypted.iterdir()),
    "load is running": lambda _, record: (
        (record / "slices.jsonl").exists() and bool((record / "slices.jsonl").stat().st_size)
    ),
}


class Disks(NamedTuple):
    """Two disks: a plain one with scratch and a directory of the user's, and one with an encrypted directory."""

    images: dict[Path, Path]
    """Where each is mounted, and its image."""
    scratch: Path
    plain: Path
    encrypted: Path
    key: bytes

    def content(self) -> list[Path]:
        return [path for directory in (self.scratch, self.plain, self.encrypted) for path in directory.iterdir()]


@contextlib.contextmanager
def small(run_supervisor: Supervisor, place: Path) -> Iterator[Path]:
    """A file system of some hundred megabytes, since a run searches all of it."""
    file = place.with_suffix(".ext4")
    with file.open("xb") as new:
        new.truncate(SIZE)
    run_supervisor.run(["mkfs.ext4", "-q", "-F", *image.OPTIONS, file])
    place.mkdir()
    with image.attached(run_supervisor, file, place):
        yield file


@contextlib.contextmanager
def two_disks(run_supervisor: Supervisor, place: Path) -> Iterator[Disks]:
    one, two = place / "one", place / "two"
    with small(run_supervisor, one) as first, small(run_supervisor, two) as second:
        disks = Disks(
            {one: first, two: second}, one / "scratch", one / "plain", two / "encrypted", os.urandom(policy.KEY_BYTES)
        )
        disks.scratch.mkdir()
        disks.scratch.chmod(0o711)
        for directory in (disks.plain, disks.encrypted):
            directory.mkdir()
        policy.make(disks.encrypted, policy.MODES["aes-256-xts"], policy.add_key(two, disks.key))
        for directory in (disks.plain, disks.encrypted):
            directory.chmod(0o777)
        for disk in (one, two):
            volumes.sync(disk)
        yield disks


def cut_power(disk: Path) -> None:
    within = os.open(disk, os.O_RDONLY)
    try:
        fcntl.ioctl(within, SHUTDOWN, WITHOUT_FLUSH)
    finally:
        os.close(within)


@pytest.mark.parametrize("moment", BEGUN)
def test_clean_removes_what_is_on_the_disk_after_a_power_cut(
    tmp_path: Path, require_possible: RequirePossible, moment: str
) -> None:
    require_possible(image.check_rights)
    cli, record = Path(sys.executable).parent / "ciphercost", tmp_path / "record"
    let_through(tmp_path)
    with (
        Supervisor(run_directory.new_id()) as run_supervisor,
        two_disks(run_supervisor, tmp_path) as disks,
        contextlib.ExitStack() as cleaned,
    ):
        env = {**os.environ, "CIPHERCOST_SCRATCH": str(disks.scratch)}
        clean = partial(subprocess.run, [cli, "clean"], env=env, capture_output=True, text=True, check=False)
        where = ["--set", f"plain={disks.plain}", "--set", f"encrypted={disks.encrypted}"]
        argv: list[str | Path] = [
            cli,
            "run",
            "sqlite:path",
            *where,
            "--quick",
            "--time",
            "60s",
            "--rows",
            "1000",
            "-o",
            record,
        ]
        with (
            subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run,
            contextlib.ExitStack() as ended,
        ):
            ended.callback(run.kill)
            wait_for(moment, lambda: BEGUN[moment](disks, record) or run.poll() is not None, patience=300)
            run.send_signal(signal.SIGSTOP)  # so that the moment does not pass while other tests clean
            cleaned.enter_context(wrecks.alone())
            assert run.poll() is None, run.communicate()[0]
            run_id = run_directory.read_facts(record).id
            supervisors = [pid for pid in marked(run_id) if b"supervisor_process" in command(pid)]
            assert supervisors
            for pid in supervisors:
                os.kill(pid, signal.SIGSTOP)
            for disk in disks.images:
                cut_power(disk)
            run.kill()
            for pid in supervisors:
                os.kill(pid, signal.SIGKILL)
        wait_for("every process of the run to end", lambda: not marked(run_id))
        for disk, file in disks.images.items():
            subprocess.run(["umount", disk], check=True)
            subprocess.run(["mount", "-o", "loop", file, disk], check=True)
        # Scratch alone may be lost with the power. Before anything of yours is touched, it is on disk.
        kept = [path.name for path in disks.scratch.iterdir()]
        assert kept == [run_id] or (kept == [] and disks.content() == [])
        done = clean()
        if done.returncode:  # what is in the encrypted directory can't be seen without its key
            assert "is not mounted or is locked" in done.stdout
            assert [path.name for path in disks.scratch.iterdir()] == [run_id]
            policy.add_key(disks.encrypted.parent, disks.key)
            done = clean()
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
        assert disks.content() == []
    assert not [
        parent
        for parent in run_ownership.cgroup_parents()
        for _ in parent.glob(f"{run_ownership.CGROUP_PREFIX}{run_id}*")
    ]


def command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
