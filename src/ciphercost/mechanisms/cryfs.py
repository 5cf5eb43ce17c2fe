"""cryfs: every file split into encrypted blocks of one size by a FUSE daemon, names and sizes hidden too. For any server that keeps files.

The plain arm's daemon passes files through, as for gocryptfs, so that FUSE itself is not taken for encryption. CryFS can't leave out the
encryption, so all it adds counts as its cost: its tree of blocks (a file of 1 MB is some 60 files below), its own cache of blocks, and the
version that it keeps of each block. Its daemon is written in C++ on libfuse 2 with that library's defaults, and the plain one in Go. What
they ask of the kernel's caches may differ; nobody has measured how much of the cost of reading comes from that.

CryFS 0.11 returns from fsync before the data is written below, which its cache does about a second later. So the encrypted arm waits for no
disk where the plain arm does: a workload that writes may look cheaper than it is, and every cell warns of it.

A mount takes about ten seconds of CPU: CryFS derives its key from the password by scrypt, and has no option for a quicker way.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from pathlib import Path

from ciphercost.host import aes, tools, volumes
from ciphercost.host.environment import child_environment
from ciphercost.host.volumes.fuse import Fuse
from ciphercost.host.volumes.volume import Volume
from ciphercost.mechanisms import Factor
from ciphercost.mechanisms._fuse import EncryptingDaemon
from ciphercost.mechanisms._rest import ArmAtRest, AtRestContext
from ciphercost.model.errors import RunError

CIPHERS = ("aes-256-gcm", "xchacha20-poly1305", "aes-128-gcm", "aes-256-cfb", "serpent-256-gcm", "twofish-256-gcm")
HEADER = b"cryfs;block;"
"""What each block begins with, in clear."""
NO_FSYNC = (
    "CryFS returns from fsync before the data is on the disk; the plain arm does not. Compare what writes with care, and do not "
    "expect data to survive a crash"
)
QUIET_SECONDS = 2.0
"""Its cache is written within a second of the last use of a block."""
MOUNT_SECONDS = 180.0
"""For scrypt on a busy machine."""


class Cryfs(EncryptingDaemon):
    name = "cryfs"
    title = "CryFS: encrypted blocks by FUSE"
    protects = "a stolen disk, and a copy of the directory, file sizes too; not a process that may read the files while it is mounted"
    daemon = "cryfs"
    wrong_password = "did you enter the correct password"  # noqa: S105 - what CryFS prints
    factors = (
        Factor("cipher", CIPHERS, "of blocks; CryFS's own default is xchacha20-poly1305", acts="operation"),
        Factor("block", ("16KB", "4KB", "32KB", "64KB"), "size of a block, which is one file below", acts="operation"),
    )

    def make(self, below: Path, password: Path, rest: AtRestContext) -> None:
        """Nothing: the first mount makes the directory."""

    def mounting(self, below: Path, place: Path, password: Path, rest: AtRestContext) -> Fuse:
        factors = self.check(dict(rest.factors))
        block = ["--blocksize", str(int(factors["block"].removesuffix("KB")) * 1024)]
        options: list[str | Path] = ["-f", "--cipher", factors["cipher"], *block, "-o", "allow_other"]
        env = {
            "CRYFS_FRONTEND": "noninteractive",
            "CRYFS_NO_UPDATE_CHECK": "true",
            "CRYFS_LOCAL_STATE_DIR": str(rest.secrets / "cryfs-state"),
        }
        command = [tools.tool(self.daemon), *options, below, place]
        return Fuse(rest.supervisor, place, command, f"fuse.{self.daemon}", env, stdin=password, patience=MOUNT_SECONDS)

    def source_of(self, source: str) -> str:
        return source.partition("@")[2]

    def flush(self, volume: Volume) -> None:
        """Wait until its cache is written: nothing below has changed for a while. Raises RunError when that takes too long."""
        super().flush(volume)
        deadline = time.monotonic() + volumes.PATIENCE_SECONDS
        before, since = None, time.monotonic()
        while time.monotonic() - since < QUIET_SECONDS:
            if time.monotonic() > deadline:
                raise RunError(f"CryFS still writes to {volume.backing[0]} after {volumes.PATIENCE_SECONDS:g} seconds")
            if (now := _state(volume.backing[0])) != before:
                before, since = now, time.monotonic()
            time.sleep(0.1)

    def says(self, look: ArmAtRest) -> tuple[bool, str]:
        """The daemon prints its configuration, which it has decrypted, when it mounts."""
        mount, factors = self.mount_of(look), self.check(dict(look.rest.factors))
        output = mount.said if mount else ""
        block = int(factors["block"].removesuffix("KB")) * 1024
        for wanted in (f"Cipher: {factors['cipher']}", f"Blocksize: {block} bytes"):
            if f"- {wanted}" not in output.splitlines():
                return False, f", and its daemon does not report '{wanted}'"
        return True, f" of a directory that is encrypted with {factors['cipher']} in blocks of {block} bytes"

    def structure(self, look: ArmAtRest) -> tuple[bool, str]:
        """Every file below is a block of CryFS's or its configuration; of the plain arm none is."""
        self.flush(look.volume)
        files = [path for path in look.volume.backing[0].rglob("*") if path.is_file()]
        blocks = [path for path in files if path.name != "cryfs.config" and _begins(path) == HEADER]
        others = len(files) - len(blocks) - (look.arm == "encrypted")
        right = not others and bool(blocks) if look.arm == "encrypted" else not blocks
        return right, f"{len(blocks)} of {len(files)} files begin as CryFS's blocks do"

    def implementation(self, look: ArmAtRest) -> dict[str, str]:
        factors, able = self.check(dict(look.rest.factors)), aes.openssl_capabilities({})
        output = subprocess.run(
            [tools.tool(self.daemon), "--version"],
            capture_output=True,
            text=True,
            check=False,
            env={**child_environment(), "CRYFS_NO_UPDATE_CHECK": "true", "CRYFS_FRONTEND": "noninteractive"},
        ).stdout
        version = next(iter(output.split("\n")), "").strip()
        details = {
            "cipher": factors["cipher"].upper(),
            "implementation": f"{version}; crypto: Crypto++, CPU: {able.words()}",
        }
        if mount := self.mount_of(look):
            details["mounting"] = f"{mount.seconds:.2f} s, its password through scrypt"
        return details | {"warning": NO_FSYNC}


def _state(below: Path) -> dict[str, int]:
    """When each file below was last changed, in nanoseconds."""
    changed_ns = {}
    for path in below.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            changed_ns[str(path)] = path.stat().st_mtime_ns
    return changed_ns


def _begins(path: Path) -> bytes:
    """The first bytes of a file; none where it has gone meanwhile."""
    try:
        with path.open("rb") as file:
            return file.read(len(HEADER))
    except FileNotFoundError:
        return b""


MECHANISM = Cryfs()
