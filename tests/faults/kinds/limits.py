"""Memory and disk speed run out in the run's control group (version 1)."""

from __future__ import annotations

import os
import time
from pathlib import Path

from faults.world import Fault, Going, World

GROUPS = Path("/sys/fs/cgroup")
SLOW = 200_000
"""Bytes per second that a slow disk writes."""
WHILE = 3.0


def grouped(controller: str, world: World) -> Path:
    """Start the run in a control group of its own."""
    group = GROUPS / controller / f"fault-{os.getpid()}-{world.rng.getrandbits(32):08x}"
    group.mkdir()
    world.stack.callback(_remove, group)
    world.group = group
    world.before = ["sh", "-c", 'echo $$ > "$1"; shift; exec "$@"', "sh", str(group / "cgroup.procs")]
    return group


def _remove(group: Path) -> None:
    for _ in range(100):
        try:
            group.rmdir()
        except OSError:
            time.sleep(0.1)
        else:
            return


def with_memory(world: World) -> None:
    grouped("memory", world)


def memory_used_up(going: Going) -> bool:
    """Leave the group half of what it uses: the kernel kills the largest process, until the rest has room."""
    group = going.world.group
    used = int((group / "memory.usage_in_bytes").read_text())
    for _ in range(20):  # the kernel refuses a limit that it can't reach by taking caches away
        used = used // 2 + (1 << 20)
        try:
            (group / "memory.limit_in_bytes").write_text(str(used))
        except OSError:
            continue
    time.sleep(WHILE)
    (group / "memory.limit_in_bytes").write_text("-1")
    return True


def on_a_disk(world: World) -> None:
    grouped("blkio", world)


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
    Fault("memory limit reached", memory_used_up, with_memory, suits=lambda _: has("memory")),
    Fault(
        "disk slow for 3 s", disk_slow, on_a_disk, suits=lambda target: has("blkio") and not target.startswith("nginx")
    ),
)
