"""docs/github-actions.yml is valid YAML, its ciphercost commands run, and its steps use each other's files, caches and outputs correctly."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import junitparser
import pytest
import yaml
from click.testing import CliRunner

from ciphercost import commands
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import toml

PATH = Path(__file__).parents[2] / "docs" / "github-actions.yml"
FLOW: dict[Any, Any] = yaml.safe_load(PATH.read_text())
STEPS: list[dict[str, Any]] = FLOW["jobs"]["tls"]["steps"]
CHART: list[dict[str, Any]] = FLOW["jobs"]["chart"]["steps"]
PRINTED = re.search(r"^# +ciphercost (run .*) > bench/encryption.toml$", PATH.read_text(), re.MULTILINE)
COMMANDS = [
    line.strip()
    for step in STEPS
    for line in step.get("run", "").splitlines()
    if line.strip().startswith("ciphercost ")
]
ENV = {name: value.split(" #")[0] for name, value in FLOW["env"].items()}


def argv(line: str, env: dict[str, str]) -> list[str]:
    return shlex.split(re.sub(r"\$(\w+)", lambda match: env[match[1]], line))


def step(name: str) -> dict[str, Any]:
    (only,) = [entry for entry in STEPS if entry.get("name") == name]
    return only


def test_it_has_what_github_needs() -> None:
    triggers = FLOW[True]  # `on` is YAML 1.1's word for true, as GitHub knows
    assert set(triggers) == {"pull_request", "push"}
    assert FLOW["permissions"] == {"contents": "read"}
    permissions = FLOW["jobs"]["tls"]["permissions"]
    assert permissions == {"contents": "read", "checks": "write", "pull-requests": "write"}
    assert FLOW["jobs"]["chart"]["permissions"] == {"contents": "write"}
    for entry in [*STEPS, *CHART]:
        assert ("run" in entry) != ("uses" in entry)
        assert re.fullmatch(r"[\w-]+/[\w-]+(/[\w-]+)?@v\d+", entry.get("uses", "actions/checkout@v4"))
    for job in FLOW["jobs"].values():
        assert set(job) >= {"runs-on", "permissions", "steps"}


def test_every_output_that_a_step_reads_is_of_an_earlier_step() -> None:
    known: set[str] = set()
    for entry in STEPS:
        assert set(re.findall(r"steps\.([\w-]+)\.outputs", yaml.safe_dump(entry))) <= known
        known |= {entry["id"]} if "id" in entry else set()
    assert known == {"build", "built", "servers"}


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_of_it_is_understood(line: str) -> None:
    _, name, *arguments = argv(line, ENV)
    command = commands.cli.commands[name]
    with command.make_context(name, arguments) as context:
        assert context.params


@pytest.mark.parametrize(
    ("restored", "filled", "kept"),
    [
        ("Restore the build", "Build ciphercost", "Keep the build"),
        ("Restore fetched servers", "Measure this commit", "Keep fetched servers"),
    ],
)
def test_what_is_kept_for_later_runs_is_what_they_restore(restored: str, filled: str, kept: str) -> None:
    first, between, last = (step(name) for name in (restored, filled, kept))
    assert STEPS.index(first) < STEPS.index(between) < STEPS.index(last)
    assert first["uses"].startswith("actions/cache/restore@")
    assert last["uses"].startswith("actions/cache/save@")
    for name in ("path", "key"):
        assert first["with"][name] == last["with"][name]
    assert last["if"] == f"steps.{first['id']}.outputs.cache-hit != 'true'"


def test_a_restored_build_is_not_built_again_and_both_are_on_the_path() -> None:
    assert step("Build ciphercost")["if"] == step("Keep the build")["if"]
    assert ".ciphercost/.venv/bin" in step("Put ciphercost on the path")["run"]
    assert "if" not in step("Put ciphercost on the path")
    assert step("Restore the build")["with"]["path"] == ".ciphercost/.venv"


def test_the_comment_is_written_whatever_the_gate_decides_and_the_gate_is_last() -> None:
    compared, commented, held = (
        step(name) for name in ("Compare", "Comment on the pull request", "Enforce the budget")
    )
    assert STEPS.index(compared) < STEPS.index(commented) < STEPS.index(held) == len(STEPS) - 1
    assert compared["continue-on-error"] is True
    assert "-o comment.md" in compared["run"]
    assert "--body-file comment.md" in commented["run"]
    assert commented["continue-on-error"] is True, "of a fork the token can say nothing"
    assert "--strict" in held["run"]
    assert "continue-on-error" not in held
    assert len(COMMANDS) == 6


def test_only_pull_requests_are_compared_and_only_main_is_charted() -> None:
    for name in ("Measure the base", "Compare"):
        assert step(name)["if"] == "github.event_name == 'pull_request'"
    assert "github.event_name == 'push'" in FLOW["jobs"]["chart"]["if"]
    assert FLOW["jobs"]["chart"]["needs"] == "tls"


def test_each_report_is_written_where_its_reader_looks() -> None:
    junit, shown = step("Write the test report"), step("Show each cell as a test")
    assert STEPS.index(junit) < STEPS.index(shown)
    assert f'--format junit --max-cost "$BUDGET" -o {shown["with"]["report_paths"]}' in junit["run"]
    assert junit["continue-on-error"] is shown["continue-on-error"] is True
    chart = CHART[-1]
    assert chart["with"]["tool"] == "customSmallerIsBetter"
    figures = step("Write the figures for the chart")
    assert f"--format github-action-benchmark -o {chart['with']['output-file-path']}" in figures["run"]
    (uploaded,) = [entry["with"] for entry in STEPS if entry.get("uses", "").startswith("actions/upload-artifact@")]
    (downloaded,) = [entry["with"] for entry in CHART if entry.get("uses", "").startswith("actions/download-artifact@")]
    assert uploaded == downloaded


def test_its_commands_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the null engine, which needs no server, with a budget that it certainly keeps."""
    monkeypatch.chdir(tmp_path)
    env = ENV | {"BUDGET": "100000%"}
    spec = tmp_path / env["SPEC"]
    spec.parent.mkdir()
    spec.write_text(toml.dump(Spec([CellSpec("null", "busy")], mode="quick", sessions=1, time=3.0, latency=False)))
    shutil.copy(spec, "base.toml")
    for line in COMMANDS:
        done = CliRunner().invoke(commands.cli, argv(line, env)[1:])
        assert done.exit_code == 0, (line, done.output, done.exception)
    assert Path("comment.md").read_text().startswith(("###", "**"))
    (suite,) = junitparser.JUnitXml.fromfile("runs/junit.xml")
    assert [case.name for case in suite] == ["null:busy point-select"]
    assert json.loads(Path("runs/benchmark.json").read_text())[0]["name"].startswith("null:busy point-select: ")


def test_the_file_that_it_runs_is_one_that_run_prints_and_reads(tmp_path: Path) -> None:
    assert PRINTED is not None
    done = CliRunner().invoke(commands.cli, shlex.split(PRINTED[1]))
    assert done.exit_code == 0, done.output
    path = tmp_path / "encryption.toml"
    path.write_text(done.output)
    assert {cell.mechanism for cell in toml.load(path).cells} == {"tls"}
