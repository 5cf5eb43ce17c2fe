"""`replicate all`: each study has its own run, a failure stops no other, finished studies do not run again, and one page shows all."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import warm
from ciphercost import studies
from ciphercost.measure.progress import Display
from ciphercost.model import run_directory
from ciphercost.model.errors import CiphercostError, Interrupted, UsageError
from ciphercost.model.run_directory import open_locked
from ciphercost.model.spec import Spec
from ciphercost.model.study import StudyResult
from ciphercost.report import together
from ciphercost.report.layout import WIDTH
from ciphercost.runs import html_page, replicate_all
from ciphercost.studies import Study
from ciphercost.studies.mysql_tls import MysqlTls
from ciphercost.studies.postgres_tde import PostgresTde
from conftest import Require, RequireServer

CLI = Path(sys.executable).parent / "ciphercost"


class Broken(PostgresTde):
    """A study whose server does not exist."""

    def spec(self, engine: str, time: float, seed: int) -> Spec:
        raise UsageError("no server of this kind is anywhere")


class Impatient(Display):
    """Interrupts everything with Ctrl-C when the cells start."""

    def phase(self, cell: int, session: int, name: str) -> None:
        if name == "capacity" and session == 2:
            raise KeyboardInterrupt


def batch(tmp_path: Path, *names: str, engine: str = "") -> Path:
    asked = replicate_all.new_record(3.0, 5, engine, {}, "")
    return replicate_all.begin(tmp_path / "all", msgspec.structs.replace(asked, studies=list(names)))


def test_a_study_that_fails_stops_no_other_and_an_interrupted_one_goes_on(
    tmp_path: Path, require: Require, require_server: RequireServer
) -> None:
    require_server("postgresql")
    small: list[Study] = [
        Broken(),
        MysqlTls(rows=300, iterations=2, queries=60, least_queries=20, interval=0.05, sessions=2),
    ]
    directory = batch(tmp_path, "postgres-tde", "mysql-tls", engine="postgresql")
    printed: list[str] = []
    with pytest.raises(Interrupted) as caught:
        replicate_all.run_remaining(directory, Impatient, printed.append, small)
    assert f"`ciphercost resume {directory}`" in str(caught.value)
    begun = run_directory.read_study(directory / "mysql-tls")
    assert begun is not None
    assert begun.complete
    cut = replicate_all.outcomes(directory)[1].reason
    assert re.search("tls select, .*tls update, .*tls delete: failed: .*cut off", cut), cut
    assert not replicate_all.done(directory / "mysql-tls")

    outcomes = replicate_all.run_remaining(directory, Display, printed.append, small)
    assert [outcome.study for outcome in outcomes] == ["postgres-tde", "mysql-tls"]
    assert "cut off" not in outcomes[1].reason
    assert outcomes[0].reason == "no server of this kind is anywhere"
    assert run_directory.read_study(directory / "mysql-tls") == begun, "a procedure that is done is not run again"
    assert replicate_all.failed(outcomes)
    rows = together.rows(outcomes)
    assert [row.what for row in rows] == ["insert", "select", "update", "delete"]
    assert all(row.published and row.here for row in rows)
    assert any(row.ours and row.low and row.high for row in rows)
    page = together.page(outcomes)
    assert f"! {outcomes[0].reason}" in page
    assert page == together.page(replicate_all.outcomes(directory)), "it is made from the records alone"
    if not outcomes[1].reason:  # a busy machine may refuse a cell
        slices = (directory / "mysql-tls" / "slices.jsonl").read_bytes()
        printed.clear()
        replicate_all.run_remaining(directory, Display, printed.append, small)
        assert "mysql-tls: already done" in printed
        assert (directory / "mysql-tls" / "slices.jsonl").read_bytes() == slices


def ciphercost(*argv: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "CIPHERCOST_SCRATCH": "/proc/nowhere", html_page.SWITCH: "on"}
    return warm.run(argv, cwd=cwd, env=env, timeout=600)


def test_by_the_command_line_every_study_has_its_reason_and_the_status_is_one(tmp_path: Path) -> None:
    done = ciphercost("replicate", "all", "--time", "2s", "-o", "all", "--json", "all.json", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    whole = json.loads((tmp_path / "all.json").read_text())
    assert [study["study"] for study in whole["studies"]] == studies.names()
    assert all(study["reason"] for study in whole["studies"])
    for name in studies.names():
        assert f"{name}: " in done.stdout
    again = ciphercost("resume", "all", cwd=tmp_path)
    assert again.returncode == 1
    assert again.stdout == done.stdout
    assert ciphercost("report", "all", cwd=tmp_path).stdout == done.stdout
    assert ciphercost("replicate", "all", "-o", "all", cwd=tmp_path).returncode == 2, "ciphercost overwrites nothing"
    assert ciphercost("report", "all", "-o", "page.txt", cwd=tmp_path).stdout == ""
    assert (tmp_path / "page.txt").read_text() == done.stdout
    shown = json.loads(ciphercost("report", "all", "--format", "json", cwd=tmp_path).stdout)
    assert shown["studies"] == whole["studies"]
    assert (tmp_path / "all" / "report.html").is_file(), "drawn at the end"
    drawn = ciphercost("report", "all", "--format", "html", "-o", "page.html", cwd=tmp_path)
    assert (drawn.returncode, drawn.stdout) == (0, "")
    assert all(f'<h2 id="{name}">' in (tmp_path / "page.html").read_text() for name in studies.names())
    without = ciphercost("report", "all", "--format", "html", cwd=tmp_path)
    assert (without.returncode, "-o FILE" in without.stderr) == (2, True)
    for wrong in (["--format", "svg", "-o", "x"], ["--need", "verified"], ["--max-cost", "5%"]):
        refused = ciphercost("report", "all", *wrong, cwd=tmp_path)
        assert refused.returncode == 2
        assert "report all/STUDY" in refused.stderr


def test_a_damaged_study_stops_no_other_and_an_old_reason_does_not_outlive_its_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Studies whose runs are faked: records only the calls of `run_study`."""
    directory = batch(tmp_path, "jdbc-tls", "mysql-tls", "web-tls")
    (directory / "jdbc-tls").mkdir()
    (directory / "jdbc-tls" / "plan.json").write_text('{"format": 1, "id": ')
    begun: list[str] = []
    monkeypatch.setattr(replicate_all, "run_study", lambda study, *_: begun.append(study.name))
    monkeypatch.setattr(
        replicate_all, "done", lambda place, real=replicate_all.done: place.name == "web-tls" or real(place)
    )
    asked = replicate_all.read(directory)
    asked.reasons["web-tls"] = "no server: install it"
    replicate_all.save(directory, asked)
    wanted = [studies.get(name) for name in asked.studies]
    replicate_all.run_remaining(directory, Display, begun.append, wanted)
    assert "mysql-tls" in begun
    assert set(replicate_all.read(directory).reasons) == {"jdbc-tls"}


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    directory = batch(tmp_path, "mysql-tls")
    with open_locked(directory, replicate_all.LOCK), pytest.raises(UsageError, match="still active"):
        replicate_all.run_remaining(directory, Display, print, [])


def test_options_go_to_the_studies_that_have_them() -> None:
    asked = replicate_all.new_record(0, 1, "postgresql", {"scale": 1, "duration": 2.0, "runs": 2, "loads": "10"}, "")
    by_name = {study.name: study for study in replicate_all.chosen(asked)}
    assert list(by_name) == studies.names()
    tde = by_name["postgres-tde"]
    assert isinstance(tde, PostgresTde)
    assert (tde.sizes, tde.duration, tde.clients) == ((100_000,), 2.0, (10, 50))
    with pytest.raises(UsageError, match="oracle"):
        replicate_all.chosen(msgspec.structs.replace(asked, engine="oracle"))


@pytest.mark.parametrize(("here", "ours"), [(1.02, 1.4), (123.4, 12_345.6), (0.0012, 0.001)], ids=str)
def test_one_page_has_every_study_side_by_side(here: float, ours: float, require: Require) -> None:
    outcomes = []
    for name in studies.names():
        study = studies.get(name)
        try:
            empty = study.compare(study.begin(study.engine), [])
        except CiphercostError as error:
            require(None, str(error))
            raise
        figures = [
            msgspec.structs.replace(figure, here=here, ours=ours, low=ours * 0.9, high=ours * 1.2)
            for figure in empty.figures
        ]
        result: StudyResult = msgspec.structs.replace(empty, figures=figures)
        outcomes.append(together.Outcome(name, result, "", f"runs/x-all/{name}"))
    text = together.page(outcomes)
    assert all(len(line) <= WIDTH for line in text.splitlines())
    assert len(text.splitlines()) < 15 * len(studies.names()), "a third of a page for each"
    rows = together.rows(outcomes)
    assert list(dict.fromkeys(row.study for row in rows)) == studies.names()
    assert all((row.here, row.ours) == (here, ours) for row in rows)
    for name in studies.names():
        assert 1 <= len([row for row in rows if row.study == name]) <= 8
        assert any(row.published for row in rows if row.study == name)
