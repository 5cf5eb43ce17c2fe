"""idle_setting: reads, writes and restores the kernel's per-CPU setting of whether an idle core polls or halts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from ciphercost.model.errors import RunError

Idle = Literal["poll", "halt"]

CPUS = Path("/sys/devices/system/cpu")
NEVER = "n/a"
"""The limit under which a core polls."""


def setting(cpu: int) -> Path:
    """The file that holds a CPU's limit."""
    return CPUS / f"cpu{cpu}/power/pm_qos_resume_latency_us"


def physical(cpus: Iterable[int]) -> dict[int, str]:
    """CPU -> its physical core. CPUs with the same value share one core; a CPU with unknown topology counts as its own
    core.
    """
    return {cpu: _text(CPUS / f"cpu{cpu}/topology/thread_siblings_list") or str(cpu) for cpu in cpus}


def changed(cpu: int, was: str) -> str:
    """How a run's journal names a setting and its original value. Pure."""
    return f"cpu{cpu}={was}"


def left_behind(journal: Iterable[str]) -> Iterator[tuple[int, str]]:
    """(CPU, original value) of each setting that a dead run has changed and nobody has restored. `journal`: what
    `changed` returned for each, in order.
    """
    first: dict[int, str] = {}
    for entry in journal:
        if match := re.fullmatch(r"cpu(\d{1,5})=(\d{1,10})", entry):
            first.setdefault(int(match[1]), match[2])
    yield from ((cpu, was) for cpu, was in first.items() if _text(setting(cpu)) == NEVER)


def put_back(cpu: int, was: str) -> None:
    """Restore a setting. Raises OSError."""
    setting(cpu).write_text(was)


def _write(path: Path, value: str) -> None:
    try:
        path.write_text(value)
    except OSError as error:
        raise RunError(f"can't set {path} to {value}: {error.strerror}; measure with --idle halt") from None


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
