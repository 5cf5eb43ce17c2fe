"""Memory and disk speed run out in the run's control group (version 1)."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import processes
from faults.world import Fault, Going, World

GROUPS = Path("/sys/fs/cgroup")
SLOW = 200_000
"""Bytes per second that a slow disk writes."""
WHILE = 3.0
HOG = 1 << 30
"""Most bytes that the hog takes."""
TAKE = """
import pathlib, sys, time
pathlib.Path(sys.argv[1]).write_text("0")
until, taken = time.monotonic() + float(sys.argv[3]), []
while time.monotonic() < until:
    if len(taken) << 20 < int(sys.argv[2]):
        taken.append(b"x" * (1 << 20))
    else:
        time.sleep(0.01)
"""


def grouped(controller: str, world: World) -> None:
    """Start the run in a control group of its own."""
    group = GROUPS / controller / f"fault-{os.getpid()}-{world.rng.getrandbits(32):08x}"
    group.mkdir()
    world.stack.callback(_remove, group)
    world.group = group
    world.before = ["sh", "-c", 'echo $$ > "$1"; shift; exec "$@"', "sh", str(group / "cgroup.procs")]


def _remove(group: Path) -> None:
    processes.wait_for("the last process of the group to end", lambda: not (group / "cgroup.procs").read_text())
    group.rmdir()


def memory_used_up(going: Going) -> bool:
    """Limit the group to what it uses, and let another process in it use more for a while: the kernel kills the run's
    processes, the largest first, until there is room.
    """
    group = going.world.group
    for pid in (group / "cgroup.procs").read_text().split():
        with contextlib.suppress(OSError):
            Path(f"/proc/{pid}/oom_score_adj").write_text("1000")
    limit = group / "memory.limit_in_bytes"
    limit.write_text((group / "memory.usage_in_bytes").read_text())
    with subprocess.Popen([sys.executable, "-c", TAKE, str(group / "cgroup.procs"), str(HOG), str(WHILE)]):
        pass
    limit.write_text("-1")
    return "oom_kill 0" not in (group / "memory.oom_control").read_text()


def disk_slow(going: Going) -> bool:
    """Throttle what the run's processes write to the disk of scratch."""
    device = Path(going.world.environment["CIPHERCOST_SCRATCH"]).stat().st_dev
    throttle = going.world.group / "blkio.throttle.write_bps_device"
    name = f"{os.major(device)}:{os.minor(device)}"
    throttle.write_text(f"{name} {SLOW}")
    time.sleep(WHILE)
    throttle.write_text(f"{name} 0")
    return True


def has(controller: str) -> bool:
    return os.geteuid() == 0 and os.access(GROUPS / controller / "cgroup.procs", os.W_OK)


FAULTS = (
    Fault("memory limit reached", memory_used_up, partial(grouped, "memory"), suits=lambda _: has("memory")),
    Fault(
        "disk slow for 3 s",
        disk_slow,
        partial(grouped, "blkio"),
        suits=lambda target: has("blkio") and not target.startswith("nginx"),
    ),
)
