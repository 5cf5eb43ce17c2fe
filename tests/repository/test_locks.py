"""release/locks: every Python package that `make` installs, in one version, with the hashes of its files."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCKS = ROOT / "release" / "locks"
ENTRY = re.compile(r"^(?P<what>[^\s#-][^\\]*?)\s*(?P<hashes>(?:\\\n\s+--hash=sha256:[0-9a-f]{64}\s*)*)$", re.MULTILINE)


def locked(name: str) -> dict[str, dict[str, str]]:
    """By package: (marker, version) of each entry, of which several may exist for different Pythons."""
    pins: dict[str, dict[str, str]] = {}
    for match in ENTRY.finditer((LOCKS / f"{name}.txt").read_text()):
        entry = Requirement(match["what"])
        assert match["hashes"], f"{name}.txt has no hash of {entry.name}"
        assert entry.url is None
        (pin,) = entry.specifier
        assert pin.operator == "=="
        pins.setdefault(canonicalize_name(entry.name), {})[str(entry.marker)] = pin.version
    return pins


def asked(text: str) -> list[Requirement]:
    lines = [line.strip() for line in text.splitlines()]
    return [Requirement(line) for line in lines if line and not line.startswith(("#", "-"))]


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RUN = [Requirement(line) for line in PROJECT["project"]["dependencies"]]
DEV = [Requirement(line) for line in PROJECT["project"]["optional-dependencies"]["dev"]]
BUILD = [Requirement(line) for line in PROJECT["build-system"]["requires"]]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("run", RUN),
        ("dev", [*RUN, *DEV]),
        ("fuzz", [Requirement(line) for line in PROJECT["project"]["optional-dependencies"]["fuzz"]]),
        ("audit", asked((LOCKS / "audit.in").read_text())),
        ("tools", [*BUILD, *asked((LOCKS / "tools.in").read_text())]),
        ("release", [*BUILD, *(r for lock in ("tools", "release") for r in asked((LOCKS / f"{lock}.in").read_text()))]),
    ],
)
def test_a_lock_has_what_is_asked_for_in_a_version_that_fits(name: str, wanted: list[Requirement]) -> None:
    has = locked(name)
    for requirement in wanted:
        versions = has.get(canonicalize_name(requirement.name))
        assert versions, f"{name}.txt lacks {requirement.name}: run `make lock`"
        for version in versions.values():
            assert requirement.specifier.contains(version, prereleases=True), (
                f"{requirement} and {version}: run `make lock`"
            )


@pytest.mark.parametrize("name", ["run", "fuzz", "tools", "release", "audit"])
def test_all_locks_have_the_same_versions(name: str) -> None:
    dev = locked("dev")
    for package, versions in locked(name).items():
        assert set(versions.values()) <= set(dev.get(package, versions).values()), package


def test_make_installs_nothing_without_hashes() -> None:
    text = "".join((ROOT / name).read_text() for name in ("Makefile", "release/wheels.sh", "release/audit.sh"))
    commands = [line.strip() for line in text.splitlines() if "echo" not in line]
    installs = [line for line in commands if re.search(r'pip"? (install|wheel)\b', line)]
    assert len(installs) > 3
    for line in installs:
        assert "--require-hashes" in line or "--no-deps" in line, line
