"""`import` of what users bring: every file of the folder `results`, and others of each kind.

The figures are invented, in the shape that the tools print; results/README.md says what is right. test_import_real.py reads
what the tools themselves print, where Debian has them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import cases
from ciphercost.importers import csv_columns, gather
from ciphercost.importers.arm_words import arm_in, arm_of_value
from ciphercost.importers.choices import Choices
from ciphercost.model.errors import UsageError
from ciphercost.model.imported import Reading

RESULTS = Path(__file__).parent / "results"
MAP = "throughput=tps,arm=mode,clients=clients"


class Case(NamedTuple):
    """A file, the map of its columns, and by arm the figures of each run."""

    file: str
    columns: str
    figures: dict[str, list[dict[str, float]]]


def rates(*values: float) -> list[dict[str, float]]:
    return [{"throughput": value} for value in values]


H2LOAD = {"latency_mean": 3.20, "latency_p50": 3.10, "latency_p99": 4.06}
AB = {"throughput": 10_000.0, "latency_mean": 10.0, "latency_p50": 9.0, "latency_p99": 20.0}
REDIS = {"throughput": 120_481.93, "latency_mean": 0.212, "latency_p50": 0.207, "latency_p99": 0.367}
CASES = (
    Case("sysbench11-plain.txt", "", {"plain": [{"throughput": 600.05, "latency_mean": 159_999.99 / 12_003}]}),
    Case("sysbench11-tls.txt", "", {"encrypted": [{"throughput": 570.06, "latency_mean": 159_999.99 / 11_403}]}),
    Case("h2load169-http.txt", "", {"plain": [{"throughput": 20_000.0, **H2LOAD}]}),
    Case("h2load169-https.txt", "", {"encrypted": [{"throughput": 15_000.0, **H2LOAD}]}),
    Case("ab-plain.txt", "", {"plain": [AB]}),
    Case("ab-tls.txt", "", {"encrypted": [AB]}),
    Case("redis-benchmark-plain.txt", "", {"plain": [REDIS]}),
    Case(
        "table.md",
        "throughput=tps,arm=mode,clients=clients,latency=p95 ms",
        {
            "plain": [{"throughput": 600.1, "latency_mean": 15.8}, {"throughput": 602.4, "latency_mean": 15.7}],
            "encrypted": [{"throughput": 560.1, "latency_mean": 17.8}, {"throughput": 562.4, "latency_mean": 17.7}],
        },
    ),
    Case("psql.txt", MAP, {"plain": rates(600.1, 602.4), "encrypted": rates(560.1, 562.4)}),
    Case("mysql.txt", MAP, {"plain": rates(600.1), "encrypted": rates(560.1)}),
    Case(
        "usessl.csv",
        "throughput=tps,arm=useSSL,clients=threads",
        {"plain": rates(500.1, 503.2, 900.1, 903.2), "encrypted": rates(470.1, 473.2, 840.1, 844.1)},
    ),
)


def read(path: Path, columns: str = "", **choices: object) -> list[Reading]:
    asked = csv_columns.columns(columns) if columns else ()
    return gather.gather([path], Choices(columns=asked, **choices))[0].readings  # type: ignore[arg-type]


def text(
    content: str | bytes, directory: Path, name: str = "plain.txt", columns: str = "", **choices: object
) -> list[Reading]:
    path = directory / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read(path, columns, **choices)


def by_arm(readings: list[Reading]) -> dict[str, list[dict[str, float]]]:
    figures: dict[str, list[dict[str, float]]] = {}
    for reading in readings:
        figures.setdefault(str(reading.arm), []).append(reading.figures)
    return figures


def test_every_file_of_the_folder_is_a_case() -> None:
    assert {case.file for case in CASES} == {path.name for path in RESULTS.iterdir()} - {"README.md"}


@pytest.mark.parametrize("case", CASES, ids=[case.file for case in CASES])
def test_it_is_read_with_the_figures_that_it_shows(case: Case, record_property: cases.Record) -> None:
    read_figures = by_arm(read(RESULTS / case.file, case.columns))
    rates_of = {arm: ", ".join(f"{run['throughput']:g}/s" for run in figures) for arm, figures in read_figures.items()}
    cases.record(record_property, "results", case.file, "; ".join(f"{arm} {rates}" for arm, rates in rates_of.items()))
    assert read_figures.keys() == case.figures.keys()
    for arm, figures in case.figures.items():
        assert read_figures[arm] == [pytest.approx(run) for run in figures]


def test_clients_and_what_the_tool_says_of_tls_are_kept() -> None:
    (reading,) = read(RESULTS / "h2load169-https.txt")
    assert (reading.clients, reading.scheme, reading.encryption["protocol"]) == (64, "https", "TLSv1.3")
    (reading,) = read(RESULTS / "sysbench11-plain.txt")
    assert (reading.version, reading.clients, reading.operations, reading.seconds) == ("1.1.0", 8, 12_003, 20.0032)
    (reading,) = read(RESULTS / "ab-plain.txt")
    assert (reading.server, reading.clients, reading.operations) == ("nginx", 100, 50_000)
    assert "connect-each" in {note.code for note in reading.notes}


# ── names and values that state an arm ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "arm"),
    [
        ("verify-full.txt", "encrypted"), ("pg-verify_ca-1.log", "encrypted"), ("VERIFY_IDENTITY.txt", "encrypted"),
        ("verifyFull", "encrypted"), ("ssl0.txt", "plain"), ("ssl1.txt", "encrypted"), ("tls0-run2.log", "plain"),
        ("useSSL=false.txt", "plain"), ("usessl=true", "encrypted"), ("ssl=0.txt", "plain"), ("plaintext=0", "encrypted"),
        ("TLSv1.3.txt", "encrypted"), ("tls1.0", "encrypted"), ("ssl01", "encrypted"), ("with-tls", "encrypted"),
        ("sslmode=no-verify", "encrypted"), ("sslmode=allow", None), ("ssl-mode=PREFERRED", None), ("verify.txt", None),
    ],
)  # fmt: skip
def test_names(name: str, arm: str | None, record_property: cases.Record) -> None:
    cases.record(record_property, "results", f"a file named {name}", arm_in(name) or "not clear")
    assert arm_in(name) == arm


PLAIN = "false 0 no off FALSE No F n disable DISABLED"
TLS = "true 1 yes on True Y require REQUIRED verify-ca verify-full VERIFY_CA VERIFY_IDENTITY"


@pytest.mark.parametrize("column", ["useSSL", "ssl", "tls", "TLS", "sslmode", "ssl-mode", "encrypted", "ssl_mode"])
def test_values_of_a_column_that_switches_tls(column: str) -> None:
    for values, arm in ((PLAIN, "plain"), (TLS, "encrypted"), ("prefer PREFERRED allow", None)):
        for value in values.split():
            assert arm_in(arm_of_value(value, column)) == arm, (column, value)
    assert arm_in(arm_of_value("false", "plaintext")) == "encrypted"
    assert arm_in(arm_of_value("1.3", "tls")) == arm_in(arm_of_value("AES256-GCM", "cipher")) == "encrypted"
    assert arm_in(arm_of_value("true", "mode")) is None


@pytest.mark.parametrize("mode", ["allow", "prefer", "PREFERRED"])
def test_a_mode_that_leaves_it_to_the_server_is_refused_with_that_reason(mode: str, tmp_path: Path) -> None:
    table = f"sslmode,tps\ndisable,500\n{mode},480\n"
    with pytest.raises(UsageError, match=rf"With the mode '{mode.lower()}' the server decides"):
        text(table, tmp_path, columns="throughput=tps,arm=sslmode")


def test_a_number_behind_a_name_is_a_switch_only_where_it_counts_no_runs(tmp_path: Path) -> None:
    content = (RESULTS / "sysbench11-tls.txt").read_text()
    for folder, names, refused in (
        ("switch", ("ssl0", "ssl1"), False),
        ("counted", ("tls0", "tls1", "tls2", "plain1"), True),
        ("beside", ("tls0", "tls1", "off"), True),
        ("unsure", ("ssl-0", "ssl-1"), True),
        ("counters", ("tls-0", "tls-1", "plain-0"), False),
    ):
        (tmp_path / folder).mkdir()
        for number, name in enumerate(names):
            (tmp_path / folder / f"{name}.txt").write_text(content.replace("570.06", f"57{number}.06"))
        if refused:
            with pytest.raises(UsageError, match="encryption was off, or count"):
                read(tmp_path / folder)
        else:
            assert by_arm(read(tmp_path / folder)).keys() == {"plain", "encrypted"}


# ── how it was pasted ─────────────────────────────────────────────────────────────────────────────────────────────────

STAMP = "2026-11-21T09:08:{:02d}.{:03d}Z "
WRAPS: dict[str, Callable[[str, int], str]] = {
    "indented": lambda line, _: f"    {line}",
    "by tabs": lambda line, _: f"\t{line}",
    "quoted": lambda line, _: f"> {line}",
    "quoted twice": lambda line, _: f"> > {line}",
    "stamped": lambda line, number: STAMP.format(number, number * 7 % 1000) + line,
    "compose": lambda line, _: f"bench-1  | {line}",
    "journal": lambda line, number: f"Nov {1 + number // 30:2d} 09:08:{number % 60:02d} db1 bench[812]: {line}",
    "logger": lambda line, number: (
        f"09:08:{number:02d},{number:03d} {'INFO' if number % 5 else 'WARNING'} bench: {line}"
    ),
    "numbered": lambda line, number: f"{number + 1:6d}\t{line}",
    "coloured": lambda line, _: f"\x1b[32m{line}\x1b[0m",
    "prompt": lambda line, number: f"user@db:~$ sysbench run | tee out\n{line}" if number == 0 else line,
    "crlf": lambda line, _: f"{line}\r",
    "progress": lambda line, _: f"working 10 %\rworking 99 %\r{line}",
}
TOOLS = [case for case in CASES if not case.columns]


@pytest.mark.parametrize("case", TOOLS, ids=[case.file for case in TOOLS])
@pytest.mark.parametrize("wrap", WRAPS)
def test_a_paste_is_read_like_the_output(case: Case, wrap: str, tmp_path: Path) -> None:
    lines = (RESULTS / case.file).read_text().splitlines()
    content = "\n".join(WRAPS[wrap](line, number) for number, line in enumerate(lines)) + "\n"
    (arm,) = case.figures
    assert by_arm(text(content, tmp_path, case.file)) == {arm: [pytest.approx(run) for run in case.figures[arm]]}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le"])
def test_any_encoding_of_a_shell(encoding: str, tmp_path: Path) -> None:
    for case in TOOLS:
        content = (RESULTS / case.file).read_text().replace("\n", "\r\n").encode(encoding)
        (arm,) = case.figures
        assert by_arm(text(content, tmp_path, case.file)) == {arm: [pytest.approx(run) for run in case.figures[arm]]}


# The first line behind which the output has its result, and what must be said of an output that is cut off above it.
CUTS = {
    "sysbench11-plain.txt": ("    transactions: ", "has no rate"),
    "h2load169-http.txt": ("requests: ", "has no line 'finished in'|has no line 'requests:'"),
    "ab-plain.txt": ("Requests per second:", "has no line 'Complete requests'|has no line 'Requests per second'"),
    "redis-benchmark-plain.txt": ("  throughput summary:", "has no 'throughput summary'"),
}


@pytest.mark.parametrize("file", CUTS)
def test_an_output_that_is_cut_off_is_read_if_it_has_its_result(file: str, tmp_path: Path) -> None:
    begin, missing = CUTS[file]
    lines = (RESULTS / file).read_text().splitlines(keepends=True)
    (whole,) = read(RESULTS / file)
    result = next(number for number, line in enumerate(lines) if line.startswith(begin))
    for end in range(1, len(lines)):
        if end <= result:
            with pytest.raises(UsageError, match=f"{missing}|contains no result|not the beginning") as refused:
                text("".join(lines[:end]), tmp_path)
            assert "\n" not in str(refused.value)
        else:
            (reading,) = text("".join(lines[:end]), tmp_path)
            assert reading.figures["throughput"] == whole.figures["throughput"]
            assert reading.figures.items() <= whole.figures.items()


def test_a_paste_that_begins_at_the_statistics_and_ends_before_threads_fairness_is_read(tmp_path: Path) -> None:
    whole = (RESULTS / "sysbench11-plain.txt").read_text()
    part = whole[whole.index("SQL statistics:") : whole.index("Threads fairness:")]
    for content in (part, "".join(f"      {line}\n" for line in part.splitlines())):
        (reading,) = text(content, tmp_path)
        assert reading.figures["throughput"] == 600.05
        assert "cut-off" in {note.code for note in reading.notes}


# ── TechEmpower ───────────────────────────────────────────────────────────────────────────────────────────────────────


def wrk(rate: float, seconds: int = 15) -> str:
    return f"""Running {seconds}s test @ http://tfb-server:8080/json
  16 threads and 16 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.{int(rate) % 90 + 10}ms    2.00ms  30.00ms   90.00%
    Req/Sec     3.50k   100.00     4.00k    70.00%
  Latency Distribution
     50%    1.00ms
     99%    8.00ms
  {round(rate * seconds)} requests in {seconds}.00s, 15.00MB read
Requests/sec:  {rate:.2f}
Transfer/sec:      1.50MB
"""


RULE = "-" * 57 + "\n"
COMMAND = " wrk -H 'Host: tfb-server' --latency -d {} -c {} --timeout 8 -t 16 \"http://tfb-server:8080/json\"\n"


def techempower(*levels: float) -> str:
    output = RULE + " Running Primer json\n" + COMMAND.format(5, 8) + RULE + wrk(900.0, 5)
    output += RULE + " Running Warmup json\n" + COMMAND.format(15, 512) + RULE + wrk(2500.0)
    for number, rate in enumerate(levels):
        output += RULE + f" Concurrency: {2**number} for json\n" + COMMAND.format(15, 2**number) + RULE
        output += wrk(rate).replace("16 connections", f"{2**number} connections")
        output += f"STARTTIME {1_790_000_000 + 20 * number}\nENDTIME {1_790_000_015 + 20 * number}\n"
    return output


def test_techempowers_primer_and_warm_up_are_no_results(tmp_path: Path) -> None:
    readings = text(techempower(4000.0, 5000.0, 6000.0), tmp_path)
    assert [(reading.clients, reading.figures["throughput"]) for reading in readings] == [
        (1, 4000.0),
        (2, 5000.0),
        (4, 6000.0),
    ]
    (note,) = [note.text for note in readings[0].notes if note.code == "warm-up"]
    assert note.startswith("2 runs ")
    assert "lines 5, 20 were left out" in note
    assert [reading.started for reading in readings] == [1_790_000_000, 1_790_000_020, 1_790_000_040]


def test_what_only_mentions_a_warm_up_counts(tmp_path: Path) -> None:
    silent = "Warming up (output is not shown)\nNow measuring\n" + wrk(4000.0)
    assert [reading.figures["throughput"] for reading in text(silent, tmp_path)] == [4000.0]
    for above in ("after warm-up:\n", "no warmup\n", "$ bench --warmup=10\n"):
        assert len(text(above + wrk(4000.0), tmp_path)) == 1
    assert len(read(RESULTS / "h2load169-http.txt")) == 1  # it prints lines about its own warm-up
    with pytest.raises(UsageError, match=r"line 2: .*a warm-up \(1 run\)"):
        text("warm-up\n" + wrk(4000.0), tmp_path)


def test_warm_ups_of_other_tools_and_of_files_are_left_out(tmp_path: Path) -> None:
    ab = (RESULTS / "ab-plain.txt").read_text()
    both = f"== warm-up ==\n{ab.replace('10000.00 [#', '9000.00 [#')}\n== measured ==\n{ab}"
    assert [reading.figures["throughput"] for reading in text(both, tmp_path)] == [10_000.0]
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "plain-warmup.txt").write_text(wrk(900.0))
    (folder / "plain-1.txt").write_text(wrk(4000.0))
    record, lines = gather.gather([folder], Choices())
    assert [reading.figures["throughput"] for reading in record.readings] == [4000.0]
    assert any("plain-warmup.txt is a warm-up" in line for line in lines)


# ── other tools ───────────────────────────────────────────────────────────────────────────────────────────────────────

AB_TLS = (RESULTS / "ab-tls.txt").read_text().replace(
    "Server Port:            8080\n", "Server Port:            8443\nSSL/TLS Protocol:       TLSv1.3,TLS_AES_256_GCM_SHA384,2048,256\n"
)  # fmt: skip
MEMTIER = """\
4         Threads
50        Connections per thread
10000     Requests per client

ALL STATS
============================================================================================================================
Type         Ops/sec     Hits/sec   Misses/sec    Avg. Latency     p50 Latency     p99 Latency   p99.9 Latency       KB/sec
----------------------------------------------------------------------------------------------------------------------------
Sets         9812.34          ---          ---         1.84512         1.79100         3.98300         5.27900       756.12
Gets        98123.40         0.00     98123.40         1.83000         1.78300         3.96700         5.24700      3822.10
Waits           0.00          ---          ---             ---             ---             ---             ---          ---
Totals     107935.74         0.00     98123.40         1.83130         1.78300         3.96700         5.24700      4578.22
"""
QUIET = "SET: 120481.93 requests per second, p50=0.207 msec\nGET: 125000.00 requests per second, p50=0.199 msec\n"
CSV = """\
"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"
"SET","120481.93","0.212","0.080","0.207","0.287","0.367","1.023"
"""
REDIS_5 = """\
====== GET ======
  100000 requests completed in 1.23 seconds
  50 parallel clients
  3 bytes payload
  keep alive: 1

99.87% <= 1 milliseconds
100.00% <= 1 milliseconds
81300.81 requests per second

"""


def test_ab_says_its_tls_and_its_errors(tmp_path: Path) -> None:
    (reading,) = text(AB_TLS, tmp_path, "run.txt", only="encrypted")
    assert (reading.scheme, reading.encryption) == (
        "https",
        {"protocol": "TLSv1.3", "cipher": "TLS_AES_256_GCM_SHA384"},
    )
    plain = (RESULTS / "ab-plain.txt").read_text()
    lengths = plain.replace(
        "requests:        0\n", "requests:        400\n   (Connect: 0, Receive: 0, Length: 400, Exceptions: 0)\n"
    )
    (reading,) = text(lengths, tmp_path)
    assert reading.errors == 0
    assert "lengths-differ" in {note.code for note in reading.notes}
    for wrong in ("Non-2xx responses:      50000\n", "Non-2xx responses:      30000\n"):
        with pytest.raises(UsageError, match="answers were errors"):
            text(plain.replace("Total transferred", wrong + "Total transferred"), tmp_path)
    (kept,) = text(plain.replace("Total transferred", "Keep-Alive requests:    50000\nTotal transferred"), tmp_path)
    assert kept.workload == "GET /, kept alive"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (REDIS_5, [("GET", 81_300.81, None)]),
        (QUIET, [("SET", 120_481.93, 0.207), ("GET", 125_000.0, 0.199)]),
        ("SET: rps=1.0 (overall: 2.0) avg_msec=0.2\rSET: 99206.35 requests per second\r\n", [("SET", 99_206.35, None)]),
        (CSV, [("SET", 120_481.93, 0.207)]),
        ('"SET","81300.81"\n"MSET (10 keys)","83333.33"\n', [("SET", 81_300.81, None), ("MSET (10 keys)", 83_333.33, None)]),
        (MEMTIER, [("sets and gets", 107_935.74, 1.783)]),
    ],
)  # fmt: skip
def test_every_form_of_redis_benchmark_and_memtier(
    content: str, expected: list[tuple[str, float, float | None]], tmp_path: Path
) -> None:
    readings = text(content, tmp_path)
    assert [
        (reading.workload, reading.figures["throughput"], reading.figures.get("latency_p50")) for reading in readings
    ] == expected
    assert {reading.engine for reading in readings} == {"redis or valkey"}


def test_redis_benchmark_that_was_refused_is_no_result(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"line 1: .*NOAUTH.*refused the commands"):
        text("Error from server: NOAUTH Authentication required.\n" + REDIS_5, tmp_path)
