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
from ciphercost.runs import pipeline

CELL = CellSpec("null", "none", regime="one-core")


class Planned(RunError):
    """Raised where the load would begin."""


@pytest.mark.parametrize("typed", [["run", "null:none", "--quick"], ["run", "spec.toml"], ["calibrate", "null"]])
def test_the_cells_of_a_command_are_planned_once(
    typed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Plan] = []
    real = specs.plan

    def plan(*args: Any, **options: Any) -> Plan:
        made.append(real(*args, **options))
        return made[-1]

    def carry_out(cells: Any, record: Record, *_: Any) -> None:
        with record:
            assert [id(cell) for cell in cells] == [id(cell) for cell in made[0].cells]
            raise Planned("planned")

    (tmp_path / "spec.toml").write_text(toml.dump(Spec(cells=[CELL], mode="quick", sessions=1)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(specs, "plan", plan)
    monkeypatch.setattr(pipeline, "carry_out", carry_out)
    with pytest.raises(Planned):
        commands.cli.main([*typed, "--no-progress", "-o", "run"], standalone_mode=False)
    assert len(made) == 1
