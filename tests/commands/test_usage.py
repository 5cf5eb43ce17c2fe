"""Almost correct input: the error suggests what the user meant. Python callers get the same errors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

import ciphercost as api
import fake
import results
from ciphercost import engines, mechanisms, studies
from ciphercost.estimate import trace
from ciphercost.load import workloads
from ciphercost.model import errors, run_directory
from ciphercost.model.errors import CiphercostError, UsageError, nearest
from ciphercost.model.result import Result
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import schedule, toml
from ciphercost.report import formats, plots
from test_real import ciphercost


def test_load_is_a_function_although_there_is_a_package_of_that_name() -> None:
    assert workloads.names()
    assert callable(api.load)


# ── names ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("argv", "meant"),
    [
        (("run", "postgresql:ssl"), "'tls'"),
        (("run", "postgresql:SSL"), "'tls'"),
        (("run", "pg:tls"), "'postgresql'"),
        (("run", "maria:tls"), "'mariadb'"),
        (("run", "httpd:tls"), "'apache'"),
        (("run", "mysql:tde"), "'innodb-tde'"),
        (("run", "mariadb:tde"), "'mariadb-tde'"),
        (("run", "postgresql:luks"), "'path' or 'fscrypt'"),
        (("run", "postgresql:tls", "--workload", "pgbench"), "'tpcb'"),
        (("run", "postgresql:tls", "--set", "cypher=aes256-gcm"), "'cipher'"),
        (("replicate", "mysql"), "'mysql-openssl' or 'mysql-tls'"),
        (("report", "run", "--format", "markdown"), "'md'"),
    ],
)
def test_an_alias_gets_a_suggestion_without_a_long_list(tmp_path: Path, argv: tuple[str, ...], meant: str) -> None:
    done = ciphercost(*argv, cwd=tmp_path)
    assert done.returncode == 2
    assert f"did you mean {meant}?" in done.stderr
    assert len(done.stderr) < 300


def test_every_alias_leads_to_an_existing_name() -> None:
    known = {*engines.names(), *mechanisms.names(), *workloads.names(), *studies.names(), *formats.names()}
    for word, meant in errors.ALIASES.items():
        assert set(meant) <= known, word
        assert word not in known


def test_without_a_near_name_all_are_listed() -> None:
    assert nearest("qqqq", ["a", "b"]) == "known: a, b"


def test_the_first_word_of_names_means_all_of_them() -> None:
    known = ["gocryptfs", "pgcrypto-cbc-128", "pgcrypto-cbc-192", "pgcrypto-cbc-256", "pgcrypto-cfb-128"]
    assert nearest("pgcrypto", known[:3]).startswith("did you mean 'pgcrypto-cbc-128' or 'pgcrypto-cbc-192'?")
    assert nearest("pgcrypto", known) == (
        "did you mean 'pgcrypto-cbc-128' or another that begins with 'pgcrypto-': pgcrypto-cbc-192, pgcrypto-cbc-256, pgcrypto-cfb-128?"
    )


# ── time ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("argv", "least"),
    [
        ((), 28),
        (("--no-latency",), 19),
        (("--quick",), 4),
        (("--quick", "--no-latency"), 3),
        (("--sessions", "2"), 7),
        (("--regime", "latency"), 28),
    ],
)
def test_a_time_too_short_for_an_interval_is_refused_with_the_shortest_possible(
    tmp_path: Path, argv: tuple[str, ...], least: int
) -> None:
    done = ciphercost("run", "postgresql:tls", "--time", f"{least - 1}s", "--print-spec", *argv, cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    assert f"needs at least {least}s" in done.stderr
    done = ciphercost("run", "postgresql:tls", "--time", f"{least}s", "--print-spec", *argv, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_least_time_has_room_for_the_blocks_of_every_session() -> None:
    cell = CellSpec("postgresql", "tls")
    for sessions in (2, 8, 20):
        whole = Spec([cell], sessions=sessions)
        least = schedule.least_seconds(whole, cell)
        split = schedule.budget(msgspec.structs.replace(whole, time=least), cell)
        assert split.capacity_s >= schedule.MIN_BLOCKS * schedule.SLICES_A_BLOCK * schedule.CANDIDATES[0]


def test_a_spec_file_has_the_same_least_time(tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    path.write_text("time = 1\n[[cells]]\nengine = 'null'\nmechanism = 'none'\n")
    with pytest.raises(UsageError, match="needs at least 28s"):
        toml.load(path)


def test_quick_has_its_own_least_time(tmp_path: Path) -> None:
    done = ciphercost("quick", "--time", "1s", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "of `quick`; use --time" in done.stderr


# ── the newest run ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_latest_is_the_newest_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"no run 'latest': .*`ciphercost quick`"):
        run_directory.find("latest")
    mine = results.recorded(tmp_path / "runs").rename(tmp_path / "runs" / "mine")
    assert mine.is_dir()
    for name in ("20990103-000000-aaaaaa", "20260101-000000-bbbbbb"):
        (tmp_path / "runs" / name).mkdir()
        plan_ = tmp_path / "runs" / name / "plan.json"
        plan_.write_text("{}")
        os.utime(plan_, (1e9, 1e9))
    assert run_directory.find("latest") == Path("runs/mine")
    for argv in (("report", "latest"), ("compare", "latest", "--fail-over", "1000%"), ("resume", "latest")):
        done = ciphercost(*argv, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert api.load("latest").id == api.load("runs/mine").id


# ── plots ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> plots.Subject:
    """A run with two cells."""
    place = tmp_path_factory.mktemp("two")
    with fake.in_place(place, "--effect 0.2 --sd 0.01"):
        result = api.run(["null:busy", "null:none"], place / "run", mode="quick", time=2.0, latency=False)
    return plots.Subject(result, trace.read(place / "run"))


@pytest.mark.parametrize("form", ["svg", "png"])
def test_a_plot_of_one_cell_is_a_file_and_of_several_needs_a_directory(
    tmp_path: Path, two: plots.Subject, form: str
) -> None:
    path = tmp_path / f"plots.{form}"
    assert plots.write(plots.Subject(results.result(results.cell())), path, form) == [path]
    assert path.read_bytes()[:4] in (b"\x89PNG", b"<svg")
    path.unlink()
    with pytest.raises(UsageError, match=rf"plots\.{form}: .*2 cells and \d plots.*directory with -o"):
        plots.write(two, path, form)
    assert not path.exists()
    assert len(plots.write(two, tmp_path / "plots", form)) > 1
    path.mkdir()
    assert plots.write(two, path, form)[0].parent == path


# ── nothing to prove ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("target", ["postgresql:none", "sqlite:none", "null:none", "null:busy", "nginx:no-sendfile"])
def test_what_encrypts_nothing_has_nothing_to_prove(tmp_path: Path, target: str) -> None:
    done = ciphercost("prove", target, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{target} has nothing to prove" in done.stderr


# ── Python ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_target_a_list_and_a_cell_run_as_a_spec_does(tmp_path: Path) -> None:
    short: dict[str, Any] = {"mode": "quick", "time": 2.0, "latency": False}
    several: list[Any] = ["null:busy", ["null:busy"], CellSpec("null", "busy")]
    for number, given in enumerate(several):
        result = api.run(given, tmp_path / str(number), **short)
        assert [(cell.engine, cell.mechanism) for cell in result.cells] == [("null", "busy")]
    path = tmp_path / "grid.toml"
    path.write_text(
        "mode = 'quick'\nsessions = 1\ntime = 3.0\nlatency = false\n[[cells]]\nengine = 'null'\nmechanism = 'busy'\n"
    )
    assert len(api.run(str(path), tmp_path / "file").cells) == 1


@pytest.mark.parametrize(
    ("given", "options", "words"),
    [
        (None, {}, "run takes a Spec"),
        (5, {}, "got int"),
        (b"null:busy", {}, "got bytes"),
        ({"engine": "null"}, {}, "got dict"),
        ([None], {}, "the list contains NoneType"),
        ([], {}, "nothing to run"),
        ("postgresql", {}, "no mechanism given"),
        ("postgresql:ssl", {}, "did you mean 'tls'"),
        ("null:busy", {"tiem": 3}, "did you mean 'time'"),
        ("null:busy", {"time": "5 apples"}, "time: '5 apples' is not a duration"),
        ("null:busy", {"time": [5]}, "Expected `float`"),
        ("null:busy", {"precision": "much"}, "precision: 'much' is not a share"),
        ("null:busy", {"clients": "4"}, "Expected `int`"),
        ("null:busy", {"workloda": "connect"}, "did you mean 'workload'"),
        ("null:busy", {"engine": "mysql"}, "no option 'engine'"),
        ("null:busy", {"time": -1}, "Expected `float` >= 0"),
        ("nothing.toml", {}, "can't be read"),
        (Spec([CellSpec("null", "busy")]), {"time": 3.0}, "no effect with a whole spec"),
        (Spec("null:busy"), {}, "Expected `array`"),  # type: ignore[arg-type]
        (Spec([CellSpec("null", 5)]), {}, "Expected `str`"),  # type: ignore[arg-type]
    ],
)
def test_python_misuse_raises_a_usage_error(given: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        api.run(given, **options)


@pytest.mark.parametrize("given", [None, 5, results.result(results.cell())])
def test_a_wrong_type_for_a_run_raises_a_ciphercost_error(given: Any) -> None:
    for ask in (api.load, api.slices):
        with pytest.raises(CiphercostError, match="a run is given as its directory"):
            ask(given)


def test_a_result_is_a_line_for_each_cell() -> None:
    result: Result = results.mixed()
    shown = repr(api.Result.of(result))
    assert len(shown.splitlines()) == len(result.cells) + 1
    assert len(shown) < 250 * (len(result.cells) + 1)
    assert "20.0 % fewer" in shown
    assert "FAILED, the server went away" in shown


# ── an output that nobody reads ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("output", "status", "words"),
    [(">&-", 0, ""), (">/dev/full", 1, "No space left on device; the disk is full")],
)
def test_an_output_that_can_not_be_written_ends_without_a_traceback(output: str, status: int, words: str) -> None:
    program = Path(sys.executable).parent / "ciphercost"
    done = subprocess.run(
        ["sh", "-c", f"'{program}' list engines {output}"], stderr=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    assert words in done.stderr
    assert bool(done.stderr) == bool(words)


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (("--set", "version=1.2,cipher=aes256-gcm"), "write --set version=1.2 --set cipher=aes256-gcm"),
        (("--set", "version=1.2", "--set", "version=1.3"), "--set version=1.3: version is already 1.2; write it once"),
        (("--setting", "work_mem=1MB", "--setting", "work_mem=2MB"), "work_mem is already 1MB; write it once"),
    ],
)
def test_of_two_values_in_one_option_none_is_dropped(tmp_path: Path, argv: tuple[str, ...], expected: str) -> None:
    done = ciphercost("run", "postgresql:tls", *argv, cwd=tmp_path)
    assert (done.returncode, expected in done.stderr) == (2, True), done.stderr
