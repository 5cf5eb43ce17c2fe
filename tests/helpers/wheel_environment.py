"""An environment with what `pip install` of the wheels gives a user, and nothing else: no package that only development needs.

The wheel is built from this clone. The agent is the one that is installed here, packed into a wheel, since building it takes minutes. The
other packages are this environment's own, by what the wheel requires: the locks have one version of each for both. So nothing needs a
network.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from sbom import python
from sbom.document import rendered

import warm_wheel
from ciphercost.load import agent
from ciphercost.load.jdbc import java
from ciphercost.model.errors import CiphercostError
from ciphercost.model.version import VERSION

ROOT = Path(__file__).parents[2]
PLACE = ROOT / ".make" / "wheel"
"""It is kept between test runs, and shared by the processes of one."""
INPUTS = (
    "src",
    "agents/java/src",
    "agents/java/pom.xml",
    "agents/python",
    "pyproject.toml",
    "README.md",
    "release/hatch_build.py",
    "release/man_page.py",
)
CLEARED = re.compile(r"PYTHON|VIRTUAL_ENV|CIPHERCOST_AGENT|CIPHERCOST_RELEASE")
"""Variables by which something of this environment would reach the other one."""


class Environment(NamedTuple):
    """A directory that `python -m venv` made."""

    place: Path

    @property
    def bin(self) -> Path:
        return self.place / "bin"

    @property
    def variables(self) -> dict[str, str]:
        """Those of a process in it."""
        kept = {name: value for name, value in os.environ.items() if not CLEARED.match(name)}
        others = [each for each in os.environ["PATH"].split(":") if Path(each) != Path(sys.executable).parent]
        return kept | {"PATH": ":".join([str(self.bin), *others])}

    @property
    def warm(self) -> dict[str, str]:
        """Variables of a process whose `ciphercost` starts as a fork."""
        variables = self.variables
        return variables | {"PATH": f"{_warm(self.place)}:{variables['PATH']}"}

    def ciphercost(
        self, argv: Sequence[str | Path], cwd: Path, more: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as a fork. `more`: variables."""
        return self.run([_warm(self.place) / "ciphercost", *argv], cwd, more)

    def run(
        self, argv: Sequence[str | Path], cwd: Path, more: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of it and capture the output. `more`: variables. stdin is empty."""
        return subprocess.run(
            [self.bin / argv[0], *argv[1:]], cwd=cwd, env={**self.variables, **(more or {})}, capture_output=True, text=True, check=False,
            timeout=600, stdin=subprocess.DEVNULL,
        )  # fmt: skip


@functools.cache
def _warm(place: Path) -> Path:
    """The directory with the program whose commands are forks in this environment."""
    return warm_wheel.started(place, Environment(place).variables)


@functools.cache
def made(extra: str = "") -> Environment:
    """The environment, with an extra's packages too if one is named. Builds it if it is not there or something has changed since."""
    place = PLACE / (extra or "plain")
    PLACE.mkdir(parents=True, exist_ok=True)
    stamp = place / "made-from"
    with (PLACE / f"{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = _digest()
        if not stamp.is_file() or stamp.read_text() != wanted:
            shutil.rmtree(place, ignore_errors=True)
            _make(place, extra)
            stamp.write_text(wanted)
    return Environment(place)


def _digest() -> str:
    """Changes with every file that the environment is made of."""
    found = [
        Path(agent.find()),
        Path(sys.executable).resolve(),
        Path(__file__),
        *Path(sysconfig.get_path("purelib")).glob("*.dist-info"),
    ]
    for each in INPUTS:
        path = ROOT / each
        found += (
            [path] if path.is_file() else [file for file in path.rglob("*") if file.suffix != ".pyc" and file.is_file()]
        )
    states = sorted((str(each), each.stat().st_mtime_ns, each.stat().st_size) for each in found)
    return hashlib.sha256(repr(states).encode()).hexdigest()


def _make(place: Path, extra: str) -> None:
    venv.create(place, with_pip=False, symlinks=True)
    wheels = place / "wheels"
    wheels.mkdir()
    own = [built(wheels), agent_wheel(wheels)]
    into = Path(sysconfig.get_path("purelib", vars={"base": str(place), "platbase": str(place)}))
    pip = [sys.executable, "-m", "pip", "--python", str(place / "bin" / "python")]
    _succeed([*pip, "install", "--quiet", "--no-index", "--no-deps", *map(str, own)])
    for each in required(own[0], extra):
        _copy(metadata.distribution(each), into, place / "bin")
    _succeed([*pip, "check"])


def required(wheel: Path, extra: str = "") -> set[str]:
    """Names of the distributions that the wheel needs, directly or not, without the agent; and pip, which every environment has."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        asked = metadata.PathDistribution(zipfile.Path(archive, name.removesuffix("METADATA"))).requires or []
    found, waiting = {"pip"}, list(_applying(asked, {extra}))
    while waiting:
        each = waiting.pop()
        name = canonicalize_name(each.name)
        if name != agent.DISTRIBUTION:
            more = _applying(metadata.distribution(name).requires or [], each.extras)
            waiting += [one for one in more if canonicalize_name(one.name) not in found or one.extras]
            found.add(name)
    return found


def _applying(asked: Iterable[str], extras: set[str]) -> Iterator[Requirement]:
    for each in map(Requirement, asked):
        if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in (extras or {""})):
            yield each


def _copy(distribution: metadata.Distribution, into: Path, scripts: Path) -> None:
    """Give it this distribution: hard links to its files, and its programs with the other Python's name."""
    here = Path(sysconfig.get_path("purelib"))
    for each in distribution.files or []:
        source = Path(os.path.normpath(str(distribution.locate_file(each))))
        if not source.is_file():
            continue
        if source.parent == Path(sysconfig.get_path("scripts")):
            content = source.read_bytes().replace(sys.executable.encode(), str(scripts / "python").encode(), 1)
            (scripts / source.name).write_bytes(content if content.startswith(b"#!") else source.read_bytes())
            (scripts / source.name).chmod(0o755)
        elif source.is_relative_to(here):
            target = into / source.relative_to(here)
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                target.hardlink_to(source)
            except OSError:  # another file system
                shutil.copy2(source, target)


def built(place: Path) -> Path:
    """The wheel of this clone, as `make release` builds it; without the Java agent's jar if that was not built here."""
    chosen = {"SOURCE_DATE_EPOCH": "1700000000"}
    try:
        jar = java.jar(fetch=False)
    except CiphercostError:
        pass
    else:
        listed = place / "ciphercost.cdx.json"
        listed.write_text(rendered(*python.packages(VERSION, jar), {}, {}))
        chosen |= {"CIPHERCOST_RELEASE_JAR": str(jar), "CIPHERCOST_RELEASE_SBOM": str(listed)}
    _succeed([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)], **chosen)
    (wheel,) = place.glob("ciphercost-*.whl")
    return wheel


def agent_wheel(place: Path) -> Path:
    """The agent that is installed here, as a wheel."""
    name = f"ciphercost_agent-{VERSION}"
    tag = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    wheel = place / f"{name}-{tag}.whl"
    files = {
        f"{name}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {agent.DISTRIBUTION}\nVersion: {VERSION}\n".encode(),
        f"{name}.dist-info/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
        f"{name}.data/scripts/{agent.DISTRIBUTION}": Path(agent.find()).read_bytes(),
    }
    record = f"{name}.dist-info/RECORD"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = (stat.S_IFREG | 0o755) << 16  # pip makes a file executable if it was
            archive.writestr(entry, content)
        archive.writestr(record, "".join(f"{each},,\n" for each in [*files, record]))
    return wheel


def _succeed(argv: list[str], **more: str) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CIPHERCOST_RELEASE_")}
    done = subprocess.run(argv, cwd=ROOT, env=kept | more, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
