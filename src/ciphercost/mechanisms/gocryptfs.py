"""gocryptfs: every file encrypted by a FUSE daemon, block by block, names too. For any server that keeps files.

FUSE itself costs: a system call becomes a request to a process. So the plain arm goes through a FUSE daemon as well, one that passes
files through: `volumes/passing`, some lines on go-fuse, the library that gocryptfs is written with, built from Debian's packages. What
a daemon asks of the kernel decides more than its own work does, and both ask for the same: attributes and names, also of files that
aren't there, cached for a second; the page cache kept when a file is opened again, and dropped when its time of change is seen to be
another (after a write of its own a file is read anew from the daemon); no write-back cache, so each write goes to the daemon at once;
requests of up to 1 MiB, several at a time; O_DIRECT taken away, which is why no server is told to use it.

Passing daemons that Debian has would count as encryption, or against it: bindfs on libfuse 2 never drops a page (after one write of
8 KiB gocryptfs reads a file of 16 MiB anew, bindfs nothing), and on libfuse 3 caches no attribute; fuse-overlayfs lets everybody wait
for an fsync, and MySQL's temporary files can't be made on it.

What still differs, and is the cost of gocryptfs: each block of 4096 bytes rests as 4128, and each file begins with 18, so writes meet
the disk's blocks askew and space is reserved before each; a block that is written in part is read first; names are encrypted, and
looked up one directory after the other. The CPU time of both daemons counts as the server's.
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
from ciphercost.mechanisms._rest import Look, Rest
from ciphercost.model.errors import RunError

ENCRYPTING = "gocryptfs"
CIPHERS = {"aes-gcm": "", "xchacha": "-xchacha", "aes-siv": "-aessiv"}
AES_GCM = "AES-GCM-256"
FLAGS = {"XChaCha20Poly1305": "XChaCha20-Poly1305", "AESSIV": "AES-SIV-512"}
"""In its configuration; without one of them it is AES-GCM."""
NAMES = {"aes-gcm": AES_GCM, "xchacha": FLAGS["XChaCha20Poly1305"], "aes-siv": FLAGS["AESSIV"]}
LIBRARIES = {"openssl": "-openssl=true", "go": "-openssl=false", "auto": "-openssl=auto"}
"""Of the daemon's options, by who is to encrypt."""
SPEED = re.compile(r"^(AES-GCM-256|XChaCha20-Poly1305|AES-SIV-512)-(\S+).*\(selected in auto mode\)", re.MULTILINE)


class Gocryptfs(EncryptingDaemon):
    name = "gocryptfs"
    title = "gocryptfs: encrypted directory by FUSE"
    protects = "a stolen disk, and a copy of the directory; not a process that may read the files while it is mounted"
    daemon = ENCRYPTING
    wrong_password = "password incorrect"  # noqa: S105 - what gocryptfs says
    factors = (
        Factor("cipher", tuple(CIPHERS), "of file contents"),
        Factor("library", ("auto", "openssl", "go"), "who encrypts; auto: what gocryptfs takes to be the faster one"),
        Factor(
            "scrypt",
            ("16", "10", "14", "18", "20"),
            "log2 of the work to open it with its password; no part of the load",
        ),
    )

    def make(self, below: Path, password: Path, rest: Rest) -> None:
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

    def mounting(self, below: Path, place: Path, password: Path, rest: Rest) -> Fuse:
        library = LIBRARIES[self._factors(rest)["library"]]
        options = ["-fg", "-q", "-nosyslog", "-allow_other", "-kernel_cache", library]
        command: list[str | Path] = [tools.tool(self.daemon), *options, "-passfile", password, below, place]
        return Fuse(rest.supervisor, place, command, f"fuse.{self.daemon}")

    def says(self, look: Look) -> tuple[bool, str]:
        """The directory's configuration by `-info`, and who encrypts by the daemon's options."""
        factors, said = self._factors(look.rest), _said_of(look.volume.backing[0])
        if wrong := other_than_asked(said, factors):
            return False, f", and {wrong}"
        words = f" of a directory that is encrypted with {cipher_of(said)}"
        if factors["library"] != "auto":
            option = LIBRARIES[factors["library"]]
            if option not in _command_line(look.volume.pids):
                return False, f"{words}, and {option} is not among its daemon's options"
            words += f" by {option.removeprefix('-')}"
        return True, words

    def implementation(self, look: Look) -> dict[str, str]:
        """`-info` names the cipher; who encrypts is what was asked for, or what `-speed` says that it takes."""
        factors = self._factors(look.rest)
        program = tools.tool(ENCRYPTING)
        cipher = cipher_of(_said_of(look.volume.backing[0]))
        library = {"openssl": "OpenSSL", "go": "Go"}.get(factors["library"], "") or _automatic(program, cipher)
        version = subprocess.run(
            [program, "-version"], capture_output=True, text=True, check=False, env=child_environment()
        ).stdout.strip()
        able = aes.openssl_capabilities({})
        made = self.mount_of(look)
        found = {"cipher": cipher, "implementation": f"{version}; crypto: {library}, CPU: {able.words()}"}
        if made is not None:
            found["mounting"] = f"{made.seconds:.2f} s, its password through scrypt with N = 2^{factors['scrypt']}"
        return found | ({"warning": able.warning()} if able.warning() else {})

    def _factors(self, rest: Rest) -> dict[str, str]:
        return self.check(dict(rest.factors))


def _said_of(below: Path) -> str:
    """What gocryptfs says of an encrypted directory: its configuration. Raises RunError."""
    done = subprocess.run(
        [tools.tool(ENCRYPTING), "-info", below],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        env=child_environment(),
    )
    if not re.search(r"^FeatureFlags:", done.stdout, re.MULTILINE):
        raise RunError(f"gocryptfs -info says nothing of {below}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def cipher_of(said: str) -> str:
    """What the contents are encrypted with, by what gocryptfs says of their directory. Pure."""
    flags = re.search(r"^FeatureFlags:(.*)$", said, re.MULTILINE)
    assert flags is not None
    return next((name for flag, name in FLAGS.items() if flag in flags[1].split()), AES_GCM)


def other_than_asked(said: str, factors: Mapping[str, str]) -> str:
    """What of a directory's configuration isn't what was asked for; empty: all is. Pure."""
    found, wanted = cipher_of(said), NAMES[factors["cipher"]]
    if found != wanted:
        return f"its directory is encrypted with {found}; {wanted} was asked for"
    work = re.search(r"^ScryptObject:.*\bN=(\d+)", said, re.MULTILINE)
    if work and int(work[1]) != 1 << int(factors["scrypt"]):
        return f"its password goes through scrypt with N = {work[1]}; 2^{factors['scrypt']} was asked for"
    return ""


def _command_line(pids: tuple[int, ...]) -> list[str]:
    """The words that these processes were started with."""
    return [word for pid in pids for word in Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")]


@functools.cache
def _automatic(program: Path, cipher: str) -> str:
    """What gocryptfs takes for this cipher on this CPU where nobody says. It takes seconds, and is asked once."""
    done = subprocess.run(
        [program, "-speed"], capture_output=True, text=True, check=False, timeout=60, env=child_environment()
    )
    chosen = dict(SPEED.findall(done.stdout))
    return f"{chosen.get(cipher, 'Go')} (its own choice)"


MECHANISM = Gocryptfs()
