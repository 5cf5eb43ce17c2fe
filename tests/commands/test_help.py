"""The help of each command: its text matches what the command does."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from ciphercost import commands
from ciphercost.plan import quick, schedule


def help_of(command: str) -> str:
    return " ".join(CliRunner().invoke(commands.cli, [command, "--help"]).output.split())


def test_quick_documents_its_own_default_time() -> None:
    spec = quick.spec()
    assert f"Load time of the whole run, e.g. 90s or 3m. [default: {spec.time * len(spec.cells):g}s]" in help_of(
        "quick"
    )


def test_calibrate_documents_its_own_default_time() -> None:
    assert "Load time, e.g. 90s or 3m. [default: 45s]" in help_of("calibrate")


def test_run_documents_both_default_times() -> None:
    assert f"[default: {schedule.SECONDS:g}s; {schedule.SECONDS_AT_REST:g}s if a cell encrypts at rest]" in help_of(
        "run"
    )


@pytest.mark.parametrize("command", sorted(commands.cli.commands))
def test_the_summary_of_a_command_fits_into_the_list_of_commands(command: str) -> None:
    assert not commands.cli.commands[command].get_short_help_str(63).endswith("...")
