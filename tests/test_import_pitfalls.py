"""import: results that look sound and are not: set rates, sampled logs, errors counted as answers, copies, seconds given as runs."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import numpy as np
import pytest

from ciphercost import engines, import_run, imported, importing, mechanisms, statistics, words
from ciphercost.errors import UsageError
from ciphercost.importers import csv
from ciphercost.importing import Wanted
from ciphercost.model import Cell, Reading
from ciphercost.reports import _imported, md, terminal
from test_import import HYPERFINE, LOG, PGBENCH, PLAIN, SYSBENCH, TLS, WRK, codes, made, read, runs

# wrk2 -t2 -c4 -d20s -R2000 --latency -U, as its printing code writes it; the detailed spectra are cut to two rows.
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
    (said,) = [each.text for each in reading.notes if each.code == code]
    return said


# ── rates that were set ───────────────────────────────────────────────────────────────────────────────────────────────


def test_wrk2s_uncorrected_latencies_are_not_its_recorded_ones(tmp_path: Path) -> None:
    (found,) = read(WRK2, tmp_path)
    assert found.figures == {"latency_mean": 1.42, "latency_p50": 1.10, "latency_p99": pytest.approx(8.20)}
    swapped = WRK2.replace("Recorded Latency", "X").replace("Uncorrected Latency", "Recorded Latency")
    (found,) = read(swapped.replace("X)", "Uncorrected Latency (measured so)"), tmp_path)
    assert found.figures["latency_p50"] == pytest.approx(0.18)


def test_a_rate_that_wrk2_was_given_is_no_throughput(tmp_path: Path) -> None:
    (found,) = read(WRK2, tmp_path)
    assert "throughput" not in found.figures
    assert "the rate was set" in note(found, "rate-limited")
    short = "\n".join(line for line in WRK2.splitlines() if "calibration" not in line) + "\n"
    assert "throughput" not in read(short, tmp_path)[0].figures
    # Forks of wrk2 say which of the two it was.
    mode = WRK2.replace("  Thread calibration", "  Mode: constant rate 2000 req/s (x)\n  Thread calibration", 1)
    assert "the rate was set to 2000" in note(read(mode, tmp_path)[0], "rate-limited")
    closed = short.replace("4 connections\n", "4 connections\n  Mode: closed loop, max throughput (x)\n")
    assert read(closed, tmp_path)[0].figures["throughput"] == 1999.40


def test_a_rate_that_sysbench_was_given_is_no_throughput(tmp_path: Path) -> None:
    (found,) = read(SYSBENCH_RATE, tmp_path)
    assert sorted(found.figures) == ["latency_mean"]
    assert "throughput" not in found.series
    assert "the rate was set to 61000" in note(found, "rate-limited")
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
    (found,) = read(f"{command}\n{text}", tmp_path)
    assert ("throughput" in found.figures) == (not rate)
    if rate:
        assert f"the rate was set to {rate}" in note(found, "rate-limited")


def test_pgbenchs_rate_stays_set_with_a_log_or_progress_alone(tmp_path: Path) -> None:
    limited = PGBENCH.replace(
        "initial connection time =", "rate limit schedule lag: avg 1.031 (max 61.757) ms\ninitial connection time ="
    )
    limited = limited.replace("0 failed", "0 failed, lag 0.290 ms")
    progress = "".join(line + "\n" for line in limited.splitlines() if line.startswith("progress"))
    (alone,) = read(progress, tmp_path)
    assert "throughput" not in alone.figures
    assert {"rate-limited", "progress-only"} == {each.code for each in alone.notes}
    lags = "".join(f"{line} {100 + n}\n" for n, line in enumerate(LOG.splitlines()))
    (log,) = read(lags, tmp_path, "plain_log.1")
    assert sorted(log.figures) == ["latency_mean", "latency_p50", "latency_p99"]
    assert log.series == {}
    # Retries stand in the same place, and are few.
    assert "throughput" in read(LOG.replace("\n", " 0\n"), tmp_path, "plain_log.1")[0].figures
    (tmp_path / "both").mkdir()
    text = limited.replace("4301", "400")
    for name, content in (("plain.txt", text), ("plain_log.7", lags)):
        (tmp_path / "both" / name).write_text(content)
    (both,) = importing.gather([tmp_path / "both"], Wanted())[0].readings
    assert "throughput" not in both.figures
    assert "throughput" not in both.series
    assert "latency_p50" in both.figures


def test_a_log_of_intervals_of_a_set_rate_has_no_throughput(tmp_path: Path) -> None:
    rows = [
        f"{1795353155 + n} {300 + n} 320376 2219493442 79 19938 147035 684428425 0 10454 0 0 0 0 0" for n in range(5)
    ]
    (found,) = read("\n".join(rows) + "\n", tmp_path, "plain_log.1")
    assert list(found.figures) == ["latency_mean"]
    free = [" ".join([*row.split()[:6], *["0"] * 9]) for row in rows]
    assert "throughput" in read("\n".join(free) + "\n", tmp_path, "plain_log.1")[0].figures


def test_set_rates_cost_latency_only(tmp_path: Path) -> None:
    texts = {
        f"{arm}-{n}.txt": WRK2.replace("1.42ms ", f"{level + n / 100:.2f}ms ").replace("1999.40", f"{1999.4 + n:.2f}")
        for arm, level in (("plain", 1.42), ("tls", 1.62))
        for n in range(4)
    }
    result = made(tmp_path, texts)
    (cell,) = result.cells
    assert "throughput" not in cell.overhead
    assert cell.overhead["latency_mean"].ratio == pytest.approx(1.14, abs=0.02)
    assert "latency, mean" in words.answer(result)
    assert "latency, mean" in words.verdict(cell)


def test_rates_that_are_all_alike_are_doubted(tmp_path: Path) -> None:
    rates = [1000.1, 999.9, 1000.0, 1000.2]
    rows = "".join(
        f"{arm},{rate},{level + n}\n" for arm, level in (("off", 10), ("on", 12)) for n, rate in enumerate(rates)
    )
    (tmp_path / "t.csv").write_text("tls,rate,lat\n" + rows)
    columns = {"columns": "throughput=rate,arm=tls,latency=lat:ms", "output": tmp_path / "made"}
    (cell,) = import_run.run([tmp_path / "t.csv"], columns)[0].cells
    assert "rate-alike" in codes(cell)
    (free,) = made(tmp_path / "free", runs({"plain": PLAIN, "tls": TLS})).cells
    assert "rate-alike" not in codes(free)


# ── a log of a sample ─────────────────────────────────────────────────────────────────────────────────────────────────


def sampled(share: float, seed: int = 1, clients: int = 4, each: int = 3000) -> tuple[str, str]:
    """(the whole log, the same with --sampling-rate) of one run of pgbench."""
    random = np.random.default_rng(seed)
    lines = []
    for number in range(each):
        for client in range(clients):
            at = number * 2000 + client * 400
            lines.append(
                f"{client} {number + 1} {900 + number * (seed + 3) % 97} 0 {1795297570 + at // 1000000} {at % 1000000}\n"
            )
    return "".join(lines), "".join(line for line in lines if random.random() < share)


def test_a_sampled_log_has_the_throughput_of_the_whole_run(tmp_path: Path) -> None:
    whole, part = sampled(0.1)
    (all_of_it,) = read(whole, tmp_path, "plain_log.1")
    (found,) = read(part, tmp_path, "plain_log.1")
    assert found.figures["throughput"] == pytest.approx(all_of_it.figures["throughput"], rel=0.01)
    assert found.operations == pytest.approx(12000, rel=0.01)
    assert "10 %" in note(found, "sampled-log")
    assert not [each for each in all_of_it.notes if each.code == "sampled-log"]
    (little,) = read("".join(part.splitlines(keepends=True)[:60]), tmp_path, "plain_log.1")
    assert "throughput" not in little.figures


def test_sampling_in_one_arm_does_not_look_like_a_cost(tmp_path: Path) -> None:
    texts = {}
    for n in range(3):
        whole, part = sampled(0.1, n)
        texts[f"plain_log.{n + 1}"] = whole
        texts[f"tls_log.{n + 1}"] = part
    (cell,) = made(tmp_path, texts).cells
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
    (found,) = importing.gather([tmp_path], Wanted())[0].readings
    assert (found.operations, found.figures["throughput"]) == (12000, 2000.437456)
    assert "latency_p99" in found.figures


# ── errors that were counted as answers ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (WRK.replace("Requests/sec", "  Non-2xx or 3xx responses: 49464\nRequests/sec"), "49,464 of 49,464 answers were errors"),
        (WRK.replace("Requests/sec", "  Non-2xx or 3xx responses: 30000\nRequests/sec"), "30,000 of 49,464 answers were errors"),
        (WRK.replace("Requests/sec", "  Socket errors: connect 0, read 50000, write 0, timeout 9\nRequests/sec"), "more failed"),
        (PGBENCH.replace("failed transactions: 0", "failed transactions: 5000"), "more failed"),
        (SYSBENCH.replace("General", "    ignored errors:                      130000 (1.00 per sec.)\nGeneral"), "more failed"),
        (HYPERFINE.replace('"times": [0.19, 0.21]', '"times": [0.19, 0.21], "exit_codes": [1, 1]'), "2 of 2 runs of command 1"),
        (LOG + "".join(f"0 {n} failed 0 1795297576 9\n" for n in range(500)), "more failed"),
    ],
)  # fmt: skip
def test_more_errors_than_answers_is_no_result(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said) as refused:
        read(text, tmp_path)
    assert "plain.txt, line " in str(refused.value)


def test_few_errors_are_a_warning(tmp_path: Path) -> None:
    (found,) = read(WRK.replace("Requests/sec", "  Non-2xx or 3xx responses: 12\nRequests/sec"), tmp_path)
    assert note(found, "errors").startswith("12 ")


# ── files of both arms ────────────────────────────────────────────────────────────────────────────────────────────────


def log_of(*parts: str | float) -> str:
    """Runs of pgbench at these rates, below these lines."""
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
    found, said = importing.gather([tmp_path / "ssl-bench.log"], Wanted())
    assert [each.arm for each in found.readings] == ["plain", "plain", "encrypted", "encrypted"]
    assert any("its own words" in each for each in said)
    (tmp_path / "ssl-bench.log").write_text(log_of(1441.5, "PGSSLMODE=require", 1300.5, "PGSSLMODE=disable", 1441.6))
    with pytest.raises(
        UsageError, match=r"ssl-bench\.log, line 1: its file has runs of both arms \(line 19 tells of encrypted\)"
    ):
        importing.gather([tmp_path / "ssl-bench.log"], Wanted())


def test_a_name_that_may_stand_for_both_arms_is_asked_about(tmp_path: Path) -> None:
    (tmp_path / "ssl-bench.log").write_text(log_of(1441.5, 1450.5, 1300.5, 1280.5))
    with pytest.raises(UsageError, match=r"holds 4 runs, and 'ssl' in its name may be what all of them are about"):
        importing.gather([tmp_path / "ssl-bench.log"], Wanted())
    assert len(importing.gather([tmp_path / "ssl-bench.log"], Wanted(only="encrypted"))[0].readings) == 4
    (tmp_path / "plain.log").write_text(log_of(1441.6))
    assert len(importing.gather([tmp_path], Wanted())[0].readings) == 5


def test_a_name_that_stands_in_both_arms_folders_tells_nothing(tmp_path: Path) -> None:
    for folder, rate in (("plain", 1441.5), ("tls", 1300.5)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "ssl-bench.log").write_text(log_of(rate))
    found, _ = importing.gather([tmp_path], Wanted())
    assert {Path(each.file).parent.name: each.arm for each in found.readings} == {"plain": "plain", "tls": "encrypted"}
    (tmp_path / "tls/ssl-bench.log").rename(tmp_path / "tls/other.log")
    with pytest.raises(
        UsageError, match=r"its name tells of the encrypted arm \('ssl'\), and its folder 'plain' of the plain one"
    ):
        importing.gather([tmp_path], Wanted())


def test_lines_of_the_tools_own_tell_of_no_arm(tmp_path: Path) -> None:
    text = PGBENCH.replace("<builtin: TPC-B (sort of)>", "/srv/tls/read.sql") + log_of("plain again")
    (found,) = read(text, tmp_path)
    assert found.names == []


def test_many_files_that_were_left_out_are_told_in_few_lines(tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text(PGBENCH)
    for n in range(40):
        (tmp_path / f"n{n:02}.md").write_text("# notes\n")
        (tmp_path / f"t{n:02}.csv").write_text("a,b\n1,2\n")
        (tmp_path / f"e{n:02}").write_text("")
    (tmp_path / "sa21").write_bytes(b"\x96\xd5\x75")
    _, said = importing.gather([tmp_path], Wanted())
    out = [each for each in said if each.startswith("left out")]
    assert len(out) == 4
    assert f"left out: 40 files, empty: {tmp_path}/e00, {tmp_path}/e01, {tmp_path}/e02 …" in out
    assert any(each.startswith("left out: 40 files, maybe tables (say which column is what") for each in out)
    assert any("sa21 is sysstat's own binary file" in each for each in out)
