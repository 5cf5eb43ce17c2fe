"""`ciphercost workload` on the logs that real database servers wrote of a known load, and `run --workload` with what it made.

The load's numbers of operations are chosen, so the classes of the log have them exactly.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import stat
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import processes
import short
import warm
from ciphercost.load import workload_file, workloads
from ciphercost.load.agent import Agent
from ciphercost.model.errors import AgentError
from ciphercost.model.secret import reveal
from conftest import RequireServer
from userservers import UserServer, user_server

WORD = "Kirschwasserfabrik"
"""In a value of the log: it must be in no record or report."""
LOG = {
    "log_statement": "all",
    "log_duration": "on",
    "log_connections": "on",
    "log_disconnections": "on",
    "logging_collector": "on",
    "log_destination": "stderr,csvlog,jsonlog",
    "log_line_prefix": "%m [%p] %u@%d ",
    "log_directory": "statements",
    "log_filename": "all.log",
    "fsync": "off",
}
BUILTINS = {"select-only": 60, "tpcb-like": 25, "simple-update": 15}
"""Transactions of pgbench's scripts in the log of PostgreSQL."""
PREPARED = 20
"""More of `select-only`, prepared."""
NAMED = 10
"""Statements with WORD."""
POINTS, RANGES, UPDATES = 60, 30, 10
"""Operations in the logs of MySQL and MariaDB: statements by key, statements over a range, transactions that write."""
PATIENCE = 60.0
"""Seconds until the server has written its log."""
OF_MYSQL = pytest.mark.parametrize("mysql", ["mysql"], indirect=True)
OF_MARIADB = pytest.mark.parametrize("mysql", ["mariadb"], indirect=True)


class Logged(NamedTuple):
    server: UserServer
    logs: dict[str, Path]
    dump: Path


def wait_for_line(path: Path, mark: str) -> None:
    """Another process of the server may write it."""
    processes.wait_for(
        f"{mark} in {path}", lambda: path.is_file() and mark in path.read_text(errors="replace"), PATIENCE
    )


@pytest.fixture(scope="module")
def postgresql(tmp_path_factory: pytest.TempPathFactory, require_server: RequireServer) -> Iterator[Logged]:
    require_server("postgresql", "18")
    directory = tmp_path_factory.mktemp("postgresql")
    with user_server("postgresql", directory, version="18") as server:
        server.ask(*[f"ALTER SYSTEM SET {name} = '{value}'" for name, value in LOG.items()])
        server.restart()  # the collector of the log begins with the server
        assert server.server.directory is not None
        server.pgbench("-i", "-q", "-s", "1")
        (written,) = server.server.directory.rglob("statements")
        server.ask("SELECT 'the beginning'")
        for file in written.iterdir():
            wait_for_line(file, "the beginning")
        before = {file.suffix: file.stat().st_size for file in written.iterdir()}
        for name, count in BUILTINS.items():
            server.pgbench("-n", "-c", "1", "-b", name, "-t", str(count))
        server.pgbench("-n", "-c", "1", "-b", "select-only", "-M", "prepared", "-t", str(PREPARED))
        server.ask(
            *[f"SELECT count(*) FROM pgbench_branches WHERE filler = '{WORD} {number}'" for number in range(NAMED)]
        )
        server.ask("SELECT 'the mark'")
        logs = {}
        for file in written.iterdir():
            wait_for_line(file, "the mark")
            with file.open("rb") as source:
                source.seek(before[file.suffix])
                logs[file.suffix] = directory / f"load{file.suffix}"
                logs[file.suffix].write_bytes(source.read())
        where = [
            "-h",
            "127.0.0.1",
            "-p",
            str(server.fields.port),
            "-U",
            str(server.fields.user),
            str(server.fields.database),
        ]
        dump = directory / "bench.sql"
        environment = {**os.environ, "PGPASSWORD": reveal(server.fields.password)}
        program = Path(server.installation.location) / "pg_dump"
        subprocess.run([program, "-f", dump, "-t", "pgbench_*", *where], check=True, env=environment)
        yield Logged(server, logs, dump)


@pytest.fixture(scope="module", params=["mysql", "mariadb"])
def mysql(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, require_server: RequireServer
) -> Iterator[Logged]:
    name = str(request.param)
    require_server(name)
    directory = tmp_path_factory.mktemp(name)
    with user_server(name, directory) as server:
        server.ask(
            "CREATE TABLE people (id int PRIMARY KEY, n int, name varchar(60))",
            "INSERT INTO people WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 500) SELECT n, n % 7, concat('it''s ', n) FROM c",
        )
        ((data,),) = server.ask("SELECT @@datadir")
        for kind in ("general", "slow"):
            server.ask(f"SET GLOBAL {kind if kind == 'general' else 'slow_query'}_log_file = '{data}{kind}.log'")
        logging = ("general_log", "slow_query_log")
        server.ask("SET GLOBAL long_query_time = 0", *(f"SET GLOBAL {each} = 1" for each in logging))
        server.ask(*[f"SELECT name FROM people WHERE id = {number}" for number in range(POINTS)])
        server.ask(
            *[
                f"SELECT id, name FROM people\n WHERE id BETWEEN {number} AND {number + 9} -- it's\n ORDER BY name"
                for number in range(RANGES)
            ]
        )
        update = "UPDATE people SET n = n + 1, name = 'it''s; \\\\ {word}' WHERE id = {number}"
        for number in range(UPDATES):
            server.ask(
                "BEGIN", f"SELECT n FROM people WHERE id = {number}", update.format(word=WORD, number=number), "COMMIT"
            )
        server.ask(*(f"SET GLOBAL {each} = 0" for each in logging))
        logs = {kind: Path(shutil.copy(f"{data}{kind}.log", directory / f"{kind}.log")) for kind in ("general", "slow")}
        logs["digest"] = directory / "digest.csv"
        names = [
            "SCHEMA_NAME",
            "DIGEST_TEXT",
            "COUNT_STAR",
            "SUM_TIMER_WAIT",
            "LAST_SEEN",
            *["QUERY_SAMPLE_TEXT"] * (name == "mysql"),
        ]
        with logs["digest"].open("w", newline="") as file:
            asked = f"SELECT {', '.join(names)} FROM performance_schema.events_statements_summary_by_digest WHERE DIGEST_TEXT LIKE '%people%'"
            csv.writer(file).writerows([names, *server.ask(asked)])
        dump = directory / "people.sql"
        if name == "mysql":
            program = Path(server.installation.location).parent / "bin" / "mysqldump"
            given = [
                "-h",
                "127.0.0.1",
                "-P",
                str(server.fields.port),
                "-u",
                str(server.fields.user),
                "--no-tablespaces",
                "--set-gtid-purged=OFF",
            ]
            environment = {**os.environ, "MYSQL_PWD": reveal(server.fields.password)}
            with dump.open("wb") as output:
                argv = [str(program), "--no-defaults", *given, str(server.fields.database), "people"]
                subprocess.run(argv, check=True, env=environment, stdout=output)
        yield Logged(server, logs, dump)


class Made(NamedTuple):
    shares: dict[str, int]
    """Operations by the name of their class."""
    weights: dict[str, int]
    """Sums of the transactions' weights, by the same names."""
    left_out: dict[str, int]
    printed: str
    file: Path


def made(log: Path, directory: Path, *options: str) -> Made:
    output = directory / "mine.toml"
    done = warm.run(["workload", str(log), "-o", str(output), *options], cwd=directory)
    assert done.returncode == 0, done.stderr
    assert stat.S_IMODE(output.stat().st_mode) == 0o600
    content = tomllib.loads(output.read_text())
    weights: dict[str, int] = {}
    for transaction in content["transaction"]:
        name = transaction["name"].partition(",")[0]
        weights[name] = weights.get(name, 0) + transaction["weight"]
    return Made(
        {each["name"]: each["count"] for each in content["traffic"]["classes"]},
        weights,
        {each["reason"]: each["lines"] for each in content["traffic"].get("left_out", [])},
        done.stdout,
        output,
    )


def largest_difference(of: Made) -> float:
    """Between the share of a class in the log and in the workload."""
    total, weight = sum(of.shares.values()), sum(of.weights.values())
    return max(abs(of.weights[name] / weight - count / total) for name, count in of.shares.items())


@pytest.mark.parametrize("form", [".log", ".csv", ".json"])
def test_the_classes_of_a_log_of_pgbench_have_its_numbers_of_transactions(
    postgresql: Logged, form: str, tmp_path: Path
) -> None:
    workload = made(postgresql.logs[form], tmp_path, "--writes")
    selects = BUILTINS["select-only"] + PREPARED
    assert workload.shares["SELECT 1"] == selects
    assert workload.shares["transaction with UPDATE 1"] == BUILTINS["tpcb-like"]
    assert workload.shares["transaction with UPDATE 2"] == BUILTINS["simple-update"]
    assert NAMED in workload.shares.values()
    assert largest_difference(workload) < 1e-3
    assert re.search(rf"SELECT 1\s.*\b{selects}\b", workload.printed)
    reading = made(postgresql.logs[form], tmp_path)
    assert not any("UPDATE" in name for name in reading.shares)
    writing = 7 * BUILTINS["tpcb-like"] + 5 * BUILTINS["simple-update"]
    assert reading.left_out["writes; --writes keeps them"] >= writing


def test_a_workload_of_a_log_runs_on_a_dump_and_no_record_has_a_value(postgresql: Logged, tmp_path: Path) -> None:
    workload = made(postgresql.logs[".log"], tmp_path, "--writes")
    assert WORD in workload.file.read_text()
    assert WORD not in workload.printed
    argv = [
        "run",
        "postgresql@18:tls",
        "--dump",
        str(postgresql.dump),
        "--workload",
        "mine.toml",
        "--quick",
        "--no-latency",
        "-o",
        "record",
    ]
    done = short.run(argv, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = json.loads((tmp_path / "record" / "result.json").read_text())["cells"]
    assert (cell["status"], cell["workload"]) == ("ok", "mine")
    for file in (tmp_path / "record").rglob("*"):
        assert file.is_dir() or not re.search(rf"{WORD}|pgbench_", file.read_text(errors="replace")), file


def test_a_workload_of_a_log_runs_on_the_users_server_and_changes_nothing(postgresql: Logged, tmp_path: Path) -> None:
    server = postgresql.server
    made(postgresql.logs[".csv"], tmp_path)
    before = server.state()
    argv = [
        "run",
        f"postgresql:{server.mechanism}",
        "--url",
        server.url,
        *server.by_ca,
        "--workload",
        "mine.toml",
        "--quick",
        "--no-latency",
    ]
    done = short.run([*argv, "-o", "record"], cwd=tmp_path, env=os.environ | server.environment)
    assert done.returncode == 0, done.stdout + done.stderr
    banner = " ".join(word for word in done.stderr.split() if word != "===")
    assert "your statements (--workload) run on your own tables as they are; ciphercost creates nothing" in banner
    (cell,) = json.loads((tmp_path / "record" / "result.json").read_text())["cells"]
    assert (cell["status"], cell["workload"]) == ("ok", "mine")
    assert server.state() == before


def test_an_error_of_the_server_does_not_quote_a_value_of_the_log(postgresql: Logged, tmp_path: Path) -> None:
    sql = f"SELECT count(*) FROM pgbench_branches WHERE bid = '{WORD}'"
    (tmp_path / "wrong.log").write_text(f"2024-01-31 12:00:00.000 UTC [17] LOG:  statement: {sql}\n")
    workload = workload_file.read(made(tmp_path / "wrong.log", tmp_path).file)
    with Agent() as agent:
        agent.program(workloads.prepare(workload, "postgresql", {}))
        agent.connect("plain", postgresql.server.fields | {"connections": 1, "threads": 1})
        with pytest.raises(AgentError) as error:
            agent.slice("plain", 60, discard=0.0, seed=1, operations=1)
    assert str(error.value) == "invalid input syntax for type integer: …"


@pytest.mark.parametrize("form", ["general", "slow"])
def test_the_classes_of_a_log_of_mysql_have_the_numbers_of_its_load(mysql: Logged, form: str, tmp_path: Path) -> None:
    workload = made(mysql.logs[form], tmp_path, "--writes")
    assert list(workload.shares.values())[:3] == [POINTS, RANGES, UPDATES]
    assert list(workload.shares)[:3] == ["SELECT 1", "SELECT 2", "transaction with SELECT 1"]
    assert largest_difference(workload) < 1e-3
    reading = made(mysql.logs[form], tmp_path)
    assert reading.left_out["writes; --writes keeps them"] == 4 * UPDATES


@OF_MYSQL
def test_the_classes_of_mysqls_digests(mysql: Logged, tmp_path: Path) -> None:
    shares = made(mysql.logs["digest"], tmp_path, "--writes").shares
    assert {POINTS, RANGES, UPDATES} <= set(shares.values())


@OF_MARIADB
def test_mariadbs_digests_are_refused(mysql: Logged, tmp_path: Path) -> None:
    """MariaDB keeps no samples, or counts nothing."""
    done = warm.run(["workload", str(mysql.logs["digest"]), "-o", "mine.toml"], cwd=tmp_path)
    assert done.returncode == 2
    assert "can be run" in done.stderr or "no statement was found" in done.stderr


@OF_MYSQL  # MariaDB's run would be the same
def test_a_workload_of_a_log_of_mysql_runs_on_a_dump(mysql: Logged, tmp_path: Path) -> None:
    made(mysql.logs["general"], tmp_path, "--writes")
    argv = [
        "run",
        "mysql:tls",
        "--dump",
        str(mysql.dump),
        "--workload",
        "mine.toml",
        "--quick",
        "--no-latency",
        "-o",
        "record",
    ]
    done = short.run(argv, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = json.loads((tmp_path / "record" / "result.json").read_text())["cells"]
    assert cell["status"] == "ok"
    for file in (tmp_path / "record").rglob("*"):
        assert file.is_dir() or WORD not in file.read_text(errors="replace"), file


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["run", "mysql:tls", "--workload", "mine.toml"], "written for postgresql"),
        (["run", "sqlite:sqlcipher", "--workload", "mine.toml"], "written for postgresql"),
        (["run", "postgresql:pgcrypto-cbc-256", "--workload", "mine.toml"], "uses tables as they are"),
        (["workload", "load.log", "--keep-paths"], "--keep-paths is for logs of web servers"),
        (["workload", "load.log", "general.log"], "make a workload of each"),
    ],
)
def test_what_does_not_go_together_is_refused(argv: list[str], words: str, tmp_path: Path) -> None:
    lines = [f"2024-01-31 12:00:0{second}.000 UTC [17] u@d LOG:  statement: SELECT {second}\n" for second in range(9)]
    (tmp_path / "load.log").write_text("".join(lines))
    (tmp_path / "general.log").write_text("2024-01-31T12:00:00.000200Z\t    8 Query\tSELECT a\n")
    made(tmp_path / "load.log", tmp_path)
    done = warm.run(argv, cwd=tmp_path)
    assert (done.returncode, words in done.stderr) == (2, True), done.stderr
