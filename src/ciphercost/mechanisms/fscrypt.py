"""The kernel encrypts file contents and names in one directory of ext4. For any server that keeps files.

Each arm has an ext4 file system of its own, created with the same options in a sparse image on a loop device. The
encrypted arm's directory has a policy (version 2). Only this process and the kernel hold its key, which ends with the
run. The plain arm has no policy. So the arms differ in the policy alone; both pay for the loop device and for the
second caching of the image's pages below it.

The page cache holds decrypted data. The kernel decrypts data when it reads the image, and encrypts it on write-back: in
its own worker threads, or in the process that calls fsync. The CPU time of those threads belongs to no server process;
only the host's figures include it. O_DIRECT falls back to the page cache in an encrypted directory, so neither arm uses
it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ciphercost.engines import Engine
from ciphercost.engines.capabilities.storage import StoresData
from ciphercost.host import aes, run_ownership, volumes
from ciphercost.host.environment import child_environment
from ciphercost.host.volumes import image, policy
from ciphercost.host.volumes.volume import Volume
from ciphercost.mechanisms import Factor
from ciphercost.mechanisms._rest import ArmAtRest, AtRest, AtRestContext, KeyState
from ciphercost.model import system_error
from ciphercost.model.errors import AgentError, RunError, Unproven
from ciphercost.model.spec import Arm

if TYPE_CHECKING:
    from ciphercost.host.installation import Installation

DATA, CLUSTER = "data", "cluster"
"""Below the mount: the directory with or without a policy, and the data directory in it.

`lost+found` is outside both.
"""


class Fscrypt(AtRest):
    name = "fscrypt"
    title = "fscrypt: encrypted directory of ext4"
    protects = "a stolen disk or image, and a copy of it; not against a process that may read the files while the key is loaded"
    loaded_once = True
    direct_io = False
    key_states = ("missing", "wrong")
    factors = (
        Factor(
            "mode",
            tuple(policy.MODES),
            "cipher of file contents and names; some kernels lack some modes",
            acts="operation",
        ),
    )

    def __init__(self) -> None:
        self._keys: dict[Path, bytes] = {}
        """Keys of the present mounts."""
        self._lock = threading.Lock()

    def serves(self, engine: Engine) -> bool:
        return isinstance(engine, StoresData)

    def prepare(self, rest: AtRestContext) -> Installation:
        """Raises UsageError if no image can be mounted here."""
        image.check_rights()
        return rest.installation

    @contextmanager
    def volume(self, arm: Arm, place: Path, rest: AtRestContext, size: int) -> Iterator[Volume]:
        """Raises Unproven if the policy allows no file: the kernel accepts a policy for ciphers that it lacks."""
        with image.mounted(rest.supervisor, place, size) as file:
            directory = place / DATA
            directory.mkdir(mode=0o700)
            if arm == "encrypted":
                key = os.urandom(policy.KEY_BYTES)
                with self._lock:
                    self._keys[place] = key
                mode = self._mode(rest)
                policy.make(directory, mode, policy.add_key(place, key))
                if reason := policy.why_no_file(directory):
                    raise Unproven(
                        f"disk witness, encrypted arm: no file can be created under the fscrypt policy {mode.words}: {reason}. "
                        "Choose another mode with --set mode=…, or a kernel that supports this one"
                    )
            run_ownership.hand_over(directory)
            try:
                yield Volume(directory / CLUSTER, (file,))
            finally:
                with self._lock:
                    self._keys.pop(place, None)

    def flush(self, volume: Volume) -> None:
        volumes.sync(_mount(volume.path))

    def status(self, look: ArmAtRest) -> tuple[bool, str]:
        """Check that the data is where the server says, on the image, and ask the kernel for every file's policy."""
        home = data_of(look)
        if reason := _not_on(home, look.volume):
            return False, reason
        mode = self._mode(look.rest)
        files = policies = others = 0
        for path in below(home):
            with suppress(FileNotFoundError):
                file_policy = policy.get(path)
                files += 1
                policies += file_policy is not None
                others += file_policy is not None and (file_policy.contents, file_policy.names) != (
                    mode.contents,
                    mode.names,
                )
        if not files:
            return False, f"{home} contains no file"
        if look.arm == "plain":
            return not policies, f"{policies} of {files} server files have an encryption policy"
        if others:
            return False, f"{others} of {files} files have another policy than {mode.words}"
        return policies == files, f"{policies} of {files} server files have the policy {mode.words}"

    def implementation(self, look: ArmAtRest) -> dict[str, str]:
        """Name the kernel's driver; the kernel lists a mode once a file was written under it."""
        mode = self._mode(look.rest)
        used = aes.kernel(mode.kernel)
        details = {"cipher": mode.words, "key": f"{8 * policy.KEY_BYTES} bits", "implementation": used.words()}
        return details | ({"warning": used.warning()} if used.warning() else {})

    def refuses(self, look: ArmAtRest) -> tuple[bool, str] | None:
        """Mount a copy of the image where the kernel has no key, and then with another key. Starts no server."""
        if not look.rest.engine.embedded:
            return None
        self.flush(look.volume)
        copy = look.rest.secrets.parent / f"keyless-{os.urandom(4).hex()}.ext4"
        place = copy.with_suffix("")
        try:
            command = ["cp", "--sparse=always", "--reflink=auto", str(look.volume.backing[0]), str(copy)]
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, env=child_environment({"LC_ALL": "C"})
            )
            if done.returncode:
                raise RunError(f"copying the image failed: {system_error.advised(done.stderr)}")
            place.mkdir(mode=0o700)
            with image.attached(look.rest.supervisor, copy, place):
                for words in ("without its key", "with another key"):
                    if opened := _readable(place / DATA, CLUSTER):
                        return False, f"{words} {opened} is readable"
                    policy.add_key(place, os.urandom(policy.KEY_BYTES))
        finally:
            copy.unlink(missing_ok=True)
            shutil.rmtree(place, ignore_errors=True)
        return True, "without its key and with another one no file has its name, and none opens"

    @contextmanager
    def key_taken(self, state: KeyState, rest: AtRestContext, directory: Path) -> Iterator[None]:  # noqa: ARG002
        place = _mount(directory)
        with self._lock:
            key = self._keys[place]
        volumes.sync(place)
        policy.remove_key(place, policy.add_key(place, key))
        other = policy.add_key(place, os.urandom(policy.KEY_BYTES)) if state == "wrong" else b""
        try:
            yield
        finally:
            if other:
                policy.remove_key(place, other)
            policy.add_key(place, key)

    def _mode(self, rest: AtRestContext) -> policy.Mode:
        return policy.MODES[self.check(dict(rest.factors))["mode"]]


def data_of(look: ArmAtRest) -> Path:
    """Return the server's answer to where its data lies; if SQL can't ask, the directory that ciphercost gave it."""
    if not (home := StoresData.of(look.rest.engine).home):
        return look.volume.path
    with suppress(AgentError):
        rows = look.query(home)
        if rows and rows[-1][-1]:
            return Path(str(rows[-1][-1]))
    return Path()  # nowhere: the server does not answer


def _mount(directory: Path) -> Path:
    """Return where the image that holds this volume's path is mounted."""
    return directory.parent.parent


def _not_on(home: Path, volume: Volume) -> str:
    """Return why a server's data is not on the image of this volume; empty: it is."""
    if not home.is_absolute():
        return "the server does not report where its data lies"
    if not home.is_relative_to(volume.path):
        return f"the server reports that its data lies in {home}, not in {volume.path}"
    file = image.backing(home.stat().st_dev)
    return (
        "" if file == str(volume.backing[0]) else f"{home} is on {file or 'no loop device'}, not on {volume.backing[0]}"
    )


def below(home: Path) -> Iterator[Path]:
    """Yield every regular file in or below this path."""
    if home.is_file():
        yield home
    for directory, _, names in os.walk(home):
        for name in names:
            path = Path(directory) / name
            if path.is_file() and not path.is_symlink():
                yield path


def _readable(directory: Path, name: str) -> str:
    """Return a path that is readable in an encrypted directory: the entry `name`, or any file; empty: none."""
    if (directory / name).exists():
        return str(directory / name)
    for path in below(directory):
        with suppress(OSError), path.open("rb") as file:
            file.read(1)
            return str(path)
    return ""


MECHANISM = Fscrypt()
