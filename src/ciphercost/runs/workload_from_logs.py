"""`ciphercost workload`: read logs, find their traffic, and write it as a workload. I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ciphercost.load.workloads import Workload
from ciphercost.model.traffic import Traffic


def read(
    files: Sequence[Path],
    *,
    keep_paths: bool = False,
    writes: bool = False,
    format_: str = "",
    shows: Callable[[float], None] | None = None,
) -> tuple[Traffic, Workload]:
    """Read logs of one kind. `shows` is called now and then with the share of their bytes that is read.

    Returns what was found and the workload that repeats it. Raises UsageError if no line has a known format.
    """
    raise NotImplementedError
