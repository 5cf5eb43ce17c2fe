"""The Python package: what it needs at run time, as locked in release/locks/run.txt, both agents, and what these hold."""

from __future__ import annotations

import hashlib
import subprocess
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from xml.etree import ElementTree

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from . import rust
from .document import Package
from .native import libraries

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "release" / "locks" / "run.txt"
POM = ROOT / "agents" / "java" / "pom.xml"
SPACE = {"m": "http://maven.apache.org/POM/4.0.0"}

UNSTATED = {"jinja2": "BSD-3-Clause", "markdown-it-py": "MIT", "mdurl": "MIT"}
"""Licences of packages whose metadata state none as an SPDX expression; read in their LICENSE files."""
JARS = {"org.hdrhistogram:HdrHistogram": "CC0-1.0 OR BSD-2-Clause"}
"""Licences of the libraries in the Java agent's jar."""


def locked() -> dict[str, Distribution]:
    """What is installed of run.txt, by name. Raises SystemExit if one that this Python needs is missing or has another version."""
    lines = [line.rstrip(" \\") for line in LOCK.read_text().splitlines() if line[:1].isalnum()]
    found: dict[str, Distribution] = {}
    for each in map(Requirement, lines):
        if each.marker is not None and not each.marker.evaluate():
            continue
        try:
            installed = distribution(each.name)
        except PackageNotFoundError:
            raise SystemExit(
                f"sbom: {each.name} is not installed; run pip install -r {LOCK.relative_to(ROOT)}"
            ) from None
        if not each.specifier.contains(installed.version, prereleases=True):
            raise SystemExit(
                f"sbom: {each} is locked, but {installed.version} is installed; run pip install -r {LOCK.relative_to(ROOT)}"
            )
        found[canonicalize_name(each.name)] = installed
    return found


def licence(name: str, installed: Distribution) -> str:
    """Its licence as an SPDX expression. Raises SystemExit if nothing states one."""
    for field in ("License-Expression", "License"):
        for stated in installed.metadata.get_all(field) or []:
            if stated and "\n" not in stated:  # otherwise it is the licence's whole text
                return str(stated)
    if name not in UNSTATED:
        raise SystemExit(
            f"sbom: {name} {installed.version} states no licence as an SPDX expression; read its LICENSE file and add it to "
            "UNSTATED in release/sbom/python.py"
        )
    return UNSTATED[name]


def packages(version: str, jar: Path) -> tuple[Package, list[Package]]:
    """`ciphercost` of this version, and what it consists of and needs."""
    found = locked()
    made = {
        name: Package("pypi", name, installed.version, licence(name, installed)) for name, installed in found.items()
    }
    for name, installed in found.items():
        made[name].needs = sorted(made[other].purl for other in _needs(installed.requires or []) if other in made)
    native = libraries(rust.locked())
    agent = Package("pypi", "ciphercost-agent", version, "Apache-2.0", needs=[each.purl for each in native])
    java = _java(jar)
    direct = [made[name].purl for name in sorted(_direct())]
    product = Package("pypi", "ciphercost", version, "Apache-2.0", needs=[*direct, agent.purl, java[0].purl])
    return product, [*made.values(), agent, *native, *java]


def tools() -> dict[str, str]:
    """Program -> version."""
    done = subprocess.run(["javac", "-version"], capture_output=True, text=True, check=True)
    return {"javac": done.stdout.split()[1], "hatchling": distribution("hatchling").version}


def _direct() -> set[str]:
    return _needs(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"])


def _needs(requirements: list[str]) -> set[str]:
    asked = map(Requirement, requirements)
    return {
        canonicalize_name(each.name) for each in asked if each.marker is None or each.marker.evaluate({"extra": ""})
    }


def _java(jar: Path) -> list[Package]:
    """The Java agent, and the libraries that its jar holds."""
    project = ElementTree.parse(POM).getroot()  # noqa: S314  our own file

    def text(element: ElementTree.Element, name: str) -> str:
        return element.findtext(f"m:{name}", namespaces=SPACE) or ""

    held = []
    for each in project.iterfind("m:dependencies/m:dependency", SPACE):
        group, name = text(each, "groupId"), text(each, "artifactId")
        held.append(Package("maven", name, text(each, "version"), JARS[f"{group}:{name}"], group=group))
    own = Package(
        "maven", text(project, "artifactId"), text(project, "version"), "Apache-2.0", group=text(project, "groupId"),
        sha256=hashlib.sha256(jar.read_bytes()).hexdigest(), needs=[each.purl for each in held],
    )  # fmt: skip
    return [own, *held]
