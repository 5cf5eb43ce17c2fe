"""Shared by servers that are one program: found in PATH, or unpacked from Debian packages. Not an engine."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from ciphercost.engines._found import Found
from ciphercost.host import debian, package_cache, run_in_place, versions
from ciphercost.host.installation import Installation
from ciphercost.host.package_cache import Receipt, Work
from ciphercost.host.programs import version_printed
from ciphercost.model.errors import MissingServer

PLACE = "usr/sbin"
"""Where Debian packages usually install a server's program."""


class Packaged(Found):
    """A subclass names its programs and packages, and how a program prints its version."""

    programs: tuple[str, ...]
    """Names of the server program, best first."""
    suites: Mapping[str, str]
    """Debian suites by the version they carry; the last one is the default to fetch."""
    packages: tuple[str, ...]
    place: str = PLACE
    """Where Debian packages install the program, relative to their root."""
    places: tuple[str, ...] = (PLACE, "usr/local/sbin")
    """Where the program usually lies if it is not in PATH: patterns of directories, relative to /."""
    runs_in_place: tuple[str, ...] = ()
    """Other programs from the packages that must run too: patterns relative to their root."""

    version_option: str
    version_words: str
    """Regular expression with one group, the version, for the output of `version_option`."""

    def printed_version(self, program: Path, before: Iterable[str] = ()) -> str:
        """Return the version that the program prints, e.g. `9.7.4`; empty if it is another program or doesn't run here.

        `before`: command of a program loader.
        """
        return version_printed([*before, program, self.version_option], self.version_words)

    def usual_places(self) -> Iterator[Path]:
        for program in self.programs:
            if location := shutil.which(program):
                yield Path(location).resolve().parent
        for pattern in self.places:
            yield from sorted(Path("/").glob(pattern), key=lambda path: versions.version_key(str(path)), reverse=True)

    def version_in(self, bindir: Path) -> str:
        return next(filter(None, (self.printed_version(bindir / program) for program in self.programs)), "")

    @property
    def absent(self) -> str:
        names = " or ".join(f"'{program}'" for program in self.programs)
        return f"contains no {names} that is {self.title} and runs on this machine"

    def program(self, installation: Installation) -> Path:
        """Return the path of the server program."""
        bindir = Path(installation.location)
        return next(bindir / program for program in self.programs if (bindir / program).exists())

    def sources(self) -> Mapping[str, Callable[[str], Installation]]:
        return {"debian": self._from_debian, "apt": self._from_apt}

    def _from_debian(self, version: str) -> Installation:
        """Unpack the packages of a Debian suite into a private directory."""
        fits = [
            offered
            for offered in self.suites
            if versions.matches(offered, version) or versions.matches(version, offered)
        ]
        if not fits:
            raise MissingServer(f"Debian has no such version (it has {', '.join(self.suites)})")
        suite = self.suites[fits[-1]]

        def make(work: Work) -> Receipt:
            debian.unpack_suite(suite, self.packages, work)
            return self._receipt(work, "debian")

        return package_cache.keep(self.name, f"{fits[-1]}-debian", make)

    def _from_apt(self, version: str) -> Installation:
        """Unpack the packages of this machine's own release into a private directory."""

        def make(work: Work) -> Receipt:
            with debian.of_release(work) as lists:
                if not versions.matches(offered := lists.need(self.packages[0]), version):
                    raise MissingServer(f"this system's release has {self.title} {offered}, not {version}")
                lists.unpack(self.packages, work.path)
            return self._receipt(work, "apt")

        return package_cache.keep(self.name, f"{version or debian.release()}-apt", make)

    def _receipt(self, work: Work, source: str) -> Receipt:
        """Make the unpacked server run from its private directory. Raises MissingServer if it can't."""
        program = next((name for name in self.programs if (work.path / self.place / name).exists()), "")
        if not program:
            raise MissingServer(f"the packages {', '.join(self.packages)} contain no {self.programs[0]}")
        version = self.printed_version(work.path / self.place / program, run_in_place.with_loader(work.path))
        if not version:
            raise MissingServer(f"the unpacked {program} doesn't run on this machine")
        run_in_place.run_in_place(work, [f"{self.place}/{program}", *self.runs_in_place])
        return Receipt(self.name, version, source, self.place)
