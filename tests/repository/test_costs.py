"""What tests cost: their budgets, and the order in which workers take their files."""

from __future__ import annotations

from pathlib import Path

import accounts
import turns
from accounts import Cost


def test_a_test_may_take_some_times_its_budget_and_no_more() -> None:
    known = {"dear": Cost(20.0, 30.0)}
    cheap = accounts.LENIENT * accounts.BUDGET
    assert accounts.beyond({"any": cheap, "dear": accounts.LENIENT * 20}, known) == {}
    beyond = accounts.beyond({"any": cheap + 1, "dear": accounts.LENIENT * 20 + 1}, known)
    assert beyond.keys() == {"any", "dear"}
    assert "51.0 s of CPU" in beyond["any"]
    assert "5 s is its budget" in beyond["any"]


def test_a_budget_of_its_own_is_never_below_that_of_all() -> None:
    """A test may be listed for its wall clock alone."""
    assert accounts.beyond({"waits": accounts.BUDGET}, {"waits": Cost(0.0, 60.0)}) == {}


def test_the_list_has_the_tests_that_need_more_and_reads_back(tmp_path: Path) -> None:
    costs = {"a::cheap": Cost(4.0, 9.0), "a::dear": Cost(6.0, 2.0), "b::long[1\\t2]": Cost(0.0, 11.0)}
    path = tmp_path / "costs.tsv"
    path.write_text("\n".join(accounts.to_list(costs)))
    assert accounts.read(path) == {name: costs[name] for name in ("a::dear", "b::long[1\\t2]")}


def test_every_file_on_the_list_is_there() -> None:
    files = {test.partition("::")[0] for test in accounts.listed()}
    assert [file for file in sorted(files) if not (accounts.ROOT / file).is_file()] == []


def test_files_that_start_servers_are_told_from_those_that_compute() -> None:
    assert turns.starts_processes("tests/runs/test_kill.py")
    assert turns.starts_processes("tests/engines/test_web.py")
    assert not turns.starts_processes("tests/plan/test_schedule.py")
    assert not turns.starts_processes("tests/estimate/test_totals.py")
