"""A control group with a CPU quota, as a container or a systemd unit has one."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from pathlib import Path

from conftest import Require

PERIOD_US = 100_000


@contextlib.contextmanager
def limited_cpu(cores: float, require: Require) -> Iterator[Path]:
    """A group whose processes together may use so many cores. Without it a test is skipped, or fails where everything is required."""
    made = next(filter(None, (_made(Path(line.split()[1]), cores, line.split()[2]) for line in _mounts())), None)
    require(made, "no control group with a CPU quota can be made here")
    assert made is not None
    try:
        yield made
    finally:
        with contextlib.suppress(OSError):  # a test that failed may have left a process in it
            made.rmdir()


def _mounts() -> list[str]:
    lines = Path("/proc/mounts").read_text().splitlines()
    return [
        line
        for line in lines
        if line.split()[2] == "cgroup2" or (line.split()[2] == "cgroup" and "cpu" in line.split()[3].split(","))
    ]


def _made(mount: Path, cores: float, kind: str) -> Path | None:
    group = mount / f"ciphercost-test-{secrets.token_hex(4)}"
    try:
        group.mkdir()
    except OSError:
        return None
    quota = round(cores * PERIOD_US)
    try:
        if kind == "cgroup2":
            (group / "cpu.max").write_text(f"{quota} {PERIOD_US}")
        else:
            (group / "cpu.cfs_quota_us").write_text(str(quota))
    except OSError:
        group.rmdir()
        return None
    return group
