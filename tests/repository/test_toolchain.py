"""`make quick` checks what the build needs before it builds, and prints the packages that the README lists for this system."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from conftest import Require

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
RUST = tomllib.loads((ROOT / "agents/rust/Cargo.toml").read_text())["package"]["rust-version"]
PACKAGES = dict(re.findall(r"^    ((?:Debian|Ubuntu) [\d.]+) +(apt-get install .*)$", README, re.MULTILINE))
RELEASES = {
    "Debian 12": 'NAME="Debian GNU/Linux"\nVERSION_ID="12"\nID=debian\n',
    "Debian 13": 'NAME="Debian GNU/Linux"\nVERSION_ID="13"\nID=debian\n',
    "Ubuntu 24.04": 'NAME="Ubuntu"\nVERSION_ID="24.04"\nID=ubuntu\n',
    "Ubuntu 26.04": 'NAME="Ubuntu"\nVERSION_ID="26.04"\nID=ubuntu\n',
}
CHECKED = ("rustc", "cargo", "cc", "perl")


class Machine:
    """A PATH with stand-ins for the build tools, and a copy of the files that `make quick` reads before it builds."""

    def __init__(self, place: Path) -> None:
        self.programs = place / "bin"
        self.clone = place / "clone"
        self.release = place / "os-release"
        self.programs.mkdir()
        for directory in os.environ["PATH"].split(":"):
            for path in Path(directory).glob("*") if Path(directory).is_dir() else ():
                if path.name not in (*CHECKED, "python3"):
                    with_name = self.programs / path.name
                    if not with_name.is_symlink():
                        with_name.symlink_to(path)
        self.put("rustc", f"echo 'rustc {RUST}.1 (4eb161250 2025-03-15)'")
        self.put("cargo", f"echo 'cargo {RUST}.1 (d73d2caf9 2024-12-31)'")
        self.put("cc", "exit 0")
        self.put("perl", "exit 0")
        self.put("python3", f'exec {sys.executable} "$@"')
        for name in (
            "Makefile",
            "README.md",
            "pyproject.toml",
            "release/locks/tools.txt",
            "release/locks/run.txt",
            "agents/needs.sh",
            "agents/rust/Cargo.toml",
        ):
            (self.clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.clone / name)
        self.runs_on("Debian 13")

    def put(self, name: str, script: str) -> None:
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def runs_on(self, system: str) -> None:
        self.release.write_text(RELEASES.get(system, 'NAME="Some Linux"\nVERSION_ID="1"\nID=some\n'))

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        env = {"PATH": str(self.programs), "HOME": str(self.clone), "CIPHERCOST_OS_RELEASE": str(self.release)}
        return subprocess.run(command, cwd=self.clone, env=env, capture_output=True, text=True, check=False)

    def check(self) -> subprocess.CompletedProcess[str]:
        return self.run("bash", "agents/needs.sh")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_machine_with_everything_passes(machine: Machine) -> None:
    done = machine.check()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("system", sorted(RELEASES))
def test_an_old_rust_ends_make_quick_before_anything_is_built(machine: Machine, system: str) -> None:
    """With the plain cargo of Debian 12, it prints the README's line of packages for the system."""
    machine.runs_on(system)
    machine.put("rustc", "echo 'rustc 1.63.0'")
    machine.put("cargo", "echo 'cargo 0.66.0'")
    done = machine.run("make", "quick")
    assert done.returncode == 2
    assert f"rustc is 1.63.0 ({machine.programs}/rustc); the build needs Rust {RUST} or newer" in done.stderr
    assert "cargo is 0.66.0" in done.stderr
    assert PACKAGES[system] in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    assert not (machine.clone / ".venv").exists()


def test_another_system_gets_a_list_of_requirements(machine: Machine) -> None:
    machine.runs_on("another")
    machine.put("rustc", "echo 'rustc 1.63.0'")
    done = machine.check()
    assert done.returncode == 2
    assert "rustup" in done.stderr
    assert "apt-get" not in done.stderr


@pytest.mark.parametrize("version", ["1.85.0", "1.85.1", "1.96.0", "1.100.0-nightly", "2.0.0"])
def test_a_newer_rust_is_accepted(machine: Machine, version: str) -> None:
    machine.put("rustc", f"echo 'rustc {version} (abc 2026-01-01)'")
    assert machine.check().returncode == 0


@pytest.mark.parametrize(
    ("program", "gap"),
    [
        ("rustc", "rustc was not found"),
        ("cargo", "cargo was not found"),
        ("cc", "cc, a C compiler, was not found"),
        ("perl", "perl with its standard modules was not found"),
        ("make", "make was not found"),
        ("python3", "python3 was not found"),
    ],
)
def test_each_missing_program_is_named(machine: Machine, program: str, gap: str) -> None:
    (machine.programs / program).unlink()
    done = machine.check()
    assert done.returncode == 2
    assert gap in done.stderr
    assert PACKAGES["Debian 13"] in done.stderr


def test_rustup_without_a_toolchain_is_refused(machine: Machine) -> None:
    machine.put("rustc", "echo 'error: rustup could not choose a version of rustc to run' >&2; exit 1")
    done = machine.check()
    assert done.returncode == 2
    assert "could not choose a version" in done.stderr


def test_a_python_that_makes_no_virtual_environments_is_named(machine: Machine) -> None:
    """As with Debian's python3 without python3-venv."""
    machine.put("python3", f'case "$2" in *ensurepip*) exit 1;; esac; exec {sys.executable} "$@"')
    done = machine.check()
    assert done.returncode == 2
    assert "no module ensurepip" in done.stderr


def test_an_old_python_is_named(machine: Machine) -> None:
    machine.put("python3", "echo 3.9")
    done = machine.check()
    assert done.returncode == 2
    assert "python3 is 3.9;" in done.stderr
    assert "Python 3.11 or newer" in done.stderr


def test_every_crate_builds_with_the_rust_that_cargo_toml_promises(require: Require) -> None:
    """Cargo refuses to build a locked crate that declares a newer Rust. This detects it without an old Rust."""
    require(shutil.which("cargo"), "no cargo")
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    done = subprocess.run(command, cwd=ROOT / "agents/rust", capture_output=True, text=True, check=True)
    declared = {package["id"]: package["rust_version"] or "1.0" for package in json.loads(done.stdout)["packages"]}
    promised = [int(part) for part in RUST.split(".")]
    newer = {name: need for name, need in declared.items() if [int(part) for part in need.split(".")[:2]] > promised}
    assert newer == {}


def test_the_readme_names_the_rust_that_cargo_toml_promises() -> None:
    assert f"Rust {RUST}" in README


def test_make_fresh_takes_its_packages_from_the_readme() -> None:
    assert {"Debian 12", "Debian 13"} <= set(PACKAGES)
    for system in ("Debian 12", "Debian 13"):
        assert not re.search(r"[&;|]", PACKAGES[system]), "only packages: fresh.sh reads the rest of the line"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may")
def test_make_fresh_needs_root() -> None:
    done = subprocess.run(["bash", ROOT / "tests/fresh.sh"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "needs root" in done.stderr


def test_make_fresh_refuses_an_unknown_argument() -> None:
    done = subprocess.run(["bash", ROOT / "tests/fresh.sh", "11"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "11: not 'wheels'" in done.stderr
