"""volumes: what is below a data directory: mounted images, FUSE daemons, the kernel's encryption policies, stacks of
devices.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ciphercost.host.journal import Entry
from ciphercost.host.mounts import unmounting
from ciphercost.host.supervisor import Supervisor
from ciphercost.model import system_error
from ciphercost.model.errors import RunError

CAP_SYS_ADMIN = 21
PATIENCE_SECONDS = 30.0


@contextmanager
def mounted(supervisor: Supervisor, path: Path, mount: Callable[[], object], *also: Entry) -> Iterator[None]:
    """Call `mount`, which mounts something at `path` and makes what is named in `also`; afterwards nothing is mounted
    there, even if the run is killed. Raises RunError.
    """
    undo = unmounting(path)
    # Before it is mounted, so that it is registered at every moment.
    forget = supervisor.undo(undo, *also, Entry("mount", str(path)))
    try:
        mount()
        yield
    finally:
        supervisor.run(undo)
        forget()


def may_mount() -> bool:
    effective = int(Path("/proc/self/status").read_text().partition("CapEff:")[2].split()[0], 16)
    return os.geteuid() == 0 and bool(effective >> CAP_SYS_ADMIN & 1)


def sync(path: Path) -> None:
    """Write everything of the file system that contains `path` to the layer below."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.syncfs(descriptor):
            error = ctypes.get_errno()
            reason = system_error.words(OSError(error, os.strerror(error)))
            raise RunError(f"{path} could not be synced to disk: {reason}")
    finally:
        os.close(descriptor)


def free(path: Path) -> int:
    """Bytes that unprivileged users may still write there."""
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize
