"""Keep one version in all distributions. `version.py` checks that they agree; `version.py 0.2.0` writes a new one.

The place is src/ciphercost/model/version.py. Cargo, Maven, the Python and Node agents and CITATION.cff can't read it, so they hold copies. Prints the version.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = "src/ciphercost/model/version.py"
NUMBER = r"\d+\.\d+\.\d+"
PLACES = {
    SOURCE: r'^VERSION = "(.*)"$',
    "agents/rust/Cargo.toml": r'^version = "(.*)"$',
    "agents/rust/Cargo.lock": r'^name = "ciphercost-agent"\nversion = "(.*)"$',
    "agents/java/pom.xml": r"<artifactId>ciphercost-agent-jdbc</artifactId>\n  <version>(.*)</version>",
    "agents/python/ciphercost_agent_python/__init__.py": r'^VERSION = "(.*)"$',
    "agents/node/package.json": r'^  "version": "(.*)",$',
    "CITATION.cff": r"^version: (.*)$",
}
"""File -> where it states the version; the first place in the file counts."""


def versions(root: Path = ROOT) -> dict[str, str]:
    """File -> the version that it states. Raises SystemExit if one states none."""
    return {name: _find(root / name, pattern)[1] for name, pattern in PLACES.items()}


def write(version: str, root: Path = ROOT) -> None:
    """Write this version to all files."""
    for name, pattern in PLACES.items():
        text = (root / name).read_text()
        start, end = _find(root / name, pattern).span(1)
        (root / name).write_text(text[:start] + version + text[end:])


def _find(path: Path, pattern: str) -> re.Match[str]:
    found = re.search(pattern, path.read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit(f"{path} states no version; expected {pattern}")
    return found


def main(arguments: list[str]) -> None:
    if arguments:
        if not re.fullmatch(NUMBER, arguments[0]):
            raise SystemExit(f"{arguments[0]}: not a version; write three numbers, as in 0.2.0")
        write(arguments[0])
    found = versions()
    if len(set(found.values())) > 1:
        stated = "".join(f"\n  {version}  {name}" for name, version in found.items())
        raise SystemExit(f"The versions differ; `make version TO={found[SOURCE]}` makes them equal:{stated}")
    print(found[SOURCE])


if __name__ == "__main__":
    main(sys.argv[1:])
