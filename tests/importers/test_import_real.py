"""`import` of output that the real tools print here, on real servers with real TLS."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np
import pytest

import mysql_servers
import other_tools
import result_schema
import web_servers
from ciphercost import engines, mechanisms
from ciphercost.engines import StartRequest
from ciphercost.host import supervisor
from ciphercost.host.installation import Installation
from ciphercost.host.supervisor import Supervisor
from ciphercost.importers import csv_columns, gather, known_files
from ciphercost.importers.choices import Choices
from ciphercost.model import run_directory
from ciphercost.model.connection import Connection
from ciphercost.model.errors import UsageError
from ciphercost.model.imported import ImportedRecord, Reading
from ciphercost.model.result import Result
from ciphercost.model.secret import reveal
from ciphercost.report.formats import terminal
from ciphercost.runs import conclude, import_run
from conftest import Require, RequireServer
from other_tools import run

TLS = mechanisms.get("tls")
RATE = "throughput"
TRIES = 5


@pytest.fixture(scope="session")
def tools(require: Require) -> Path:
    """The directory of the other tools' programs."""
    directory = other_tools.place()
    require(directory, "no other load generators here: python tests/other_tools.py")
    assert directory is not None
    return directory


def only(text: str, directory: Path, name: str = "plain.txt") -> Reading:
    """Return the only run in this text."""
    (reading,) = all_of(text, directory, name)
    return reading


def all_of(text: str, directory: Path, name: str = "plain.txt") -> list[Reading]:
    path = directory / name
    path.write_text(text)
    return gather.gather([path], Choices(only="plain"))[0].readings


def one(pattern: str, text: str) -> float:
    match = re.search(pattern, text)
    assert match is not None, text
    return float(match[1])


def imported(files: list[Path], directory: Path, **given: object) -> Result:
    """Run `ciphercost import`; the result must match the record and the schema, and its page must be 80 columns wide."""
    result, where, _ = import_run.run(files, {"output": directory, **given})
    result_schema.validate(msgspec.json.decode(run_directory.encode(result)))
    assert conclude.result_of(where) == result
    assert max(map(len, terminal.render(result).splitlines())) <= 80
    return result


# ── pgbench ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Postgres:
    """A server with TLS, and its own pgbench."""

    def __init__(self, installation: Installation, fields: Connection) -> None:
        self.program = Path(installation.location) / "pgbench"
        self.fields = fields

    def __call__(self, *words: object, mode: str, cwd: Path) -> str:
        env = {
            "PGPASSWORD": reveal(self.fields.password),
            "PGHOST": self.fields.host,
            "PGPORT": str(self.fields.port),
            "PGUSER": str(self.fields.user),
            "PGDATABASE": str(self.fields.database),
            "PGSSLMODE": mode,
        }
        return run(self.program, *words, env=env, cwd=cwd)


@contextmanager
def postgres(installation: Installation, logs: Path) -> Iterator[Postgres]:
    with Supervisor(run_directory.new_id()) as run_supervisor:
        scratch = supervisor.scratch(run_supervisor.run_id, run_supervisor)
        engine = engines.get("postgresql")
        engine.initialise(installation, scratch / "data", run_supervisor)
        settings = TLS.server_settings(engine, TLS.check({}), scratch / "secrets")
        server = engine.start(
            StartRequest(installation, scratch / "data", run_supervisor, settings=settings, logs=logs)
        )
        try:
            postgres_server = Postgres(installation, server.connection())
            postgres_server("-i", "-q", mode="disable", cwd=logs)
            yield postgres_server
        finally:
            server.stop()
    assert run_supervisor.problems == []


VERSIONS = ("15", "18")
"""The entries of `needs.SERVERS` that include pgbench."""


def of_version(version: str, require: Require) -> Installation:
    installations = [
        installation
        for installation in engines.get("postgresql").available()
        if installation.version.startswith(version) and (Path(installation.location) / "pgbench").exists()
    ]
    require(
        installations, f"no PostgreSQL {version} with pgbench: ciphercost install postgresql@{version} --source debian"
    )
    return installations[0]


@pytest.fixture(scope="module", params=VERSIONS)
def pgbench(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, require: Require
) -> Iterator[Postgres]:
    with postgres(of_version(request.param, require), tmp_path_factory.mktemp("logs")) as server:
        yield server


@pytest.fixture(scope="module")
def newest(tmp_path_factory: pytest.TempPathFactory, require: Require) -> Iterator[Postgres]:
    with postgres(of_version(VERSIONS[-1], require), tmp_path_factory.mktemp("logs")) as server:
        yield server


def test_pgbench_with_progress_and_a_log_is_one_run_with_all_that_both_say(pgbench: Postgres, tmp_path: Path) -> None:
    for arm, mode in (("plain", "disable"), ("tls", "require")):
        folder = tmp_path / "runs" / arm
        folder.mkdir(parents=True)
        text = pgbench("-n", "-c4", "-j2", "-P1", "-T2", "-l", mode=mode, cwd=folder)
        (folder / "out.txt").write_text(text)
        assert len(list(folder.glob("pgbench_log.*"))) == 2
    result = imported([tmp_path / "runs"], tmp_path / "made")
    (cell,) = result.cells
    assert cell.imported is not None
    assert (cell.engine, cell.clients, cell.status, cell.mode, cell.proofs) == (
        "postgresql",
        4,
        "unproven",
        "imported",
        [],
    )
    for arm, name in (("plain", "plain"), ("encrypted", "tls")):
        folder = tmp_path / "runs" / name
        text = (folder / "out.txt").read_text()
        arm_figures = cell.arms[arm]
        assert arm_figures["runs"] == 1
        assert arm_figures["throughput"] == pytest.approx(one(r"tps = ([\d.]+) \(without", text))
        assert arm_figures["operations"] == one(r"actually processed: (\d+)", text)
        assert arm_figures["latency_ms"]["mean"] == pytest.approx(one(r"latency average = ([\d.]+) ms", text))
        latencies = [
            int(line.split()[2]) for log in folder.glob("pgbench_log.*") for line in log.read_text().splitlines()
        ]
        assert len(latencies) == arm_figures["operations"]
        middle, last = np.quantile(latencies, [0.5, 0.99], method="inverted_cdf") / 1e3
        if arm_figures["operations"] < 100:  # a slow disk: too few for quantiles
            assert "p50" not in arm_figures["latency_ms"]
            continue
        assert arm_figures["latency_ms"]["p50"] == pytest.approx(middle, rel=0.006)  # three digits
        assert arm_figures["latency_ms"]["p99"] == pytest.approx(last, rel=0.006)
    # One run each: a ratio without an interval, so not a cost. The logs contain times, so the order is known.
    assert cell.overhead == {}
    assert cell.imported.costs["throughput"].low is None
    assert cell.imported.order == "plain first"
    assert {"one-run", "one-after-other", "not-proven"} <= {warning.code for warning in cell.warnings}


def test_several_runs_of_pgbench_in_one_file_are_several_runs(newest: Postgres, tmp_path: Path) -> None:
    runs = [newest("-n", "-S", "-c2", "-T3", mode="disable", cwd=tmp_path) for _ in range(3)]
    readings = all_of("".join(runs), tmp_path)
    assert [reading.figures["throughput"] for reading in readings] == [one(r"tps = ([\d.]+)", text) for text in runs]
    assert {reading.workload for reading in readings} == {"select only"}
    assert readings[0].version == one_version(runs[0])
    for text, reading in zip(runs, readings, strict=True):
        # No requests run while a slow connection opens, so rate and latency then disagree; nor while the machine is busy.
        for _ in range(TRIES):
            if not reading.notes or one(r"initial connection time = ([\d.]+) ms", text) > 100:
                break
            text = newest("-n", "-S", "-c2", "-T3", mode="disable", cwd=tmp_path)
            reading = only(text, tmp_path)
        assert not reading.notes or one(r"initial connection time = ([\d.]+) ms", text) > 100


def one_version(text: str) -> str:
    match = re.search(r"pgbench \((\d+\.\d+)", text)
    assert match is not None
    return match[1]


def test_a_log_of_intervals_has_the_rate_of_its_whole_intervals(newest: Postgres, tmp_path: Path) -> None:
    text = newest("-n", "-S", "-c2", "-T4", "-l", "--aggregate-interval=1", mode="disable", cwd=tmp_path)
    (log,) = tmp_path.glob("pgbench_log.*")
    (tmp_path / "run").mkdir()
    reading = only(log.read_text(), tmp_path / "run", "log")
    rows = [[int(word) for word in line.split()] for line in log.read_text().splitlines()][1:-1]
    assert reading.figures["throughput"] == pytest.approx(sum(row[1] for row in rows) / len(rows))
    # Complete intervals of the same run: all of it except the first and last second.
    assert 0 < sum(row[1] for row in rows) < one(r"actually processed: (\d+)", text)


def test_a_run_at_a_given_rate_has_no_throughput_to_compare(newest: Postgres, tmp_path: Path) -> None:
    text = newest("-n", "-S", "-c2", "-T1", "-P1", "-R200", "-L", "1000", mode="disable", cwd=tmp_path)
    reading = only(text, tmp_path)
    assert "throughput" not in reading.figures
    assert reading.figures["latency_mean"] == one(r"latency average = ([\d.]+) ms", text)
    assert "rate-limited" in {note.code for note in reading.notes}


def test_a_log_of_a_run_at_a_given_rate_has_no_throughput_either(pgbench: Postgres, tmp_path: Path) -> None:
    """Neither alone nor with its summary, in a log of transactions or of intervals."""
    for number, words in enumerate((("-l",), ("-l", "--aggregate-interval=1"))):
        folder = tmp_path / f"log{number}"
        folder.mkdir()
        text = pgbench("-n", "-S", "-c2", "-T4", "-R200", *words, mode="disable", cwd=folder)
        (log,) = folder.glob("pgbench_log.*")
        alone = gather.gather([log], Choices(only="plain"))[0].readings[0]
        assert "throughput" not in alone.figures
        assert "rate-limited" in {note.code for note in alone.notes}
        (folder / "out.txt").write_text(text)
        both = gather.gather([folder], Choices(only="plain"))[0].readings
        assert not any("throughput" in reading.figures for reading in both)


def test_a_sampled_log_is_of_its_whole_run(pgbench: Postgres, tmp_path: Path) -> None:
    for number in range(TRIES):
        folder = tmp_path / str(number)
        folder.mkdir()
        text = pgbench("-n", "-S", "-c2", "-j2", "-T3", "-l", "--sampling-rate=0.2", mode="disable", cwd=folder)
        done, tps = one(r"actually processed: (\d+)", text), one(r"tps = ([\d.]+) \(without", text)
        (alone,) = gather.gather(list(folder.glob("pgbench_log.*")), Choices(only="plain"))[0].readings
        assert "sampled-log" in {note.code for note in alone.notes}
        if "throughput" not in alone.figures:  # a slow disk: too few
            break
        # Which transactions are in the log is random: of n, a fifth within 2 / √n of itself (one standard deviation).
        assert alone.operations == pytest.approx(done, rel=max(0.03, 10 / done**0.5))
        if alone.figures["throughput"] == pytest.approx(tps, rel=0.1):
            break  # on a busy machine, a client may wait at the beginning or at the end, where the log shows nothing
    else:
        raise AssertionError((alone.figures["throughput"], tps))
    (folder / "out.txt").write_text(text)
    (both,) = gather.gather([folder], Choices(only="plain"))[0].readings
    assert both.operations == done


def test_cpu_samples_join_the_run_in_whose_time_they_lie(newest: Postgres, tools: Path, tmp_path: Path) -> None:
    with subprocess.Popen([tools / "atop", "-P", "CPU,MEM", "1", "8"], stdout=subprocess.PIPE, text=True) as atop:
        assert atop.stdout is not None
        samples = ""
        while not samples.endswith("SEP\n"):  # the first sample, which counts from the machine's start
            samples += atop.stdout.readline() or pytest.fail(f"atop ended: {samples}")
        text = newest("-n", "-S", "-c2", "-T5", "-P1", "--progress-timestamp", mode="disable", cwd=tmp_path)
        samples += atop.stdout.read()
    for name, content in (("plain.txt", text), ("plain-atop.txt", samples)):
        (tmp_path / name).write_text(content)
    (cell,) = imported([tmp_path], tmp_path / "made").cells
    (kept,) = readings(tmp_path / "made")
    assert cell.workload == "select only"
    assert 0 < kept.figures["host_busy"] <= 100
    assert "joined" in {note.code for note in kept.notes}
    cores = one(r"(?m)^CPU \S+ \d+ \S+ \S+ \d+ \d+ (\d+) ", samples)
    assert kept.figures["host_cpu_per_op"] == pytest.approx(
        kept.figures["host_busy"] / 100 * cores / kept.figures["throughput"] * 1e6
    )


def readings(directory: Path) -> list[Reading]:
    record = run_directory.read_imported(directory)
    assert isinstance(record, ImportedRecord)
    return record.readings


# ── mysqlslap, mariadb-slap, sysbench ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["mysql", "mariadb"])
def test_mysqlslap_says_the_same_as_text_and_as_csv(name: str, require_server: RequireServer, tmp_path: Path) -> None:
    installation = require_server(name)
    bin_ = Path(installation.location)
    places = [place / program for place in (bin_, bin_.parent / "bin") for program in ("mariadb-slap", "mysqlslap")]
    program = next(path for path in places if path.exists())
    with mysql_servers.server_copies(installation, tmp_path) as copies, copies.started(version="1.3") as server:
        fields = server.connection()
        words = [
            str(program),
            "--no-defaults",
            "--host=127.0.0.1",
            f"--port={fields.port}",
            "--protocol=TCP",
            f"--user={fields.user}",
        ]
        words += [f"--create-schema={fields.database}", "--no-drop", "--query=SELECT 1", *copies.clear()]
        words += ["--concurrency=1,4", "--number-of-queries=4000", "--iterations=2"]
        done = [
            subprocess.run(
                [*words, *more],
                capture_output=True,
                text=True,
                check=True,
                env={"MYSQL_PWD": reveal(fields.password)},
            ).stdout
            for more in ((), ("--csv",))
        ]
    for text, averages in (
        (done[0], re.findall(r"Average number of seconds to run all queries: ([\d.]+)", done[0])),
        (done[1], [line.split(",")[2] for line in done[1].splitlines()]),
    ):
        readings = all_of(text, tmp_path, "plain")
        assert [reading.clients for reading in readings] == [1, 4]
        assert [reading.operations for reading in readings] == [4000, 4000]
        assert [reading.figures["throughput"] for reading in readings] == [
            4000 / float(average) for average in averages
        ]


def test_sysbench_with_intervals_and_histogram(tools: Path, require_server: RequireServer, tmp_path: Path) -> None:
    root = tools.parent
    share = root / "usr/share/sysbench"
    env = {"LUA_PATH": f"{share}/?.lua", "MARIADB_PLUGIN_DIR": str(next(root.glob("usr/lib/*/libmariadb3/plugin")))}
    with mysql_servers.server_copies(require_server("mariadb"), tmp_path) as copies, copies.started() as server:
        fields = server.connection()
        words: list[object] = [tools / "sysbench", share / "oltp_point_select.lua", "--tables=1", "--table-size=1000"]
        words += [
            f"--mysql-{name}={getattr(fields, field)}"
            for name, field in (("host", "host"), ("port", "port"), ("user", "user"))
        ]
        words += [f"--mysql-password={reveal(fields.password)}", f"--mysql-db={fields.database}"]
        prepared = run(*words, "prepare", env=env)
        text = run(*words, "--threads=2", "--time=2", "--report-interval=1", "--histogram", "run", env=env)
        short = run(*words, "--threads=2", "--time=1", "run", env=env)
    reading = only(text, tmp_path)
    assert (reading.tool, reading.clients, reading.version) == ("sysbench", 2, "1.0.20")
    assert reading.figures["throughput"] == one(r"transactions:\s+\d+\s+\(([\d.]+) per sec", text)
    assert reading.operations == one(r"total number of events:\s+(\d+)", text)
    assert reading.figures["latency_mean"] == pytest.approx(one(r"sum:\s+([\d.]+)", text) / reading.operations)
    if reading.operations >= 1000:  # a busy machine may do fewer in two seconds, too few for a 99th percentile
        assert reading.figures["latency_p50"] <= reading.figures["latency_p99"]
    # It measures each time separately, so a delay in between makes its figures contradict each other.
    off = abs(reading.operations / one(r"total time:\s+([\d.]+)s", text) / reading.figures["throughput"] - 1)
    assert ("contradiction" in {note.code for note in reading.notes}) == (off > 0.02)
    assert "latency_p99" not in only(short, tmp_path).figures  # it prints only the 95th percentile
    (tmp_path / "prepare.txt").write_text(prepared)
    with pytest.raises(UsageError, match=r"prepare\.txt, line \d+: it contains no result"):
        gather.gather([tmp_path / "prepare.txt"], Choices(only="plain"))


def test_sysbench_at_a_given_rate_has_no_throughput(tools: Path, tmp_path: Path) -> None:
    reading = only(run(tools / "sysbench", "cpu", "--rate=100", "--time=2", "--report-interval=1", "run"), tmp_path)
    assert "throughput" not in reading.figures
    assert reading.figures["latency_mean"] > 0
    assert any("rate was set to 100 per second" in note.text for note in reading.notes)
    free = only(run(tools / "sysbench", "cpu", "--time=1", "run"), tmp_path)
    assert free.figures["throughput"] > 0


# ── wrk, h2load, hyperfine ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def site(require_server: RequireServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The addresses of one file, by arm."""
    with (
        web_servers.site(require_server("nginx"), tmp_path_factory.mktemp("logs"), {"/1KB": 1000}) as pages,
        pages.started({"version": "1.3"}) as server,
    ):
        fields = server.connection() | server.other_ports.get("tls", {})
        clear, tls = server.connection().port, fields.port
        yield {"plain": f"http://127.0.0.1:{clear}/1KB", "encrypted": f"https://127.0.0.1:{tls}/1KB"}


@pytest.fixture(scope="module")
def wrk_says(tools: Path, site: dict[str, str]) -> dict[str, str]:
    return {arm: run(tools / "wrk", "-t1", "-c4", "-d3s", "--latency", url) for arm, url in site.items()}


@pytest.fixture(scope="module")
def h2load_says(tools: Path, site: dict[str, str]) -> dict[str, str]:
    return {arm: run(tools / "h2load", "--h1", "-t1", "-c4", "-D3", url) for arm, url in site.items()}


def test_wrk_is_of_the_arm_that_its_address_says(wrk_says: dict[str, str], tmp_path: Path) -> None:
    for number, text in enumerate(wrk_says.values()):
        (tmp_path / f"run{number}.txt").write_text(text)
    (cell,) = imported(sorted(tmp_path.glob("run*")), tmp_path / "made").cells
    for arm, text in wrk_says.items():
        assert cell.arms[arm]["throughput"] == pytest.approx(one(r"Requests/sec:\s+([\d.]+)", text))
        assert cell.arms[arm]["operations"] == one(r"(\d+) requests in", text)
        for name, label in (("mean", "Latency "), ("p50", "50%"), ("p99", "99%")):
            match = re.search(rf"{label}\s+([\d.]+)(us|ms|s)\b", text)
            assert match is not None
            scale = {"us": 1e-3, "ms": 1.0, "s": 1e3}[match[2]]
            assert cell.arms[arm]["latency_ms"][name] == pytest.approx(float(match[1]) * scale)


def test_a_name_that_its_address_contradicts_is_refused(wrk_says: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text(wrk_says["encrypted"])
    (tmp_path / "tls.txt").write_text(wrk_says["plain"])
    with pytest.raises(UsageError, match=r"plain\.txt, line 1: .*plain arm.* https; .*swapped"):
        gather.gather([tmp_path], Choices())


def test_h2load_names_its_tls_and_still_proves_nothing(h2load_says: dict[str, str], tmp_path: Path) -> None:
    for number, text in enumerate(h2load_says.values()):
        (tmp_path / f"run{number}.txt").write_text(text)
    (cell,) = imported(sorted(tmp_path.glob("run*")), tmp_path / "made").cells
    for arm, text in h2load_says.items():
        assert cell.arms[arm]["throughput"] == pytest.approx(one(r"finished in [\d.]+m?s, ([\d.]+) req/s", text))
    assert cell.encryption["protocol (as h2load says)"] == "TLSv1.3"
    assert "NOT PROVEN" in terminal.render(result_of(tmp_path / "made"))
    assert cell.status == "unproven"


def result_of(directory: Path) -> Result:
    return conclude.result_of(directory)


def test_ab_is_read_with_and_without_tls_and_kept_connections(
    site: dict[str, str], require: Require, tmp_path: Path
) -> None:
    tools = other_tools.further()
    require(tools, "no ApacheBench here: python tests/other_tools.py")
    assert tools is not None
    alone = tmp_path / "alone"
    alone.mkdir()
    for number, (arm, url) in enumerate(site.items()):
        text = run(tools / "ab", "-k", "-n", "2000", "-c", "4", url)
        (tmp_path / f"run{number}.txt").write_text(text)
        reading = only(text, alone)
        assert reading.scheme == {"plain": "http", "encrypted": "https"}[arm]
        assert reading.figures["throughput"] == one(r"Requests per second:\s+([\d.]+)", text)
        assert (reading.operations, reading.clients, reading.server) == (2000, 4, "nginx")
        assert reading.workload.endswith(", kept alive")
        assert reading.encryption.get("protocol", "") == {"plain": "", "encrypted": "TLSv1.3"}[arm]
        assert cut_off(text, reading.figures, alone, 17) > 20
    (cell,) = imported(sorted(tmp_path.glob("run*")), tmp_path / "made").cells
    assert set(cell.arms) == {"plain", "encrypted"}
    reconnecting = only(run(tools / "ab", "-n", "100", "-c", "4", site["plain"]), tmp_path)
    assert "connect-each" in {note.code for note in reconnecting.notes}


def test_redis_benchmark_says_the_same_in_every_form(
    require: Require, require_server: RequireServer, tmp_path: Path
) -> None:
    tools = other_tools.further()
    require(tools, "no redis-benchmark here: python tests/other_tools.py")
    assert tools is not None
    installation, engine, run_id = require_server("valkey"), engines.get("valkey"), run_directory.new_id()
    with Supervisor(run_id) as run_supervisor:
        scratch = supervisor.scratch(run_id, run_supervisor)
        engine.initialise(installation, scratch / "data", run_supervisor)
        server = engine.start(StartRequest(installation, scratch / "data", run_supervisor, settings={}, logs=scratch))
        fields = server.connection()
        words: list[object] = [
            tools / "redis-benchmark",
            "-p",
            fields.port,
            "-n",
            "3000",
            "-c",
            "4",
            "-t",
            "set,get",
        ]
        if fields.password:
            words += ["--user", fields.user, "-a", reveal(fields.password)]
        whole, quiet, table = (run(*words, *more) for more in ((), ("-q",), ("--csv",)))
        server.stop()
    for text in (whole, quiet, table):
        readings = all_of(text, tmp_path)
        assert [reading.workload for reading in readings] == ["SET", "GET"]
        assert all(reading.figures["throughput"] > 0 and reading.figures["latency_p50"] > 0 for reading in readings)
    (first, _) = all_of(whole, tmp_path)
    assert (first.clients, first.operations, first.factors) == (4, 3000, {"payload": "3"})
    assert first.figures["throughput"] == one(r"throughput summary: ([\d.]+)", whole)
    assert first.figures["latency_p99"] == float(whole.split("max\n")[1].split()[4])


def test_hey_says_what_its_lines_say_and_its_errors(site: dict[str, str], require: Require, tmp_path: Path) -> None:
    tools = other_tools.web()
    require(tools, "no hey here: python tests/other_tools.py")
    assert tools is not None
    text = run(tools / "hey", "-n", "400", "-c", "4", site["encrypted"])
    reading = only(text, tmp_path)
    assert reading.figures[RATE] == one(r"Requests/sec:\s+([\d.]+)", text)
    assert reading.figures["latency_mean"] == pytest.approx(one(r"Average:\s+([\d.]+)", text) * 1e3)
    assert reading.figures["latency_p99"] == pytest.approx(one(r"99% in ([\d.]+)", text) * 1e3)
    assert (reading.operations, reading.errors) == (400, 0)
    assert cut_off(text, reading.figures, tmp_path, 7) > 10
    with pytest.raises(UsageError, match="400 of 400 requests failed"):
        only(run(tools / "hey", "-n", "400", "-c", "4", site["plain"] + "-is-not-there"), tmp_path)


def test_siege_says_the_same_as_text_and_as_json(site: dict[str, str], require: Require, tmp_path: Path) -> None:
    tools = other_tools.web()
    require(tools, "no siege here: python tests/other_tools.py")
    assert tools is not None
    settings = tmp_path / "siegerc"
    settings.write_text("verbose = false\nprotocol = HTTP/1.1\nconnection = keep-alive\n")
    words: list[object] = [tools / "siege", "-R", settings, "-b", "-c", "4", "-r", "100"]
    # It exits with an error where it can't write its own settings into the home directory.
    text, as_json = (run(*words, *more, site["plain"], env={"HOME": str(tmp_path)}) for more in ((), ("-j",)))
    for output, pattern in ((text, r"Transaction rate:\s+([\d.]+)"), (as_json, r'"transaction_rate":\s+([\d.]+)')):
        reading = only(output, tmp_path)
        assert (reading.operations, reading.errors) == (400, 0)
        assert reading.figures[RATE] == one(pattern, output)
    with pytest.raises(UsageError, match="400 of 400 requests failed"):
        only(run(*words, site["plain"] + "-is-not-there", env={"HOME": str(tmp_path)}), tmp_path)


def test_fio_says_the_same_as_text_and_as_json(require: Require, tmp_path: Path) -> None:
    require(shutil.which("fio"), "no fio here: apt-get install fio")
    words = [
        "fio",
        "--name=plain",
        f"--directory={tmp_path}",
        "--size=1m",
        "--rw=randread",
        "--bs=4k",
        "--number_ios=200",
    ]
    text = run(*words, "--output-format=normal,json")
    begin, end = text.index("\n{\n") + 1, text.index("\n}\n") + 3
    normal = text[:begin] + text[end:]
    whole, exact = only(normal, tmp_path), only(text[begin:end], tmp_path)
    assert only(text, tmp_path).figures == exact.figures
    assert whole.operations == exact.operations == one(r"total=(\d+),", normal) == 200
    assert exact.figures[RATE] == pytest.approx(whole.figures[RATE], rel=1e-6)
    for name in ("latency_mean", "latency_p50", "latency_p99"):
        # As text, a time may be in whole microseconds.
        assert exact.figures[name] == pytest.approx(whole.figures[name], rel=0.02, abs=0.001)
    assert (exact.workload, exact.version) == ("randread", whole.version)


def test_h2load_that_failed_altogether_is_refused(tools: Path, require_server: RequireServer, tmp_path: Path) -> None:
    # Unencrypted HTTP/2, which nginx supports from 1.25.1.
    with (
        web_servers.site(require_server("nginx", "1.22"), tmp_path, {"/1KB": 1000}) as old,
        old.started() as server,
    ):
        text = run(tools / "h2load", "-c1", "-n10", f"http://127.0.0.1:{server.connection().port}/1KB")
    with pytest.raises(UsageError, match=r"plain\.txt, line 1: no request succeeded"):
        only(text, tmp_path)


def test_answers_that_are_all_errors_are_refused(tools: Path, site: dict[str, str], tmp_path: Path) -> None:
    gone = site["encrypted"] + "-is-not-there"
    with pytest.raises(UsageError, match=r"plain\.txt, line 1: [\d,]+ of [\d,]+ answers"):
        only(run(tools / "wrk", "-t1", "-c2", "-d1s", gone), tmp_path)
    with pytest.raises(UsageError, match=r"plain\.txt, line 1: no request succeeded"):
        only(run(tools / "h2load", "--h1", "-c1", "-n20", gone), tmp_path)


def test_two_tools_in_one_file_are_named_with_their_lines(
    wrk_says: dict[str, str], h2load_says: dict[str, str], tmp_path: Path
) -> None:
    text = wrk_says["plain"] + h2load_says["plain"]
    with pytest.raises(UsageError, match=r"plain\.txt .*wrk \(line 1\) and h2load \(line \d+\)"):
        only(text, tmp_path)


SUMMARIES = {"wrk": "wrk_says", "h2load": "h2load_says"}


@pytest.mark.parametrize("tool", SUMMARIES)
def test_cut_off_anywhere_it_is_refused_or_the_figures_are_the_same(
    tool: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    text = request.getfixturevalue(SUMMARIES[tool])["encrypted"]
    whole = only(text, tmp_path).figures
    assert cut_off(text, whole, tmp_path) > 100


def cut_off(text: str, whole: dict[str, float], directory: Path, step: int = 3) -> int:
    """Return how many truncations of a text were refused.

    Every other truncation must have the figures of the whole text, or the throughput alone.
    """
    refused = 0
    for end in range(0, len(text), step):
        try:
            reading = only(text[:end], directory)
            cut = "cut-off" in {note.code for note in reading.notes}
            assert reading.figures == whole or (cut and reading.figures.items() <= whole.items()), text[:end]
        except UsageError:
            refused += 1
    return refused


def test_hyperfine_has_a_run_for_each_time(tools: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    words = ["-N", "--runs", "5", "--export-json", path, "--export-csv", tmp_path / "out.csv"]
    screen = run(tools / "hyperfine", *words, "env TLS=off sleep 0.002", "env TLS=on sleep 0.003")
    (cell,) = imported([path], tmp_path / "made").cells
    kept = msgspec.json.decode(path.read_bytes())["results"]
    assert cell.imported is not None
    cost = cell.imported.costs["latency_mean"]
    logs = [np.log(command["times"]) for command in kept]
    assert cost.ratio == pytest.approx(np.exp(logs[1].mean() - logs[0].mean()))
    assert (cost.plain_runs, cost.encrypted_runs) == (5, 5)
    assert cost.low is not None
    assert cost.low < cost.ratio
    assert cell.imported.costs["client_cpu_per_op"].low is None  # only its mean is exported
    for text, name in ((screen, "screen.txt"), ((tmp_path / "out.csv").read_text(), "out.csv")):
        (tmp_path / name).write_text(text)
        with pytest.raises(UsageError, match="--export-json"):
            gather.gather([tmp_path / name], Choices(only="plain"))


# ── sar, sadf, atop ───────────────────────────────────────────────────────────────────────────────────────────────────

LANGUAGES = {"C": "C", "de_DE": "de_DE.UTF-8", "en_US": "en_US.UTF-8", "pt_BR": "pt_BR.UTF-8"}
Sar = Callable[..., str]


@pytest.fixture(scope="module")
def sar(tools: Path, require: Require, tmp_path_factory: pytest.TempPathFactory) -> Sar:
    """Run sar in one of these languages, in its own mount namespace with its collector and messages where it expects
    them.
    """
    root = tools.parent
    locales = tmp_path_factory.mktemp("locales")
    require(os.geteuid() == 0 and shutil.which("unshare"), "sar from a private root needs root and unshare")
    for language in LANGUAGES:
        if language != "C":
            env = {"I18NPATH": str(root / "usr/share/i18n")}
            subprocess.run(
                ["localedef", "-c", "-i", language, "-f", "UTF-8", locales / f"{language}.UTF-8"],
                check=False,
                env={**os.environ, **env},
            )
    mounts = " && ".join(
        f"mount -t overlay overlay -o lowerdir={place}:{root}{place} {place}"
        for place in ("/usr/lib", "/usr/share/locale")
    )

    def run_sar(language: str, *words: str) -> str:
        command = f'{mounts} && exec "$@"'
        env = {"LOCPATH": str(locales), "LC_ALL": LANGUAGES[language]}
        return run("unshare", "-m", "sh", "-c", command, "sh", tools / "sar.sysstat", *words, env=env)

    return run_sar


@pytest.mark.parametrize("language", LANGUAGES)
def test_sar_in_every_language_has_the_mean_of_its_rows_and_not_its_average_row(
    sar: Sar, language: str, tmp_path: Path
) -> None:
    began = time.time()
    text = sar(language, "-u", "-r", "-P", "ALL", "1", "2")
    took = time.time() - began
    assert {"de_DE": "Durchschn.:", "pt_BR": "Média:", "en_US": "M ", "C": "Average:"}[language] in text
    if language in ("de_DE", "pt_BR"):
        assert re.search(r"\d,\d\d\s", text)
    reading = only(text, tmp_path)
    names = [f"host_{name}" for name in ("user", "nice", "system", "iowait", "steal", "idle")]
    rows = [line for line in text.splitlines() if re.match(r"\d\d:\d\d:\d\d(?: [AP]M)?\s+all\s", line)]
    values = np.array([[float(word.replace(",", ".")) for word in line.split()[-6:]] for line in rows])
    assert len(values) == 2
    assert [reading.figures[name] for name in names] == pytest.approx(list(values.mean(axis=0)))
    assert reading.cpus == os.cpu_count()
    assert reading.figures["memory_free_bytes"] > 0
    assert {note.code for note in reading.notes} == {"average-row"}
    now = time.gmtime(began)
    # Day and month of a date are ambiguous, except where only one language uses a two-digit year or points.
    if language in ("C", "de_DE") or (language == "en_US" and (now.tm_mday > 12 or now.tm_mday == now.tm_mon)):
        assert reading.started is not None
        assert abs(reading.started - began) < 2 * 86400
        assert reading.ended is not None
        assert 1 <= reading.ended - reading.started <= took + 2
    else:
        assert language == "pt_BR" or reading.started is None


def test_sar_of_everything_still_is_the_cpus_shares(sar: Sar, tmp_path: Path) -> None:
    reading = only(sar("C", "-A", "1", "1"), tmp_path)
    assert reading.figures["host_idle"] + reading.figures["host_busy"] + reading.figures[
        "host_iowait"
    ] + reading.figures["host_steal"] == pytest.approx(100, abs=0.1)


@pytest.fixture(scope="module")
def collected(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A binary file of sysstat with three samples."""
    path = tmp_path_factory.mktemp("sa") / "sa21"
    run(tools / "sadc", "1", "4", path)
    return path


def test_sadf_has_the_mean_of_the_same_samples_as_sar(collected: Path, tools: Path, tmp_path: Path) -> None:
    env = {"LC_ALL": "C"}
    reading = only(run(tools / "sadf", "-d", collected, "--", "-u", "-r", env=env), tmp_path)
    # Not sar's own average, which weighs rows by clock ticks, and a busy hypervisor takes some of these.
    printed = run(tools / "sar.sysstat", "-f", collected, "-u", env=env)
    rows = [line.split() for line in printed.splitlines() if re.match(r"\d\d:\d\d:\d\d\s+all\s", line)]
    assert len(rows) == 3
    # Idle rows at the edges are skipped: the mean covers the kept rows, which are adjacent.
    kept = len(reading.series["host_busy"])
    means = [np.mean([float(row[-1]) for row in rows[first : first + kept]]) for first in range(4 - kept)]
    assert any(reading.figures["host_idle"] == pytest.approx(mean, abs=0.01) for mean in means)
    assert (kept < 3) == ("idle-edges" in {note.code for note in reading.notes})
    assert only(printed, tmp_path).figures["host_idle"] == pytest.approx(reading.figures["host_idle"], abs=0.01)
    assert reading.clock == "utc"
    assert reading.started is not None
    assert abs(reading.started - time.time()) < 3600
    single = run(tools / "sadf", "-d", collected, "--", "-u", "-P", "0", env=env)
    with pytest.raises(UsageError, match="only rows of single CPUs"):
        only(single, tmp_path)


def test_binary_files_of_sysstat_and_atop_are_told_how_to_print_them(
    collected: Path, tools: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=rf"sa21 .*{re.escape(known_files.PRINT_SYSSTAT)}"):
        gather.gather([collected], Choices(only="plain"))
    run(tools / "atop", "-w", tmp_path / "raw", "1", "1")
    with pytest.raises(UsageError, match=rf"raw .*{re.escape(known_files.PRINT_ATOP)}"):
        gather.gather([tmp_path / "raw"], Choices(only="plain"))
    text = run(tools / "sadf", "-j", collected, "--", "-u")
    with pytest.raises(UsageError, match=rf"JSON of sysstat.*{re.escape(known_files.PRINT_SYSSTAT)}"):
        only(text, tmp_path)


def test_atop_leaves_the_sample_since_the_machines_start_out(tools: Path, tmp_path: Path) -> None:
    text = run(tools / "atop", "-P", "CPU,MEM", "1", "3")
    reading = only(text, tmp_path)
    lines = [line.split() for line in text.splitlines() if line.startswith("CPU ")]
    assert len(lines) == 3
    shares = []
    for words in lines[1:]:
        system, user, nice, idle, wait, irq, soft, steal = map(int, words[8:16])
        shares.append(100 * idle / (system + user + nice + idle + wait + irq + soft + steal))
    assert reading.figures["host_idle"] == pytest.approx(np.mean(shares))
    assert reading.cpus == os.cpu_count()
    with pytest.raises(UsageError, match="only the first sample"):
        only(run(tools / "atop", "-P", "CPU,MEM", "1", "1").split("SEP")[0], tmp_path)


def test_the_screens_of_atop_whole_and_as_grep_leaves_them_give_its_shares(tools: Path, tmp_path: Path) -> None:
    text = run(tools / "atop", "-M", "1", "4")
    lines = [line for line in text.splitlines(keepends=True) if line.startswith(("CPU |", "MEM |"))]
    whole, grepped = only(text, tmp_path, "plain-whole.txt"), only("".join(lines), tmp_path, "plain-grep.txt")
    shares = [list(map(int, re.findall(r"(\d+)%", line))) for line in lines if line.startswith("CPU")]
    assert len(shares) == 4
    cpus = os.cpu_count() or 1
    for reading, clock in ((whole, "local"), (grepped, "")):
        assert (reading.tool, reading.cpus, reading.clock) == ("atop", cpus, clock)
        # A screen of 80 columns has no room for steal.
        wholes = [
            max(sum(row[:5]), 100 * cpus) if sum(row[:5]) < 100 * cpus - 3 else sum(row[:5]) for row in shares[1:]
        ]
        busy = [100 * sum(row[:3]) / whole for row, whole in zip(shares[1:], wholes, strict=True)]
        # Idle rows at the edges lie before or after the load.
        kept = reading.series["host_busy"]
        assert any(kept == pytest.approx(busy[at : at + len(kept)]) for at in range(len(busy)))
        assert 0 < reading.figures["memory_free_bytes"] < 2**50
    assert whole.ended is not None


def test_a_table_of_real_runs_gives_what_the_tools_own_files_give(wrk_says: dict[str, str], tmp_path: Path) -> None:
    rates = {arm: one(r"Requests/sec:\s+([\d.]+)", text) for arm, text in wrk_says.items()}
    (tmp_path / "t.csv").write_text("arm,rate\n" + "".join(f"{arm},{rate}\n" for arm, rate in rates.items()))
    readings = gather.gather([tmp_path / "t.csv"], Choices(columns=csv_columns.columns("throughput=rate,arm=arm")))[
        0
    ].readings
    assert {str(reading.arm): reading.figures["throughput"] for reading in readings} == rates
