"""A run stays readable after its engine and mechanism were removed: estimates, comparisons, plots and resume still work."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import NoReturn

import msgspec
import pytest
from click.testing import CliRunner

from ciphercost import commands, engines, mechanisms, studies
from ciphercost.model import run_directory
from ciphercost.model.constrained_types import PLAN_FORMAT
from ciphercost.model.errors import UsageError
from ciphercost.model.slices import Proof
from ciphercost.model.spec import ARMS, CellSpec, Spec
from ciphercost.model.study import StudyRecord
from ciphercost.plan import specs
from ciphercost.report import formats
from ciphercost.runs import conclude, pipeline, resume
from ciphercost.studies import pairs
from fake import Fake

TEXTS = ("terminal", "md", "json")
RENDERED = ("csv", "latex", "junit", "openmetrics", "bencher", "github-action-benchmark")
"""Formats that a result is enough for: all are made from one estimate, because the command would estimate again for each."""
FILES = ("html", "parquet", "svg")
"""svg is a directory with a file for each plot."""


def output(*args: object) -> bytes:
    """Output and exit status of the command."""
    done = CliRunner().invoke(commands.cli, list(map(str, args)))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.output
    return done.stdout_bytes + b"\nexit status %d" % done.exit_code


def everything(run: Path, other: Path, into: Path) -> dict[str, bytes]:
    """By name: every report of a run, its advice, and its comparison with another run."""
    outputs = {f"report {form}": output("report", run, "--format", form) for form in TEXTS}
    result = conclude.result_of(run)
    outputs |= {f"report {form}": formats.get(form)(result).encode() for form in RENDERED}
    outputs["advice"] = output("report", run, "--need", "at-rest", "--max-cost", "99%")
    outputs["compare"] = output("compare", run, other)
    outputs["compare json"] = output("compare", run, other, "--format", "json")
    for form in FILES:
        place = into / ("plots" if form == "svg" else f"page.{form}")
        output("report", run, "--format", form, "-o", place)
        written = [place] if place.is_file() else sorted(place.iterdir())
        outputs |= {f"report {form} {path.name}": path.read_bytes() for path in written}
    return outputs


def forget_everything(patch: pytest.MonkeyPatch) -> None:
    """Remove every engine and mechanism, so that any lookup fails."""

    def asked(*_: object) -> NoReturn:
        raise AssertionError("a registry was asked about a recorded run")

    for registry in (engines, mechanisms):
        patch.setattr(registry, "names", asked)
        patch.setattr(registry, "get", asked)


def recorded(directory: Path, cells: list[CellSpec], seed: int) -> Path:
    # The shortest run with every kind of figure; the quality of the figures does not matter.
    cells = [msgspec.structs.replace(cell, regime="one-core") for cell in cells]
    spec = Spec(cells=cells, seed=seed, mode="quick", sessions=1, time=2.0)
    return pipeline.run_in(specs.plan(spec), directory)[1]


def copied(run: Path, place: Path) -> Path:
    """The same run under another number, to compare with."""
    copy = shutil.copytree(run, place)
    for name in ("plan.json", "checkpoint.json"):
        plan = json.loads((copy / name).read_text())
        (copy / name).write_text(json.dumps(plan | {"id": "20260101-000000-abcdef"}))
    return copy


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
    """A run with cells at rest in an embedded database, with a known effect, and with none; and its copy."""
    directory = tmp_path_factory.mktemp("runs")
    cells = [
        CellSpec("sqlite", "sqlcipher", rows=500),
        CellSpec("null", "busy", objective="p50=5ms"),
        CellSpec("null", "none"),
    ]
    run = recorded(directory / "first", cells, 1)
    return run, copied(run, directory / "second")


@pytest.fixture(scope="module")
def over_tls(tmp_path_factory: pytest.TempPathFactory, require_postgresql: object) -> Path:
    """A run with TLS over a slow link, which has a prediction."""
    cells = [CellSpec("postgresql", "tls", workload="connect", delay="1ms")]
    return recorded(tmp_path_factory.mktemp("tls") / "run", cells, 3)


def reads_as_before(run: Path, other: Path, into: Path, patch: pytest.MonkeyPatch) -> None:
    before = everything(run, other, into)
    assert {"report terminal", "report parquet page.parquet", "report html page.html"} <= set(before)
    forget_everything(patch)
    after = everything(run, other, into)
    assert sorted(after) == sorted(before)
    assert [name for name in before if after[name] != before[name]] == []


def test_a_run_reads_as_before_when_its_engine_and_mechanism_are_gone(
    runs: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads_as_before(*runs, tmp_path, monkeypatch)
    database, busy, _ = conclude.result_of(runs[0]).cells
    assert (database.embedded, database.layer, busy.layer) == (True, "rest", "control")
    assert database.protects.startswith("against")
    assert "cipher" not in busy.mechanism_factors
    assert busy.mechanism_factors == ["effect"]


def test_what_tls_should_cost_over_a_link_is_in_the_record(
    over_tls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = copied(over_tls, tmp_path / "copy")
    (tmp_path / "out").mkdir()
    reads_as_before(over_tls, copy, tmp_path / "out", monkeypatch)
    assert conclude.result_of(over_tls).cells[0].predicted["round_trips"] > 0


def test_a_run_of_format_1_reads_as_one_of_format_2(runs: tuple[Path, Path], tmp_path: Path) -> None:
    first, second = (shutil.copytree(run, tmp_path / run.name) for run in runs)
    (tmp_path / "out").mkdir()
    before = everything(first, second, tmp_path / "out")
    for run in (first, second):
        as_format_1(run)
    after = everything(first, second, tmp_path / "out")
    assert [name for name in before if after[name] != before[name]] == []


def test_format_1_of_a_mechanism_that_is_gone_is_refused_by_its_name(runs: tuple[Path, Path], tmp_path: Path) -> None:
    copy = shutil.copytree(runs[0], tmp_path / "copy")
    as_format_1(copy)
    for name in ("plan.json", "checkpoint.json"):
        (copy / name).write_text((copy / name).read_text().replace('"sqlcipher"', '"sqlcypher"'))
    with pytest.raises(UsageError, match=r"unknown mechanism 'sqlcypher'.*sqlcipher"):
        conclude.result_of(copy)


def test_a_plan_of_format_2_without_what_it_must_have_is_damaged(runs: tuple[Path, Path], tmp_path: Path) -> None:
    copy = shutil.copytree(runs[0], tmp_path / "copy")
    as_format_1(copy)
    (copy / "plan.json").write_text((copy / "plan.json").read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(UsageError, match="cell 1: `registered` is missing"):
        conclude.result_of(copy)


def test_a_run_of_format_1_that_was_cut_off_is_resumed_in_format_2(tmp_path: Path, fake: Fake) -> None:
    fake("--effect 0.02 --sd 0.01")
    cells = [CellSpec("null", "busy", regime="one-core"), CellSpec("null", "none", regime="one-core")]
    spec = Spec(cells=cells, seed=7, mode="full", sessions=3, time=60.0)
    whole, _ = pipeline.run_in(specs.plan(spec), tmp_path / "whole")
    cut = shutil.copytree(tmp_path / "whole", tmp_path / "cut")
    as_format_1(cut)
    cut_off(cut)
    result, _ = resume.run_in(cut)
    assert [cell.status for cell in result.cells] == ["ok", "ok"]
    assert [cell.overhead["throughput"] for cell in result.cells] == [c.overhead["throughput"] for c in whole.cells]
    facts = run_directory.read_facts(cut)
    assert facts.format == PLAN_FORMAT
    assert [cell.registered for cell in facts.cells] == [
        cell.registered for cell in run_directory.read_facts(tmp_path / "whole").cells
    ]


def test_every_study_is_compared_without_registries(monkeypatch: pytest.MonkeyPatch) -> None:
    """A study's record names the witnesses that must report, so that its report needs no mechanism of today."""
    study_records = [(studies.get(name), study_record(name)) for name in studies.names()]
    before = [(study.compare(record, []), study) for study, record in study_records]
    forget_everything(monkeypatch)
    monkeypatch.setattr(mechanisms, "of", engines.get)
    for (result, study), (_, record) in zip(before, study_records, strict=True):
        assert study.compare(record, []) == result
        assert study.report(result).verdict


@pytest.mark.parametrize("name", studies.names())
def test_the_record_says_which_witnesses_must_report(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without their reports the arms are not proven."""
    record = study_record(name)
    record.proofs = []
    forget_everything(monkeypatch)
    assert not studies.get(name).compare(record, []).complete


def study_record(name: str) -> StudyRecord:
    """The record of a study's procedure that was interrupted after its proofs."""
    study = studies.get(name)
    record = study.begin(study.engine)
    record.witnesses = pairs.witnesses_of(record)
    record.complete = True
    record.proofs = [
        Proof(arm, witness, True, "", number)
        for number, mechanism in enumerate(record.mechanisms or [record.mechanism], start=1)
        for arm in ARMS
        for witness in record.witnesses[mechanism]
    ]
    return record


def cut_off(run: Path) -> None:
    """Remove the last cell's last session from a complete run, as if its controller had been killed before it."""
    for name in ("plan.json", "checkpoint.json"):
        plan = json.loads((run / name).read_text())
        plan.pop("ended", None)
        plan["cells"][1].pop("status", None)
        plan["cells"][1]["whole_sessions"] = plan["cells"][1]["whole_sessions"][:-1]
        (run / name).write_text(json.dumps(plan))
    lines = (run / "slices.jsonl").read_text().splitlines(keepends=True)
    kept = [line for line in lines if (json.loads(line)["cell"], json.loads(line)["session"]) != (1, 3)]
    assert 0 < len(kept) < len(lines)
    (run / "slices.jsonl").write_text("".join(kept))
