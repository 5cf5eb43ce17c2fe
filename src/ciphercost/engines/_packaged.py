"""_packaged: what servers have in common that are one program, in PATH or of Debian's packages in a private root. No engine itself."""

from __future__ import annotations

import shutil
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ciphercost import sources
from ciphercost.engines import Installation
from ciphercost.engines._found import Found
from ciphercost.errors import MissingServer, UsageError, nearest
from ciphercost.sources import Receipt, Work

PLACE = "usr/sbin"
"""Where Debian's packages have a server's program."""


class Packaged(Found):
    """A subclass says what its programs and packages are, and how a program says its version."""

    programs: tuple[str, ...]
    """Names of the server's program, best first."""
    suites: Mapping[str, str]
    """Debian suites by the version they carry; the last is what is fetched where none is asked for."""
    packages: tuple[str, ...]
    places: tuple[str, ...] = (PLACE, "usr/local/sbin")
    """Where it usually is when it is not in PATH: patterns of directories, relative to /."""
    runs_in_place: tuple[str, ...] = ()
    """Other programs of the packages that are to run: patterns relative to their root."""

    @abstractmethod
    def said_version(self, program: Path, before: Iterable[str] = ()) -> str:
        """`9.7.4`, as the program says; empty where that is no server of this kind, or doesn't run here. `before`: a program loader."""

    def usual_places(self) -> Iterator[Path]:
        for program in self.programs:
            if found := shutil.which(program):
                yield Path(found).resolve().parent
        for pattern in self.places:
            yield from sorted(Path("/").glob(pattern), key=lambda path: sources.version_key(str(path)), reverse=True)

    def version_in(self, bindir: Path) -> str:
        return next(filter(None, (self.said_version(bindir / program) for program in self.programs)), "")

    @property
    def absent(self) -> str:
        names = " or ".join(f"'{program}'" for program in self.programs)
        return f"no {names} there that is {self.title} and runs on this machine"

    def program(self, installation: Installation) -> Path:
        """The server's program."""
        bindir = Path(installation.location)
        return next(bindir / each for each in self.programs if (bindir / each).exists())

    def install(self, version: str = "", source: str = "") -> Installation:
        """The packages of a Debian suite, in a private root."""
        if source not in ("", "debian"):
            raise UsageError(f"{self.name} can't be fetched from '{source}': {nearest(source, ['debian'])}")
        title = f"{self.title} {version}".strip()
        fits = [each for each in self.suites if sources.matches(each, version) or sources.matches(version, each)]
        wanted = fits[-1] if fits else ""
        if not wanted:
            raise MissingServer(
                f"no {title} was found, and Debian has none (it has {', '.join(self.suites)}). "
                "Install one, or name its directory with --bindir."
            )
        try:
            installation = sources.keep(
                self.name, f"{wanted}-debian", lambda work: self._unpack(self.suites[wanted], work)
            )
        except MissingServer as error:
            raise MissingServer(
                f"no {title} was found, and none could be fetched:\n  debian: {error}\n"
                "Install one, or name its directory with --bindir."
            ) from None
        if not sources.matches(installation.version, version):
            raise MissingServer(f"Debian {self.suites[wanted]} has {self.title} {installation.version}, not {version}")
        return installation

    def _unpack(self, suite: str, work: Work) -> Receipt:
        sources.debian(suite, self.packages, work)
        program = next((each for each in self.programs if (work.path / PLACE / each).exists()), "")
        if not program:
            raise MissingServer(f"the packages {', '.join(self.packages)} of {suite} hold no {self.programs[0]}")
        version = self.said_version(work.path / PLACE / program, sources.with_loader(work.path))
        if not version:
            raise MissingServer(f"the unpacked {program} doesn't run on this machine")
        sources.run_in_place(work, [f"{PLACE}/{program}", *self.runs_in_place])
        return Receipt(self.name, version, "debian", PLACE)
