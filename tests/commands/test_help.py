"""The help of each command: its text matches what the command does."""

from __future__ import annotations

import re
import shlex

import click
import pytest
from click.testing import CliRunner

from ciphercost import commands
from ciphercost.commands._options import SECTIONS, Sectioned
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec
from ciphercost.plan import quick, schedule


def help_of(command: str) -> str:
    return " ".join(CliRunner().invoke(commands.cli, [command, "--help"]).output.split())


def default_time(command: str) -> str:
    match = re.search(r"--time DURATION [^\[]*\[default: ([^\]]+)\]", help_of(command))
    assert match is not None
    return match[1]


def test_quick_documents_its_own_default_time() -> None:
    spec = quick.plan().spec
    assert default_time("quick") == f"{spec.time * len(spec.cells):g}s"


def test_calibrate_documents_its_own_default_time() -> None:
    assert default_time("calibrate") == "45s"


def test_run_documents_both_default_times() -> None:
    assert f"[default: {schedule.SECONDS:g}s; {schedule.SECONDS_AT_REST:g}s if a cell encrypts at rest]" in help_of(
        "run"
    )
    at_rest = schedule.seconds([CellSpec("mysql", "innodb-tde", objective="p99=5ms")])
    assert f"[with an objective: {schedule.SECONDS_OBJECTIVE:g}s; {at_rest:g}s at rest]" in help_of("run")


@pytest.mark.parametrize("command", ["run", "calibrate"])
def test_every_option_of_a_long_command_stands_in_the_section_it_belongs_to(command: str) -> None:
    sectioned = commands.cli.commands[command]
    assert isinstance(sectioned, Sectioned)
    context = click.Context(sectioned, info_name=command, **sectioned.context_settings)
    listed = sectioned.sections(context)
    its_own = {"Your own command as the load"} if command == "run" else set()
    assert tuple(listed) == tuple(
        name for name in SECTIONS if name in its_own or name != "Your own command as the load"
    )
    names = [name for params in listed.values() for param in params for name in param.opts]
    assert sorted(names) == sorted(
        name for param in sectioned.get_params(context) if isinstance(param, click.Option) for name in param.opts
    )
    result = {name for param in listed[SECTIONS[-1]] for name in param.opts}
    known = {"--seed", "-o", "--output", "--json", "--no-progress", "--price", "--print-spec", "-h", "--help"}
    assert result <= known, "an option without a section is listed with the output"


@pytest.mark.parametrize("command", sorted(commands.cli.commands))
def test_help_fits_eighty_columns(command: str) -> None:
    shown = CliRunner().invoke(commands.cli, [command, "--help"], terminal_width=80).output
    assert [line for line in shown.splitlines() if len(line) > 80] == []


def examples() -> list[list[str]]:
    """The commands that end the help of `run`, as arguments."""
    shown = CliRunner().invoke(commands.cli, ["run", "--help"], terminal_width=80).output
    lines = shown.partition("Examples:")[2].splitlines()
    return [shlex.split(line)[1:] for line in lines if line.strip().startswith("ciphercost ")]


def test_the_help_of_run_ends_with_five_examples_that_can_be_planned() -> None:
    argvs = examples()
    assert len(argvs) == 5
    for argv in argvs:
        done = CliRunner().invoke(commands.cli, [*argv, "--print-spec"])
        assert done.exit_code == 0, (argv, done.output, done.exception)


def test_the_help_of_seed_has_no_range_and_a_seed_out_of_range_is_refused() -> None:
    assert "9223372036854775807" not in help_of("run")
    for wrong in ("-1", "1.5", "x", str(2**63), "9" * 5000):
        done = CliRunner().invoke(commands.cli, ["run", "null:busy", "--seed", wrong, "--print-spec"])
        assert isinstance(done.exception, UsageError), wrong
        assert str(done.exception).startswith(f"--seed {wrong}: ")
        assert f"from 0 to {2**63 - 1}" in str(done.exception)
    done = CliRunner().invoke(commands.cli, ["run", "null:busy", "--seed", str(2**63 - 1), "--print-spec"])
    assert f"seed = {2**63 - 1}" in done.output


@pytest.mark.parametrize("command", sorted(commands.cli.commands))
def test_the_summary_of_a_command_fits_into_the_list_of_commands(command: str) -> None:
    assert not commands.cli.commands[command].get_short_help_str(63).endswith("...")


def test_an_earlier_name_of_a_command_still_works_and_is_not_listed() -> None:
    done = CliRunner().invoke(commands.cli, ["gallery", "--check", "--pack", "x"])
    assert isinstance(done.exception, UsageError)
    assert "--check and --pack" in str(done.exception)
    assert " gallery " not in CliRunner().invoke(commands.cli, ["--help"]).output
