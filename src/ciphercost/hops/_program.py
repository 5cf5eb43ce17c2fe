"""Shared by hops that are one program: found in PATH, or unpacked from Debian packages. Not a hop."""

from __future__ import annotations

import os
import shutil
import socket
from abc import abstractmethod
from collections.abc import Iterable
from pathlib import Path

from ciphercost.hops import Hop, Wanted
from ciphercost.host import debian, package_cache, run_in_place
from ciphercost.host.installation import Installation
from ciphercost.host.launch import Launch, launch
from ciphercost.host.package_cache import Receipt, Work
from ciphercost.host.programs import version_printed
from ciphercost.host.run_ownership import hand_over
from ciphercost.host.supervisor import Supervisor
from ciphercost.model.errors import MissingServer

SUITE = "trixie"
KEPT = "hops"
"""Where the cache keeps them."""


class Program(Hop):
    """A subclass names its program, where it comes from, and how it is configured."""

    program: str
    version_option: str
    version_words: str
    """Regular expression with one group, the version, for the output of `version_option`."""
    package: str = ""
    """Debian package; empty: a subclass fetches it in another way."""
    suite: str = SUITE
    """Debian suite that has it."""
    place: str = "usr/sbin"
    """Where that package installs the program."""

    @abstractmethod
    def command(self, program: Path, wanted: Wanted, port: int) -> list[str | Path]:
        """Write the configuration and return the command that runs in the foreground and listens on this port."""

    def version_of(self, program: Path, before: Iterable[str | Path] = ()) -> str:
        """Return the version that the program prints; empty if it is another program or does not run here."""
        return version_printed([*before, program, self.version_option], self.version_words)

    def find(self, *, fetch: bool = True) -> Installation:
        search = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
        if (path := shutil.which(self.program, path=search)) and (version := self.version_of(Path(path))):
            return Installation(self.name, version, "path", str(Path(path).resolve()))
        for installation in package_cache.installed(f"{KEPT}/{self.program}"):
            return self._at(installation)
        if not fetch:
            raise MissingServer(f"{self.program} was not found here")
        return self._at(package_cache.keep(f"{KEPT}/{self.program}", f"{self.program}-{self.suite}", self.fetch))

    def fetch(self, work: Work) -> Receipt:
        """Unpack the program into a private directory. Raises MissingServer."""
        debian.unpack_suite(self.suite, [self.package], work)
        program = work.path / self.place / self.program
        version = self.version_of(program, run_in_place.with_loader(work.path))
        if not version:
            raise MissingServer(f"the unpacked {self.program} does not run on this machine")
        run_in_place.run_in_place(work, [f"{self.place}/{self.program}"])
        return Receipt(self.name, version, "debian", self.place)

    def _at(self, kept: Installation) -> Installation:
        return Installation(self.name, kept.version, kept.source, str(Path(kept.location) / self.program))

    def start(self, installation: Installation, wanted: Wanted, supervisor: Supervisor) -> Launch:
        def command(port: int) -> list[str | Path]:
            words = self.command(Path(installation.location), wanted, port)
            hand_over(wanted.directory)
            return words

        return launch(
            supervisor,
            f"{self.program} {installation.version}",
            command,
            accepts,
            directory=wanted.directory,
            logs=wanted.logs,
            env={},
            cpus=wanted.cpus,
            address=wanted.address,
            connects=True,
        )


def accepts(address: str, port: int) -> bool:
    """Whether a program there accepts connections."""
    try:
        socket.create_connection((address, port), timeout=1).close()
    except OSError:
        return False
    return True
