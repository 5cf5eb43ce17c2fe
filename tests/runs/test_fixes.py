"""`ciphercost doctor --fix`: one line for each thing that is missing, and commands that install it."""

from __future__ import annotations

import os
import shlex
import sys
from importlib import metadata
from pathlib import Path

import pytest

import warm
from ciphercost.host import programs
from ciphercost.runs import fixes
from ciphercost.runs.fixes import Fix
from test_missing_agent import Installed

PREFIX = "" if os.geteuid() == 0 else "sudo "


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with stand-ins for apt-get, its kin and sudo, which write down how they were called. Nothing else is found."""
    place = tmp_path / "bin"
    place.mkdir()
    for name in ("apt-get", "apt-cache", "apt-config", "dpkg-deb"):
        put(place, name, f'echo "{name} $*" >> {tmp_path}/calls')
    put(place, "sudo", 'exec "$@"')
    monkeypatch.setenv("PATH", str(place))
    monkeypatch.setenv("CIPHERCOST_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return place


def put(place: Path, name: str, script: str) -> None:
    (place / name).write_text(f"#!/bin/sh\n{script}\n")
    (place / name).chmod(0o755)


def fixed(*more: str, cwd: Path) -> tuple[int, list[str], str]:
    done = warm.run(["doctor", *more], cwd=cwd)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout.splitlines(), done.stderr


@pytest.mark.usefixtures("bare")
def test_each_missing_program_is_one_line_that_names_its_package(tmp_path: Path) -> None:
    status, lines, _ = fixed("--fix", cwd=tmp_path)
    assert status == 0
    for program in ("mvn", "fio", "java"):
        (package,) = {entry.package for entry in (*programs.PROGRAMS, programs.JAVA) if entry.name == program}
        assert [line for line in lines if line.startswith(f"# missing: {program} (Debian package {package})")]
    (command,) = [line for line in lines if "apt-get" in line]
    assert command.startswith(f"{PREFIX}apt-get install --yes maven ")
    assert {"maven", "fio", "default-jre-headless"} <= set(shlex.split(command))
    assert not (tmp_path / "calls").exists()


@pytest.mark.usefixtures("bare")
def test_the_doctor_has_one_line_for_each_missing_program_too(tmp_path: Path) -> None:
    _, lines, _ = fixed(cwd=tmp_path)
    for program, package in (("mvn", "maven"), ("fio", "fio")):
        assert any(line.startswith(f"WARN    {program}: ") and f"apt-get install {package})" in line for line in lines)


@pytest.mark.usefixtures("bare")
def test_each_missing_server_has_the_command_that_fetches_it(tmp_path: Path) -> None:
    _, lines, _ = fixed("--fix", cwd=tmp_path)
    at = lines.index("# missing: a server for valkey")
    assert lines[at + 1] == "ciphercost install valkey"
    assert "ciphercost install sqlite" not in lines
    assert all(line.startswith(("#", "ciphercost install ", f"{PREFIX}apt-get install ")) for line in lines)


def test_without_apt_get_packages_are_named_and_no_command(bare: Path, tmp_path: Path) -> None:
    (bare / "apt-get").unlink()
    _, lines, _ = fixed("--fix", cwd=tmp_path)
    assert any("Debian package maven" in line for line in lines)
    assert not any("apt-get" in line for line in lines)


@pytest.mark.usefixtures("bare")
def test_a_missing_agent_has_pips_command_where_one_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CIPHERCOST_AGENT", raising=False)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    released = Installed("", "ciphercost-agent==1.2.3")
    monkeypatch.setattr(metadata, "distribution", lambda name: released)
    assert fixes.fixes()[0].shown() == f"{tmp_path}/python -m pip install ciphercost-agent==1.2.3"
    monkeypatch.setattr(metadata, "distribution", lambda name: Installed(""))
    assert fixes.fixes()[0].command == ()
    assert "clone of ciphercost's sources" in fixes.fixes()[0].words()


def test_yes_runs_every_command_and_says_which_failed(bare: Path, tmp_path: Path) -> None:
    put(bare, "broken", "exit 7")
    apt = Fix(("mvn",), tuple(programs.install_command(["maven"])))
    printed: list[str] = []
    assert fixes.run([apt], printed.append)
    assert (tmp_path / "calls").read_text() == "apt-get install --yes maven\n"
    assert not fixes.run(
        [Fix(("it",), ("broken",)), Fix(("one",), ("nowhere", "--now")), Fix(("two",)), apt], printed.append
    )
    assert "# exit status 7" in printed
    assert any(line.startswith("# nowhere was not found") and line.endswith(" --now") for line in printed)
    assert (tmp_path / "calls").read_text() == "apt-get install --yes maven\n" * 2


def test_a_fix_can_be_pasted_into_a_shell() -> None:
    fix = Fix(("a", "b"), (sys.executable, "-m", "ciphercost", "install", "my sql"))
    assert fix.words() == "# missing: a\n# missing: b\nciphercost install 'my sql'"


def test_yes_alone_is_refused(tmp_path: Path) -> None:
    status, lines, error = fixed("--yes", cwd=tmp_path)
    assert (status, lines) == (2, [])
    assert "ciphercost doctor --fix --yes" in error
