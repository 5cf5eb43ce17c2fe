"""What databases in the agent's own process share: a directory in place of a server, and a shared library that is fetched."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ciphercost.engines import Server
from ciphercost.engines.capabilities.storage import StoresData
from ciphercost.host import package_cache
from ciphercost.host.installation import Installation
from ciphercost.host.package_cache import Receipt, Work
from ciphercost.model.errors import UsageError

if TYPE_CHECKING:
    from ciphercost.host.supervisor import Supervisor


class Directory(Server):
    """Stands for a server: the directory of the database file."""

    def __init__(self, installation: Installation, directory: Path) -> None:
        self.programs = Path(installation.location)
        self.directory = directory

    def stop(self) -> None:
        """Nothing to stop: the agent's connections are the database."""


class Embedded(StoresData):
    """A database in the agent's process."""

    embedded = True

    def initialise(
        self,
        installation: Installation,  # noqa: ARG002
        directory: Path,
        supervisor: Supervisor,  # noqa: ARG002
        settings: Mapping[str, str] | None = None,  # noqa: ARG002
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)


class Loaded(Embedded):
    """… whose library the agent loads at run time: one version, from one source."""

    library_version: ClassVar[str]
    source: ClassVar[str]
    """Where it comes from, as `install` names it."""

    @abstractmethod
    def fetch(self, work: Work) -> Receipt:
        """Fetch the library. Raises MissingServer."""

    def available(self) -> Iterable[Installation]:
        return package_cache.installed(self.name)

    def find(self, version: str = "", *, url: str = "", bindir: str = "") -> Installation:
        if url or bindir:
            raise UsageError(f"{self.name} runs inside the agent and takes neither --url nor --bindir: leave them out")
        if version and not f"{self.library_version}.".startswith(f"{version}."):
            raise UsageError(f"{self.name}@{version}: only {self.library_version} is available. Leave the version out.")
        kept = f"{self.library_version}-{self.source}"
        return next(iter(self.available()), None) or package_cache.keep(self.name, kept, self.fetch)

    def install(self, version: str = "", source: str = "") -> Installation:
        if source not in ("", self.source):
            raise UsageError(f"{self.name} comes from {self.source}, not from {source}: leave the source out")
        return self.find(version)
