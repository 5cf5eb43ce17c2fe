"""The help of each command: its text matches what the command does."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from ciphercost import commands
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec
from ciphercost.plan import quick, schedule


def help_of(command: str) -> str:
    return " ".join(CliRunner().invoke(commands.cli, [command, "--help"]).output.split())


def test_quick_documents_its_own_default_time() -> None:
    spec = quick.plan().spec
    assert f"Load time of the whole run, e.g. 90s or 3m. [default: {spec.time * len(spec.cells):g}s]" in help_of(
        "quick"
    )


def test_calibrate_documents_its_own_default_time() -> None:
    assert "Load time, e.g. 90s or 3m. [default: 45s]" in help_of("calibrate")


def test_run_documents_both_default_times() -> None:
    assert f"[default: {schedule.SECONDS:g}s; {schedule.SECONDS_AT_REST:g}s if a cell encrypts at rest]" in help_of(
        "run"
    )
    at_rest = schedule.seconds([CellSpec("mysql", "innodb-tde", objective="p99=5ms")])
    assert f"[with an objective: {schedule.SECONDS_OBJECTIVE:g}s; {at_rest:g}s at rest]" in help_of("run")


def test_the_help_of_seed_has_no_range_and_a_seed_out_of_range_is_refused() -> None:
    assert "9223372036854775807" not in help_of("run")
    for wrong in ("-1", "1.5", "x", str(2**63), "9" * 5000):
        done = CliRunner().invoke(commands.cli, ["run", "null:busy", "--seed", wrong, "--print-spec"])
        assert isinstance(done.exception, UsageError), wrong
        assert f"--seed {wrong}: must be a whole number from 0 to 9223372036854775807" in str(done.exception)
    done = CliRunner().invoke(commands.cli, ["run", "null:busy", "--seed", str(2**63 - 1), "--print-spec"])
    assert f"seed = {2**63 - 1}" in done.output


@pytest.mark.parametrize("command", sorted(commands.cli.commands))
def test_the_summary_of_a_command_fits_into_the_list_of_commands(command: str) -> None:
    assert not commands.cli.commands[command].get_short_help_str(63).endswith("...")
