"""record_is_enough: a run whose engine and mechanism are no longer there is estimated, compared, drawn and resumed as before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn

import pytest
from click.testing import CliRunner

from ciphercost import commands, engines, mechanisms
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.runs import pipeline

TEXTS = ("terminal", "md", "csv", "json", "latex")
FILES = ("html", "parquet", "svg")


def output(*args: object) -> bytes:
    """What the command prints, and its exit status."""
    done = CliRunner().invoke(commands.cli, list(map(str, args)))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.output
    return done.stdout_bytes + b"\nexit status %d" % done.exit_code


def everything(run: Path, other: Path, into: Path) -> dict[str, bytes]:
    """Every report of a run, advice about it, and its comparison with another, by name."""
    made = {f"report {each}": output("report", run, "--format", each) for each in TEXTS}
    made["advice"] = output("report", run, "--need", "at-rest", "--max-cost", "99%")
    made["compare"] = output("compare", run, other)
    made["compare with itself"] = output("compare", run, run, "--format", "json")
    for each in FILES:
        place = into / f"page.{each}"
        output("report", run, "--format", each, "-o", place)
        written = [place] if place.is_file() else sorted(place.iterdir())
        made |= {f"report {each} {path.name}": path.read_bytes() for path in written}
    return made


def forget_everything(patch: pytest.MonkeyPatch) -> None:
    """Remove every engine and mechanism; whoever looks one up fails."""

    def asked() -> NoReturn:
        raise AssertionError("a registry was asked about a recorded run")

    for registry in (engines, mechanisms):
        patch.setattr(registry, "_all", asked)


def recorded(directory: Path, cells: list[CellSpec], seed: int) -> Path:
    # The shortest run that has every kind of figure; no reader minds that its figures are poor.
    spec = Spec(cells=cells, seed=seed, mode="quick", sessions=1, time=2.0)
    return pipeline.run_in(spec, directory)[1]


def as_format_1(run: Path) -> None:
    """Rewrite a run's plan as older versions wrote it."""
    for name in ("plan.json", "checkpoint.json"):
        plan = json.loads((run / name).read_text())
        plan["format"] = 1
        for cell in plan["cells"]:
            cell.pop("registered", None)
            cell.pop("control", None)
        (run / name).write_text(json.dumps(plan))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two runs of an embedded database at rest, of a known effect, and of nothing."""
    directory = tmp_path_factory.mktemp("runs")
    cells = [CellSpec("sqlite", "sqlcipher"), CellSpec("null", "busy"), CellSpec("null", "none")]
    return recorded(directory / "first", cells, 1), recorded(directory / "second", cells, 2)


def test_a_run_of_an_engine_and_a_mechanism_that_are_gone_reads_as_before(
    runs: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = everything(*runs, tmp_path)
    assert {"report terminal", "report parquet page.parquet", "report html page.html"} <= set(before)
    assert all(b"exit status 2" not in text for text in before.values()), before
    forget_everything(monkeypatch)
    after = everything(*runs, tmp_path)
    assert sorted(after) == sorted(before)
    assert [name for name in before if after[name] != before[name]] == []
