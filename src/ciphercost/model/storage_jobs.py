"""The storage patterns that fio measures. No logic."""

from __future__ import annotations

from typing import NamedTuple


class Job(NamedTuple):
    """One storage pattern, as options of fio."""

    name: str
    options: tuple[str, ...]
    latency: bool = False
    """Report the time of an operation instead of bytes per second."""


JOBS = (
    Job("sequential_read", ("rw=read", "bs=128k")),
    Job("random_read", ("rw=randread", "bs=8k")),
    Job("sequential_write", ("rw=write", "bs=128k", "end_fsync=1")),
    Job("random_write", ("rw=randwrite", "bs=8k", "end_fsync=1")),
    Job("fsync_latency", ("rw=write", "bs=4k", "fsync=1"), latency=True),
)
