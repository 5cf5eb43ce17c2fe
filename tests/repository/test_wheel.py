"""What a user has after `pip install`: every module and every command works without the packages that only development needs."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import openpyxl
import pytest
from packaging.utils import canonicalize_name

import documented
import wheel_environment
import wrecks
from ciphercost import commands
from ciphercost.model.version import VERSION
from ciphercost.report import inventory
from ciphercost.studies import catalogue
from wheel_environment import Environment

SPEC = "short.toml"
QUICK_RUN = ("run", SPEC, "--no-progress")
BENCH = "number of transactions actually processed: {n}\nlatency average = {ms} ms\ntps = {tps} (without initial connection time)\n"

SMALLEST: dict[str, list[tuple[str, ...]]] = {
    "calibrate": [("null", "--quick", "--time", "3s", "--clients", "1", "--no-progress")],
    "clean": [()],
    "compare": [("run", "again"), ("run", "--fail-over", "99%")],
    "completion": [("bash",), ("zsh",), ("fish",)],
    "doctor": [(), ("--fix",)],
    "book": [("run", "-o", "book"), ("--check", "run"), ("--pack", "run", "-o", "packed")],
    "import": [("--plain", "plain.txt", "--encrypted", "encrypted.txt")],
    "install": [("sqlite",)],
    "list": [(), *((table,) for table in inventory.TABLES)],
    "predict": [("run", "--rate", "9/s", "--cpu", "1ms")],
    "prove": [("sqlite:sqlcipher",)],
    "quick": [("--help",)],
    "replicate": [("mysql-tls", "--help")],
    "report": [("run",), ("run", "--format", "html", "-o", "page.html"), ("run", "--format", "png", "-o", "plots")],
    "resume": [("run",)],
    "run": [QUICK_RUN[1:], ("postgresql:tls", "--print-spec")],
    "trend": [("run", "again")],
    "workload": [("access.log", "-o", "mine.toml")],
}  # fmt: skip
"""The smallest inputs of each command; of all formats those that draw, since the others are modules without packages of their own.
`quick` measures longer than a test may, and a study even more: `make fresh-wheels` runs them."""


@pytest.fixture(scope="module")
def environment() -> Environment:
    return wheel_environment.made()


@pytest.fixture(scope="module")
def place(environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the files that commands read: two runs, and the output of another tool."""
    place = tmp_path_factory.mktemp("user")
    (place / SPEC).write_text(documented.SHORT)
    (place / "access.log").write_text(
        '192.0.2.1 - - [10/Oct/2024:13:55:36 +0000] "GET / HTTP/1.1" 200 2326 "-" "-"\n' * 3
    )
    for name in ("run", "again"):
        succeeds(environment, (*QUICK_RUN, "-o", name), place)
    for arm, tps in (("plain", 1000), ("encrypted", 900)):
        text = "pgbench (15.4)\n" + BENCH.format(n=tps * 10, ms=1000 / tps, tps=tps)
        (place / f"{arm}.txt").write_text(text)
    return place


def ran(environment: Environment, argv: Sequence[str], place: Path) -> subprocess.CompletedProcess[str]:
    # Other tests leave what `clean` would remove, and the user's own cache may have copies of dumps.
    own = {"CIPHERCOST_SCRATCH": str(place / "scratch"), "CIPHERCOST_CACHE": str(place / "cache")}
    variables = own if argv[0] == "clean" else {}
    with wrecks.alone() if argv[0] == "clean" else contextlib.nullcontext():
        done = environment.ciphercost(argv, place, variables)
    assert "Traceback" not in done.stderr + done.stdout, done.stderr + done.stdout
    return done


def succeeds(environment: Environment, argv: Sequence[str], place: Path) -> str:
    done = ran(environment, argv, place)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def refused(environment: Environment, argv: Sequence[str], place: Path) -> str:
    """The one line of a refusal."""
    done = ran(environment, argv, place)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, ""), done.stdout
    return line


# ── the environment ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_it_has_what_the_wheel_requires_and_nothing_else(environment: Environment, tmp_path: Path) -> None:
    (wheel,) = (environment.place / "wheels").glob("ciphercost-*.whl")
    expected = wheel_environment.required(wheel) | {"ciphercost", "ciphercost-agent"}
    assert {"click", "cryptography", "numpy", "vl-convert-python"} < expected
    assert not {"scipy", "pandas", "polars", "ray", "pytest", "hatchling", "pyyaml"} & expected
    script = "from importlib.metadata import distributions; print(*[one.metadata['Name'] for one in distributions()])"
    distributions = environment.run(["python", "-c", script], tmp_path).stdout.split()
    assert {canonicalize_name(name) for name in distributions} == expected
    done = environment.run(["ciphercost", "--version", "-v"], tmp_path)
    assert done.stdout.startswith(f"ciphercost {VERSION}\n  agent {'':14} {VERSION}"), done.stderr


def test_every_module_can_be_imported(environment: Environment, tmp_path: Path) -> None:
    script = """
import importlib, pkgutil, ciphercost
for module in pkgutil.walk_packages(ciphercost.__path__, "ciphercost."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(ciphercost.__file__)
"""
    done = environment.run(["python", "-W", "error", "-c", script], tmp_path)
    assert done.stderr == ""
    assert Path(done.stdout.strip()).is_relative_to(environment.place)


# ── commands ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def names_of(command: click.Group, before: str = "") -> Iterator[str]:
    """Every command of the reference, subcommands as `group command`."""
    for name, subcommand in command.commands.items():
        if subcommand.hidden:
            continue
        if isinstance(subcommand, click.Group):
            yield from names_of(subcommand, f"{before}{name} ")
        else:
            yield f"{before}{name}"


def test_every_command_has_a_smallest_input() -> None:
    assert sorted(SMALLEST) == sorted(names_of(commands.cli))


@pytest.mark.parametrize("command", SMALLEST)
def test_every_command_works(command: str, environment: Environment, place: Path) -> None:
    for argv in SMALLEST[command]:
        done = ran(environment, [*command.split(), *argv], place)
        # `doctor` answers 1 where something is missing on this machine.
        assert done.returncode in ((0, 1) if command == "doctor" else (0,)), (argv, done.stdout, done.stderr)
        assert done.stdout or done.stderr or "-o" in argv, argv


def test_the_installed_program_starts_by_itself(environment: Environment, place: Path, tmp_path: Path) -> None:
    """A process of its own: the other tests' commands are forks of one that has imported everything."""
    for argv in (["report", place / "run"], ["run", "postgresql:tls", "--print-spec"]):
        done = environment.run(["ciphercost", *argv], tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        assert done.stdout


@pytest.mark.parametrize("study", [*catalogue.names(), "all"])
def test_every_study_loads_and_answers(study: str, environment: Environment, tmp_path: Path) -> None:
    """`--engine` is checked by the study's own code."""
    assert "STUDY|all" in succeeds(environment, ["replicate", study, "--help"], tmp_path)
    if study == "all":
        assert "no study runs on it" in refused(
            environment, ["replicate", study, "--engine", "oracle", "--scale", "3"], tmp_path
        )
        return
    assert "oracle" in refused(environment, ["replicate", study, "--engine", "oracle"], tmp_path)
    if "scale" not in catalogue.entry(study).options:
        line = refused(environment, ["replicate", study, "--scale", "3"], tmp_path)
        assert "no option --scale" in line
        assert "cybertec-tde-cost, pg-tde-small-cost, postgres-tde and volume-encryption" in line


# ── extras ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("argv", "extra"),
    [
        (("report", "run", "--format", "parquet", "-o", "cells.parquet"), "frames"),
        (("run", "postgresql:tls", "--quick", "--cluster", "auto"), "ray"),
        (("run", "postgresql:tls", "--quick", "--cluster", "auto", "--spread"), "ray"),
        (("calibrate", "postgresql", "--cluster", "auto"), "ray"),
    ],
)
def test_what_needs_an_extra_says_which(
    argv: tuple[str, ...], extra: str, environment: Environment, place: Path
) -> None:
    assert f"pip install 'ciphercost[{extra}]'" in refused(environment, argv, place)


def test_a_spreadsheet_without_its_extra_says_which(environment: Environment, tmp_path: Path) -> None:
    openpyxl.Workbook().save(tmp_path / "plain.xlsx")
    argv = ("import", "plain.xlsx", "--columns", "time=seconds")
    assert "pip install 'ciphercost[sheets]'" in refused(environment, argv, tmp_path)


@pytest.mark.parametrize(
    ("call", "install"),
    [
        ("ciphercost.slices('run')", "pip install 'ciphercost[frames]'"),
        ("ciphercost.load('run').to_polars()", "pip install 'ciphercost[frames]'"),
        ("ciphercost.load('run').to_pandas()", "pip install pandas"),
    ],
)
def test_a_call_that_needs_another_package_says_which(
    call: str, install: str, environment: Environment, place: Path
) -> None:
    script = f"import ciphercost\ntry:\n    {call}\nexcept ciphercost.errors.UsageError as error:\n    print(error)"
    done = environment.run(["python", "-c", script], place)
    assert done.stderr == ""
    assert install in done.stdout
