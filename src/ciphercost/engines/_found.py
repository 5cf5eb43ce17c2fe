"""Shared by servers whose programs lie in one directory: chooses between several installations. Not an engine."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from ciphercost.engines import Engine
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.host import package_cache, versions
from ciphercost.host.installation import Installation
from ciphercost.host.run_ownership import out_of_reach
from ciphercost.model.errors import MissingServer, UsageError, nearest


class Found(Engine):
    """An engine that is found by its directory of programs. A subclass knows the usual places and reads the version."""

    @abstractmethod
    def usual_places(self) -> Iterator[Path]:
        """Yield directories that may hold the programs, best first; one may come twice."""

    @abstractmethod
    def version_in(self, bindir: Path) -> str:
        """Return the version of the server in this directory, e.g. `17.5`; empty if none there runs on this machine."""

    @property
    @abstractmethod
    def absent(self) -> str:
        """User-visible text: what a directory without this server lacks."""

    @abstractmethod
    def sources(self) -> Mapping[str, Callable[[str], Installation]]:
        """Return the functions that fetch the server, by source, in the order of preference.

        Each takes a version ('': any) and raises MissingServer.
        """

    oldest: int = 0
    """Oldest major version that ciphercost starts."""

    def available(self) -> Iterable[Installation]:
        installations: dict[str, Installation] = {}
        for bindir in self.usual_places():
            if str(bindir) not in installations and (version := self.version_in(bindir)) and self._new_enough(version):
                installations[str(bindir)] = Installation(self.name, version, "path", str(bindir))
        return [*installations.values(), *package_cache.installed(self.name)]

    def find(self, version: str = "", *, url: str = "", bindir: str = "") -> Installation:
        if url:
            TakesUrl.of(self).check_url(url)
            return Installation(self.name, version, "running", url)
        if bindir:
            return self._in_directory(Path(bindir).absolute(), version)
        for installation in self.available():
            if versions.matches(installation.version, version) and not out_of_reach(Path(installation.location)):
                return installation
        return self.install(version)

    def install(self, version: str = "", source: str = "") -> Installation:
        """Fetch from this source, or from the first source that has the version and whose server runs here."""
        sources = self.sources()
        if source and source not in sources:
            raise UsageError(f"{self.name} can't be fetched from '{source}': {nearest(source, sources)}")
        package_cache.check_reach()
        reasons = []
        for name in [source] if source else list(sources):
            try:
                installation = sources[name](version)
            except MissingServer as error:
                reasons.append(f"  {name}: {error}")
                continue
            if versions.matches(installation.version, version):
                return installation
            reasons.append(f"  {name}: has {self.title} {installation.version}, not {version}")
        title = f"{self.title} {version}".strip()
        raise MissingServer(
            f"no {title} was found on this machine, and fetching one failed:\n"
            + "\n".join(reasons)
            + "\nInstall one, or name the directory of its programs with --bindir."
        )

    def _in_directory(self, bindir: Path, version: str) -> Installation:
        actual_version = self.version_in(bindir)
        if not actual_version:
            raise MissingServer(f"--bindir {bindir}: {self.absent}")
        if not versions.matches(actual_version, version):
            raise MissingServer(f"--bindir {bindir}: this is {self.title} {actual_version}, not {version}")
        if not self._new_enough(actual_version):
            raise MissingServer(
                f"--bindir {bindir}: this is {self.title} {actual_version}; ciphercost needs {self.oldest}.0 or later"
            )
        if why := out_of_reach(bindir):
            raise UsageError(f"--bindir {bindir}: {why}. Open or move it, or run ciphercost as another user.")
        return Installation(self.name, actual_version, "path", str(bindir))

    def _new_enough(self, version: str) -> bool:
        return versions.version_key(version) >= (self.oldest,)

    def _that_runs(self, installation: Installation) -> Installation:
        """Return the unpacked server if it runs on this machine. Raises MissingServer."""
        if not self.version_in(Path(installation.location)):
            raise MissingServer(f"the unpacked server in {installation.location} doesn't run on this machine")
        return installation
