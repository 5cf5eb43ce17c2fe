"""_found: what servers have in common that have a directory of programs: which is used where several are there. No engine itself."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from ciphercost.engines import Engine
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.host import package_cache, versions
from ciphercost.host.installation import Installation
from ciphercost.model.errors import MissingServer, UsageError, nearest


class Found(Engine):
    """A subclass says where its programs usually are, and how a directory of them says its version."""

    @abstractmethod
    def usual_places(self) -> Iterator[Path]:
        """Directories that may hold its programs, best first; some twice."""

    @abstractmethod
    def version_in(self, bindir: Path) -> str:
        """`17.5` of the server in this directory; empty where there is none that runs here."""

    @property
    @abstractmethod
    def absent(self) -> str:
        """What a directory without this server lacks, for people."""

    @abstractmethod
    def ways(self) -> Mapping[str, Callable[[str], Installation]]:
        """How it is fetched, by source, in the order in which they are tried. Each takes a version ('': any); raises MissingServer."""

    oldest: int = 0
    """Of its major versions, that is started."""

    def available(self) -> Iterable[Installation]:
        found: dict[str, Installation] = {}
        for bindir in self.usual_places():
            if str(bindir) not in found and (version := self.version_in(bindir)) and self._new_enough(version):
                found[str(bindir)] = Installation(self.name, version, "path", str(bindir))
        return [*found.values(), *package_cache.installed(self.name)]

    def find(self, version: str = "", *, url: str = "", bindir: str = "") -> Installation:
        if url:
            TakesUrl.of(self).check_url(url)
            return Installation(self.name, version, "running", url)
        if bindir:
            return self._in(Path(bindir).absolute(), version)
        for each in self.available():
            if versions.matches(each.version, version) and package_cache.reachable(Path(each.location)):
                return each
        return self.install(version)

    def install(self, version: str = "", source: str = "") -> Installation:
        """From this source, or from the first that has it and works here."""
        ways = self.ways()
        if source and source not in ways:
            raise UsageError(f"{self.name} can't be fetched from '{source}': {nearest(source, ways)}")
        reasons = []
        for name in [source] if source else list(ways):
            try:
                installation = ways[name](version)
            except MissingServer as error:
                reasons.append(f"  {name}: {error}")
                continue
            if versions.matches(installation.version, version):
                return installation
            reasons.append(f"  {name}: has {self.title} {installation.version}, not {version}")
        title = f"{self.title} {version}".strip()
        raise MissingServer(
            f"no {title} was found, and none could be fetched:\n"
            + "\n".join(reasons)
            + "\nInstall one, or name its directory with --bindir."
        )

    def _in(self, bindir: Path, version: str) -> Installation:
        found = self.version_in(bindir)
        if not found:
            raise MissingServer(f"--bindir {bindir}: {self.absent}")
        if not versions.matches(found, version):
            raise MissingServer(f"--bindir {bindir}: that is {self.title} {found}, not {version}")
        if not self._new_enough(found):
            raise MissingServer(
                f"--bindir {bindir}: that is {self.title} {found}; {self.oldest}.0 is the oldest that is started"
            )
        if not package_cache.reachable(bindir):
            raise UsageError(
                f"--bindir {bindir}: servers run as 'nobody' when you are root, and nobody can't reach it. Move it, or use another user."
            )
        return Installation(self.name, found, "path", str(bindir))

    def _new_enough(self, version: str) -> bool:
        return versions.version_key(version) >= (self.oldest,)

    def _that_runs(self, installation: Installation) -> Installation:
        """The unpacked server, if it runs here. Raises MissingServer."""
        if not self.version_in(Path(installation.location)):
            raise MissingServer(f"the unpacked server in {installation.location} doesn't run on this machine")
        return installation
