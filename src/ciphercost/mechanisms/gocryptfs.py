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
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from ciphercost.host import aes, tools
from ciphercost.host.environment import child_environment
from ciphercost.host.volumes.fuse import Fuse
from ciphercost.mechanisms import Factor
from ciphercost.mechanisms._fuse import EncryptingDaemon
from ciphercost.mechanisms._rest import ArmAtRest, AtRestContext
from ciphercost.model.errors import RunError

ENCRYPTING = "gocryptfs"
CIPHERS = {"aes-gcm": "", "xchacha": "-xchacha", "aes-siv": "-aessiv"}
AES_GCM = "AES-GCM-256"
FLAGS = {"XChaCha20Poly1305": "XChaCha20-Poly1305", "AESSIV": "AES-SIV-512"}
"""Flags in gocryptfs's configuration; without one of them the cipher is AES-GCM."""
NAMES = {"aes-gcm": AES_GCM, "xchacha": FLAGS["XChaCha20Poly1305"], "aes-siv": FLAGS["AESSIV"]}
LIBRARIES = {"openssl": "-openssl=true", "go": "-openssl=false", "auto": "-openssl=auto"}
"""Options of the daemon, by the library that encrypts."""
SPEED = re.compile(r"^(AES-GCM-256|XChaCha20-Poly1305|AES-SIV-512)-(\S+).*\(selected in auto mode\)", re.MULTILINE)


class Gocryptfs(EncryptingDaemon):
    name = "gocryptfs"
    title = "gocryptfs: encrypted directory by FUSE"
    protects = (
        "a stolen disk, and a copy of the directory; not against a process that may read the files while it is mounted"
    )
    daemon = ENCRYPTING
    wrong_password = "password incorrect"  # noqa: S105 - what gocryptfs says
    factors = (
        Factor("cipher", tuple(CIPHERS), "cipher of file contents", acts="operation"),
        Factor(
            "library",
            ("auto", "openssl", "go"),
            "library that encrypts; auto: the one that gocryptfs finds faster",
            acts="operation",
        ),
        Factor(
            "scrypt",
            ("16", "10", "14", "18", "20"),
            "log2 of the work to derive the key from the password at mounting; not part of the load",
            acts="start",
        ),
    )

    def make(self, below: Path, password: Path, rest: AtRestContext) -> None:
        factors = self._factors(rest)
        cipher = [CIPHERS[factors["cipher"]]] if CIPHERS[factors["cipher"]] else []
        init: list[str | Path] = [
            tools.tool(self.daemon),
            "-init",
            "-q",
            "-passfile",
            password,
            "-scryptn",
            factors["scrypt"],
        ]
        rest.supervisor.run([*init, *cipher, below])

    def mounting(self, below: Path, place: Path, password: Path, rest: AtRestContext) -> Fuse:
        library = LIBRARIES[self._factors(rest)["library"]]
        options = ["-fg", "-q", "-nosyslog", "-allow_other", "-kernel_cache", library]
        command: list[str | Path] = [tools.tool(self.daemon), *options, "-passfile", password, below, place]
        return Fuse(rest.supervisor, place, command, f"fuse.{self.daemon}")

    def says(self, look: ArmAtRest) -> tuple[bool, str]:
        """Read the directory's configuration by `-info`, and the library from the daemon's options."""
        factors, configuration = self._factors(look.rest), _configuration_of(look.volume.backing[0])
        if wrong := factor_mismatch(configuration, factors):
            return False, f", but {wrong}"
        words = f" of a directory that is encrypted with {cipher_of(configuration)}"
        if factors["library"] != "auto":
            option = LIBRARIES[factors["library"]]
            if option not in _command_line(look.volume.pids):
                return False, f"{words}, but {option} is not among its daemon's options"
            words += f" by {option.removeprefix('-')}"
        return True, words

    def implementation(self, look: ArmAtRest) -> dict[str, str]:
        """`-info` names the cipher.

        The library is the requested one, or the one that `-speed` reports as gocryptfs's choice.
        """
        factors = self._factors(look.rest)
        program = tools.tool(ENCRYPTING)
        cipher = cipher_of(_configuration_of(look.volume.backing[0]))
        library = {"openssl": "OpenSSL", "go": "Go"}.get(factors["library"], "") or _automatic(program, cipher)
        version = subprocess.run(
            [program, "-version"], capture_output=True, text=True, check=False, env=child_environment()
        ).stdout.strip()
        able = aes.openssl_capabilities({})
        mount = self.mount_of(look)
        details = {"cipher": cipher, "implementation": f"{version}; crypto: {library}, CPU: {able.words()}"}
        if mount is not None:
            details["mounting"] = f"{mount.seconds:.2f} s, its password through scrypt with N = 2^{factors['scrypt']}"
        return details | ({"warning": able.warning()} if able.warning() else {})

    def _factors(self, rest: AtRestContext) -> dict[str, str]:
        return self.check(dict(rest.factors))


def _configuration_of(below: Path) -> str:
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


def cipher_of(configuration: str) -> str:
    """Return the cipher of file contents, from a directory's configuration. Pure."""
    flags = re.search(r"^FeatureFlags:(.*)$", configuration, re.MULTILINE)
    assert flags is not None
    return next((name for flag, name in FLAGS.items() if flag in flags[1].split()), AES_GCM)


def factor_mismatch(configuration: str, factors: Mapping[str, str]) -> str:
    """Return what in a directory's configuration differs from the request; empty: nothing. Pure."""
    cipher, wanted = cipher_of(configuration), NAMES[factors["cipher"]]
    if cipher != wanted:
        return f"its directory is encrypted with {cipher}, but {wanted} was requested"
    work = re.search(r"^ScryptObject:.*\bN=(\d+)", configuration, re.MULTILINE)
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
