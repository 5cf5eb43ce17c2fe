"""The tables of `ciphercost list`."""

from __future__ import annotations

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
    names = [name for name, _ in inventory.TABLES[what]() if name]
    assert len(names) > 2
    for name in names:
        assert inventory.show(what, name).split()[0] == name


def test_an_unknown_entry_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"`ciphercost list grants` has no 'mysq': .*mysql"):
        inventory.show("grants", "mysq")
