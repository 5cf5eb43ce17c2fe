"""What mechanisms share that encrypt a directory by a FUSE daemon. The plain arm's daemon passes files through. Not a mechanism.

A subclass names its daemon. It creates and mounts an encrypted directory, and reads what the daemon reports about it.
"""

from __future__ import annotations

import os
import secrets as randomness
import shutil
import threading
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ciphercost.engines import Engine
from ciphercost.engines.capabilities.storage import StoresData
from ciphercost.host import mounts, run_ownership, volumes
from ciphercost.host.volumes import fuse
from ciphercost.host.volumes.fuse import Fuse
from ciphercost.host.volumes.volume import Volume
from ciphercost.mechanisms._rest import ArmAtRest, AtRest, AtRestContext, KeyState
from ciphercost.mechanisms.fscrypt import data_of
from ciphercost.model.errors import RunError
from ciphercost.model.spec import Arm

if TYPE_CHECKING:
    from ciphercost.host.installation import Installation

PASSING = "passing"
CLUSTER = "cluster"


class EncryptingDaemon(AtRest):
    """A FUSE daemon above a directory of encrypted files, with a password in a file."""

    loaded_once = True
    direct_io = False
    key_states = ("missing", "wrong")
    daemon: str
    """Name of its program in `host/tools.py`. The kernel must call the file system `fuse.` plus this name; some daemons need
    `-o subtype=NAME` for that. The mount's source must be the encrypted directory (`-o fsname=DIRECTORY`), else override `source_of`.
    """
    wrong_password: str
    """What the daemon prints, in lower case, if the password is wrong."""

    def __init__(self) -> None:
        self._mounts: dict[Path, Fuse] = {}
        """The present mounts, by mount point."""
        self._lock = threading.Lock()

    @abstractmethod
    def make(self, below: Path, password: Path, rest: AtRestContext) -> None:
        """Create an encrypted directory in `below`, which is empty. Raises RunError."""

    @abstractmethod
    def mounting(self, below: Path, place: Path, password: Path, rest: AtRestContext) -> Fuse:
        """Return the daemon that shows the encrypted directory at `place`, not yet started. `password`: a file."""

    @abstractmethod
    def says(self, look: ArmAtRest) -> tuple[bool, str]:
        """Return the daemon's report on the mounted directory: (whether it fits the factors, words that follow the mount's)."""

    def serves(self, engine: Engine) -> bool:
        return isinstance(engine, StoresData)

    def prepare(self, rest: AtRestContext) -> Installation:
        """Raises UsageError or MissingServer if it can't be mounted here."""
        fuse.check_rights()
        fuse.fetch(self.daemon)
        fuse.passing()
        return rest.installation

    @contextmanager
    def volume(self, arm: Arm, place: Path, rest: AtRestContext, size: int) -> Iterator[Volume]:
        below = place.with_name(f"{place.name}.{'cipher' if arm == 'encrypted' else 'below'}")
        if (free := volumes.free(place.parent)) < size + size // 4:
            raise RunError(
                f"{free / 1e6:.0f} MB are free in {place.parent}, but the data needs {size / 1e6:.0f} MB; "
                "use fewer --rows, or set CIPHERCOST_SCRATCH to a directory on a larger disk"
            )
        for directory in (place, below):
            directory.mkdir(mode=0o700)
            run_ownership.hand_over(directory)
        try:
            mount = self._encrypting(place, below, rest) if arm == "encrypted" else _passing(place, below, rest)
            with self._lock:
                self._mounts[place] = mount
            mount.mount()
            try:
                yield Volume(place / CLUSTER, (below,), (mount.pid,))
            finally:
                mount.unmount()
        finally:
            with self._lock:
                self._mounts.pop(place, None)
            for directory in (below, place):
                if not mounts.is_mounted(directory):
                    shutil.rmtree(directory, ignore_errors=True)

    def flush(self, volume: Volume) -> None:
        """Both daemons write at once what they receive, so only the file system below them must be flushed."""
        volumes.sync(volume.path.parent)

    def mount_of(self, look: ArmAtRest) -> Fuse | None:
        """Return the mount of this arm's data; None: it is not mounted."""
        return self._mounts.get(look.volume.path.parent)

    def status(self, look: ArmAtRest) -> tuple[bool, str]:
        """Ask the server where its data lies, the kernel what is mounted there and from where, and the daemon what encrypts."""
        home = data_of(look)
        if not home.is_absolute() or not home.is_relative_to(look.volume.path):
            return False, f"the server reports that its data lies in '{home}', not in {look.volume.path}"
        mount = mounts.mount_of(home)
        wanted = f"fuse.{self.daemon if look.arm == 'encrypted' else PASSING}"
        if mount.kind != wanted or mount.point != str(look.volume.path.parent):
            return False, f"the server's data lies on {mount.kind}, mounted at {mount.point}, not on {wanted}"
        if look.arm == "plain":
            return True, f"the server's data lies on {mount.kind}, which passes files through"
        below = look.volume.backing[0]
        if self.source_of(mount.source) != str(below):
            return False, f"the mounted directory is {mount.source}, not {below}"
        right, words = self.says(look)
        return right, f"the server's data lies on {mount.kind}{words}"

    def source_of(self, source: str) -> str:
        """Return the encrypted directory, given the source in the mount table."""
        return source

    def refuses(self, look: ArmAtRest) -> tuple[bool, str] | None:
        """Mount the same directory once more with another password. Starts no server."""
        if not look.rest.engine.embedded:
            return None
        place = look.rest.secrets.parent / f"keyless-{randomness.token_hex(4)}"
        place.mkdir(mode=0o700)
        try:
            return self._tried(place, look.volume.backing[0], look.rest)
        finally:
            shutil.rmtree(place, ignore_errors=True)

    @contextmanager
    def key_taken(self, state: KeyState, rest: AtRestContext, directory: Path) -> Iterator[None]:
        """missing: unmounts it. wrong: tries to mount it with another password."""
        place = directory.parent
        mount = self._mounts[place]
        mount.unmount()
        other = self._other(place, Path(f"{place}.cipher"), rest) if state == "wrong" else None
        try:
            if other is not None:
                try:
                    other.mount()
                except RunError as error:
                    self._must_be_refusal(error)
            yield
        finally:
            if other is not None:
                other.unmount()
            mount.mount()

    def _encrypting(self, place: Path, below: Path, rest: AtRestContext) -> Fuse:
        password = self._password(rest.secrets, below.name)
        self.make(below, password, rest)
        return self.mounting(below, place, password, rest)

    def _other(self, place: Path, below: Path, rest: AtRestContext) -> Fuse:
        wrong = self._password(rest.secrets, f"wrong-{randomness.token_hex(4)}")
        return self.mounting(below, place, wrong, rest)

    def _tried(self, place: Path, below: Path, rest: AtRestContext) -> tuple[bool, str]:
        other = self._other(place, below, rest)
        try:
            other.mount()
        except RunError as error:
            self._must_be_refusal(error)
            return True, f"with another password it does not mount: {self.wrong_password}"
        other.unmount()
        return False, "it mounts with another password"

    def _must_be_refusal(self, error: RunError) -> None:
        if self.wrong_password not in str(error).lower():
            raise RunError(f"with another password {self.daemon} fails, but for a different reason: {error}") from None

    def _password(self, secrets: Path, name: str) -> Path:
        """Write a random password to a file of its own."""
        path = secrets / f"{self.daemon}-{name}-{randomness.token_hex(4)}"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(randomness.token_hex(32))
        return path


def _passing(place: Path, below: Path, rest: AtRestContext) -> Fuse:
    return Fuse(rest.supervisor, place, [fuse.passing(), below, place], f"fuse.{PASSING}")
