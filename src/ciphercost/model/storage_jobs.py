"""storage_jobs: the ways of using storage that fio measures. No logic."""

from __future__ import annotations

from typing import NamedTuple


class Job(NamedTuple):
    """One way to use storage."""

    name: str
    options: tuple[str, ...]
    latency: bool = False
    """What is told is the time of an operation, not bytes a second."""


JOBS = (
    Job("sequential_read", ("rw=read", "bs=128k")),
    Job("random_read", ("rw=randread", "bs=8k")),
    Job("sequential_write", ("rw=write", "bs=128k", "end_fsync=1")),
    Job("random_write", ("rw=randwrite", "bs=8k", "end_fsync=1")),
    Job("fsync_latency", ("rw=write", "bs=4k", "fsync=1"), latency=True),
)
