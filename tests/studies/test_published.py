"""Every published figure that a study packages, against a second transcription of the publications (`tests/studies/published/`).

Both were typed independently. A packaged table may have more columns than its transcription, but neither may have other rows.
The times of the column study come from its authors' spreadsheets; they are checked against the logs of the single runs.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from collections import Counter
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

import pytest

from ciphercost import studies

TRANSCRIPTIONS = Path(__file__).parent / "published"


class Check(NamedTuple):
    """One packaged table and its transcription."""

    study: str
    file: str
    """File name beside the study's code."""
    transcription: str
    keys: tuple[str, ...]
    """Columns that identify a row; all others hold figures."""
    figures: int
    """Number of rows in both."""
    blank: int = 0
    """Figures that the publication leaves blank or that are illegible."""


CHECKS = (
    Check("web-tls", "counters.csv", "web_tls_counters.csv", ("table", "counter", "statistic", "file_size_mb"), 192),
    Check("web-tls", "change.csv", "web_tls_change.csv", ("table", "counter", "file_size_mb", "column_heading"), 32),
    Check("column-functions", "cost.csv", "column_functions.csv", ("server", "version", "algorithm", "mode"), 6),
    Check("jdbc-tls", "time.csv", "jdbc_tls_insert_loop.csv", ("driver", "version", "use_ssl"), 3),
    Check("mysql-tls", "cpu.csv", "mysql_tls_cpu.csv", ("operation", "time_s"), 611, blank=1),
    Check("mysql-tls", "response_time.csv", "mysql_tls_response_time.csv", ("operation",), 8),
    Check("postgres-tde", "figures.csv", "postgres_tde.csv", ("server", "encryption", "rows"), 45),
    Check("postgres-tde", "progress.csv", "postgres_tde_progress.csv", ("figure", "caption", "time_s"), 78, blank=3),
    Check("valkey-tls", "figures.csv", "valkey_tls.csv", ("figure",), 6, blank=4),
    Check("valkey-storm", "figures.csv", "valkey_storm.csv", ("handshakes", "figure"), 6, blank=2),
    Check("cybertec-tde-cost", "figures.csv", "cybertec_tde_cost.csv", ("bits", "checksums"), 16),
    Check("pg-tde-small-cost", "claims.csv", "pg_tde_small_cost.csv", ("operation",), 5),
    Check("pg-tde-small-cost", "bandwidth.csv", "pg_tde_small_cost_bandwidth.csv", ("what",), 3),
    Check("mysql-openssl", "limits.csv", "mysql_openssl.csv", ("server", "operation", "version"), 6),
    Check("pq-tls", "claims.csv", "pq_tls.csv", ("link", "file"), 5),
    Check("fips-haproxy", "figures.csv", "fips_haproxy.csv", ("fips", "figure"), 18),
    Check("direct-tls", "figures.csv", "direct_tls.csv", ("time", "statistic"), 30),
    Check("driver-tls", "pymongo.csv", "driver_tls_pymongo.csv", ("test",), 32),
    Check("driver-tls", "proxy.csv", "driver_tls_proxy.csv", ("when",), 4),
    Check("odyssey-large-value", "figures.csv", "odyssey_large_value.csv", ("pooler",), 4),
    Check("volume-encryption", "claims.csv", "volume_encryption.csv", ("workload", "setup", "scale"), 15, blank=1),
    Check("turso-encryption", "figures.csv", "turso_encryption.csv", ("figure",), 16),
    Check("turso-encryption", "claims.csv", "turso_encryption_claims.csv", ("operation",), 2),
)
AUDITED = {
    "web-tls": (192, 192),
    "column-functions": (6, 6),
    "jdbc-tls": (3, 3),
    "mysql-tls": (619, 620),
    "postgres-tde": (45, 45),
}
"""Figures that agree, and all figures, of the studies that were audited. Other studies need no entry."""


def transcribed(check: Check) -> list[dict[str, str]]:
    with (TRANSCRIPTIONS / check.transcription).open(newline="") as file:
        return list(csv.DictReader(file))


def keyed(rows: list[dict[str, str]], check: Check) -> dict[tuple[str, ...], dict[str, str]]:
    by_key = {tuple(row[name] for name in check.keys): row for row in rows}
    assert len(by_key) == len(rows), "duplicate row"
    return by_key


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: f"{check.study}-{check.file}")
def test_every_packaged_figure_is_that_of_the_second_transcription(check: Check) -> None:
    theirs = keyed(transcribed(check), check)
    ours = keyed(list(studies.get(check.study).rows(check.file)), check)
    assert list(ours) == list(theirs)
    same, blank, different = 0, 0, []
    for key, row in theirs.items():
        for name, figure in row.items():
            if name in check.keys:
                continue
            if not figure:
                blank += 1
            elif ours[key][name] and float(ours[key][name]) == float(figure):
                same += 1
            else:
                different.append((*key, name, ours[key][name], figure))
    assert not different
    assert (same, blank) == (check.figures, check.blank)


def test_no_transcription_is_left_out() -> None:
    differ = {check.transcription for check in CHECKS} ^ {path.name for path in TRANSCRIPTIONS.glob("*.csv")}
    assert not differ, f"{sorted(differ)}: CHECKS needs one entry per file of tests/studies/published/"
    differ = {check.study for check in CHECKS} ^ set(studies.names())
    assert not differ, (
        f"{sorted(differ)}: type the study's figures a second time into tests/studies/published/, keys and figures only, and add a Check "
        "to CHECKS"
    )


def test_the_counts_are_those_of_the_audit() -> None:
    """Of the audited tables: all agree except for one value, which MySQL's table has as NULL."""
    audited = [check for check in CHECKS if check.file not in ("change.csv", "progress.csv") and check.study in AUDITED]
    counts = Counter[str]()
    every = Counter[str]()
    for check in audited:
        counts[check.study] += check.figures
        every[check.study] += check.figures + check.blank
    assert {name: (counts[name], every[name]) for name in counts} == AUDITED


# ── the column study's 96 times ───────────────────────────────────────────────────────────────────────────────────────

OPERATIONS = ("insert", "select", "update", "delete")


def test_the_column_studys_times_are_those_of_its_logs() -> None:
    """Mean and sd of the logged runs, except for the two cells whose run `slips.csv` lists as typed twice or without a log."""
    study = studies.get("column-functions")
    with (TRANSCRIPTIONS / "logs" / "column_functions_times.csv").open(newline="") as file:
        logged = list(csv.DictReader(file))
    runs: dict[tuple[str, str, str], list[dict[str, str]]] = {}
    for row in logged:
        runs.setdefault((row["server"], row["records"], row["arm"]), []).append(row)
    short = {key for key, rows in runs.items() if len(rows) != 10}
    slips = {(row["server"], row["records"], row["arm"]) for row in study.rows("slips.csv") if row["unit"] == "s"}
    assert short == slips == {("postgresql", "2000", "plain"), ("postgresql", "4000", "plain")}
    same = 0
    for row in study.rows("time.csv"):
        key = row["server"], row["records"], row["arm"]
        if key in short:
            continue
        times = [float(run[row["operation"]]) for run in runs[key]]
        assert float(row["seconds_mean"]) == pytest.approx(fmean(times), abs=1e-6), row
        assert float(row["seconds_stddev"]) == pytest.approx(stdev(times), abs=1e-6), row
        same += 1
    assert same == 96 - len(OPERATIONS) * len(short)


def test_the_order_of_the_runs_is_that_of_the_logs() -> None:
    with (TRANSCRIPTIONS / "logs" / "column_functions_times.csv").open(newline="") as file:
        logged = list(csv.DictReader(file))
    for row in studies.get("column-functions").rows("order.csv"):
        logs = [run["log"] for run in logged if all(run[name] == row[name] for name in ("server", "records", "arm"))]
        ends = ["20" + min(logs), "20" + max(logs)]
        assert [row[name].translate({ord(c): None for c in "-:T"}) for name in ("first_run", "last_run")] == ends


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_packaged_tables_are_read_alike_under_every_locale() -> None:
    """No table is decoded with the locale's encoding, which need not be UTF-8."""
    code = "from ciphercost import studies; print(sum(1 for _ in studies.get('column-functions').rows('time.csv')))"
    done = subprocess.run(
        [sys.executable, "-X", "warn_default_encoding", "-W", "error::EncodingWarning:ciphercost.studies", "-c", code],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "96\n"), done.stderr
