"""apt: unpacks packages and their dependencies with `apt-get` and `dpkg-deb` only. Needs no root and changes nothing on
the host.

apt works in its own directories here and sees no package as installed, so it fetches everything needed. Package lists,
keys, proxies and preferences are the host's. The host's hooks are not used: they would clean the host's own cache.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

from ciphercost.host.environment import child_environment
from ciphercost.model.errors import MissingServer

PROGRAMS = ("apt-get", "apt-cache", "apt-config", "dpkg-deb")
MERGED = ("bin", "sbin", "lib", "lib64")
"""Links into /usr that a system gets from its installer, not from a package."""
KEPT = re.compile(r"(?:Acquire::(?!IndexTargets|Changelogs|Languages)|APT::Architecture)")
"""Host settings that are kept: proxies, mirror credentials, certificates, checks, architecture."""
CONFIGURATION = """\
Dir::State "{home}/state/";
Dir::State::status "{home}/status";
Dir::Cache "{home}/cache/";
Dir::Log "{home}/log/";
Dir::Etc::parts "{home}/none/";
Dir::Etc::main "{home}/none/apt.conf";
APT::Sandbox::User "root";
APT::Install-Recommends "false";
APT::Get::Assume-Yes "true";
Acquire::Languages "none";
Acquire::Retries "1";
"""

Run = Callable[..., str]
"""`run(command, failure, env)`: returns what the command printed. Raises MissingServer."""


def possible() -> str:
    """Why apt can't unpack packages here; empty if it can."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if not missing:
        return ""
    verb = "was" if len(missing) == 1 else "were"
    return f"{', '.join(missing)} {verb} not found (only Debian and its relatives have them)"


class Apt:
    """Fresh package lists of the host's own sources, or of `sources` (lines of a sources.list), in a directory that is
    removed after `with`.
    """

    def __init__(self, home: Path, run: Run, sources: str = "") -> None:
        self.home = home
        self._run = run
        self._sources = sources
        self._env = child_environment({"APT_CONFIG": str(home / "apt.conf"), "LC_ALL": "C"}, registries=True)
        self._update_output = ""

    def __enter__(self) -> Apt:
        for name in ("state/lists/partial", "cache/archives/partial", "log", "none"):
            (self.home / name).mkdir(parents=True)
        (self.home / "status").touch()
        text = _host_settings() + CONFIGURATION.format(home=self.home)
        if self._sources:
            (self.home / "sources.list").write_text(self._sources)
            text += f'Dir::Etc::sourcelist "{self.home}/sources.list";\nDir::Etc::sourceparts "{self.home}/none/";\n'
            text += f'Dir::Etc::preferencesparts "{self.home}/none/";\nDir::Etc::preferences "{self.home}/none/p";\n'
        configuration = self.home / "apt.conf"
        configuration.touch(mode=0o600)  # it may contain a proxy's password
        configuration.write_text(text)
        # Continue without a list that can't be fetched: another list may have the package.
        self._update_output = self._run(
            ["apt-get", "-q", "update"], "apt-get could not update its package lists", self._env
        )
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.home, ignore_errors=True)

    def version(self, package: str) -> str:
        """The version of a package that would be installed, without its epoch: `10.11.14-0+deb12u2`. Empty: there is no
        such package.
        """
        command = ["apt-cache", "show", "--no-all-versions", package]
        done = subprocess.run(command, env=self._env, capture_output=True, text=True, check=False)
        match = re.search(r"^Version: (?:\d+:)?(\S+)", done.stdout, re.MULTILINE)
        return match[1] if match else ""

    def need(self, package: str) -> str:
        """Like `version`, for a package that must exist. Raises MissingServer, with the errors of the package lists."""
        if not (version := self.version(package)):
            trouble = [
                line for line in self._update_output.splitlines() if line.startswith(("W: Failed", "E:", "W: GPG"))
            ]
            reason = f": {trouble[0][3:]}" if trouble else ""
            raise MissingServer(f"this system's release has no package {package}{reason}")
        return version

    def unpack(self, packages: Iterable[str], root: Path) -> None:
        """Unpack these packages and their dependencies into the directory `root`, without configuring them. Raises
        MissingServer.
        """
        names = list(packages)
        failure = f"apt-get could not fetch {', '.join(names)}"
        self._run(["apt-get", "-q", "--download-only", "install", *names], failure, self._env)
        for name in MERGED:
            (root / "usr" / name).mkdir(parents=True, exist_ok=True)
            (root / name).symlink_to(f"usr/{name}")
        files = sorted(self.home.glob("cache/archives/*.deb"))
        if not files:
            raise MissingServer(f"{failure}: it fetched nothing")
        script = 'for file; do dpkg-deb -x "$file" "$0" || exit; done'
        self._run(["sh", "-c", script, str(root), *map(str, files)], "dpkg-deb could not unpack a package", self._env)


def _host_settings() -> str:
    done = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=False, env=child_environment())
    return "".join(f"{line}\n" for line in done.stdout.splitlines() if KEPT.match(line))
