"""The tables of `ciphercost list`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ciphercost.model.errors import UsageError
from ciphercost.report import inventory


def test_one_entry_is_its_rows_and_no_others() -> None:
    every, mysql = inventory.show("grants"), inventory.show("grants", "mysql")
    assert "`ciphercost\\_%`" in mysql
    assert mysql.lstrip().startswith("mysql")
    assert "firebird" in every
    assert "firebird" not in mysql
    assert "CREATE" not in inventory.show("workloads", "connect")


@pytest.mark.parametrize("what", sorted(set(inventory.TABLES) - {"runs"}))
def test_every_entry_can_be_shown_alone(what: str) -> None:
    names = inventory.TABLES[what].names()
    assert len(names) > 2
    assert [name for name, _ in inventory.TABLES[what].rows() if name] == list(names)
    for name in names:
        assert inventory.show(what, name).split()[0] == name


def test_an_unknown_entry_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"`ciphercost list grants` has no 'mysq': .*mysql"):
        inventory.show("grants", "mysq")


def test_the_error_for_a_run_where_there_are_none_does_not_list_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=rf"'20261127': {re.escape(inventory.NO_RUNS)}"):
        inventory.show("runs", "20261127")


def test_an_unknown_engine_is_refused_before_any_engine_is_loaded() -> None:
    """Finding the servers of all engines runs their programs."""
    script = """
import sys
from ciphercost.model.errors import UsageError
from ciphercost.report import inventory
try:
    inventory.show("engines", "ngnix")
except UsageError as error:
    print(error)
print([module for module in sys.modules if module.startswith("ciphercost.engines.nginx")])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    refusal, loaded = done.stdout.splitlines()
    assert "no 'ngnix'" in refusal
    assert "did you mean 'nginx'" in refusal
    assert loaded == "[]"
