"""Programs of the system that ciphercost calls, with the Debian package of each and what needs it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ciphercost.host.environment import child_environment

VERSION_SECONDS = 20.0


class Program(NamedTuple):
    """A program that not every system has. Everything else works without it."""

    name: str
    package: str
    """Debian's, and its relatives'."""
    use: str

    def found(self) -> str:
        """Its path; empty if it is not installed. Programs for root are found without a root's PATH."""
        return shutil.which(self.name) or shutil.which(self.name, path="/usr/sbin:/sbin") or ""

    def missing(self) -> str:
        return f"not found (Debian: apt-get install {self.package}); {self.use}"


MAVEN = Program("mvn", "maven", "fetches PostgreSQL 14 to 18 and JDBC drivers")
JAVA = Program("java", "default-jre-headless", "--client jdbc and h2 need it")
PROGRAMS = (
    MAVEN,
    Program("ip", "iproute2", "--bandwidth, --mtu and --loss need it"),
    Program("tc", "iproute2", "--bandwidth, --mtu and --loss need it"),
    Program("mkfs.ext4", "e2fsprogs", "the mechanism fscrypt needs it"),
    Program("fio", "fio", "at rest it measures the directories without a server"),
    Program("perf", "linux-perf", "--profile needs it; as root, ciphercost fetches it by itself"),
    Program("openssl", "openssl", "the mechanism edb-tde needs it"),
)


def printed(command: Sequence[str | Path], seconds: float, env: Mapping[str, str] | None = None) -> str:
    """All that a program prints, whatever its exit status; empty if it can't run, or runs longer than that. `env`: further variables."""
    done = _ended(command, seconds, env)
    return done.stdout + done.stderr if done else ""


def output_of(command: Sequence[str | Path], seconds: float, env: Mapping[str, str] | None = None) -> str:
    """A program's standard output; empty unless it ends with status 0 within that time. `env`: further variables."""
    done = _ended(command, seconds, env)
    return done.stdout if done and done.returncode == 0 else ""


def _ended(
    command: Sequence[str | Path], seconds: float, env: Mapping[str, str] | None
) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
            env=child_environment(env),
        )
    except (OSError, subprocess.SubprocessError):
        return None


def version_printed(command: Sequence[str | Path], words: str) -> str:
    """The version that a program prints; empty if it is another program, or does not run here. `words`: a regular expression with one
    group, the version.
    """
    match = re.search(words, printed(command, VERSION_SECONDS))
    return match[1] if match else ""


def install_command(packages: list[str]) -> list[str]:
    """The command that installs Debian packages; empty if this system has no apt-get."""
    if not shutil.which("apt-get"):
        return []
    return [*([] if os.geteuid() == 0 else ["sudo"]), "apt-get", "install", "--yes", *packages]
