"""`import`: results that look sound but are not: set rates, sampled logs, errors counted as answers, copies, seconds
given as runs.
"""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost import engines, mechanisms
from ciphercost.estimate import imported_copies, imported_costs, statistics
from ciphercost.importers import csv_columns, gather, headings
from ciphercost.importers.choices import Choices
from ciphercost.importers.formats import hyperfine
from ciphercost.model.errors import UsageError
from ciphercost.model.imported import Reading
from ciphercost.model.result import Cell
from ciphercost.report.formats import _imported, md, terminal
from ciphercost.report.words import verdict_text
from ciphercost.runs import import_run
from test_gather import (
    HYPERFINE,
    LOG,
    PGBENCH,
    PLAIN,
    QUICK,
    SYSBENCH,
    TLS,
    WRK,
    anything,
    codes,
    import_texts,
    read,
    runs,
)

# wrk2 -t2 -c4 -d20s -R2000 --latency -U, in the format of its printing code; the detailed spectra are cut to two rows.
WRK2 = """\
Running 20s test @ https://127.0.0.1:8443/index.html
  2 threads and 4 connections
  Thread calibration: mean lat.: 1.423ms, rate sampling interval: 10ms
  Thread calibration: mean lat.: 1.398ms, rate sampling interval: 10ms
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.42ms    0.98ms  11.31ms   91.04%
    Req/Sec     1.05k   120.31     1.44k    71.22%
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%    1.10ms
 75.000%    1.70ms
 90.000%    2.40ms
 99.000%    8.20ms
 99.900%   10.90ms
 99.990%   11.31ms
 99.999%   11.31ms
100.000%   11.31ms

  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

       1.100     0.500000        19800         2.00
      11.311     1.000000        39600          inf
#[Mean    =        1.423, StdDeviation   =        0.982]
#[Max     =       11.311, Total count    =        39600]
#[Buckets =           27, SubBuckets     =         2048]
----------------------------------------------------------

  Latency Distribution (HdrHistogram - Uncorrected Latency (measured without taking delayed starts into account))
 50.000%  180.00us
 75.000%  300.00us
 90.000%  440.00us
 99.000%    1.20ms
 99.900%    1.90ms
 99.990%    2.10ms
 99.999%    2.10ms
100.000%    2.10ms

  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

       0.180     0.500000        19800         2.00
       2.103     1.000000        39600          inf
#[Mean    =        0.240, StdDeviation   =        0.082]
#[Max     =        2.101, Total count    =        39600]
#[Buckets =           27, SubBuckets     =         2048]
----------------------------------------------------------
  39988 requests in 20.00s, 12.62MB read
Requests/sec:   1999.40
Transfer/sec:    646.12KB
"""
SYSBENCH_RATE = SYSBENCH.replace("Number of threads: 2\n", "Number of threads: 2\nTarget transaction rate: 61000/sec\n")


def note(reading: Reading, code: str) -> str:
    (text,) = [warning.text for warning in reading.notes if warning.code == code]
    return text


# ── rates that were set ───────────────────────────────────────────────────────────────────────────────────────────────


def test_wrk2s_uncorrected_latencies_are_not_its_recorded_ones(tmp_path: Path) -> None:
    (reading,) = read(WRK2, tmp_path)
    assert reading.figures == {"latency_mean": 1.42, "latency_p50": 1.10, "latency_p99": pytest.approx(8.20)}
    swapped = WRK2.replace("Recorded Latency", "X").replace("Uncorrected Latency", "Recorded Latency")
    (reading,) = read(swapped.replace("X)", "Uncorrected Latency (measured so)"), tmp_path)
    assert reading.figures["latency_p50"] == pytest.approx(0.18)


def test_a_rate_that_wrk2_was_given_is_no_throughput(tmp_path: Path) -> None:
    (reading,) = read(WRK2, tmp_path)
    assert "throughput" not in reading.figures
    assert "the rate was set" in note(reading, "rate-limited")
    short = "\n".join(line for line in WRK2.splitlines() if "calibration" not in line) + "\n"
    assert "throughput" not in read(short, tmp_path)[0].figures
    # Forks of wrk2 print which of the two it was.
    mode = WRK2.replace("  Thread calibration", "  Mode: constant rate 2000 req/s (x)\n  Thread calibration", 1)
    assert "the rate was set to 2000" in note(read(mode, tmp_path)[0], "rate-limited")
    closed = short.replace("4 connections\n", "4 connections\n  Mode: closed loop, max throughput (x)\n")
    assert read(closed, tmp_path)[0].figures["throughput"] == 1999.40


def test_a_rate_that_sysbench_was_given_is_no_throughput(tmp_path: Path) -> None:
    (reading,) = read(SYSBENCH_RATE, tmp_path)
    assert sorted(reading.figures) == ["latency_mean"]
    assert "throughput" not in reading.series
    assert "the rate was set to 61000" in note(reading, "rate-limited")
    (told_by_queue,) = read(
        SYSBENCH.replace("[ 2s ] thds", "[ 1s ] queue length: 0 concurrency: 0\n[ 2s ] thds"), tmp_path
    )
    assert "throughput" not in told_by_queue.figures


@pytest.mark.parametrize(
    ("command", "text", "rate"),
    [
        ("$ h2load --h1 -c4 -D3 --rps=100 https://x/", WRK, "100"),
        ("+ wrk -t2 -c4 -R 2000 -d1s https://x/", WRK, "2000"),
        ("sysbench oltp --rate=300 run", SYSBENCH, "300"),
        ("$ wrk -t2 -c4 -d1s https://x/", WRK, ""),
        ("$ sysbench oltp --rate=0 run", SYSBENCH, ""),
    ],
)
def test_a_rate_on_the_command_line_above_a_result_is_a_set_rate(
    command: str, text: str, rate: str, tmp_path: Path
) -> None:
    (reading,) = read(f"{command}\n{text}", tmp_path)
    assert ("throughput" in reading.figures) == (not rate)
    if rate:
        assert f"the rate was set to {rate}" in note(reading, "rate-limited")


def test_pgbenchs_rate_stays_set_with_a_log_or_progress_alone(tmp_path: Path) -> None:
    limited = PGBENCH.replace(
        "initial connection time =", "rate limit schedule lag: avg 1.031 (max 61.757) ms\ninitial connection time ="
    )
    limited = limited.replace("0 failed", "0 failed, lag 0.290 ms")
    progress = "".join(line + "\n" for line in limited.splitlines() if line.startswith("progress"))
    (alone,) = read(progress, tmp_path)
    assert "throughput" not in alone.figures
    assert {"rate-limited", "progress-only"} == {note.code for note in alone.notes}
    lags = "".join(f"{line} {100 + n}\n" for n, line in enumerate(LOG.splitlines()))
    (log,) = read(lags, tmp_path, "plain_log.1")
    assert sorted(log.figures) == ["latency_mean", "latency_p50", "latency_p99"]
    assert log.series == {}
    # Retries are in the same column, and are few.
    assert "throughput" in read(LOG.replace("\n", " 0\n"), tmp_path, "plain_log.1")[0].figures
    (tmp_path / "both").mkdir()
    text = limited.replace("4301", "400")
    for name, content in (("plain.txt", text), ("plain_log.7", lags)):
        (tmp_path / "both" / name).write_text(content)
    (both,) = gather.gather([tmp_path / "both"], Choices())[0].readings
    assert "throughput" not in both.figures
    assert "throughput" not in both.series
    assert "latency_p50" in both.figures


def test_a_log_of_intervals_of_a_set_rate_has_no_throughput(tmp_path: Path) -> None:
    rows = [
        f"{1795353155 + n} {300 + n} 320376 2219493442 79 19938 147035 684428425 0 10454 0 0 0 0 0" for n in range(5)
    ]
    (reading,) = read("\n".join(rows) + "\n", tmp_path, "plain_log.1")
    assert list(reading.figures) == ["latency_mean"]
    free = [" ".join([*row.split()[:6], *["0"] * 9]) for row in rows]
    assert "throughput" in read("\n".join(free) + "\n", tmp_path, "plain_log.1")[0].figures


def test_set_rates_cost_latency_only(tmp_path: Path) -> None:
    texts = {
        f"{arm}-{n}.txt": WRK2.replace("1.42ms ", f"{level + n / 100:.2f}ms ").replace("1999.40", f"{1999.4 + n:.2f}")
        for arm, level in (("plain", 1.42), ("tls", 1.62))
        for n in range(4)
    }
    result = import_texts(tmp_path, texts)
    (cell,) = result.cells
    assert "throughput" not in cell.overhead
    assert cell.overhead["latency_mean"].ratio == pytest.approx(1.14, abs=0.02)
    assert "mean latency" in verdict_text.answer(result)
    assert "mean latency" in verdict_text.verdict(cell)


def test_rates_that_are_all_alike_are_doubted(tmp_path: Path) -> None:
    rates = [1000.1, 999.9, 1000.0, 1000.2]
    rows = "".join(
        f"{arm},{rate},{level + n}\n" for arm, level in (("off", 10), ("on", 12)) for n, rate in enumerate(rates)
    )
    (tmp_path / "t.csv").write_text("tls,rate,lat\n" + rows)
    columns = {"columns": "throughput=rate,arm=tls,latency=lat:ms", "output": tmp_path / "made"}
    (cell,) = import_run.run([tmp_path / "t.csv"], columns)[0].cells
    assert "rate-alike" in codes(cell)
    (free,) = import_texts(tmp_path / "free", runs({"plain": PLAIN, "tls": TLS})).cells
    assert "rate-alike" not in codes(free)


# ── a log of a sample ─────────────────────────────────────────────────────────────────────────────────────────────────


def sampled(share: float, seed: int = 1, clients: int = 4, per_client: int = 3000) -> tuple[str, str]:
    """Return (the whole log, the same with --sampling-rate) of one run of pgbench."""
    random = np.random.default_rng(seed)
    lines = []
    for number in range(per_client):
        for client in range(clients):
            at = number * 2000 + client * 400
            lines.append(
                f"{client} {number + 1} {900 + number * (seed + 3) % 97} 0 {1795297570 + at // 1000000} {at % 1000000}\n"
            )
    return "".join(lines), "".join(line for line in lines if random.random() < share)


def test_a_sampled_log_has_the_throughput_of_the_whole_run(tmp_path: Path) -> None:
    whole, part = sampled(0.1)
    (all_of_it,) = read(whole, tmp_path, "plain_log.1")
    (reading,) = read(part, tmp_path, "plain_log.1")
    assert reading.figures["throughput"] == pytest.approx(all_of_it.figures["throughput"], rel=0.01)
    assert reading.operations == pytest.approx(12000, rel=0.01)
    assert "10 %" in note(reading, "sampled-log")
    assert not [note for note in all_of_it.notes if note.code == "sampled-log"]
    (little,) = read("".join(part.splitlines(keepends=True)[:60]), tmp_path, "plain_log.1")
    assert "throughput" not in little.figures


def test_sampling_in_one_arm_does_not_look_like_a_cost(tmp_path: Path) -> None:
    texts = {}
    for n in range(3):
        whole, part = sampled(0.1, n)
        texts[f"plain_log.{n + 1}"] = whole
        texts[f"tls_log.{n + 1}"] = part
    (cell,) = import_texts(tmp_path, texts).cells
    assert cell.imported is not None
    assert cell.imported.costs["throughput"].ratio == pytest.approx(1, abs=0.02)
    assert "sampled-log" in codes(cell)


def test_a_sampled_log_joins_the_summary_of_its_run(tmp_path: Path) -> None:
    _, part = sampled(0.1)
    text = (
        PGBENCH.replace("4301", "12000").replace("duration: 3 s", "duration: 6 s").replace("1441.437456", "2000.437456")
    )
    for name, content in (("plain.txt", text), ("plain_log.7", part)):
        (tmp_path / name).write_text(content)
    (reading,) = gather.gather([tmp_path], Choices())[0].readings
    assert (reading.operations, reading.figures["throughput"]) == (12000, 2000.437456)
    assert "latency_p99" in reading.figures


# ── errors that were counted as answers ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (WRK.replace("Requests/sec", "  Non-2xx or 3xx responses: 49464\nRequests/sec"), "49,464 of 49,464 answers were errors"),
        (WRK.replace("Requests/sec", "  Non-2xx or 3xx responses: 30000\nRequests/sec"), "30,000 of 49,464 answers were errors"),
        (WRK.replace("Requests/sec", "  Socket errors: connect 0, read 50000, write 0, timeout 9\nRequests/sec"), "more operations failed"),
        (PGBENCH.replace("failed transactions: 0", "failed transactions: 5000"), "more operations failed"),
        (SYSBENCH.replace("General", "    ignored errors:                      130000 (1.00 per sec.)\nGeneral"), "more operations failed"),
        (HYPERFINE.replace('"times": [0.19, 0.21]', '"times": [0.19, 0.21], "exit_codes": [1, 1]'), "2 of 2 runs of command 1"),
        (LOG + "".join(f"0 {n} failed 0 1795297576 9\n" for n in range(500)), "more operations failed"),
    ],
)  # fmt: skip
def test_more_errors_than_answers_is_no_result(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        read(text, tmp_path)
    assert "plain.txt, line " in str(refused.value)


def test_few_errors_are_a_warning(tmp_path: Path) -> None:
    (reading,) = read(WRK.replace("Requests/sec", "  Non-2xx or 3xx responses: 12\nRequests/sec"), tmp_path)
    assert note(reading, "errors").startswith("12 ")


# ── files of both arms ────────────────────────────────────────────────────────────────────────────────────────────────


def log_of(*parts: str | float) -> str:
    """Write runs of pgbench at these rates, below these lines."""
    whole = ""
    for part in parts:
        if isinstance(part, str):
            whole += part + "\n"
        else:
            whole += next(iter(runs({"plain": [part]}).values()))
    return whole


def test_a_file_of_both_arms_has_each_runs_arm_from_the_line_above_it(tmp_path: Path) -> None:
    text = log_of("$ PGSSLMODE=disable pgbench -c2 -T3", 1441.5, 1450.5, "== sslmode=require ==", 1300.5, 1280.5)
    (tmp_path / "ssl-bench.log").write_text(text)
    record, lines = gather.gather([tmp_path / "ssl-bench.log"], Choices())
    assert [reading.arm for reading in record.readings] == ["plain", "plain", "encrypted", "encrypted"]
    assert any("its own words" in line for line in lines)
    (tmp_path / "ssl-bench.log").write_text(log_of(1441.5, "PGSSLMODE=require", 1300.5, "PGSSLMODE=disable", 1441.6))
    with pytest.raises(UsageError, match=r"ssl-bench\.log, line 1: .*line 19 says encrypted"):
        gather.gather([tmp_path / "ssl-bench.log"], Choices())


def test_a_name_that_may_stand_for_both_arms_is_asked_about(tmp_path: Path) -> None:
    (tmp_path / "ssl-bench.log").write_text(log_of(1441.5, 1450.5, 1300.5, 1280.5))
    with pytest.raises(UsageError, match=r"4 runs, and 'ssl' in its name"):
        gather.gather([tmp_path / "ssl-bench.log"], Choices())
    assert len(gather.gather([tmp_path / "ssl-bench.log"], Choices(only="encrypted"))[0].readings) == 4
    (tmp_path / "plain.log").write_text(log_of(1441.6))
    assert len(gather.gather([tmp_path], Choices())[0].readings) == 5


def test_a_name_that_stands_in_both_arms_folders_tells_nothing(tmp_path: Path) -> None:
    for folder, rate in (("plain", 1441.5), ("tls", 1300.5)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "ssl-bench.log").write_text(log_of(rate))
    record, _ = gather.gather([tmp_path], Choices())
    assert {Path(reading.file).parent.name: reading.arm for reading in record.readings} == {
        "plain": "plain",
        "tls": "encrypted",
    }
    (tmp_path / "tls/ssl-bench.log").rename(tmp_path / "tls/other.log")
    with pytest.raises(UsageError, match=r"encrypted \('ssl'\).*folder 'plain' says plain"):
        gather.gather([tmp_path], Choices())


def test_lines_of_the_tools_own_tell_of_no_arm(tmp_path: Path) -> None:
    text = PGBENCH.replace("<builtin: TPC-B (sort of)>", "/srv/tls/read.sql") + log_of("plain again")
    (reading,) = read(text, tmp_path)
    assert reading.names == []


def test_many_files_that_were_left_out_are_told_in_few_lines(tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text(PGBENCH)
    for n in range(40):
        (tmp_path / f"n{n:02}.md").write_text("# notes\n")
        (tmp_path / f"t{n:02}.csv").write_text("a,b\n1,2\n")
        (tmp_path / f"e{n:02}").write_text("")
    (tmp_path / "sa21").write_bytes(b"\x96\xd5\x75")
    _, lines = gather.gather([tmp_path], Choices())
    out = [line for line in lines if line.startswith("skipped")]
    assert len(out) == 4
    assert f"skipped: 40 files, empty: {tmp_path}/e00, {tmp_path}/e01, {tmp_path}/e02 …" in out
    assert any(line.startswith("skipped: 40 files, possibly tables") for line in out)
    assert any("sa21 is sysstat's binary file" in line for line in out)


# ── copies ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_copies_of_a_run_are_counted_once(tmp_path: Path) -> None:
    texts = runs({"plain": PLAIN, "tls": TLS})
    texts |= {f"plain-copy{n}.txt": texts["plain-0.txt"] + "\n" * n for n in range(3)}
    (cell,) = import_texts(tmp_path / "a", texts).cells
    (clean,) = import_texts(tmp_path / "b", runs({"plain": PLAIN, "tls": TLS})).cells
    assert cell.overhead == clean.overhead
    assert cell.arms["plain"]["runs"] == len(PLAIN)
    (note,) = [warning.text for warning in cell.warnings if warning.code == "copied-runs"]
    assert note.startswith("3 of 8 plain runs ")
    assert "copied-runs" not in codes(clean)


def test_identical_rows_of_a_table_are_one_run(tmp_path: Path) -> None:
    rows = [
        "off,182.695",
        "off,182.695",
        "off,183.201",
        "off,182.695",
        "on,160.113",
        "on,161.204",
        "on,159.871",
        "on,160.5",
    ]
    (tmp_path / "t.csv").write_text("tls,tps\n" + "\n".join(rows) + "\n")
    given = {"columns": "throughput=tps,arm=tls,decimal=point", "output": tmp_path / "made"}
    (cell,) = import_run.run([tmp_path / "t.csv"], given)[0].cells
    assert {arm: cell.arms[arm]["runs"] for arm in cell.arms} == {"plain": 2, "encrypted": 4}
    assert "copied-runs" in codes(cell)


def test_coarse_figures_that_agree_by_chance_are_runs(tmp_path: Path) -> None:
    rows = "".join(
        f"{arm},{ms}\n" for arm, level in (("off", 10), ("on", 12)) for ms in (level, level + 1, level, level + 2)
    )
    (tmp_path / "t.csv").write_text("tls,ms\n" + rows)
    (cell,) = import_run.run([tmp_path / "t.csv"], {"columns": "time=ms,arm=tls", "output": tmp_path / "made"})[0].cells
    assert {arm: cell.arms[arm]["runs"] for arm in cell.arms} == {"plain": 4, "encrypted": 4}


def test_one_run_in_both_arms_or_in_two_cells_is_told(tmp_path: Path) -> None:
    text = runs({"plain": [1441.517]})["plain-0.txt"]
    (cell,) = import_texts(tmp_path / "a", {"plain.txt": text, "tls.txt": text + "\n"}).cells
    assert "same-in-both-arms" in codes(cell)
    result = import_texts(
        tmp_path / "b", {"plain-1.txt": text, "plain-2.txt": text.replace("clients: 2", "clients: 3")}
    )
    assert ["run-of-another-cell" in codes(cell) for cell in result.cells] == [False, True]


def test_the_published_tables_of_a_tde_study_hold_copies(tmp_path: Path) -> None:
    """The study's three table sizes have the same figures to the last digit, in every row."""
    given = {
        "columns": "throughput=tps,latency=latency_avg_ms,arm=encryption,factor=server",
        "output": tmp_path / "made",
    }
    (tmp_path / "t.csv").write_text(PUBLISHED_TDE)
    result = import_run.run([tmp_path / "t.csv"], given)[0]
    assert [cell.factors["server"] for cell in result.cells] == ["cybertec-15.8", "enterprisedb-15.10"]
    first = result.cells[0]
    assert {arm: first.arms[arm]["runs"] for arm in first.arms} == {"plain": 1, "encrypted": 1}
    assert first.overhead == {}
    assert "copied-runs" in codes(first)
    assert "server=cybertec-15.8" in " ".join(terminal.render(result).split())


PUBLISHED_TDE = """\
server,encryption,rows,latency_avg_ms,latency_stddev_ms,tps,initial_connection_ms,transactions
cybertec-15.8,tde-aes,50,273.498,284.734,182.695482,33.190,109735
cybertec-15.8,tde-aes,500,273.498,284.734,182.695482,33.190,109735
cybertec-15.8,tde-aes,5000000,273.498,284.734,182.695482,33.190,109735
cybertec-15.8,none,50,36.539,24.110,1095.376634,33.527,500
cybertec-15.8,none,500,36.539,24.110,1095.376634,33.527,500
cybertec-15.8,none,5000000,36.539,24.110,1095.376634,33.527,500
enterprisedb-15.10,none,50,55.065,15.052,777.428,39.032,500
enterprisedb-15.10,none,500,55.065,15.052,777.428,39.032,500
enterprisedb-15.10,none,5000000,55.065,15.052,777.428,39.032,500
"""


# ── many cells ────────────────────────────────────────────────────────────────────────────────────────────────────────


def many(random: np.random.Generator, effects: list[float], runs_per_arm: int = 6) -> str:
    rows = [
        f"{arm},w{cell},{1000 * math.exp((effect if arm == 'on' else 0) + random.normal(0, 0.02)):.3f}1"
        for cell, effect in enumerate(effects)
        for arm in ("off", "on")
        for _ in range(runs_per_arm)
    ]
    return "tls,query,rate\n" + "\n".join(rows) + "\n"


def test_many_cells_are_corrected_for_their_number(tmp_path: Path) -> None:
    """52 cells, of which some truly differ: after Holm's correction fewer differ than without it, and every page
    reports that.
    """
    random = np.random.default_rng(5)
    (tmp_path / "t.csv").write_text(many(random, [0.0] * 6 + [0.03] * 18 + [0.12] * 28))
    given = {"columns": "throughput=rate,arm=tls,workload=query", "output": tmp_path / "made"}
    result = import_run.run([tmp_path / "t.csv"], given)[0]
    estimates = [cell.overhead["throughput"] for cell in result.cells]
    alone = [estimate.low > 1 or estimate.high < 1 for estimate in estimates]
    after = [(estimate.p_value or 0) < 0.05 for estimate in estimates]
    assert len(alone) == 52
    assert 28 <= sum(after) < sum(alone)
    verdicts = [verdict_text.verdict(cell) for cell in result.cells]
    assert ["runs differ" in verdict for verdict in verdicts] == after
    assert [verdict_text.BY_ITSELF in verdict for verdict in verdicts] == [
        a and not b for a, b in zip(alone, after, strict=True)
    ]
    answer = f"the arms' runs differ in {sum(after)} of 52 cells after Holm's correction for their number"
    assert answer in verdict_text.answer(result)
    assert answer in " ".join(terminal.render(result).split())
    assert md.render(result).count("| runs differ") == sum(after)


def test_cells_without_any_cost_seldom_differ() -> None:
    """Of families of 20 cells without a cost, at most about 5 % have a differing cell after the correction; without it
    most do.
    """
    random = np.random.default_rng(11)
    families, alone = 0, 0
    for _ in range(200):
        p = []
        for _ in range(20):
            a, b = random.normal(0, 0.03, 5), random.normal(0, 0.03, 5)
            error = imported_costs.welch(a, b)
            assert error is not None
            p.append(statistics.Interval(float(b.mean() - a.mean()), (error,), 10).p_value())
        alone += min(p) < 0.05
        families += min(statistics.holm(p)) < 0.05
    assert alone > 100
    assert families <= 20


# ── seconds given as runs ─────────────────────────────────────────────────────────────────────────────────────────────


def table(tmp_path: Path, text: str, columns: str) -> list[Reading]:
    (tmp_path / "t.csv").write_text(text)
    return gather.gather([tmp_path / "t.csv"], Choices(columns=csv_columns.columns(columns)))[0].readings


STAMPS = {
    "seconds": lambda n: f"{n + 1}",
    "pgbench": lambda n: f"{n + 1}.0",
    "epoch": lambda n: f"{1795297570.01 + n * 1.001:.3f}",
    "epoch in ms": lambda n: f"{1795297570010 + n * 1001}",
    "clock": lambda n: f"12:{n // 60:02}:{n % 60:02}",
    "date": lambda n: f"2026-11-21 12:{n // 60:02}:{n % 60:02}",
    "every ten": lambda n: f"{10 * n}",
    "one is missing": lambda n: f"{n + (n > 3)}",
}


@pytest.mark.parametrize("kind", STAMPS)
def test_rows_that_a_clock_counts_are_one_run(kind: str, tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    text = "mode,time_s,tps\n" + "".join(
        f"{arm},{STAMPS[kind](n)},{level + random.normal(0, 9):.2f}\n"
        for arm, level in (("off", 900), ("on", 880))
        for n in range(12)
    )
    readings = table(tmp_path, text, "throughput=tps,arm=mode")
    assert len(readings) == 2
    assert "column 'time_s' increases in steps" in note(readings[0], "rows-of-one-run")
    assert len(readings[0].series["throughput"]) == 12
    assert len(table(tmp_path, text, "throughput=tps,arm=mode,run=row")) == 24
    result = import_run.run([tmp_path / "t.csv"], {"columns": "throughput=tps,arm=mode", "output": tmp_path / "made"})[
        0
    ]
    assert result.cells[0].overhead == {}
    assert "one-run" in codes(result.cells[0])


def test_a_clock_that_begins_again_begins_another_run(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    rows = "".join(
        f"{arm},{n},{level + 20 * run + random.normal(0, 9):.2f}\n"
        for arm, level in (("off", 900), ("on", 700))
        for run in range(3)
        for n in range(10)
    )
    readings = table(tmp_path, "mode,sec,tps\n" + rows, "throughput=tps,arm=mode")
    assert len(readings) == 6
    assert "reports of 3 consecutive runs" in note(readings[0], "rows-of-one-run")


def test_a_clock_that_begins_again_after_few_rows_counts_too(tmp_path: Path) -> None:
    stamps = [*range(1, 9), 1, 2, 3]
    rows = "".join(f"off,{at},{900 + at * 7 % 5}.25\n" for at in stamps)
    assert len(table(tmp_path, "mode,sec,tps\n" + rows, "throughput=tps,arm=mode")) == 2


@pytest.mark.parametrize(
    "stamps", [["1795297570", "1795297633", "1795297695", "1795297759", "1795297820"], ["5", "3", "9", "1", "7"]]
)
def test_runs_with_the_time_at_which_they_began_are_runs(stamps: list[str], tmp_path: Path) -> None:
    """Minutes apart, but never to the second."""
    rates = [900.25, 880.5, 905.75, 893.5, 879.25]
    rows = "".join(f"off,{at},{rate}\n" for at, rate in zip(stamps, rates, strict=True))
    assert len(table(tmp_path, "mode,timestamp,tps\n" + rows, "throughput=tps,arm=mode")) == 5


def test_a_clock_is_not_how_long_a_row_took(tmp_path: Path) -> None:
    rows = "".join(f"off,{n + 1},{900 + n}\n" for n in range(8))
    with pytest.raises(UsageError, match=r"t\.csv, line 2: .*'time_s'.* is a clock"):
        table(tmp_path, "mode,time_s,n\n" + rows, "time=time_s,operations=n,arm=mode")


def noise(random: np.random.Generator, n: int, rho: float) -> list[float]:
    values = [random.normal()]
    for _ in range(n - 1):
        values.append(rho * values[-1] + math.sqrt(1 - rho**2) * random.normal())
    return values


def test_rows_that_are_each_like_the_one_before_are_one_run(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    rows = {rho: [(arm, value) for arm in ("off", "on") for value in noise(random, 14, rho)] for rho in (0.9, 0.0)}
    texts = {
        rho: "mode,tps\n" + "".join(f"{arm},{900 + 9 * value:.3f}1\n" for arm, value in values)
        for rho, values in rows.items()
    }
    readings = table(tmp_path, texts[0.9], "throughput=tps,arm=mode")
    assert len(readings) == 2
    assert "each row resembles the previous one" in note(readings[0], "rows-of-one-run")
    assert len(table(tmp_path, texts[0.0], "throughput=tps,arm=mode")) == 28
    (tmp_path / "t.csv").write_text(texts[0.9])
    given = {"columns": "throughput=tps,arm=mode,run=row", "output": tmp_path / "made"}
    (cell,) = import_run.run([tmp_path / "t.csv"], given)[0].cells
    assert "runs-follow" in codes(cell)
    assert "long-run variance" in cell.overhead["throughput"].method


def test_a_published_figure_of_progress_lines_is_one_run_of_each_server(tmp_path: Path) -> None:
    rows = [("cybertec-tde", at, tps) for at, tps in ((597, 93.0), (598, 103.0), (599, 115.0), (600, 117.0))]
    rows += [
        ("cybertec non-TDE", at, tps) for at, tps in enumerate((1162.9, 1276.0, 1200.0, 1023.0, 1156.0, 1152.0), 1)
    ]
    text = "caption,time_s,tps\n" + "".join(f"{caption},{at},{tps}\n" for caption, at, tps in rows)
    readings = table(tmp_path, text, "throughput=tps,arm=caption")
    assert [(reading.arm, round(reading.figures["throughput"], 1)) for reading in readings] == [
        ("encrypted", 107.0),
        ("plain", 1161.6),
    ]


def test_independent_values_seldom_seem_to_follow_each_other() -> None:
    random = np.random.default_rng(6)
    for n, rho, low, high in ((12, 0.0, 0.0, 0.08), (30, 0.0, 0.0, 0.08), (30, 0.6, 0.9, 1.0)):
        answers = [
            statistics.depend([np.array(noise(random, n, rho)), np.array(noise(random, n, rho))]) for _ in range(400)
        ]
        assert low <= np.mean(answers) <= high
    assert not statistics.depend([np.ones(20), np.arange(5.0), np.array([])])


# ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "columns", "rates"),
    [
        ("tps;x\n1.234.567;1\n9.876;1\n", "throughput=tps", [1234567, 9876]),
        ("tps;lat\n1.234;0.5\n9.876;1\n", "throughput=tps,latency=lat:ms", [1.234, 9.876]),
        ("tps;x\n1.234;1\n9.87;1\n", "throughput=tps", [1.234, 9.87]),
        ("tps;x\n1.234;1\n9.876;1\n", "throughput=tps,decimal=point", [1.234, 9.876]),
        ("tps;x\n1.234;1\n9.876;1\n", "throughput=tps,decimal=comma", [1234, 9876]),
        ("tps;x\n1,234;1\n9,876;1\n", "throughput=tps,decimal=comma", [1.234, 9.876]),
        ("lat,x\n1.234,1\n9.876,1\n", "time=lat:s", [1 / 1.234, 1 / 9.876]),
    ],
)
def test_points_are_decimal_or_between_thousands_but_never_by_guess(
    text: str, columns: str, rates: list[float], tmp_path: Path
) -> None:
    readings = read(text, tmp_path, columns=columns)
    assert [reading.figures["throughput"] for reading in readings] == pytest.approx(rates)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("tps;x\n1.234;1\n987;1\n12.345;1\n", "throughput=tps"),
        ("tps\tx\n1.234\t1\n9.876\t1\n", "throughput=tps"),
        ("tps,x\n1.234,1\n9.876,1\n", "throughput=tps"),
        ("lat,x\n1.234,1\n987,1\n", "time=lat:ms"),
        ("n;lat\n1.500;12,5\n".replace(",5", ""), "time=lat:ms,operations=n"),
        # A version in another column has a point, but says nothing about the number format.
        ("tps;server\n1.234;8.0\n987;8.0\n", "throughput=tps"),
    ],
)
def test_points_that_may_be_between_thousands_are_refused(text: str, columns: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"plain\.txt, line 2: '1\..*' is ambiguous"):
        read(text, tmp_path, columns=columns)


def test_factors_of_a_table_set_its_cells_apart(tmp_path: Path) -> None:
    rows = "".join(
        f"{dbms},{size},{arm},{level + n + 0.25 * len(dbms)}\n"
        for dbms in ("MySQL 8.0", "postgres")
        for size in (1, 10)
        for arm, level in (("off", 900 * size), ("on", 850 * size))
        for n in (3, 1, 2)
    )
    (tmp_path / "t.csv").write_text("dbms,size,tls,tps\n" + rows)
    given = {
        "columns": "throughput=tps,arm=tls,factor=dbms,factor=size",
        "output": tmp_path / "made",
        "mechanism": "tls",
    }
    result = import_run.run([tmp_path / "t.csv"], given)[0]
    assert [tuple(cell.factors.values()) for cell in result.cells] == [
        (dbms, size) for dbms in ("MySQL 8.0", "postgres") for size in ("1", "10")
    ]
    page = " ".join(terminal.render(result).split())
    assert "dbms=MySQL 8.0 size=10" in page
    assert "ciphercost run mysql:tls postgresql:tls" in page
    with pytest.raises(UsageError, match="column 'gone' does not exist"):
        read("a,b\n1,2\n", tmp_path, columns="throughput=a,factor=gone")
    with pytest.raises(UsageError, match="decimal must be 'point' or 'comma'"):
        csv_columns.columns("throughput=a,decimal=dot")


# ── what to measure instead ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("engine", "mechanism", "expected"),
    [
        ("firebird", "encryption", "firebird:wire-crypt"),
        ("sqlite", "tls", "sqlite:sqlcipher"),
        ("sqlite", "encryption", "sqlite:sqlcipher"),
        ("web", "encryption", "url:tls"),
        ("table", "innodb-tde", "mysql:innodb-tde"),
        ("table", "sqlcipher", "sqlite:sqlcipher"),
        ("database", "encryption", "SERVER:tls"),
        ("table", "encryption", "SERVER:tls"),
        ("redis or valkey", "tls", "SERVER:tls"),
        ("postgresql", "innodb-tde", "postgresql:"),
        ("mysql or mariadb", "tls", "SERVER:tls"),
        ("mysql or mariadb", "innodb-tde", "mysql:innodb-tde"),
    ],
)
def test_the_mechanism_that_is_suggested_is_one_that_the_engine_has(engine: str, mechanism: str, expected: str) -> None:
    cell = Cell(engine, "", "", mechanism, "rows", 0, "unproven", "imported")
    name, suggested = _imported.target(cell)
    assert f"{name}:{suggested}".startswith(expected)
    if name == "SERVER":
        return
    assert mechanisms.get(suggested).serves(engines.get(name))
    assert mechanisms.get(suggested).layer != "control"


def test_a_mechanism_that_an_engine_does_not_have_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text(PGBENCH)
    given = {"output": tmp_path / "made", "engine": "postgresql", "mechanism": "innodb-tde"}
    with pytest.raises(UsageError, match=r"--mechanism innodb-tde: postgresql .*it has tls"):
        import_run.run([tmp_path / "plain.txt"], given)


def test_a_record_of_runs_has_what_was_found_of_them(tmp_path: Path) -> None:
    result = import_texts(tmp_path, runs({"plain": PLAIN, "tls": TLS}))
    text = (tmp_path / "made/imported.json").read_bytes()
    assert [reading["digits"] for reading in msgspec.json.decode(text)["readings"]] == [10] * 9
    assert result.cells[0].overhead["throughput"].n == 9


# ── no content does more than be refused ──────────────────────────────────────────────────────────────────────────────

LIMITED = PGBENCH.replace(
    "initial connection time =", "rate limit schedule lag: avg 1.031 (max 61.757) ms\ninitial connection time ="
)
BOTH = (
    "$ PGSSLMODE=disable pgbench -c2\n" + PGBENCH + "== sslmode=require ==\n" + PGBENCH.replace("1441.437456", "1300.5")
)
SAMPLES = {
    "wrk2": WRK2,
    "sysbench rate": SYSBENCH_RATE,
    "pgbench rate": LIMITED,
    "both arms": BOTH,
    "sampled": sampled(0.1, per_client=300)[1],
}


@pytest.mark.parametrize("name", SAMPLES)
@QUICK
@given(data=st.data())
def test_cut_and_garbled_text_is_read_or_refused(name: str, data: st.DataObject, tmp_path: Path) -> None:
    content = bytearray(SAMPLES[name].encode())
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 4))] = data.draw(
            st.sampled_from([b"", b"0", b"nan", b"inf", b"-", b",", b".", b"\n", b"\xff", b"9" * 400])
            | st.binary(max_size=4)
        )
    anything(bytes(content[: data.draw(st.integers(0, len(content)))]), tmp_path)


@pytest.mark.parametrize("name", ["wrk2", "sysbench rate", "pgbench rate"])
def test_a_cut_summary_never_gives_a_throughput_that_was_set(name: str, tmp_path: Path) -> None:
    text = SAMPLES[name]
    whole = [reading.figures for reading in read(text, tmp_path)]
    for end in range(0, len(text), 3):
        try:
            readings = read(text[:end], tmp_path)
        except UsageError:
            continue
        only_progress = [note.code for reading in readings for note in reading.notes] == ["progress-only"]
        assert [reading.figures for reading in readings] == whole or only_progress, text[:end]


@QUICK
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["1.234", "987", "1,5", "12.345.678", "0.5", "", "x", "12:00:01", "3"]),
            st.sampled_from("abc123"),
        ),
        max_size=20,
    ),
    delimiter=st.sampled_from(",;\t"),
    more=st.sampled_from(["", ",factor=time", ",at=time", ",run=row", ",decimal=comma", ",run=time"]),
)
def test_any_table_is_read_or_refused(rows: list[tuple[str, str]], delimiter: str, more: str, tmp_path: Path) -> None:
    text = f"tps{delimiter}time\n" + "".join(f"{one}{delimiter}{other}\n" for one, other in rows)
    anything(text.encode(), tmp_path, columns=f"throughput=tps{more}")


def test_runs_at_one_set_rate_are_told_apart_by_their_latencies(tmp_path: Path) -> None:
    different = [
        Reading(tool="table", line=line, figures={"throughput": 1000.0, "latency_p50": latency}, digits=3)
        for line, latency in enumerate((5.1, 5.2, 5.3, 5.4), 1)
    ]
    assert not imported_copies.by_copying([*different, different[0]], different, 1)
    alike = [msgspec.structs.replace(reading, figures={"throughput": 500.0}) for reading in different]
    assert not imported_copies.by_copying([*alike, alike[0]], alike, 1), (
        "where nothing scatters, few digits prove no copy"
    )


def test_one_failed_run_of_many_without_their_times_is_a_note(tmp_path: Path) -> None:
    command = hyperfine.Command(command="x", mean=1.0, exit_codes=[*[0] * 9, 1], times=None)
    notes = [note.text for reading in hyperfine.of_command(command, 1) for note in reading.notes]
    assert any("1 of 10 runs" in text for text in notes)


def test_a_tools_own_first_line_is_no_command() -> None:
    assert headings.heading("sysbench 1.0.20 (using bundled LuaJIT 2.1.0-beta2)", 3) is None
    assert headings.heading("pgbench (16.2)", 3) is None
    heading = headings.heading("$ sysbench oltp_read_only --rate=200 run", 1)
    assert heading is not None
    assert heading.rate == "200"
