"""fixes: what `ciphercost doctor` found missing -> commands that install it, to print or to run."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

from ciphercost import engines
from ciphercost.host import apt, debian, programs
from ciphercost.host.environment import child_environment
from ciphercost.load import agent
from ciphercost.load.jdbc import java
from ciphercost.model.errors import CiphercostError, MissingServer


class Fix(NamedTuple):
    """What is missing, one line for each thing, and the command that installs all of it."""

    missing: tuple[str, ...]
    command: tuple[str, ...] = ()
    """Empty: this system has no command for it."""

    def words(self) -> str:
        """Lines that can be pasted into a shell."""
        return "\n".join([*(f"# missing: {line}" for line in self.missing), *([self.shown()] if self.command else [])])

    def shown(self) -> str:
        command = list(self.command)
        if command[:3] == [sys.executable, "-m", "ciphercost"]:
            command[:3] = ["ciphercost"]
        return shlex.join(command)


def fixes() -> list[Fix]:
    """One fix for each installer: pip for the agent, apt-get for all programs, `ciphercost install` for each server."""
    return [*_agent(), *_programs(), *_servers()]


def _agent() -> list[Fix]:
    try:
        agent.find()
    except CiphercostError:
        command = tuple(agent.install_command())
        return [
            Fix((f"ciphercost-agent, which makes the load{'' if command else f'. {agent.how_to_install()}'}",), command)
        ]
    return []


def _programs() -> list[Fix]:
    missing = [program for program in programs.PROGRAMS if not program.found()]
    try:
        java.find()
    except MissingServer:
        missing.append(programs.JAVA)
    lines = [f"{program.name} (Debian package {program.package}); {program.use}" for program in missing]
    packages = [program.package for program in missing]
    if not apt.possible() and not debian.KEYS.exists():
        lines.append(f"{debian.KEYS} (Debian package debian-archive-keyring); servers of other Debian releases need it")
        packages.append("debian-archive-keyring")
    if not lines:
        return []
    return [Fix(tuple(lines), tuple(programs.install_command(list(dict.fromkeys(packages)))))]


def _servers() -> list[Fix]:
    missing = []
    for name in engines.names():
        if engines.get(name).foreign:
            continue
        try:
            installations = list(engines.get(name).available())
        except CiphercostError:
            continue  # the agent is missing, or the doctor says what is wrong
        if not installations:
            missing.append(Fix((f"a server for {name}",), (sys.executable, "-m", "ciphercost", "install", name)))
    return missing


def run(needed: list[Fix], say: Callable[[str], None]) -> bool:
    """Run the commands, one after the other; whether all succeeded. A command that fails does not stop the others."""
    done = True
    for fix in needed:
        say(fix.words())
        if not fix.command:
            done = False
        elif shutil.which(fix.command[0]) is None:
            say(f"# {fix.command[0]} was not found; run as root: {shlex.join(fix.command[1:])}")
            done = False
        elif status := subprocess.run(fix.command, check=False, env=child_environment(registries=True)).returncode:
            say(f"# exit status {status}")
            done = False
    return done
