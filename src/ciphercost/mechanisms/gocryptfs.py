"""A FUSE daemon encrypts every file, block by block, and its name. For any server that keeps files.

FUSE itself costs: a system call becomes a request to a process. So the plain arm uses a FUSE daemon as well, one that
passes files through: `volumes/passing`, a few lines on go-fuse (the library of gocryptfs), built from Debian's
packages. What a daemon requests from the kernel matters more than its own work, and both daemons request the same:

- attributes and names, also of files that don't exist, are cached for a second;
- the page cache is kept when a file is opened again, and dropped when the file's modification time has changed (after a daemon's
  own write the kernel reads the file again);
- no write-back cache, so each write goes to the daemon at once;
- requests of up to 1 MiB, several at a time;
- no O_DIRECT, which is why no server uses it.

Debian's own pass-through daemons would distort the comparison. bindfs on libfuse 2 never drops a page (after one write
of 8 KiB gocryptfs reads a file of 16 MiB again, bindfs reads nothing), and on libfuse 3 it caches no attribute.
fuse-overlayfs makes all requests wait for an fsync, and MySQL can't create its temporary files on it.

The remaining differences are the cost of gocryptfs. A block of 4096 bytes occupies 4128 on disk, and each file begins
with 18 bytes, so writes straddle the disk's blocks and reserve space first. A block that is written in part is read
first. Names are encrypted, and looked up one directory after the other. The CPU time of both daemons counts as the
server's.
"""

from __future__ import annotations

import functools
import os
import re
import secrets as randomness
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ciphercost.engines import Engine
from ciphercost.engines.capabilities.storage import StoresData
from ciphercost.host import aes, marks, mounts, tools, volumes
from ciphercost.host.environment import child_environment
from ciphercost.host.volumes import fuse
from ciphercost.host.volumes.fuse import Fuse
from ciphercost.host.volumes.volume import Volume
from ciphercost.mechanisms import Factor
from ciphercost.mechanisms._rest import AtRest, KeyState, Look, Rest
from ciphercost.mechanisms.fscrypt import data_of
from ciphercost.model.errors import RunError
from ciphercost.model.spec import Arm

if TYPE_CHECKING:
    from ciphercost.host.installation import Installation

ENCRYPTING, PASSING = "gocryptfs", "passing"
CLUSTER = "cluster"
CIPHERS = {"aes-gcm": "", "xchacha": "-xchacha", "aes-siv": "-aessiv"}
AES_GCM = "AES-GCM-256"
FLAGS = {"XChaCha20Poly1305": "XChaCha20-Poly1305", "AESSIV": "AES-SIV-512"}
"""Flags in gocryptfs's configuration; without one of them the cipher is AES-GCM."""
NAMES = {"aes-gcm": AES_GCM, "xchacha": FLAGS["XChaCha20Poly1305"], "aes-siv": FLAGS["AESSIV"]}
LIBRARIES = {"openssl": "-openssl=true", "go": "-openssl=false", "auto": "-openssl=auto"}
"""Options of the daemon, by the library that encrypts."""
WRONG_PASSWORD = "password incorrect"  # noqa: S105 - what gocryptfs says
SPEED = re.compile(r"^(AES-GCM-256|XChaCha20-Poly1305|AES-SIV-512)-(\S+).*\(selected in auto mode\)", re.MULTILINE)


class Gocryptfs(AtRest):
    name = "gocryptfs"
    title = "gocryptfs: encrypted directory by FUSE"
    protects = (
        "a stolen disk, and a copy of the directory; not against a process that may read the files while it is mounted"
    )
    loaded_once = True
    direct_io = False
    key_states = ("missing", "wrong")
    factors = (
        Factor("cipher", tuple(CIPHERS), "cipher of file contents"),
        Factor(
            "library", ("auto", "openssl", "go"), "library that encrypts; auto: the one that gocryptfs finds faster"
        ),
        Factor(
            "scrypt",
            ("16", "10", "14", "18", "20"),
            "log2 of the work to derive the key from the password at mounting; not part of the load",
        ),
    )

    def __init__(self) -> None:
        self._mounts: dict[Path, Fuse] = {}
        """The present mounts, by mount point."""
        self._lock = threading.Lock()

    def serves(self, engine: Engine) -> bool:
        return isinstance(engine, StoresData)

    def prepare(self, rest: Rest) -> Installation:
        """Raises UsageError or MissingServer if gocryptfs can't be mounted here."""
        fuse.check_rights()
        fuse.fetch(ENCRYPTING)
        fuse.passing()
        return rest.installation

    @contextmanager
    def volume(self, arm: Arm, place: Path, rest: Rest, size: int) -> Iterator[Volume]:
        below = place.with_name(f"{place.name}.{'cipher' if arm == 'encrypted' else 'below'}")
        if (free := volumes.free(place.parent)) < size + size // 4:
            raise RunError(
                f"{free / 1e6:.0f} MB are free in {place.parent}, but the data needs {size / 1e6:.0f} MB; is the disk full?"
            )
        for directory in (place, below):
            directory.mkdir(mode=0o700)
            marks.hand_over(directory)
        try:
            made = self._encrypting(place, below, rest) if arm == "encrypted" else _passing(place, below, rest)
            with self._lock:
                self._mounts[place] = made
            made.mount()
            try:
                yield Volume(place / CLUSTER, (below,), (made.pid,))
            finally:
                made.unmount()
        finally:
            with self._lock:
                self._mounts.pop(place, None)
            for directory in (below, place):
                if not mounts.is_mounted(directory):
                    shutil.rmtree(directory, ignore_errors=True)

    def flush(self, volume: Volume) -> None:
        """Both daemons write at once what they receive, so only the file system below them must be flushed."""
        volumes.sync(volume.path.parent)

    def status(self, look: Look) -> tuple[bool, str]:
        """Ask the server where its data lies, and the kernel what is mounted there and from which directory."""
        home = data_of(look)
        if not home.is_absolute() or not home.is_relative_to(look.volume.path):
            return False, f"the server reports that its data lies in '{home}', not in {look.volume.path}"
        found = mounts.mount_of(home)
        wanted = f"fuse.{ENCRYPTING if look.arm == 'encrypted' else PASSING}"
        if found.kind != wanted or found.point != str(look.volume.path.parent):
            return False, f"the server's data lies on {found.kind}, mounted at {found.point}, not on {wanted}"
        if look.arm == "plain":
            return True, f"the server's data lies on {found.kind}, which passes files through"
        below = look.volume.backing[0]
        if found.source != str(below):
            return False, f"the mounted directory is {found.source}, not {below}"
        factors, said = self._factors(look.rest), _said_of(below)
        if wrong := other_than_asked(said, factors):
            return False, f"the server's data lies on {found.kind}, and {wrong}"
        words = f"the server's data lies on {found.kind} of a directory that is encrypted with {cipher_of(said)}"
        if factors["library"] != "auto":
            option = LIBRARIES[factors["library"]]
            if option not in _command_line(look.volume.pids):
                return False, f"{words}, but {option} is not among its daemon's options"
            words += f" by {option.removeprefix('-')}"
        return True, words

    def implementation(self, look: Look) -> dict[str, str]:
        """`-info` names the cipher.

        The library is the requested one, or the one that `-speed` reports as gocryptfs's choice.
        """
        factors = self._factors(look.rest)
        program = tools.tool(ENCRYPTING)
        cipher = cipher_of(_said_of(look.volume.backing[0]))
        library = {"openssl": "OpenSSL", "go": "Go"}.get(factors["library"], "") or _automatic(program, cipher)
        version = subprocess.run(
            [program, "-version"], capture_output=True, text=True, check=False, env=child_environment()
        ).stdout.strip()
        able = aes.openssl_capabilities({})
        made = self._mounts.get(look.volume.path.parent)
        found = {"cipher": cipher, "implementation": f"{version}; crypto: {library}, CPU: {able.words()}"}
        if made is not None:
            found["mounting"] = f"{made.seconds:.2f} s, its password through scrypt with N = 2^{factors['scrypt']}"
        return found | ({"warning": able.warning()} if able.warning() else {})

    def refuses(self, look: Look) -> tuple[bool, str] | None:
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
    def key_taken(self, state: KeyState, rest: Rest, directory: Path) -> Iterator[None]:
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
                    _must_be_refusal(error)
            yield
        finally:
            if other is not None:
                other.unmount()
            mount.mount()

    def _encrypting(self, place: Path, below: Path, rest: Rest) -> Fuse:
        factors, program = self._factors(rest), tools.tool(ENCRYPTING)
        key = _password(rest.secrets, below.name)
        cipher = [CIPHERS[factors["cipher"]]] if CIPHERS[factors["cipher"]] else []
        rest.guard.run([program, "-init", "-q", "-passfile", key, "-scryptn", factors["scrypt"], *cipher, below])
        return Fuse(rest.guard, place, self._command(key, below, place, rest), f"fuse.{ENCRYPTING}")

    def _command(self, key: Path, below: Path, place: Path, rest: Rest) -> list[str | Path]:
        library = LIBRARIES[self._factors(rest)["library"]]
        options = ["-fg", "-q", "-nosyslog", "-allow_other", "-kernel_cache", library]
        return [tools.tool(ENCRYPTING), *options, "-passfile", key, below, place]

    def _other(self, place: Path, below: Path, rest: Rest) -> Fuse:
        wrong = _password(rest.secrets, f"wrong-{randomness.token_hex(4)}")
        return Fuse(rest.guard, place, self._command(wrong, below, place, rest), f"fuse.{ENCRYPTING}")

    def _tried(self, place: Path, below: Path, rest: Rest) -> tuple[bool, str]:
        other = self._other(place, below, rest)
        try:
            other.mount()
        except RunError as error:
            _must_be_refusal(error)
            return True, f"with another password it does not mount: {WRONG_PASSWORD}"
        other.unmount()
        return False, "it mounts with another password"

    def _factors(self, rest: Rest) -> dict[str, str]:
        return self.check(dict(rest.factors))


def _passing(place: Path, below: Path, rest: Rest) -> Fuse:
    return Fuse(rest.guard, place, [fuse.passing(), below, place], f"fuse.{PASSING}")


def _password(secrets: Path, name: str) -> Path:
    """Write a random password to a file of its own."""
    path = secrets / f"gocryptfs-{name}-{randomness.token_hex(4)}"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(randomness.token_hex(32))
    return path


def _must_be_refusal(error: RunError) -> None:
    if WRONG_PASSWORD not in str(error).lower():
        raise RunError(f"with another password gocryptfs fails, but for a different reason: {error}") from None


def _said_of(below: Path) -> str:
    """Return the configuration that gocryptfs prints for an encrypted directory. Raises RunError."""
    done = subprocess.run(
        [tools.tool(ENCRYPTING), "-info", below],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        env=child_environment(),
    )
    if not re.search(r"^FeatureFlags:", done.stdout, re.MULTILINE):
        raise RunError(f"gocryptfs -info prints no configuration of {below}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def cipher_of(said: str) -> str:
    """Return the cipher of file contents, from a directory's configuration. Pure."""
    flags = re.search(r"^FeatureFlags:(.*)$", said, re.MULTILINE)
    assert flags is not None
    return next((name for flag, name in FLAGS.items() if flag in flags[1].split()), AES_GCM)


def other_than_asked(said: str, factors: Mapping[str, str]) -> str:
    """Return what in a directory's configuration differs from the request; empty: nothing. Pure."""
    found, wanted = cipher_of(said), NAMES[factors["cipher"]]
    if found != wanted:
        return f"its directory is encrypted with {found}, but {wanted} was requested"
    work = re.search(r"^ScryptObject:.*\bN=(\d+)", said, re.MULTILINE)
    if work and int(work[1]) != 1 << int(factors["scrypt"]):
        return f"its password goes through scrypt with N = {work[1]}, but 2^{factors['scrypt']} was requested"
    return ""


def _command_line(pids: tuple[int, ...]) -> list[str]:
    """Return the arguments that these processes started with."""
    return [word for pid in pids for word in Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")]


@functools.cache
def _automatic(program: Path, cipher: str) -> str:
    """Return the library that gocryptfs chooses for this cipher on this CPU. Takes seconds, so the answer is cached."""
    done = subprocess.run(
        [program, "-speed"], capture_output=True, text=True, check=False, timeout=60, env=child_environment()
    )
    chosen = dict(SPEED.findall(done.stdout))
    return f"{chosen.get(cipher, 'Go')} (its own choice)"


MECHANISM = Gocryptfs()
