"""A command plans its cells once, and every later step takes that plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ciphercost import commands
from ciphercost.model.errors import RunError
from ciphercost.model.run_directory import Record
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import specs, toml
from ciphercost.plan.planned import Plan
from ciphercost.provision import server_pairs
from ciphercost.runs import pipeline, replicate

CELL = CellSpec("null", "none", regime="one-core")


class Planned(RunError):
    """Raised where the load would begin."""


@pytest.fixture
def plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """The plans that are made from now on. A run ends where its load would begin, and fails unless it has the cells of the last plan."""
    plans: list[Plan] = []
    real = specs.plan

    def plan(*args: Any, **options: Any) -> Plan:
        plans.append(real(*args, **options))
        return plans[-1]

    def carry_out(cells: Any, record: Record, *_: Any) -> None:
        with record:
            assert [id(cell) for cell in cells] == [id(cell) for cell in plans[-1].cells]
            raise Planned("planned")

    (tmp_path / "spec.toml").write_text(toml.dump(Spec(cells=[CELL], mode="quick", sessions=1)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(specs, "plan", plan)
    monkeypatch.setattr(replicate, "plan", plan)
    monkeypatch.setattr(pipeline, "carry_out", carry_out)
    return plans


def until_load(*typed: str) -> None:
    with pytest.raises(Planned):
        commands.cli.main([*typed, "--no-progress"], standalone_mode=False)


@pytest.mark.parametrize(
    "typed",
    [
        ["run", "null:none", "--quick"],
        ["run", "spec.toml"],
        ["calibrate", "null"],
        ["quick", "--time", "20s"],
        ["replicate", "column-functions", "--quick"],
        ["replicate", "column-functions"],
    ],
)
def test_the_cells_of_a_command_are_planned_once(typed: list[str], plans: list[Plan]) -> None:
    until_load(*typed, "-o", "run")
    assert len(plans) == 1


def test_a_run_that_is_resumed_is_planned_once_more(plans: list[Plan]) -> None:
    until_load("run", "spec.toml", "-o", "run")
    until_load("resume", "run")
    assert len(plans) == 2


def test_a_file_that_is_measured_elsewhere_is_planned_once(plans: list[Plan]) -> None:
    Path("spec.toml").write_text(toml.dump(Spec(cells=[CellSpec("postgresql", "tls")])))
    planned = toml.plan(Path("spec.toml"), {"cluster": "auto", "agents": 2})
    assert plans == [planned]
    assert (planned.spec.cluster, planned.spec.agents) == ("auto", 2)


def test_a_proof_plans_its_cell_once(plans: list[Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    def unproven(*_: Any, **__: Any) -> None:
        raise Planned("planned")

    monkeypatch.setattr(server_pairs, "bench", unproven)
    with pytest.raises(Planned):
        commands.cli.main(["prove", "sqlite:sqlcipher"], standalone_mode=False)
    assert len(plans) == 1
