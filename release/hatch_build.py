"""Build hook: adds the Java agent to the wheel, and to a released wheel also the dependency on the Rust agent.

`make release` sets CIPHERCOST_RELEASE_JAR to the path of the Java agent's jar. The wheel then holds that jar and requires
`ciphercost-agent` of exactly its own version. Without it, as when pip installs a clone, the wheel holds the Java agent's
sources, which Maven builds when JDBC is first used, and requires no agent: no package index has the agent of a clone.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

INSIDE = "ciphercost/_java"
JAR = "ciphercost-agent-jdbc.jar"


class JavaAgent(BuildHookInterface):
    """Hatchling finds it by its base class."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Raises FileNotFoundError if the jar is not there."""
        if version == "editable":
            return
        chosen = os.environ.get("CIPHERCOST_RELEASE_JAR")
        if not chosen:
            java = Path(self.root, "agents", "java")
            build_data["force_include"] |= {str(java / name): f"{INSIDE}/{name}" for name in ("pom.xml", "src")}
            return
        if not Path(chosen).is_file():
            raise FileNotFoundError(f"CIPHERCOST_RELEASE_JAR names {chosen}, which is not a file")
        build_data["force_include"][str(Path(chosen).absolute())] = f"{INSIDE}/{JAR}"
        build_data["dependencies"].append(f"ciphercost-agent=={self.metadata.version}")
