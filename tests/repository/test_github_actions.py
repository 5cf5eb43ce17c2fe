"""docs/github-actions.yml is valid YAML, and every ciphercost command in it exists with its options."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from ciphercost import commands
from ciphercost.plan import toml

PATH = Path(__file__).parents[2] / "docs" / "github-actions.yml"
FLOW: dict[Any, Any] = yaml.safe_load(PATH.read_text())
STEPS: list[dict[str, Any]] = FLOW["jobs"]["tls"]["steps"]
PRINTED = re.search(r"^# +ciphercost (run .*) > bench/encryption.toml$", PATH.read_text(), re.MULTILINE)
COMMANDS = [
    line.strip()
    for step in STEPS
    for line in step.get("run", "").splitlines()
    if line.strip().startswith("ciphercost ")
]


def test_it_has_what_github_needs() -> None:
    assert FLOW[True] == "pull_request"  # `on` is YAML 1.1's word for true, as GitHub knows
    assert FLOW["permissions"]["pull-requests"] == "write"
    for step in STEPS:
        assert ("run" in step) != ("uses" in step)
        assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step.get("uses", "actions/checkout@v4"))


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_of_it_is_understood(line: str) -> None:
    values = {name: value.split(" #")[0] for name, value in FLOW["env"].items()}
    _, name, *arguments = shlex.split(re.sub(r"\$(\w+)", lambda match: values[match[1]], line))
    command = commands.cli.commands[name]
    with command.make_context(name, arguments) as context:
        assert context.params


def test_the_comment_is_written_whatever_the_gate_decides_and_the_gate_is_last() -> None:
    names = [step.get("name") for step in STEPS]
    compared, said, held = (
        STEPS[names.index(each)] for each in ("Compare", "Say it on the pull request", "Hold the budget")
    )
    assert STEPS.index(compared) < STEPS.index(said) < STEPS.index(held)
    assert compared["continue-on-error"] is True
    assert "-o comment.md" in compared["run"]
    assert "--body-file comment.md" in said["run"]
    assert said["continue-on-error"] is True, "of a fork the token can say nothing"
    assert "--strict" in held["run"]
    assert "continue-on-error" not in held
    assert len(COMMANDS) == 4


def test_the_file_that_it_runs_is_one_that_run_prints_and_reads(tmp_path: Path) -> None:
    assert PRINTED is not None
    done = CliRunner().invoke(commands.cli, shlex.split(PRINTED[1]))
    assert done.exit_code == 0, done.output
    path = tmp_path / "encryption.toml"
    path.write_text(done.output)
    assert {cell.mechanism for cell in toml.load(path).cells} == {"tls"}
