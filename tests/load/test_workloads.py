"""workloads: batches create every row exactly once; each workload runs on each real server and leaves its table no
larger.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost import engines
from ciphercost.engines import Engine, Server, StartRequest
from ciphercost.host import run_ownership, supervisor
from ciphercost.load import program as load_program
from ciphercost.load import workloads
from ciphercost.load.agent import Agent
from ciphercost.load.program import BATCH, Load, Program
from ciphercost.model import run_directory
from ciphercost.model.connection import Changes
from ciphercost.model.errors import UsageError
from conftest import RequireServer

DIALECTS = ("postgresql", "mysql", "sqlite", "firebird")
SIZED = [
    name
    for name in workloads.names()
    if workloads.get(name).load and name != "bulk-read" and not workloads.get(name).records
]
BOUNDS = re.compile(
    r"generate_series\((\d+), (\d+)\)|SELECT (\d+) UNION ALL SELECT n \+ 1 FROM s WHERE n < (\d+)|SELECT (\d+) \+ 1000 \* .*? WHERE n <= (\d+)",
    re.DOTALL,
)


def program(name: str, dialect: str = "postgresql", rows: int = 0, **given: str) -> Program:
    return workloads.prepare(workloads.get(name), dialect, given, rows)


# ── sizes ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("dialect", DIALECTS)
@given(rows=st.sampled_from([50, 100_000, 100_001, 5_000_000]) | st.integers(1, 2_000_000))
def test_accounts_are_made_once_each_whatever_their_number(dialect: str, rows: int) -> None:
    prepared = program("tpcb", dialect, rows)
    inserts = [step.sql for step in prepared.load if "INSERT INTO pgbench_accounts" in step.sql]
    bounds = []
    for sql in inserts:
        match = BOUNDS.search(sql)
        assert match is not None, sql
        bounds.append(tuple(int(bound) for bound in match.groups() if bound))
    assert bounds[0][0] == 1
    assert bounds[-1][1] == rows
    assert all(before[1] + 1 == after[0] for before, after in itertools.pairwise(bounds))
    assert all(last - first < BATCH for first, last in bounds)
    assert prepared.parameters["scale"] == -(-rows // 100_000), "a branch for every 100,000 accounts, as pgbench has it"
    (drawn,) = (script for _, _, script in prepared.transactions)
    assert {variable.name: (variable.low, variable.high) for variable in drawn.variables}["aid"] == (1, rows)
    assert str(rows) in prepared.check or dialect != "firebird"


def test_pgbenchs_scale_stays_what_it_is() -> None:
    prepared = program("tpcb", scale="50")
    assert (prepared.parameters["rows"], prepared.parameters["scale"]) == (5_000_000, 50)
    assert program("tpcb").parameters["rows"] == 100_000
    with pytest.raises(UsageError, match="remove one of them"):
        program("tpcb", rows=50, scale="2")


@pytest.mark.parametrize("name", SIZED)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_load_is_made_as_it_is_gone_through_and_again(name: str, dialect: str) -> None:
    prepared = program(name, dialect, 5_000_000)
    assert list(prepared.load) == list(prepared.load)
    # Too many rows to hold in memory.
    endless = program(name, dialect, 10**13)
    assert len(list(itertools.islice(endless.load, 1000))) == 1000


def test_people_are_not_held_either() -> None:

    whole = workloads.read(resources.files(workloads).joinpath("studies/mysql-tls.toml").read_text(), "mysql-tls")
    prepared = workloads.prepare(whole, "postgresql", {}, 10**12)
    first = [step.sql for step in itertools.islice(prepared.load, 3)]
    assert "INSERT INTO" in first[-1]


def test_a_name_that_is_no_parameter_is_refused_before_anything_is_loaded() -> None:
    with pytest.raises(UsageError, match="':nothing' is not a parameter"):
        Load("CREATE TABLE t (a integer);\nINSERT INTO t SELECT :nothing FROM s(:first, :last)", {"rows": 5}, "here")


@given(st.integers(1, 10**7))
def test_a_ring_has_whole_thousands(rows: int) -> None:
    prepared = program("bulk-load", rows=rows)
    assert prepared.parameters["rows"] == 1000 * max(rows // 1000, 1)


def test_a_scan_only_reads() -> None:
    assert all(program("scan", dialect).read_only for dialect in DIALECTS)
    assert not any(
        program(name, dialect).read_only for name in ("bulk-load", "checkpoint", "tpcb") for dialect in DIALECTS
    )


# ── the real ones ─────────────────────────────────────────────────────────────────────────────────────────────────────

SERVERS = [
    ("postgresql", "15"), ("postgresql", "18"), ("mysql", "9.7"), ("mariadb", "11.8"), ("mariadb", "10.11"), ("firebird", "4.0"),
    ("sqlite", ""),
]  # fmt: skip
PIECES = {"tpcb": 2500, "bulk-load": 3000, "scan": 2500, "checkpoint": 2500}
TABLES = {"tpcb": "pgbench_accounts", "bulk-load": "bulk", "scan": "ledger", "checkpoint": "account"}


@pytest.fixture(scope="module", params=SERVERS, ids=lambda value: "@".join(filter(None, value)))
def server(request: pytest.FixtureRequest, require_server: RequireServer) -> Iterator[tuple[Engine, Server]]:
    name, version = request.param
    installation = require_server(name, version)
    engine, run_id = engines.get(name), run_directory.new_id()
    with supervisor.Supervisor(run_id) as run_supervisor:
        directory = supervisor.scratch(run_id, run_supervisor) / "data"
        directory.mkdir(mode=0o700)
        run_ownership.hand_over(directory)
        engine.initialise(installation, directory, run_supervisor)
        started = engine.start(StartRequest(installation, directory, run_supervisor))
        try:
            yield engine, started
        finally:
            started.stop()


@pytest.mark.parametrize("name", PIECES)
def test_a_workload_runs_on_a_real_server(
    server: tuple[Engine, Server], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, started = server
    monkeypatch.setattr(load_program, "BATCH", 700)  # several batches, the last one incomplete
    prepared = program(name, engine.dialect, PIECES[name])
    pragmas: Changes = {"pragmas": "PRAGMA journal_mode=WAL"} if engine.embedded else {}
    with Agent(log=tmp_path / "agent.log") as agent:
        fields = started.connection() | engine.plaintext_fields() | pragmas
        agent.connect("loader", fields)
        for step in prepared.load:
            agent.query("loader", step.sql)
        count = f"SELECT count(*) FROM {TABLES[name]}"
        assert agent.query("loader", count) == [[str(PIECES[name])]]
        before = agent.query("loader", prepared.check)
        agent.program(prepared)
        agent.connect("plain", fields | {"connections": prepared.clients})
        answer = agent.slice("plain", 120, discard=0, seed=3, operations=24)
        assert (answer.errors, answer.operations) == (0, 24), answer.first_error
        after_it = agent.query("loader", prepared.check)
        assert agent.query("loader", count) == [[str(PIECES[name])]], "neither lost nor added"
        assert (before == after_it) is prepared.read_only
        if name == "bulk-load":
            # 24 batches in a ring of 3: the last three remain
            assert agent.query("loader", "SELECT min(batch), max(batch) FROM bulk") == [["21", "23"]]


# ── thinking and arrivals ─────────────────────────────────────────────────────────────────────────────────────────────

THOUGHTFUL = """
title = "visits"
measures = "nothing"
arrivals = "random"
[[transaction]]
name = "hasty"
weight = 3
script = "SELECT 1"
[[transaction]]
name = "slow"
script = '''
\\set t random(1000000, 3000000)
THINK :t;
SELECT 1;
THINK :t'''
"""


def test_how_long_an_operation_thinks_is_weighted_by_transactions() -> None:
    prepared = workloads.prepare(workloads.read(THOUGHTFUL, "visits"), "null", {})
    assert prepared.think_s == pytest.approx((3 * 0 + 1 * 4.0) / 4)
    assert prepared.arrivals == "random"
    assert all((program(name).arrivals, program(name).think_s) == ("even", 0) for name in SIZED)


def test_arrivals_are_one_of_two() -> None:
    with pytest.raises(msgspec.ValidationError, match="arrivals"):
        workloads.read(THOUGHTFUL.replace('"random"', '"poisson"'), "visits")


def test_a_statement_with_row_runs_once_for_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_program, "TOGETHER", 30)
    steps = list(Load("FLUSH;\nSET row-:row :filler", {"rows": 5, "size": 4}, "here"))
    assert [step.sql for step in steps] == [
        "FLUSH",
        "SET row-1 xxxx;\nSET row-2 xxxx;\nSET row-3 xxxx",
        "SET row-4 xxxx;\nSET row-5 xxxx",
    ]
    assert steps[1].where == "SET row-1 xxxx"


def test_mysql_deletes_a_notification_before_the_rows_that_it_refers_to() -> None:
    """MySQL deletes rows of the first table of a join while it reads, so the order must not be the optimizer's choice.

    Otherwise, depending on its statistics, it begins with a municipality, which its notification still refers to (error 1451).
    """
    path = Path(workloads.__file__).parent / "hospital.toml"
    statement = (
        tomllib.loads(path.read_text())["dialect"]["mysql"]["delete"].partition("DELETE n,")[2].partition(";")[0]
    )
    assert re.search(r"FROM notification n\b", statement)
    assert len(re.findall(r"\bSTRAIGHT_JOIN\b", statement)) == 4
    assert not re.search(r"(?<!STRAIGHT_)JOIN\b", statement)
