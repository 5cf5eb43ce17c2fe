"""`ciphercost quick` runs its embedded cells on every machine. Without PostgreSQL it prints one line on what to install."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from ciphercost import commands, engines
from ciphercost.commands import quick as quick_command
from ciphercost.host.installation import Installation
from ciphercost.measure import recorded_facts
from ciphercost.model.errors import MissingServer
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import quick
from ciphercost.plan.planned import Plan
from ciphercost.runs import pipeline
from fake import Fake

POSTGRESQL = engines.get("postgresql")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """No PostgreSQL exists or can be fetched. Lists the requested versions."""
    wanted: list[str] = []

    def find(version: str = "", **_: object) -> Installation:
        wanted.append(version)
        raise MissingServer("no PostgreSQL was found, and none could be fetched:\n  apt: the network is gone")

    monkeypatch.setattr(POSTGRESQL, "find", find)
    return wanted


def test_without_postgresql_the_embedded_cells_run_and_one_line_says_what_to_install(
    asked: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measured: list[Plan] = []

    def measure(given: dict[str, Any], run_in: Any, failed: Any) -> bool:
        measured.append(run_in.args[0])
        return False

    monkeypatch.setattr(quick_command, "measure", measure)
    monkeypatch.setattr(sys, "argv", ["ciphercost", "quick", "--time", "15s", "--no-progress"])
    with pytest.raises(SystemExit) as ended:
        commands.main()
    assert ended.value.code == 0
    (plan,) = measured
    assert [cell.engine for cell in plan.spec.cells] == ["sqlite", "sqlite"]
    assert plan.spec.time == 7.5, "all the time is theirs"
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "apt-get install postgresql" in lines[0]
    assert asked == [""]


def test_with_postgresql_all_cells_run_without_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(POSTGRESQL, "find", lambda *_, **__: Installation("postgresql", "17.5", "path", "/x"))
    assert quick.cells() == (list(quick.CELLS), "")


def test_an_invalid_time_is_refused_before_anything_is_fetched(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["ciphercost", "quick", "--time", "soon"])
    with pytest.raises(SystemExit) as ended:
        commands.main()
    assert ended.value.code == 2
    assert asked == []


def test_requested_cells_fail_without_their_server_after_one_search(
    asked: list[str], tmp_path: Path, fake: Fake
) -> None:
    fake("--sd 0.01")
    cells = [CellSpec("postgresql", "tls", workload=workload) for workload in ("point-select", "connect", "bulk-read")]
    first, *others = pipeline.run(Spec(cells=cells, mode="quick", sessions=1, time=4.0), tmp_path / "run").cells
    assert asked == [""]
    assert [cell.status for cell in (first, *others)] == ["failed"] * 3
    assert "the network is gone" in first.reason
    assert "PostgreSQL was not found" in others[0].reason
    assert "first cell" in others[0].reason
    assert {cell.reason for cell in others} == {others[0].reason}


@pytest.mark.parametrize(
    ("library", "warns"),
    [
        ("OpenSSL 1.1.1 11 Sep 2018", True),
        ("OpenSSL 1.0.2u 20 Dec 2019", True),
        ("OpenSSL 3.0.19 27 Jan 2026", False),
        ("", False),
    ],
)
def test_an_unsupported_openssl_of_a_server_warns(library: str, warns: bool) -> None:
    warnings = recorded_facts.old_openssl(library)
    assert [warning.code for warning in warnings] == (["old-openssl"] if warns else [])
    assert all(library.split()[1] in warning.text for warning in warnings)
