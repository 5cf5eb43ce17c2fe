"""`import`: arm, format and figures of other tools' files, including files that are cut off, mixed, localised, empty or
of another kind.
"""

from __future__ import annotations

import csv as stdlib_csv
import math
import os
import re
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from scipy import stats

import ciphercost
import result_schema
from ciphercost import commands
from ciphercost.estimate import imported, imported_costs, imported_warnings, notation, student_t
from ciphercost.importers import csv_columns, gather
from ciphercost.importers import formats as importer_formats
from ciphercost.importers.arm_words import arm_in
from ciphercost.importers.choices import Choices
from ciphercost.importers.formats import Bad, Lines, pgbench, pgbench_log
from ciphercost.model import run_directory
from ciphercost.model.errors import UsageError
from ciphercost.model.imported import ImportedRecord, Reading
from ciphercost.model.result import Cell, Result
from ciphercost.report import formats
from ciphercost.report.formats import terminal
from ciphercost.runs import conclude, import_run
from repetitions import examples

PACKAGE = Path(ciphercost.__file__).parent

# Recorded from runs of the tools; test_import_real.py runs the tools again.
PGBENCH = """\
pgbench (17.11 (Debian 17.11-0+deb13u1))
starting vacuum...end.
progress: 1.0 s, 1462.9 tps, lat 1.338 ms stddev 0.209, 0 failed
progress: 2.0 s, 1486.9 tps, lat 1.342 ms stddev 1.320, 0 failed
progress: 3.0 s, 1350.0 tps, lat 1.479 ms stddev 5.068, 0 failed
transaction type: <builtin: TPC-B (sort of)>
scaling factor: 1
query mode: simple
number of clients: 2
number of threads: 1
maximum number of tries: 1
duration: 3 s
number of transactions actually processed: 4301
number of failed transactions: 0 (0.000%)
latency average = 1.384 ms
latency stddev = 2.947 ms
initial connection time = 18.307 ms
tps = 1441.437456 (without initial connection time)
"""
PGBENCH_13 = """\
transaction type: <builtin: select only>
scaling factor: 1
query mode: simple
number of clients: 2
number of threads: 1
duration: 3 s
number of transactions actually processed: 4301
latency average = 1.395 ms
tps = 1433.590000 (including connections establishing)
tps = 1441.437456 (excluding connections establishing)
"""
WRK = """\
Running 1s test @ https://127.0.0.1:40479/1000
  1 threads and 4 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency    82.25us  181.33us   4.16ms   99.15%
    Req/Sec    45.34k     2.83k   48.51k    81.82%
  Latency Distribution
     50%   62.00us
     75%   84.00us
     90%   98.00us
     99%    1.70ms
  49464 requests in 1.10s, 59.15MB read
Requests/sec:  44981.91
Transfer/sec:     53.79MB
"""
SLAP = """\
Benchmark
\tAverage number of seconds to run all queries: 0.104 seconds
\tMinimum number of seconds to run all queries: 0.100 seconds
\tMaximum number of seconds to run all queries: 0.114 seconds
\tNumber of clients running queries: 2
\tAverage number of queries per client: 2000

"""
SYSBENCH = """\
sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Number of threads: 2
[ 1s ] thds: 2 tps: 53169.44 qps: 53169.44 (r/w/o: 53169.44/0.00/0.00) lat (ms,95%): 0.06 err/s: 0.00 reconn/s: 0.00
[ 2s ] thds: 1 tps: 69773.78 qps: 69773.78 (r/w/o: 69773.78/0.00/0.00) lat (ms,95%): 0.03 err/s: 0.00 reconn/s: 0.00
SQL statistics:
    transactions:                        122980 (61424.22 per sec.)

General statistics:
    total time:                          2.0018s
    total number of events:              122980

Latency (ms):
         avg:                                    0.03
         95th percentile:                        0.05
         sum:                                 3967.93

Threads fairness:
    events (avg/stddev):           61490.0000/641.00
    execution time (avg/stddev):   1.9840/0.00
"""
SAR_DE = """\
Linux 6.1.0-18-amd64 (db1) \t21.11.2026 \t_x86_64_\t(2 CPU)

23:59:50        CPU     %user     %nice   %system   %iowait    %steal     %idle
23:59:55        all     10,00      0,00      5,00      0,00      0,00     85,00
00:00:00        all     30,50      0,00     14,50      0,00      0,00     55,00
00:00:05        all     20,25      0,00      9,75      0,00      0,00     70,00
Durchschn.:     all     20,25      0,00      9,75      0,00      0,00     70,00
"""
ATOP = """\
RESET
CPU vm 1795297559 2026/11/21 21:45:59 61229 100 2 2446269 4275976 127796 4663842 162260 0 392798 13478 0 5192 100 0 0
SEP
CPU vm 1795297560 2026/11/21 21:46:00 1 100 2 1 0 0 198 0 0 0 1 0 5192 100 0 0
SEP
"""
HYPERFINE = '{"results": [{"command": "plain", "mean": 0.2, "times": [0.19, 0.21]}, {"command": "tls", "mean": 0.3, "times": [0.31, 0.29]}]}'
LOG = "".join(f"{n % 4} {n // 4 + 1} {900 + n} 0 179529757{n // 100} {n % 100 * 9000}\n" for n in range(400))
ATOP_SCREEN = """\
CPU | sys       7% | user     20% | irq       0% | idle     71% | wait      2% |
CPU | sys      30% | user     60% | irq       0% | idle     10% | wait      0% |
"""
TIMES = "Records: 1000\nExecution time INSERT: 4.500000000\nExecution time SELECT: 3.250000000\n"
SAMPLES = {
    "pgbench": PGBENCH,
    "pgbench_13": PGBENCH_13,
    "wrk": WRK,
    "mysqlslap": SLAP,
    "sysbench": SYSBENCH,
    "sar": SAR_DE,
    "atop": ATOP,
    "atop_screen": ATOP_SCREEN,
    "times": TIMES,
    "hyperfine": HYPERFINE,
    "pgbench_log": LOG,
}


def read(text: str | bytes, directory: Path, name: str = "plain.txt", columns: str = "") -> list[Reading]:
    path = directory / name
    path.unlink(missing_ok=True)  # a file that is written over goes to the disk at once
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return gather.gather([path], Choices(only="plain", columns=csv_columns.columns(columns) if columns else ()))[
        0
    ].readings


def import_texts(directory: Path, texts: dict[str, str], **given: object) -> Result:
    """Run `ciphercost import` on a folder with these files."""
    folder = directory / "given"
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    result, where, _ = import_run.run([folder], {"output": directory / "made", **given})
    result_schema.validate(msgspec.json.decode(run_directory.encode(result)))
    assert conclude.result_of(where) == result
    assert max(map(len, terminal.render(result).splitlines())) <= 80
    return result


def codes(cell: Cell) -> set[str]:
    return {warning.code for warning in cell.warnings}


def runs(rates: dict[str, list[float]]) -> dict[str, str]:
    """Write pgbench files with these rates, by arm; their other figures agree with the rates."""
    return {
        f"{arm}-{number}.txt": PGBENCH.replace("1441.437456", f"{rate:.6f}")
        .replace("4301", str(round(rate * 2.98)))
        .replace("1.384", f"{2000 / rate:.3f}")
        for arm, arm_rates in rates.items()
        for number, rate in enumerate(arm_rates)
    }


# ── what the runs can tell ────────────────────────────────────────────────────────────────────────────────────────────

PLAIN, TLS = [1441.0, 1460.0, 1432.0, 1470.0, 1449.0], [1280.0, 1301.0, 1262.0, 1340.0]


def test_the_interval_is_welchs_over_runs(tmp_path: Path) -> None:
    (cell,) = import_texts(tmp_path, runs({"plain": PLAIN, "tls": TLS})).cells
    estimate = cell.overhead["throughput"]
    theirs = stats.ttest_ind(np.log(TLS), np.log(PLAIN), equal_var=False)
    low, high = theirs.confidence_interval(0.95)
    assert (estimate.low, estimate.high) == pytest.approx((math.exp(low), math.exp(high)))
    assert estimate.ratio == pytest.approx(math.exp(np.mean(np.log(TLS)) - np.mean(np.log(PLAIN))))
    assert estimate.p_value == pytest.approx(theirs.pvalue)
    assert (estimate.n, estimate.unit) == (9, "run")
    assert f"ν = {theirs.df:.1f}" in estimate.method
    assert cell.arms["encrypted"]["throughput"] / cell.arms["plain"]["throughput"] == pytest.approx(estimate.ratio)


def test_its_interval_holds_the_truth_as_often_as_it_says() -> None:
    random = np.random.default_rng(7)
    truth, held, times = math.log(0.9), 0, 1500
    for _ in range(times):
        plain, encrypted = random.normal(7, 0.03, 4), truth + random.normal(7, 0.08, 6)
        error = imported_costs.welch(plain, encrypted)
        assert error is not None
        half = student_t.quantile(0.975, error.nu) * error.standard
        held += abs(encrypted.mean() - plain.mean() - truth) <= half
    assert 0.93 <= held / times <= 0.97


def test_an_imported_cell_has_numbers_and_is_unproven_without_a_proof_or_a_verdict(tmp_path: Path) -> None:
    result = import_texts(tmp_path, runs({"plain": PLAIN, "tls": TLS}), mechanism="tls")
    (cell,) = result.cells
    assert (cell.status, cell.mode, cell.verdict, cell.proofs) == ("unproven", "imported", None, [])
    page = terminal.render(result)
    assert "IMPORTED: NOT PAIRED, NOT PROVEN" in page
    assert "proven:" not in page.replace("NOT PROVEN:", "").replace("Not proven:", "").replace("paired and proven:", "")
    assert "ciphercost run postgresql:tls --workload tpcb --clients 2 --set scale=1" in page


def test_one_run_each_has_no_interval_but_the_least_that_its_seconds_say(tmp_path: Path) -> None:
    random = np.random.default_rng(3)

    def text(rate: float) -> str:
        lines = "".join(
            f"progress: {second}.0 s, {rate * (1 + 0.05 * random.standard_normal()):.1f} tps, lat 1.3 ms stddev 0.2, 0 failed\n"
            for second in range(1, 41)
        )
        return PGBENCH.replace(PGBENCH[PGBENCH.index("progress") : PGBENCH.index("transaction type")], lines)

    result = import_texts(tmp_path, {"plain.txt": text(1441), "tls.txt": text(1300).replace("1441.437456", "1300.1")})
    (cell,) = result.cells
    assert cell.overhead == {}
    assert cell.imported is not None
    cost = cell.imported.costs["throughput"]
    assert cost.low is None
    assert cost.within_low is not None
    assert cost.within_high is not None
    # ± 5 % per second, 40 seconds, two arms: about 2.1 · √2 · 5 % / √40.
    assert (cost.within_high - cost.within_low) / 2 / cost.ratio == pytest.approx(0.0235, rel=0.5)
    page = " ".join(terminal.render(result).split())
    assert "NO INTERVAL" in page
    assert "within these two runs:" in page
    assert "one-run" in codes(cell)


def test_seconds_are_no_runs_however_many_they_are(tmp_path: Path) -> None:
    """The starts of two servers differ by 10 %, their seconds not at all: an interval over seconds would falsely show a
    difference.
    """
    steady = [PGBENCH.replace("1486.9", "1462.9").replace("1350.0", "1462.9"), PGBENCH.replace("1441.437456", "1300.1")]
    (cell,) = import_texts(tmp_path, {"plain.txt": steady[0], "tls.txt": steady[1]}).cells
    assert cell.overhead == {}


def test_how_many_runs_would_resolve_five_percent() -> None:
    assert imported_costs.runs_needed(2 * 0.001**2) == 2
    few, many = imported_costs.runs_needed(2 * 0.02**2), imported_costs.runs_needed(2 * 0.05**2)
    assert few is not None
    assert many is not None
    # Two-sample t, 80 % power: statsmodels' TTestIndPower().solve_power(log(1.05) / 0.05, power=0.8) is 17.5.
    assert 2 < few < many
    assert many in (17, 18, 19)
    assert imported_costs.runs_needed(100.0) is None


def test_copies_of_one_run_have_no_interval(tmp_path: Path) -> None:
    (cell,) = import_texts(
        tmp_path,
        {
            name: text + "\n" * number
            for number, (name, text) in enumerate(runs({"plain": [1441.0] * 3, "tls": [1300.0] * 3}).items())
        },
    ).cells
    assert cell.overhead == {}
    assert "copied-runs" in codes(cell)
    assert {arm: cell.arms[arm]["runs"] for arm in cell.arms} == {"plain": 1, "encrypted": 1}


def test_the_same_file_twice_counts_once_and_in_both_arms_is_refused(tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    (tmp_path / "given/plain-1").write_text(PGBENCH)
    (tmp_path / "given/plain-2").hardlink_to(tmp_path / "given/plain-1")
    (tmp_path / "given/plain-3").symlink_to(tmp_path / "given/plain-1")
    record, lines = gather.gather([tmp_path / "given", tmp_path / "given/plain-1"], Choices())
    assert len(record.readings) == 1
    assert sum("is the same file as" in line for line in lines) == 3
    with pytest.raises(UsageError, match="same file, given for both arms"):
        gather.gather([], Choices(plain=[tmp_path / "given/plain-1"], encrypted=[tmp_path / "given/plain-2"]))


def test_runs_that_print_the_same_are_kept_with_a_note(tmp_path: Path) -> None:
    """mysqlslap prints thousandths of a second, so two runs may print the same."""
    slower = SLAP.replace("0.104", "0.106")
    result = import_texts(tmp_path, {"plain-1.txt": SLAP, "plain-2.txt": SLAP, "tls-1.txt": slower, "tls-2.txt": SLAP})
    (cell,) = result.cells
    assert {arm: cell.arms[arm]["runs"] for arm in cell.arms} == {"plain": 2, "encrypted": 2}
    (note,) = [warning.text for warning in cell.warnings if warning.code == "same-content"]
    assert "plain-2.txt" in note, "of files with the same text, the later one"


def test_figures_of_0_are_left_out_aloud(tmp_path: Path) -> None:
    texts = runs({"plain": PLAIN, "tls": TLS})
    texts["tls-0.txt"] = texts["tls-0.txt"].replace("latency average = 1.562", "latency average = 0.000")
    assert "0.000 ms" in texts["tls-0.txt"]
    (cell,) = import_texts(tmp_path, texts).cells
    (note,) = [warning.text for warning in cell.warnings if warning.code == "zero-figures"]
    assert note.startswith("latency_mean ")
    assert "1 of 9 runs" in note


def test_one_arm_alone_has_levels_and_no_cost(tmp_path: Path) -> None:
    result = import_texts(tmp_path, runs({"tls": TLS}))
    (cell,) = result.cells
    assert cell.overhead == {}
    assert list(cell.arms) == ["encrypted"]
    page = " ".join(terminal.render(result).split())
    assert "levels but no cost" in page
    assert "encrypted: 1,295 /s" in page


def test_tests_that_are_not_the_same_are_not_compared(tmp_path: Path) -> None:
    result = import_texts(tmp_path, {"plain.txt": PGBENCH, "tls.txt": PGBENCH.replace("clients: 2", "clients: 8")})
    assert [list(cell.arms) for cell in result.cells] == [["plain"], ["encrypted"]]
    assert all("not-the-same-test" in codes(cell) for cell in result.cells)


@pytest.mark.parametrize("name", ["terminal", "md", "html", "csv", "latex", "json"])
def test_every_format_says_that_it_is_not_proven(name: str, tmp_path: Path) -> None:
    result = import_texts(tmp_path, runs({"plain": PLAIN, "tls": TLS}), mechanism="tls")
    page = formats.get(name)(result)
    estimate = result.cells[0].overhead["throughput"]
    assert (str(estimate.ratio) if name in ("csv", "json") else notation.worded(estimate).split()[0]) in page
    assert "unproven" in page.lower() or "not proven" in page.lower()
    for false in ("both arms proven", "None cores", "witnesses proved", "0 sessions"):
        assert false not in page


def test_imported_runs_pass_no_gate_and_are_compared_with_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name in ("a", "b"):
        import_texts(tmp_path / name, runs({"plain": PLAIN, "tls": TLS}), mechanism="tls")
    one, other = (tmp_path / name / "made" for name in ("a", "b"))
    assert command(monkeypatch, "compare", one, "--fail-over", "50%") == 1
    assert "imported: not paired, not proven" in " ".join(capsys.readouterr().out.split())
    assert command(monkeypatch, "compare", one, other) == 0
    assert "verdict: none" in capsys.readouterr().out


# ── what published studies got wrong ──────────────────────────────────────────────────────────────────────────────────


def test_one_arm_before_the_other_is_told_where_the_files_have_the_time(tmp_path: Path) -> None:
    def stamped(at: int, rate: float) -> str:
        text = next(iter(runs({"plain": [rate]}).values()))
        for second in (1, 2, 3):
            text = text.replace(f"progress: {second}.0 s", f"progress: {at + second}.010 s")
        return text

    at = 1795297569
    orders = {
        "plain first": {"plain-1": at, "plain-2": at + 10, "tls-1": at + 20, "tls-2": at + 30},
        "encrypted first": {"plain-1": at + 60, "plain-2": at + 40, "tls-1": at + 20, "tls-2": at + 30},
        "by turns": {"plain-1": at, "tls-1": at + 10, "tls-2": at + 20, "plain-2": at + 30},
    }
    for name, times in orders.items():
        (cell,) = import_texts(
            tmp_path / name, {file: stamped(when, 1400 + when % 100) for file, when in times.items()}
        ).cells
        assert cell.imported is not None
        assert cell.imported.order == name
        assert ("one-after-other" in codes(cell)) == (name != "by turns")
        assert "order-unknown" not in codes(cell)


def published() -> list[dict[str, str]]:
    with (PACKAGE / "studies/mysql_tls/cpu.csv").open() as file:
        return [row for row in stdlib_csv.DictReader(file) if row["operation"] == "select"]


def as_sar(arm: str) -> str:
    """The study's CPU table of its SELECTs as sar prints it: the last row is an unlabelled average of the others."""
    lines = ["Linux 5.15.0 (study) \t05/01/23 \t_x86_64_\t(2 CPU)", ""]
    lines.append("12:00:00        CPU     %user     %nice   %system   %iowait    %steal     %idle")
    names = ("user", "nice", "system", "iowait", "steal", "idle")
    for row in published():
        second = int(row["time_s"])
        values = [float(row[f"{name}_percent_tls_{arm}"] or 0) for name in names]
        lines.append(
            f"12:{second // 60:02d}:{second % 60:02d}        all " + " ".join(f"{value:9.2f}" for value in values)
        )
    return "\n".join(lines) + "\n"


def test_the_average_row_of_a_published_study_is_not_counted_again_nor_its_idle_edge(tmp_path: Path) -> None:
    rows = published()
    system = [float(row["system_percent_tls_off"]) for row in rows]
    (reading,) = read(as_sar("off"), tmp_path)
    assert {note.code for note in reading.notes} == {"average-row", "idle-edges"}
    assert reading.figures["host_system"] == pytest.approx(np.mean(system[1:-1]))
    # The study quotes the mean including both the row of an idle machine and the average row.
    assert abs(reading.figures["host_system"] - np.mean(system)) > 0.5
    # In the other arm the last row is not the average of the published rows.
    (other,) = read(as_sar("on"), tmp_path)
    assert "average-row" not in {note.code for note in other.notes}


def test_a_table_with_its_average_below_it_is_not_counted_again(tmp_path: Path) -> None:
    text = "mode;ms\noff;10,5\noff;12,0\noff;11,1\noff;11,2\noff;11,20\n"
    readings = read(text, tmp_path, columns="time=ms,arm=mode")
    assert [reading.seconds for reading in readings] == pytest.approx([0.0105, 0.012, 0.0111, 0.0112])
    assert "average-row" in {note.code for note in readings[0].notes}
    labelled = read("mode;n;ms\noff;1;10,5\noff;2;12,0\nMittelwert;;11,25\n", tmp_path, columns="time=ms")
    assert len(labelled) == 2


def test_figures_that_contradict_each_other_are_told(tmp_path: Path) -> None:
    longer = PGBENCH.replace("processed: 4301", "processed: 43010")
    assert "but pgbench printed 1,441.4" in read(longer, tmp_path)[0].notes[0].text
    # As in the study of postgres-tde: 1,095.4 TPS of 36.5 ms each are 40 clients, and it had 50.
    study = (
        PGBENCH.replace("number of clients: 2", "number of clients: 50")
        .replace("1441.437456", "1095.4")
        .replace("1.384", "36.5")
    )
    study = study.replace("duration: 3 s", "duration: 600 s").replace("4301", str(round(1095.4 * 600)))
    assert "keep 40.0 clients busy, not 50" in read(study, tmp_path)[0].notes[0].text
    assert read(PGBENCH, tmp_path)[0].notes == []
    for text, wrong in ((WRK, WRK.replace("49464", "99464")), (SYSBENCH, SYSBENCH.replace("61424.22", "31424.22"))):
        assert not read(text, tmp_path)[0].notes
        assert [note.code for note in read(wrong, tmp_path)[0].notes] == ["contradiction"]


def test_a_server_that_falls_within_a_run_is_told(tmp_path: Path) -> None:
    lines = "".join(
        f"progress: {n}.0 s, {1160 - 110 * min(n, 9)}.0 tps, lat 1.3 ms stddev 0.2, 0 failed\n" for n in range(1, 13)
    )
    text = PGBENCH.replace(PGBENCH[PGBENCH.index("progress") : PGBENCH.index("transaction type")], lines)
    (cell,) = import_texts(tmp_path, {"plain.txt": PGBENCH, "tde.txt": text}).cells
    (note,) = [warning.text for warning in cell.warnings if warning.code == "not-steady"]
    assert note.startswith("1 of 2 runs (encrypted)")


def test_both_arms_over_http_is_no_tls_and_told(tmp_path: Path) -> None:
    clear = WRK.replace("https", "http")
    (cell,) = import_texts(tmp_path, {"plain.txt": clear, "tls.txt": clear.replace("44981.91", "44000.00")}).cells
    assert "same-scheme" in codes(cell)
    assert any("both arms used http:" in warning.text for warning in cell.warnings)


def test_mysqlslaps_thousandths_are_told_where_they_are_coarse(tmp_path: Path) -> None:
    coarse = SLAP.replace("0.104", "0.004").replace("0.100", "0.004").replace("0.114", "0.005")
    assert {note.code for note in read(coarse, tmp_path)[0].notes} == {"coarse", "iterations-hidden"}
    with pytest.raises(UsageError, match=r"line 2: .*0\.204 s is not between"):
        read(SLAP.replace("0.104", "0.204"), tmp_path)


# ── which arm ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "arm"),
    [
        ("plain-1.txt", "plain"), ("tls_off.log", "plain"), ("run3-notls", "plain"), ("ssl-mode=DISABLED.txt", "plain"),
        ("no-tls.txt", "plain"), ("PlainRun2.csv", "plain"), ("without_tde.out", "plain"), ("http.txt", "plain"),
        ("tls13.txt", "encrypted"), ("tde-on", "encrypted"), ("ssl_required_1", "encrypted"), ("https.txt", "encrypted"),
        ("EncryptedRun", "encrypted"), ("on.txt", "encrypted"), ("required", "encrypted"), ("sslmode=verify-full", "encrypted"),
        ("no-cache-tls.txt", "encrypted"), ("without-cache-tls.txt", "encrypted"), ("disable-cache_ssl", "encrypted"),
        ("off-1.txt", "plain"), ("run3-off.txt", "plain"), ("tls-run1-off.txt", "plain"), ("mysql --skip-ssl", "plain"),
        ("psql sslmode=disable", "plain"), ("mysql --ssl=0", "plain"), ("disable-ssl", "plain"), ("pg-disable-ssl", "plain"),
        ("tls-no-cache", "encrypted"), ("NoTLS", "plain"), ("TLSOff", "plain"), ("pg-on-ssl", "encrypted"), ("tls1.3_off", "plain"),
        ("PGSSLMODE=disable pgbench", "plain"), ("PGSSLMODE=require pgbench", "encrypted"), ("tlsv1.2", "encrypted"),
        ("on-premise.txt", None), ("with_load.txt", None), ("pg-on-ssd", None), ("verify.txt", None), ("http2.txt", None),
        ("sslmode-prefer", None), ("ssl-mode=PREFERRED", None), ("sslmode=allow", None), ("cache-off-tls", None),
        ("run1.txt", None), ("plain-vs-tls.csv", None), ("results-no-3.txt", None), ("monday.txt", None), ("sysbench.out", None),
    ],
)  # fmt: skip
def test_which_arm_a_name_tells_of(name: str, arm: str | None) -> None:
    assert arm_in(name) == arm


def test_a_folder_tells_where_the_name_does_not_and_a_common_one_tells_nothing(tmp_path: Path) -> None:
    for folder in ("off", "on"):
        (tmp_path / "tls-study" / folder).mkdir(parents=True)
        (tmp_path / "tls-study" / folder / "run1.txt").write_text(PGBENCH + "\n" * len(folder))
    record, lines = gather.gather([tmp_path / "tls-study"], Choices())
    assert {str(reading.arm) for reading in record.readings} == {"plain", "encrypted"}
    assert any("plain by its folder 'off'" in line for line in lines)
    for name in ("a", "b"):
        (tmp_path / "tls" / name).mkdir(parents=True)
        (tmp_path / "tls" / name / "run.txt").write_text(PGBENCH + "\n" * ord(name))
    with pytest.raises(UsageError, match=r"is 'run\.txt' plain or encrypted\?.*--arm"):
        gather.gather([tmp_path / "tls"], Choices())


def test_what_was_said_goes_before_names(tmp_path: Path) -> None:
    for number, name in enumerate(("before", "after")):
        (tmp_path / f"{name}.txt").write_text(PGBENCH + "\n" * number)
    words = Choices(words=[("plain", "before"), ("encrypted", "aft*")])
    assert {Path(reading.file).stem: reading.arm for reading in gather.gather([tmp_path], words)[0].readings} == {
        "before": "plain",
        "after": "encrypted",
    }
    told = Choices(plain=[tmp_path / "after.txt"], encrypted=[tmp_path / "before.txt"])
    assert [reading.arm for reading in gather.gather([], told)[0].readings] == ["plain", "encrypted"]
    with pytest.raises(UsageError, match="none of your words"):
        gather.gather([tmp_path], Choices(words=[("plain", "earlier"), ("encrypted", "after")]))
    with pytest.raises(UsageError, match="contains the words of both arms"):
        gather.gather([tmp_path], Choices(words=[("plain", "before"), ("encrypted", "e")]))


def test_passwords_of_a_command_and_tokens_of_an_address_stay_out_of_everything(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    measured = [
        ("mysql -phunter2 --ssl-mode=DISABLED", [0.19, 0.21, 0.2], 0),
        ("mysql --password=hunter2 --ssl-mode=REQUIRED", [0.31, 0.29, 0.3], 1),
    ]
    export = {
        "results": [
            {"command": words, "mean": times[0], "times": times, "exit_codes": [0, 0, code]}
            for words, times, code in measured
        ]
    }
    files = {"times.json": msgspec.json.encode(export).decode()}
    token = WRK.replace(
        "https://127.0.0.1:40479/1000", "https://joe:hunter2@127.0.0.1:40479/1000?token=hunter2#hunter2"
    )
    result = import_texts(tmp_path, {**files, "wrk-tls.txt": token})
    assert [cell.workload for cell in result.cells] == ["a command", "GET /1000?…"]
    assert result.cells[0].imported is not None
    how = result.cells[0].imported.files[0].how
    assert "'ssl disabled'" in how
    assert "'ssl required'" in how
    pages = [formats.get(name)(result) for name in ("terminal", "md", "json")]
    pages += [path.read_text() for path in (tmp_path / "made").iterdir() if path.is_file()]
    assert any("1 of 3 runs of command 2" in page for page in pages)
    unsaid = tmp_path / "unsaid.json"
    unsaid.write_text(files["times.json"].replace("--ssl-mode=REQUIRED", "").replace("0.31", "1e-320"))
    assert command(monkeypatch, "import", unsaid) == 2
    pages.append(capsys.readouterr().err)
    unsaid.write_text(files["times.json"].replace("--ssl-mode=REQUIRED", ""))
    assert command(monkeypatch, "import", unsaid) == 2
    pages.append(capsys.readouterr().err)
    assert "is command 2 plain or encrypted?" in pages[-1]
    unsaid.write_text("PGPASSWORD=hunter2 psql -h db\n")
    assert command(monkeypatch, "import", unsaid) == 2
    pages.append(capsys.readouterr().err)
    assert "PGPASSWORD=[hidden] psql" in pages[-1]
    for page in pages:
        assert "hunter2" not in page


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("mysql -psecret -P 3306", "mysql -p[hidden] -P 3306"),
        ("mysql --password='a b' x", "mysql --password=[hidden] x"),
        ("curl https://me:pw@host/a?key=1 -v", "curl https://host/a -v"),
        ("MYSQL_PWD=x API_KEY: y z", "MYSQL_PWD=[hidden] API_KEY: [hidden] z"),
        ("pgbench -p 5432 -c 2 postgresql://u:p@h/db", "pgbench -p 5432 -c 2 postgresql://h/db"),
        ("curl -u joe:pw x", "curl -u joe:[hidden] x"),
        ("tool --auth-token abc --x", "tool --auth-token [hidden] --x"),
        ("no secrets here, 10:00", "no secrets here, 10:00"),
    ],
)
def test_what_of_a_command_is_shown(text: str, shown: str) -> None:
    assert importer_formats.without_secrets(text) == shown


@pytest.mark.parametrize("words", [["plain="], ["clear=x"], ["plain", "encrypted"], ["plain", "encrypted=x"]])
def test_words_of_arms_that_make_no_sense_are_refused(words: list[str]) -> None:
    with pytest.raises(UsageError, match="--arm"):
        import_run.asked({"arm_words": words})


# ── bad files ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b"  \n\n", "the file is empty"),
        (b"\x00\x01\x02\xff" * 50, "is not text"),
        (b"\x1f\x8b\x08rest", "compressed"),
        (b"\x96\xd5\x75rest", "sadf -d"),
        (b"hello world\n", "line 1: 'hello world' .*known tools: ab, atop, atop-screen, autocannon, benchbase"),
        (b"a,b,c\n1,2,3\n", "map its columns: --columns"),
        (PGBENCH.encode()[:-40], "line 18: .*line 1 has no line 'tps"),
        ((PGBENCH + PGBENCH[:300]).encode(), "begins on line 19 has no line"),
        ((WRK + SLAP).encode(), r"wrk \(line 1\) and mysqlslap \(line 15\)"),
        ((PGBENCH + SAR_DE).encode(), r"pgbench \(line 1\) and sar \(line 19\)"),
        (PGBENCH.replace("4301", "0").encode(), "no transaction"),
        (b"progress: 1.0 s, 0.0 tps, lat -nan ms stddev -nan, 0 failed\n", "no transaction"),
        (SAR_DE.replace("55,00", "15,00").encode(), "line 5: .*60.0 %"),
        (SAR_DE.replace("     85,00", "").encode(), "line 4: 6 values for 7 columns"),
        (HYPERFINE.encode()[:-9], "not a complete export"),
        (b'{"results": []}', "contains no command"),
        (LOG.encode() + b"what is this\n" + LOG.encode(), "line 401: 'what is this' .*pgbench log"),
        (b"x" * 3_000_000, "is not the beginning of a known tool's output"),
        (PGBENCH.encode() + b"y" * 3_000_000, "line 19: .*million characters"),
    ],
)  # fmt: skip
def test_what_can_not_be_used_is_refused_with_file_and_line(content: bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        read(content, tmp_path)
    assert "plain.txt" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (PGBENCH.replace("1441.437456", "inf"), "line 1: throughput is inf"),
        (HYPERFINE.replace("0.19", "1e-320"), "line 1: throughput is inf"),
        (SYSBENCH.replace("events:              122980", "events: 0"), "invalid figure"),
    ],
)
def test_figures_that_can_not_be_reckoned_with_are_refused(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        read(text, tmp_path)
    assert "plain.txt" in str(refused.value)


def test_ratios_without_end_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("arm;rate\nplain;1e-300\ntls;1e300\n")
    given = {"output": tmp_path / "made", "columns": "throughput=rate,arm=arm"}
    with pytest.raises(UsageError, match="can't compute with these figures"):
        import_run.run([tmp_path / "t.csv"], given)
    assert not (tmp_path / "made").exists()


def test_names_that_are_no_text_are_written_down_without_what_is_none(tmp_path: Path) -> None:
    """Text that is not UTF-8, and characters that control a terminal or reverse a line."""
    folder = tmp_path / "given"
    folder.mkdir()
    for name in (b"plain-\xff\x1b[2J.csv", "tls-\u202e.csv".encode()):
        (folder / os.fsdecode(name)).write_text(f"w;rate\na\x1b]0;x\x07\u202e\x01;{len(name)}\n".replace("]0;", "]0,"))
    given = {
        "output": tmp_path / "made",
        "columns": "throughput=rate,workload=w",
        "engine": "\udcff",
        "mechanism": "\x1b",
    }
    result, directory, lines = import_run.run([folder], given, f"ciphercost import {os.fsdecode(b'plain-')}\udcff")
    assert [cell.workload for cell in result.cells] == ["a\ufffd]0,x\ufffd\ufffd\ufffd"]
    assert {Path(file.name).name for file in result.cells[0].imported.files} == {  # type: ignore[union-attr]
        "plain-\ufffd\ufffd[2J.csv", "tls-\ufffd.csv",
    }  # fmt: skip
    pages = [*lines, terminal.render(result), *(path.read_text() for path in directory.iterdir() if path.is_file())]
    assert not any(mark in page for page in pages for mark in ("\x1b", "\x07", "\x01", "\u202e", "\udcff"))
    (folder / os.fsdecode(b"x\xfe\x1b.txt")).write_text("what\n")
    with pytest.raises(UsageError) as refused:
        gather.gather([folder / os.fsdecode(b"x\xfe\x1b.txt")], Choices())
    assert str(refused.value).isprintable()


def test_a_record_without_readings_is_refused(tmp_path: Path) -> None:
    import_texts(tmp_path, runs({"plain": PLAIN, "tls": TLS}))
    path = tmp_path / "made/imported.json"
    kept = msgspec.json.decode(path.read_bytes(), type=ImportedRecord)
    kept.readings = []
    path.write_bytes(msgspec.json.encode(kept))
    with pytest.raises(UsageError, match="has no readings"):
        conclude.result_of(tmp_path / "made")


def test_paths_that_are_no_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path, words in (
        (tmp_path / "empty", "has no files"),
        (tmp_path / "not", "no such file"),
        (Path("/dev/null"), "is not a regular file"),
    ):
        with pytest.raises(UsageError, match=words):
            gather.gather([path], Choices(only="plain"))
    with pytest.raises(UsageError, match="nothing to import"):
        gather.gather([], Choices())


def test_another_tools_result_is_seen_far_below_the_beginning_too(tmp_path: Path) -> None:
    progress = "progress: 1.0 s, 1.0 tps, lat 1.0 ms stddev 0.2, 0 failed\n" * 20_000
    with pytest.raises(UsageError, match=r"plain\.txt, line 20019: .* wrk .* pgbench"):
        read(PGBENCH + progress + WRK, tmp_path)


def test_many_files_are_told_in_few_lines(tmp_path: Path) -> None:
    for name, text in runs({"plain": [1400.0 + n for n in range(10)], "tls": [1300.0 + n for n in range(10)]}).items():
        (tmp_path / name).write_text(text)
    _, lines = gather.gather([tmp_path], Choices())
    plain, encrypted = lines
    assert plain.startswith("10 files, 10 runs, plain ")
    assert plain.endswith(f" (pgbench): {tmp_path}/plain-0.txt …")
    assert encrypted.startswith("10 files, 10 runs, encrypted ")
    assert encrypted.endswith(f" (pgbench): {tmp_path}/tls-0.txt …")


def test_in_a_folder_what_is_something_else_is_left_out_aloud(tmp_path: Path) -> None:
    for name, content in (
        ("plain.txt", PGBENCH.encode()),
        ("notes.md", b"my notes\n"),
        ("sa21", b"\x96\xd5\x75"),
        (".hidden", b"x"),
    ):
        (tmp_path / name).write_bytes(content)
    record, lines = gather.gather([tmp_path], Choices(only="plain"))
    assert len(record.readings) == 1
    assert [line.partition(":")[0] for line in lines] == ["skipped", "skipped", str(tmp_path / "plain.txt")]
    (tmp_path / "plain.txt").unlink()
    with pytest.raises(UsageError, match="none of these files is a result"):
        gather.gather([tmp_path], Choices(only="plain"))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_any_encoding_and_any_line_end(encoding: str, ends: str, tmp_path: Path) -> None:
    text = "Müller's run\n" + PGBENCH
    readings = read(text.replace("\n", ends).encode(encoding), tmp_path)
    assert readings[0].figures == read(PGBENCH, tmp_path)[0].figures
    assert readings[0].series["throughput"] == [1462.9, 1486.9, 1350.0]


def test_decimal_commas(tmp_path: Path) -> None:
    comma = PGBENCH.replace("1441.437456", "1441,437456").replace("1.384", "1,384").replace("1462.9", "1462,9")
    assert read(comma, tmp_path)[0].figures == read(PGBENCH, tmp_path)[0].figures
    (reading,) = read(SAR_DE, tmp_path)
    assert reading.figures["host_user"] == pytest.approx((10 + 30.5 + 20.25) / 3)
    assert reading.ended is not None
    assert reading.started is not None
    assert reading.ended - reading.started == 15  # past midnight


def test_the_order_of_standard_output_and_error_does_not_matter(tmp_path: Path) -> None:
    lines = PGBENCH.splitlines(keepends=True)
    told, progress = lines[:1] + lines[5:], lines[1:5]
    for text in ("".join(told + progress), "".join(progress + told), PGBENCH):
        (reading,) = read(text, tmp_path)
        assert reading.series["throughput"] == [1462.9, 1486.9, 1350.0]
        assert reading.figures["throughput"] == 1441.437456
    (alone,) = read("".join(progress), tmp_path)
    assert alone.figures["throughput"] == pytest.approx(np.mean([1462.9, 1486.9, 1350.0]))
    assert [note.code for note in alone.notes] == ["progress-only"]


def test_an_old_pgbench_is_read_by_its_rate_without_connecting(tmp_path: Path) -> None:
    (reading,) = read(PGBENCH_13, tmp_path)
    assert (reading.figures["throughput"], reading.version) == (1441.437456, "")


def test_a_connection_for_each_transaction_is_in_the_rate_and_not_mixed_with_kept_ones(tmp_path: Path) -> None:
    old = PGBENCH_13.replace("1433.590000", "200.0").replace("1441.437456", "990.0").replace("4301", "600")
    (reading,) = read(old, tmp_path)
    assert (reading.figures["throughput"], reading.seconds, reading.factors["connect"]) == (200.0, 3.0, "each")
    assert [note.code for note in reading.notes] == ["connect-each"]
    assert re.findall(r"\d+\.\d", reading.notes[0].text)[:2] == ["200.0", "990.0"], "with connecting, and without"
    new = PGBENCH.replace("initial connection time = 18.307", "average connection time = 4.125")
    new = new.replace("without initial connection time", "including reconnection times")
    (reading,) = read(new, tmp_path)
    assert (reading.figures["throughput"], reading.factors["connect"]) == (1441.437456, "each")
    assert "4.125 ms on average" in reading.notes[0].text
    (kept,) = read(PGBENCH, tmp_path)
    assert "connect" not in kept.factors
    assert kept.seconds == 3.0
    assert imported.key(kept) != imported.key(reading)
    for end in range(new.index("tps = 1441"), len(new) - 2):
        with pytest.raises(UsageError, match=r"cut off|no line"):
            read(new[:end], tmp_path)


def test_prepared_and_simple_and_other_threads_are_not_one_cell(tmp_path: Path) -> None:
    prepared, threads = PGBENCH.replace("mode: simple", "mode: prepared"), PGBENCH.replace("threads: 1", "threads: 2")
    result = import_texts(tmp_path, {"plain-1.txt": PGBENCH, "plain-2.txt": prepared, "plain-3.txt": threads})
    assert [cell.factors for cell in result.cells] == [
        {"scale": "1", "query_mode": "simple", "threads": "1"},
        {"scale": "1", "query_mode": "prepared", "threads": "1"},
        {"scale": "1", "query_mode": "simple", "threads": "2"},
    ]


@pytest.mark.parametrize(
    ("date", "expected"),
    [("11/21/26", "2026-11-21"), ("11/21/2026", "2026-11-21"), ("21.11.2026", "2026-11-21"), ("2026-11-21", "2026-11-21"),
     ("21/11/2026", "2026-11-21"), ("05/06/2026", None), ("99/99/2026", None), ("today", None)],
)  # fmt: skip
def test_sars_dates(date: str, expected: str | None, tmp_path: Path) -> None:
    (reading,) = read(SAR_DE.replace("21.11.2026", date), tmp_path)
    if expected is None:
        assert reading.started is None
    else:
        assert str(np.datetime64(int(reading.started or 0), "s")).startswith(expected)


def test_twelve_hours_are_twenty_four(tmp_path: Path) -> None:
    text = SAR_DE.replace("23:59:50   ", "11:59:50 PM").replace("23:59:55   ", "11:59:55 PM")
    text = text.replace("00:00:00   ", "12:00:00 AM").replace("00:00:05   ", "12:00:05 AM")
    assert read(text, tmp_path)[0].started == read(SAR_DE, tmp_path)[0].started
    noon = text.replace("11:59:50 PM", "11:59:50 AM").replace("11:59:55 PM", "11:59:55 AM").replace(" AM", " XM", 0)
    noon = noon.replace("12:00:00 AM", "12:00:00 PM").replace("12:00:05 AM", "12:00:05 PM")
    (reading,) = read(noon, tmp_path)
    assert (reading.ended or 0) - (reading.started or 0) == 15


# ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_columns_of_a_table_are_what_was_said(tmp_path: Path) -> None:
    text = "mode,elapsed_ms,n,who\nplain,2000,1000,a\ntls,2500,1000,b\nplain,2100,1000,a\ntls,2600,1000,b\n"
    (tmp_path / "t.csv").write_text(text)
    record, _ = gather.gather(
        [tmp_path / "t.csv"], Choices(columns=csv_columns.columns("time=elapsed_ms,arm=mode,operations=n"))
    )
    assert [(reading.arm, reading.figures["throughput"]) for reading in record.readings] == [
        ("plain", 500.0), ("plain", pytest.approx(1000 / 2.1)), ("encrypted", 400.0), ("encrypted", pytest.approx(1000 / 2.6)),
    ]  # fmt: skip


def test_rows_of_one_run_are_one_run(tmp_path: Path) -> None:
    rows = "".join(
        f"{arm},{run},{100 + 10 * run + second}\n" for arm in ("off", "on") for run in (1, 2, 3) for second in range(20)
    )
    (tmp_path / "t.csv").write_text("tls,run,tps\n" + rows)
    columns = csv_columns.columns("throughput=tps,arm=tls,run=run")
    record, _ = gather.gather([tmp_path / "t.csv"], Choices(columns=columns))
    assert len(record.readings) == 6
    assert record.readings[0].series["throughput"] == [float(value) for value in range(110, 130)]
    without, _ = gather.gather([tmp_path / "t.csv"], Choices(columns=columns[:2]))
    assert len(without.readings) == 2
    assert "rows-of-one-run" in {note.code for reading in without.readings for note in reading.notes}
    each_row = csv_columns.columns("throughput=tps,arm=tls,run=row")
    assert len(gather.gather([tmp_path / "t.csv"], Choices(columns=each_row))[0].readings) == 120


@pytest.mark.parametrize(
    ("columns", "text", "words"),
    [
        ("time=t", "t\n1\n", "the unit of 't' is unknown"),
        ("time=t:s", "x\n1\n", "line 1: .*'t' does not exist: .*x"),
        ("time=t:s", "t,t\n1,2\n", "exists 2 times"),
        ("time=t:s", "t;n\n1,5\n", "line 2: 1 values for 2 columns"),
        ("time=t:s", "t\nfast\n", "line 2: 'fast' is not a number"),
        ("time=t:s", "t\n0\n", "line 2: the time or the number"),
        ("time=t:s", "t\n-1\n", "can't be compared"),
        ("time=t:s", "t\nnan\n", "can't be compared"),
        ("time=t:s", "t\n", "no row below"),
        ("time=t:s", 'n,t\n1,"1,5"\n', "is ambiguous"),
        ("time=t:s", "n;t\n1;1,5\n1;1.5\n", "line 3: '1.5' has a point"),
        ("cpu=c", "c,n\n50,1\n", r"--columns cpu=c:%"),
        ("cpu=c:%", "c,n\n150,1\n", "is impossible"),
        ("time=t:s", 't,n\n"1\n', "line"),
    ],
)
def test_a_table_that_can_not_be_used_is_refused_with_file_and_line(
    columns: str, text: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        read(text, tmp_path, columns=columns)
    assert "plain.txt" in str(refused.value)


def test_commas_between_thousands_are_not_read_as_decimals(tmp_path: Path) -> None:
    for text in ("t\tn\n1,012\t1\n9,118\t1\n", "t;n\n1,012;1\n998;1\n", "t\tn\n1,012,345\t1\n"):
        with pytest.raises(UsageError, match=r"plain\.txt, line 2: '1,012.*' is ambiguous"):
            read(text, tmp_path, columns="time=t:ms")
    for text, first in (
        ("t;n\n0,125;1\n1,012;1\n", 0.125),
        ("t;n\n1,012;1\n1,5;1\n", 1.012),
        ("t;n\n1012,345;1\n", 1012.345),
        ("t;n\n1.012,345;1\n", 1012.345),
    ):
        assert read(text, tmp_path, columns="time=t:s")[0].seconds == pytest.approx(first)


def test_a_row_is_an_average_by_its_figures_and_not_by_a_workloads_name(tmp_path: Path) -> None:
    text = "arm;query;ms\noff;sum of a column;10.5\noff;point;2.5\noff;total rows;30.5\n"
    readings = read(text, tmp_path, columns="time=ms,arm=arm,workload=query")
    assert [reading.workload for reading in readings] == ["sum of a column", "point", "total rows"]
    labelled = read("q;ms\na;10.5\nsum of a column;12.0\nb;11.1\nsum;33.6\n", tmp_path, columns="time=ms")
    assert [reading.seconds for reading in labelled] == pytest.approx([0.0105, 0.012, 0.0111])
    assert [note.code for note in labelled[0].notes] == ["average-row", "no-average-row"]
    of_arms = "arm;q;ms\noff;a;10\noff;b;12\noff;mean;11\non;a;20\non;b;22\non;mean;21\n"
    assert len(read(of_arms, tmp_path, columns="time=ms,arm=arm")) == 4


@pytest.mark.parametrize(
    "text", ["time", "time=", "speed=x", "time=a,time=A", "arm=x", "time=x:parsec", "operations=n:ms"]
)
def test_a_map_of_columns_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--columns"):
        csv_columns.columns(text)


@pytest.mark.parametrize(
    ("name", "unit"),
    [("elapsed_ms", "ms"), ("Time (s)", "s"), ("lat [us]", "us"), ("seconds", "s"), ("t.millis", "ms")],
)
def test_a_unit_may_stand_in_the_columns_name(name: str, unit: str) -> None:
    assert csv_columns.unit_of(csv_columns.Column("time", name, "")) == unit


def test_a_unit_that_contradicts_the_rate_is_told(tmp_path: Path) -> None:
    (reading,) = read("t;n;rate\n2000;1000;500\n", tmp_path, columns="time=t:s,operations=n,throughput=rate")
    assert [note.code for note in reading.notes] == ["contradiction"]
    assert "a unit is wrong" in reading.notes[0].text


def test_what_a_table_says_comes_back_from_it(tmp_path: Path) -> None:
    values = [0.001, 12.5, 1234.5678, 1e6]
    for comma, delimiter in ((False, ","), (False, ";"), (True, ";"), (True, "\t")):
        rows = "".join(f"{value:.4f}{delimiter}x\n".replace(".", "," if comma else ".") for value in values)
        readings = read(f"rate{delimiter}name\n{rows}", tmp_path, columns="throughput=rate")
        assert [reading.figures["throughput"] for reading in readings] == values


# ── logs of pgbench ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_threads_logs_are_one_run(tmp_path: Path) -> None:
    lines = LOG.splitlines(keepends=True)
    for name, part in (("plain_log.77", lines[::2]), ("plain_log.77.1", lines[1::2])):
        (tmp_path / name).write_text("".join(part))
    (both,) = gather.gather([tmp_path], Choices())[0].readings
    (tmp_path / "one").mkdir()
    (alone,) = read(LOG, tmp_path / "one", "plain_log.78")
    assert both.figures == pytest.approx(alone.figures)
    assert both.operations == alone.operations == 400


@given(st.lists(st.integers(1, 10_000_000), min_size=1, max_size=300), st.floats(0.01, 0.99))
def test_a_quantile_of_counts_is_that_of_the_values(values: list[int], share: float) -> None:
    counts: dict[int, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    assert pgbench_log.quantile(counts, share) in values
    assert sum(value <= pgbench_log.quantile(counts, share) for value in values) >= share * len(values) - 1e-9
    assert all(abs(pgbench_log.rounded(value) - value) <= 0.005 * value for value in values)


# ── no content does more than be refused ──────────────────────────────────────────────────────────────────────────────

QUICK = settings(max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def anything(content: bytes, directory: Path, columns: str = "") -> None:
    """Any content is either read, or refused with the file's name."""
    try:
        readings = read(content, directory, columns=columns)
    except UsageError as error:
        if "plain.txt" not in str(error):
            raise
        return
    cells = imported.specs(ImportedRecord(1, [], readings), "", "tls")
    for number, known in enumerate(cells):
        imported.cell(known, [reading for reading in readings if reading.cell == number], [])


@pytest.mark.parametrize("name", SAMPLES)
@QUICK
@given(data=st.data())
def test_cut_and_garbled_text_is_read_or_refused(name: str, data: st.DataObject, tmp_path: Path) -> None:
    content = bytearray(SAMPLES[name].encode())
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 4))] = data.draw(
            st.sampled_from(
                [b"", b"0", b"9", b"nan", b"inf", b"-", b",", b".", b"\n", b"\xff", b"e999", b"\x00", b"9" * 400]
            )
            | st.binary(max_size=4)
        )
    anything(bytes(content[: data.draw(st.integers(0, len(content)))]), tmp_path)


@QUICK
@given(content=st.binary(max_size=300))
@example(content=b"\xff\xfe")
@example(content=b'{"results": [' + b"[" * 200)
def test_random_bytes_are_refused(content: bytes, tmp_path: Path) -> None:
    anything(content, tmp_path)


@QUICK
@given(
    rows=st.lists(st.lists(st.text(alphabet='0123456789.,;"-ex \n', max_size=8), min_size=1, max_size=4), max_size=6)
)
def test_random_tables_are_read_or_refused(rows: list[list[str]], tmp_path: Path) -> None:
    text = "time_ms;arm;n\n" + "\n".join(";".join(row) for row in rows)
    anything(text.encode(), tmp_path, columns="time=time_ms,operations=n,run=arm")


@pytest.mark.parametrize("name", ["pgbench", "pgbench_13", "wrk", "mysqlslap", "sysbench", "hyperfine"])
def test_a_summary_cut_anywhere_never_gives_other_figures(name: str, tmp_path: Path) -> None:
    text = SAMPLES[name]
    whole = [reading.figures for reading in read(text, tmp_path)]
    for end in range(len(text)):
        try:
            readings = read(text[:end], tmp_path)
        except UsageError:
            continue
        noted = {note.code for reading in readings for note in reading.notes}
        if "progress-only" in noted:
            continue
        assert len(readings) == len(whole), text[:end]
        for reading, all_of_it in zip(readings, whole, strict=True):
            assert reading.figures == all_of_it or (
                "cut-off" in noted and reading.figures.items() <= all_of_it.items()
            ), text[:end]


@given(
    rate=st.floats(1, 1e6),
    clients=st.integers(1, 500),
    latency=st.floats(0.01, 1e4),
    connecting=st.floats(0, 500),
    scale=st.integers(1, 5000),
)
def test_a_summary_of_pgbench_comes_back_as_it_was_printed(
    rate: float, clients: int, latency: float, connecting: float, scale: int
) -> None:
    text = (
        f"pgbench (17.11)\ntransaction type: <builtin: select only>\nscaling factor: {scale}\nnumber of clients: {clients}\n"
        f"number of transactions actually processed: {round(rate) + 1}\nlatency average = {latency:.3f} ms\n"
        f"initial connection time = {connecting:.3f} ms\ntps = {rate:.6f} (without initial connection time)\n"
    )
    (reading,) = pgbench.read(Lines(text.splitlines(keepends=True)))
    assert reading.figures == {"throughput": float(f"{rate:.6f}"), "latency_mean": float(f"{latency:.3f}")}
    assert (reading.clients, reading.factors, reading.operations) == (clients, {"scale": str(scale)}, round(rate) + 1)


def test_every_importer_knows_its_own_sample_and_no_other_does() -> None:
    for name, text in SAMPLES.items():
        assert list(importer_formats.recognised(text)) == [name.removesuffix("_13")]


def test_every_tool_has_a_warning_that_it_proves_nothing() -> None:
    files = Path(importer_formats.__file__).parent.glob("[!_]*.py")
    tools = {name for path in files for name in re.findall(r'tool="(\S+?)[" ]', path.read_text())}
    missing = sorted(tools - set(imported_warnings.UNSAID))
    assert not missing, f"{missing}: UNSAID in estimate/imported_warnings.py must say what this tool does not report"


def test_a_log_of_any_length_is_read_in_little_memory(tmp_path: Path) -> None:
    import tracemalloc

    path = tmp_path / "plain_log.1"
    with path.open("w") as file:
        file.writelines(
            f"{n % 8} {n // 8 + 1} {500 + n % 997} 0 {1795297570 + n // 5000} {n % 5000 * 199}\n"
            for n in range(100_000)
        )
    tracemalloc.start()
    (reading,) = gather.gather([path], Choices())[0].readings
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert reading.operations == 100_000
    assert most < path.stat().st_size


def test_bad_lines_are_counted_as_an_editor_does() -> None:
    with pytest.raises(Bad) as refused:
        pgbench.read(Lines(["pgbench (17.1)\n", "\n", "run was aborted\n"]))
    assert refused.value.line == 3


# ── the command ───────────────────────────────────────────────────────────────────────────────────────────────────────


def command(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr(sys, "argv", ["ciphercost", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        commands.main()
    return int(ended.value.code or 0)


def test_the_command_says_what_it_read_as_what_and_how_to_get_a_real_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name, text in runs({"plain": PLAIN, "tls": TLS}).items():
        (tmp_path / name).write_text(text)
    files = sorted(tmp_path.iterdir())
    status = command(
        monkeypatch, "import", *files, "-o", tmp_path / "made", "--mechanism", "tls", "--json", tmp_path / "r.json"
    )
    printed = capsys.readouterr()
    assert status == 0
    assert re.search(r"/tls-0\.txt: 1 run, encrypted .*\(pgbench\)", printed.err)
    (cell,) = msgspec.json.decode((tmp_path / "r.json").read_bytes(), type=Result).cells
    assert cell.mode == "imported"
    assert f"{100 - 100 * cell.overhead['throughput'].ratio:.1f} % fewer" in printed.out
    assert "ciphercost run postgresql:tls" in printed.out
    assert command(monkeypatch, "report", tmp_path / "made") == 0
    assert "IMPORTED: NOT PAIRED, NOT PROVEN" in capsys.readouterr().out


def test_the_command_refuses_with_status_2_and_writes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "run1.txt").write_text(PGBENCH)
    for asked in (
        (tmp_path / "run1.txt",),
        (),
        (tmp_path / "gone",),
        (tmp_path / "run1.txt", "--mechanism", "none", "--arm", "plain"),
    ):
        assert command(monkeypatch, "import", *asked, "-o", tmp_path / "made") == 2
        assert capsys.readouterr().err.startswith("ciphercost: ")
        assert not (tmp_path / "made").exists()
