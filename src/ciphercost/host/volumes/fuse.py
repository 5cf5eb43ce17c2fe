"""fuse: a FUSE file system whose daemon ciphercost starts (gocryptfs, or one that passes files through), mounted during
a session.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ciphercost.host import go_program, mounts, tools, volumes
from ciphercost.host.journal import Entry
from ciphercost.host.supervisor import Process, Supervisor
from ciphercost.model.errors import MissingServer, RunError, UsageError

DEVICE = Path("/dev/fuse")
SOURCE = Path(__file__).with_name("passing")
LIBRARY = "golang-github-hanwen-go-fuse-dev"
HELPER = "fusermount3"
"""Root mounts without it, but the daemons call it when something is busy."""


def check_rights() -> None:
    """Raises UsageError if FUSE file systems can't be mounted."""
    if not DEVICE.exists():
        raise UsageError("this system has no FUSE (/dev/fuse): load the module fuse, or give the container that device")
    if not volumes.may_mount():
        raise UsageError("mounting for a server that runs as another user needs root (CAP_SYS_ADMIN). Run it as root.")


def fetch(*programs: str) -> None:
    """Fetch these programs and what they need. Raises MissingServer."""
    for program in (*programs, HELPER):
        tools.tool(program)


def passing(*, fetch: bool = True) -> Path:
    """The daemon that passes files through: in PATH as `ciphercost-passing`, else built from the source in this
    package.
    """
    if program := shutil.which("ciphercost-passing"):
        return Path(program)
    try:
        return go_program.go_program(SOURCE, (LIBRARY,), tools.FUSE.suite, fetch=fetch)
    except MissingServer as error:
        raise MissingServer(
            f"the plain arm's FUSE daemon can't be built: {error}\nBuild it elsewhere (go build, in {SOURCE}) and put it "
            "into PATH as 'ciphercost-passing'"
        ) from None


def environment() -> Mapping[str, str]:
    """Environment in which the daemons find their helper."""
    with contextlib.suppress(MissingServer):
        helper = tools.tool(HELPER, fetch=False).parent
        return {"PATH": os.pathsep.join([os.environ.get("PATH", os.defpath), str(helper)])}
    return {}


class Fuse:
    """A file system of one daemon, at `place`: can be mounted, unmounted and mounted again. Nothing of it outlives the
    run.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        place: Path,
        argv: Sequence[str | Path],
        kind: str,
        env: Mapping[str, str] | None = None,
        *,
        stdin: Path | None = None,
        patience: float = volumes.PATIENCE_SECONDS,
    ) -> None:
        """`kind`: what the kernel calls the file system. `stdin`: a file the daemon reads. `patience`: seconds that mounting may take."""
        self.place = place
        self.seconds = 0.0
        """Seconds that the last mounting took."""
        self._supervisor = supervisor
        self._argv = argv
        self._kind = kind
        self._env = {**environment(), **(env or {})}
        self._stdin = stdin
        self._patience = patience
        self._process: Process | None = None
        self._forget: Callable[[], None] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def said(self) -> str:
        """What the daemon has printed since it was started; empty: it was not started yet."""
        return self._process.output() if self._process else ""

    def mount(self) -> None:
        """Mount it. Raises RunError with the daemon's last output."""
        began = time.monotonic()
        # First, so that it is registered at every moment.
        self._forget = self._supervisor.undo(mounts.unmounting(self.place), Entry("mount", str(self.place)))
        self._process = self._supervisor.spawn(self._argv, cwd=self.place.parent, env=self._env, stdin=self._stdin)
        deadline = began + self._patience
        try:
            while not self.mounted():
                if (status := self._process.poll()) is not None:
                    output_end = " ".join(self._process.output().split())[-500:]
                    raise RunError(f"{self._process.name} ended with status {status}: {output_end}")
                if (kind := self._kind_mounted()) not in ("", self._kind):
                    raise RunError(
                        f"{self._process.name} mounted a file system of kind '{kind}' at {self.place}, not '{self._kind}'; "
                        f"start it with -o subtype={self._kind.removeprefix('fuse.')}"
                    )
                if time.monotonic() >= deadline:
                    raise RunError(f"{self._process.name} did not mount anything within {self._patience:g} seconds")
                time.sleep(0.005)
        except BaseException:
            self.unmount()
            raise
        self.seconds = time.monotonic() - began

    def mounted(self) -> bool:
        """Whether it is mounted and answers."""
        return self._kind_mounted() == self._kind and self.place.is_dir()

    def _kind_mounted(self) -> str:
        """Return what the kernel calls the file system that is mounted at `place`; empty: none is."""
        return next((mount.kind for mount in reversed(mounts.mounts()) if mount.point == str(self.place)), "")

    def unmount(self) -> None:
        """Unmount it; does nothing if it isn't mounted. Raises RunError if it stays mounted."""
        if self._process is None or self._forget is None:
            return
        self._supervisor.run(mounts.unmounting(self.place))
        self._forget()
        self._forget = None
        with contextlib.suppress(RunError):
            self._process.wait(5)  # it ends by itself when it is no longer mounted anywhere
        self._process.stop()
