"""Programs of the system that ciphercost calls, with the Debian package of each and what needs it."""

from __future__ import annotations

import os
import shutil
from typing import NamedTuple


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
JAVA = Program("java", "default-jre-headless", "--client jdbc needs it")
PROGRAMS = (
    MAVEN,
    Program("ip", "iproute2", "--bandwidth and --mtu need it"),
    Program("tc", "iproute2", "--bandwidth and --mtu need it"),
    Program("mkfs.ext4", "e2fsprogs", "the mechanism fscrypt needs it"),
    Program("fio", "fio", "at rest it measures the directories without a server"),
    Program("openssl", "openssl", "the mechanism edb-tde needs it"),
)


def install_command(packages: list[str]) -> list[str]:
    """The command that installs Debian packages; empty if this system has no apt-get."""
    if not shutil.which("apt-get"):
        return []
    return [*([] if os.geteuid() == 0 else ["sudo"]), "apt-get", "install", "--yes", *packages]
