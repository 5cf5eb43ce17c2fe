"""A small but complete replication of mysql-tls on a real server; and input that is refused before anything starts."""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

import result_schema
import warm
from ciphercost import engines, studies
from ciphercost.load import workloads
from ciphercost.load.agent import Agent
from ciphercost.model import run_directory
from ciphercost.model.connection import Connection
from ciphercost.model.errors import AgentError, UsageError
from ciphercost.model.spec import ARMS, Spec
from ciphercost.report.formats import terminal
from ciphercost.runs import conclude, replicate
from ciphercost.studies.mysql_tls import MysqlTls
from ciphercost.studies.sheet import FINDINGS
from conftest import Require, RequireServer

CLI = Path(sys.executable).parent / "ciphercost"
SMALL = MysqlTls(rows=300, iterations=2, queries=60, least_queries=20, interval=0.05, sessions=2)
OPERATIONS = SMALL.operations


def small_spec(engine: str) -> Spec:
    return SMALL.spec(engine, 3.0, 5)


@pytest.mark.parametrize("engine", ["postgresql", "mysql"])
def test_a_small_replication_is_proven_run_recorded_and_reported_again(
    tmp_path: Path, engine: str, require: Require, require_server: RequireServer
) -> None:
    require_server(engine)
    with Agent() as agent:
        require(engines.get(engine).driver in str(agent.hello.drivers).split(), f"the agent has no driver for {engine}")
    result, directory = replicate.run_in(SMALL, small_spec(engine), tmp_path / "run")
    kept = run_directory.read_study(directory)
    assert kept is not None
    assert not kept.reason
    assert kept.complete
    # Operation by operation, with TLS first, as in the study.
    assert [(run.operation, run.arm) for run in kept.runs] == [(name, arm) for name in OPERATIONS for arm in ARMS[::-1]]
    assert all(earlier.started < later.started for earlier, later in pairwise(kept.runs))
    for run in kept.runs:
        assert len(run.series["seconds"]) == 2
        assert all(seconds > 0 for seconds in run.series["seconds"])
        assert 20 <= run.load["queries"] <= 60
        assert all(row.server_memory_bytes > 1_000_000 for row in run.host)
    assert any(run.host for run in kept.runs), "one within a tick of the clock has no row"
    heard = {(proof.arm, proof.witness) for proof in kept.proofs if proof.passed}
    assert heard == {(arm, witness) for arm in ARMS for witness in ("client", "server", "wire")}
    assert kept.encryption["verified"] == "no", "as published: REQUIRED checks no certificate"

    assert [cell.workload for cell in result.cells] == [f"mysql-tls/{name}" for name in OPERATIONS]
    ended = [cell for cell in result.cells if cell.status != "no-steady-state"]  # a busy machine may refuse one
    assert ended
    assert all(cell.status == "ok" for cell in ended), [cell.reason for cell in ended]
    assert result.study is not None
    assert result.study.complete
    costs = [figure for figure in result.study.figures if (figure.figure, figure.arm) == ("time", "cost")]
    assert all(cost.published and cost.here for cost in costs)
    assert any(cost.ours and cost.low and cost.high for cost in costs)

    # Reports read only the record.
    encoded = (directory / "result.json").read_bytes()
    assert run_directory.encode(conclude.result_of(directory)) == encoded
    result_schema.validate(json.loads(encoded))
    text = terminal.render(result)
    assert "the same here" in text
    assert FINDINGS in text
    assert "31.49 → 31.92" in text
    # After a kill, the report has only what was recorded.
    kept.runs, kept.complete = kept.runs[:3], False
    (directory / "study.json").write_bytes(msgspec.json.encode(kept))
    again = conclude.result_of(directory).study
    assert again is not None
    assert not again.complete
    assert (
        sum(figure.here is not None for figure in again.figures if figure.arm in ARMS and figure.figure == "time") == 3
    )


@pytest.mark.parametrize(
    ("argv", "words", "status"),
    [
        (("replicate", "nonsense"), "unknown study 'nonsense'", 2),
        (("replicate", "mysql-tsl"), "did you mean 'mysql-tls'", 2),
        (("replicate",), "Missing argument", 2),
        (("replicate", "mysql-tls", "--engine", "postgres"), "did you mean 'postgresql'", 2),
        (("replicate", "mysql-tls", "--engine", "sqlite"), "does not run on 'sqlite'", 2),
        (("replicate", "mysql-tls", "--time", "soon"), "is not a duration", 2),
        (("replicate", "mysql-tls", "--rows", "0"), "--rows 0: must be from 1", 2),
        (("replicate", "mysql-tls", "--order", "random"), "--order random: unknown order; known: arms, operations", 2),
        (("replicate", "mysql-tls", "--memory", "1GiB2"), "is not a number or a size", 2),
        (("replicate", "web-tls", "--memory", "2GB"), "mysql-tls has", 2),
        (("replicate", "all", "--quick"), "--quick is for one study", 2),
        (("replicate", "pq-tls", "--delay", "10xs"), "--delay 10xs: not a duration", 2),
        (("replicate", "valkey-tls", "--delay", "10ms"), "which direct-tls and pq-tls have", 2),
        (("replicate", "all", "--engine", "oracle"), "--engine oracle: no study runs on it", 2),
        (("replicate", "all", "--time", "soon"), "is not a duration", 2),
        (("run", "postgresql:tls", "--workload", "mysql-tls/slect"), "did you mean 'select'", 2),
        (("run", "postgresql:tls", "--workload", "mysql-tsl/select"), "did you mean 'mysql-tls'", 2),
        (("list", "study"), "did you mean 'studies'", 2),
    ],
    ids=lambda value: "-".join(value[:4]).replace("/", "_") if isinstance(value, tuple) else "",
)
def test_bad_options_give_one_clear_message_and_a_status(
    tmp_path: Path, argv: tuple[str, ...], words: str, status: int
) -> None:
    done = warm.run(argv, cwd=tmp_path, timeout=300)
    assert words in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == status
    assert not list(tmp_path.iterdir()), "nothing was begun"


def test_a_trial_has_one_session_for_each_cell() -> None:
    spec = replicate.quick(SMALL.spec("postgresql", 3.0, 5))
    assert (spec.mode, spec.sessions, len(spec.cells)) == ("quick", 1, len(OPERATIONS))


def test_studies_are_listed_with_what_they_run_on(tmp_path: Path) -> None:
    done = warm.run(["list", "studies"], cwd=tmp_path, timeout=300)
    for name in studies.names():
        assert name in done.stdout


def test_all_is_every_study_there_is() -> None:
    assert [study.name for study in replicate.chosen("all")] == studies.names()
    assert [study.name for study in replicate.chosen("mysql-tls")] == ["mysql-tls"]
    with pytest.raises(UsageError, match="unknown study 'mysql': did you mean 'mysql-openssl' or 'mysql-tls'"):
        replicate.chosen("mysql")


def test_a_studys_workload_is_four_workloads_of_one_file() -> None:
    for name in OPERATIONS:
        program = workloads.prepare(workloads.get(f"mysql-tls/{name}"), "postgresql", {}, 600)
        assert program.name == f"mysql-tls/{name}"
        assert len(program.transactions) == 1
        assert program.read_only == (name == "select")
        assert len(list(program.load)) == 1 + 3, "the table, and its people 250 at a time"
    single = workloads.prepare(workloads.get("mysql-tls/select"), "firebird", {}, 600)
    assert len(list(single.load)) == 1 + 600


def test_queries_are_pipelined_and_the_first_failure_is_reported(tmp_path: Path) -> None:
    with Agent() as agent:
        agent.connect("a", Connection(driver="sqlite", path=str(tmp_path / "file")))
        agent.query("a", "CREATE TABLE t (n integer)")
        assert agent.queries("a", (f"INSERT INTO t VALUES ({n})" for n in range(500))) == 500
        assert agent.query("a", "SELECT count(*), sum(n) FROM t") == [["500", str(sum(range(500)))]]
        assert agent.queries("a", []) == 0
        with pytest.raises(AgentError, match="nobody"):
            agent.queries("a", ["SELECT 1", "SELECT * FROM nobody", *["SELECT 2"] * 40])
        assert agent.query("a", "SELECT 3") == [["3"]], "every answer was read"
