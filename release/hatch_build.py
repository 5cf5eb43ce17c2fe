"""Build hook: adds the agents of other languages and the man page to the wheel, and to a released wheel also the dependency on the Rust agent.

`make release` sets CIPHERCOST_RELEASE_JAR to the path of the Java agent's jar, and CIPHERCOST_RELEASE_SBOM to the path of
the wheel's SBOM. The wheel then holds both and requires `ciphercost-agent` of exactly its own version. Without them, as when
pip installs a clone, the wheel holds the Java agent's sources, which Maven builds when JDBC is first used, and requires no
agent: no package index has the agent of a clone.
"""

from __future__ import annotations

import os
import runpy
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

INSIDE = "ciphercost/_java"
GO = "ciphercost/_go"
JAR = "ciphercost-agent-jdbc.jar"
PYTHON = "ciphercost_agent_python"
"""The Python agent's package, which needs no building."""


MAN_PAGE = "share/man/man1/ciphercost.1"
"""Its place below the prefix that pip installs into, where `man` looks."""


class AgentAndManPage(BuildHookInterface):
    """Hatchling finds it by its base class."""

    _temporary: tempfile.TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Raises FileNotFoundError if the jar or the SBOM is not there."""
        if version == "editable":
            return
        self._add_man_page(build_data)
        package = Path(self.root, "agents", "python", PYTHON)
        for file in sorted(package.rglob("*.py")):
            build_data["force_include"][str(file)] = (
                f"ciphercost/_python/{PYTHON}/{file.relative_to(package).as_posix()}"
            )
        self._add_go_agent(build_data)
        node = Path(self.root, "agents", "node")
        build_data["force_include"] |= {
            str(node / name): f"ciphercost/_node/{name}" for name in ("package.json", "src")
        }
        if not os.environ.get("CIPHERCOST_RELEASE_JAR"):
            java = Path(self.root, "agents", "java")
            build_data["force_include"] |= {str(java / name): f"{INSIDE}/{name}" for name in ("pom.xml", "src")}
            return
        build_data["force_include"][_file("CIPHERCOST_RELEASE_JAR")] = f"{INSIDE}/{JAR}"
        build_data["sbom_files"].append(_file("CIPHERCOST_RELEASE_SBOM"))
        build_data["dependencies"].append(f"ciphercost-agent=={self.metadata.version}")

    def finalize(self, *_: object) -> None:
        """Called when the wheel is written."""
        if self._temporary is not None:
            self._temporary.cleanup()

    def _add_go_agent(self, build_data: dict[str, Any]) -> None:
        """Its sources, in every wheel: `go` builds it when one of its drivers is first used."""
        go = Path(self.root, "agents", "go")
        files = [path for path in sorted(go.iterdir()) if path.suffix in (".go", ".mod", ".sum")]
        build_data["force_include"] |= {str(path): f"{GO}/{path.name}" for path in files}

    def _add_man_page(self, build_data: dict[str, Any]) -> None:
        made = runpy.run_path(str(Path(self.root, "release", "man_page.py")))["made"]()
        self._temporary = tempfile.TemporaryDirectory(prefix="ciphercost-build-")
        page = Path(self._temporary.name, "ciphercost.1")
        page.write_text(made)
        build_data["shared_data"][str(page)] = MAN_PAGE


def _file(variable: str) -> str:
    """The absolute path of the file that this environment variable names."""
    chosen = Path(os.environ.get(variable, ""))
    if not chosen.is_file():
        raise FileNotFoundError(f"{variable} names {chosen}, which is not a file")
    return str(chosen.absolute())
