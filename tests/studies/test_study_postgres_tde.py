"""postgres-tde: pgbench's output, the published figures and their contradictions, and a small run of the procedure on a real server."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

import warm
from ciphercost import mechanisms, studies
from ciphercost.host.installation import Installation
from ciphercost.host.volumes import image
from ciphercost.load import workloads
from ciphercost.model import run_directory
from ciphercost.model.errors import MissingServer, RunError, UsageError
from ciphercost.model.result import Cell, Estimate
from ciphercost.model.slices import Proof
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult, StudyRun
from ciphercost.report.formats import _study, terminal
from ciphercost.runs import replicate
from ciphercost.studies import pgbench, pgbench_runs, tde_pairs
from ciphercost.studies.postgres_tde import PostgresTde, findings, published, report
from conftest import RequirePossible
from enterable import enterable

STUDY = studies.get("postgres-tde")
CLI = Path(sys.executable).parent / "ciphercost"

# ── pgbench's output: recorded from runs of the versions here, and 14's according to its source ───────────────────────

FROM_15 = """\
pgbench (15.18 (Debian 15.18-0+deb12u1))
starting vacuum...end.
progress: 1.0 s, 1003.9 tps, lat 3.849 ms stddev 2.408, 0 failed
progress: 2.0 s, 967.0 tps, lat 4.132 ms stddev 3.287, 0 failed
progress: 3.0 s, 973.0 tps, lat 4.089 ms stddev 3.212, 0 failed
transaction type: <builtin: TPC-B (sort of)>
scaling factor: 1
query mode: simple
number of clients: 4
number of threads: 4
maximum number of tries: 1
duration: 3 s
number of transactions actually processed: 2948
number of failed transactions: 0 (0.000%)
latency average = 4.039 ms
latency stddev = 3.034 ms
initial connection time = 33.291 ms
tps = 987.050817 (without initial connection time)
"""
FROM_17 = """\
pgbench (17.11 (Debian 17.11-0+deb13u1))
starting vacuum...end.
progress: 1.0 s, 524.0 tps, lat 7.254 ms stddev 6.019, 0 failed
progress: 2.0 s, 523.9 tps, lat 7.605 ms stddev 5.290, 0 failed
progress: 3.0 s, 532.8 tps, lat 7.531 ms stddev 5.005, 0 failed
transaction type: <builtin: TPC-B (sort of)>
scaling factor: 1
query mode: simple
number of clients: 4
number of threads: 4
maximum number of tries: 1
duration: 3 s
number of transactions actually processed: 1585
number of failed transactions: 0 (0.000%)
latency average = 7.480 ms
latency stddev = 5.462 ms
initial connection time = 48.245 ms
tps = 533.570865 (without initial connection time)
"""
FROM_18 = """\
pgbench (18.6 (Debian 18.6-3))
starting vacuum...end.
progress: 1.0 s, 1017.9 tps, lat 3.860 ms stddev 3.515, 0 failed
progress: 2.0 s, 1046.9 tps, lat 3.810 ms stddev 3.040, 0 failed
progress: 3.0 s, 1001.4 tps, lat 4.002 ms stddev 4.217, 0 failed
transaction type: <builtin: TPC-B (sort of)>
scaling factor: 1
query mode: simple
number of clients: 4
number of threads: 4
maximum number of tries: 1
duration: 3 s
number of transactions actually processed: 3070
number of failed transactions: 0 (0.000%)
latency average = 3.892 ms
latency stddev = 3.616 ms
initial connection time = 16.981 ms
tps = 1026.277038 (without initial connection time)
"""
FROM_14 = re.sub(r"(?m)(, 0 failed$|^number of failed.*\n|^maximum number.*\n)", "", FROM_15).replace("15.18", "14.23")
SLOW = """\
pgbench (17.11 (Debian 17.11-0+deb13u1))
progress: 1.0 s, 0.0 tps, lat 0.000 ms stddev 0.000, 0 failed
progress: 2.0 s, 1.0 tps, lat 1703.414 ms stddev 0.000, 0 failed
progress: 3.0 s, 0.0 tps, lat 0.000 ms stddev 0.000, 3 failed
number of transactions actually processed: 3
number of failed transactions: 3 (50.000%)
latency average = 1702.676 ms
latency stddev = 0.800 ms
initial connection time = 9.354 ms
tps = 0.587146 (without initial connection time)
"""
ABORTED = """\
pgbench (17.11 (Debian 17.11-0+deb13u1))
pgbench: error: client 0 script 0 aborted in command 0 query 0: ERROR:  division by zero
number of transactions actually processed: 7
number of failed transactions: 0 (0.000%)
latency average = 1702.676 ms
latency stddev = 0.800 ms
initial connection time = 9.354 ms
tps = 0.587146 (without initial connection time)
pgbench: error: Run was aborted; the above results are incomplete.
"""
COUNTED = """\
number of transactions per client: 10
number of transactions actually processed: 500/500
number of failed transactions: 0 (0.000%)
latency average = 42.406 ms
latency stddev = 22.704 ms
initial connection time = 342.536 ms
tps = 965.232331 (without initial connection time)
"""


@pytest.mark.parametrize(
    ("text", "version", "whole", "second"),
    [
        (FROM_14, "14.23", (2948, 4.039, 3.034, 33.291, 987.050817), (2.0, 967.0, 4.132, 3.287)),
        (FROM_15, "15.18", (2948, 4.039, 3.034, 33.291, 987.050817), (2.0, 967.0, 4.132, 3.287)),
        (FROM_17, "17.11", (1585, 7.480, 5.462, 48.245, 533.570865), (2.0, 523.9, 7.605, 5.290)),
        (FROM_18, "18.6", (3070, 3.892, 3.616, 16.981, 1026.277038), (2.0, 1046.9, 3.810, 3.040)),
    ],
    ids=["14", "15", "17", "18"],
)
def test_what_each_version_of_pgbench_prints_is_read(
    text: str, version: str, whole: tuple[float, ...], second: tuple[float, ...]
) -> None:
    parsed = pgbench.parse(text)
    times = (parsed.latency_average_ms, parsed.latency_stddev_ms, parsed.initial_connection_ms)
    assert [parsed.transactions, *times, parsed.tps] == list(whole)
    assert parsed.failed == 0
    assert len(parsed.progress) == 3
    line = parsed.progress[1]
    assert (line.at_s, line.tps, line.latency_ms, line.stddev_ms, line.failed) == (*second, 0)
    assert pgbench.version(text) == version


def test_seconds_without_a_transaction_and_failed_ones_are_read() -> None:
    parsed = pgbench.parse(SLOW)
    assert [line.tps for line in parsed.progress] == [0.0, 1.0, 0.0]
    assert parsed.failed == 3
    assert parsed.progress[2].failed == 3
    unknown = pgbench.parse(SLOW.replace("lat 0.000 ms stddev 0.000", "lat -nan ms stddev -nan"))
    assert [line.latency_ms for line in unknown.progress] == [0.0, 1703.414, 0.0]
    assert pgbench.parse(COUNTED).transactions == 500


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (ABORTED, "division by zero"),
        ("pgbench: error: connection to server failed: FATAL: sorry\n", "sorry"),
        ("", "no figures"),
        (FROM_17.partition("tps = 5")[0], "no figures"),
    ],
    ids=["aborted", "refused", "silent", "cut"],
)
def test_a_run_that_did_not_end_has_no_figures(text: str, words: str) -> None:
    with pytest.raises(RunError, match=words):
        pgbench.parse(text)


# ── published ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_published_figures_are_the_studys() -> None:
    arms = published.arms(STUDY)
    assert {name: (arm.tps, arm.latency_average_ms, arm.transactions) for name, arm in arms.items()} == {
        ("cybertec-15.8", "tde-aes"): (182.695482, 273.498, 109735),
        ("cybertec-15.8", "none"): (1095.376634, 36.539, 500),
        ("enterprisedb-15.10", "none"): (777.428, 55.065, 500),
    }
    assert all(arm.rows == (50, 500, 5_000_000) for arm in arms.values())
    assert {name: arm.bits for name, arm in arms.items()} == {
        ("cybertec-15.8", "tde-aes"): 256,
        ("cybertec-15.8", "none"): 0,
        ("enterprisedb-15.10", "none"): 0,
    }


def test_enterprisedbs_second_pair_is_of_ten_clients() -> None:
    first, second = published.edb_pairs(STUDY)
    assert (first.clients, first.tps, first.latency_average_ms) == (50, 777.428, 55.065)
    assert (second.clients, second.tps, second.latency_average_ms) == (10, 136.7107, 73.147)
    busy = second.tps * second.latency_average_ms / 1000  # Little's law
    assert busy == pytest.approx(10, abs=1e-4)
    alone = [figure for figure in compared("none").figures if "second pair (10 clients" in figure.operation]
    assert [(figure.figure, figure.arm, figure.published) for figure in alone if figure.published is not None] == [
        ("TPS", "plain", 136.7107),
        ("latency avg", "plain", 73.147),
    ]


STUDY_LAST = {
    name: list(STUDY.rows("progress.csv"))[-1][name] for name in ("time_s", "tps", "latency_ms", "latency_stddev_ms")
}


def test_all_progress_lines_are_packaged() -> None:
    tde, other = (
        [(row["time_s"], float(row["tps"])) for row in STUDY.rows("progress.csv") if row["figure"] == figure]
        for figure in "12"
    )
    assert tde == [("597", 93.0), ("598", 103.0), ("599", 115.0), ("600", 117.0)]
    assert [tps for _, tps in other[6:10]] == [1205.0, 593.7, 141.0, 80.9]
    assert (len(other), other[-1][0]) == (23, "25")
    assert STUDY_LAST == {"time_s": "25", "tps": "101.0", "latency_ms": "401.898", "latency_stddev_ms": ""}


def test_captions_and_readings_are_not_swapped() -> None:
    """Figure 2 is captioned non-TDE. The conclusions from that and from the other reading are both inferences."""
    text = STUDY.finding("falling")
    for words in (
        "1,162.9 TPS at 1 s, 593.7 TPS at 8 s, 141.0 TPS at 9 s, 80.9 TPS at 10 s, 101.0 TPS at 25 s",
        "caption says non-TDE",
        "the command on the screen, not the caption, names a run of 600 s (-c 50 -j 50 -P 1 -T 600)",
        "4 lines with TDE: 93 to 117 TPS",
        "Within 10 s it fell",
        "131 TPS on average",
        "TDE has 183 over its 601 s",
        "We infer that the published factor of 6.0 may",
        "and not from encryption",
        "The other reading",
        "no slower than 1,095 without",
        "Caption and command support the first reading",
        "does not decide",
        "does not show what TDE costs",
    ):
        assert words in text, words


def test_only_one_arm_is_called_select_only() -> None:
    assert "Only CYBERTEC's run without TDE is called SELECT-only" in STUDY.finding("unequal-work")


def test_no_head_calls_what_was_measured_published() -> None:
    """The sweep over rows and clients has measured values only."""
    swept = [
        StudyFigure("a", "TPS", "", arm, here=1.0, ours=2.0, mechanism="none", load=10.0) for arm in (*ARMS, "cost")
    ]
    sweep = next(
        sheet
        for sheet in report.sheets(StudyResult("postgres-tde", "", "", "", True, "", swept, []))
        if "by rows" in sheet.title
    )
    assert not [head for head in sweep.head if "published" in head]


def test_how_long_an_arm_ran() -> None:
    arms = published.arms(STUDY)
    assert arms[published.TDE].seconds == pytest.approx(600.6, abs=0.1)
    assert arms[published.PLAIN].seconds == pytest.approx(0.456, abs=0.001)


# ── side by side ──────────────────────────────────────────────────────────────────────────────────────────────────────

ASKED = {
    "fsync": 1.0,
    "synchronous_commit": 1.0,
    "full_page_writes": 1.0,
    "checkpoint_timeout": 300.0,
    "max_wal_size": 1024.0**3,
    "shared_buffers": 128 * 1024.0**2,
}


def ran(mechanism: str, arm: str) -> StudyRun:
    """60 s: unencrypted 1000 TPS that fall to 500; encrypted 900 throughout."""
    rates = [1000.0] * 30 + [500.0] * 30 if arm == "plain" else [900.0] * 60
    tps = sum(rates) / len(rates)
    series = {
        "tps": [tps],
        "latency_average_ms": [50_000 / tps],
        "latency_stddev_ms": [25_000 / tps],
        "initial_connection_ms": [300.0],
        "transactions": [tps * 60],
        "failed": [0.0],
        "checkpoints": [1.0],
        "progress_tps": rates,
    }
    return StudyRun("tpcb", arm, 0.0, dict(ASKED), series, mechanism=mechanism)


def record(*mechanisms: str, **changes: object) -> StudyRecord:
    kept = PostgresTde((1_000_000,), (50,), 60.0, mechanisms=mechanisms).begin("postgresql")
    kept.version, kept.complete, kept.tools = "17.5", True, {"pgbench": "17.5"}
    kept.proofs = [
        Proof(arm, witness, True, "", number)
        for number, _ in enumerate(mechanisms, start=1)
        for arm in ARMS
        for witness in ("client", "server", "disk")
    ]
    kept.runs = [ran(name, arm) for name in mechanisms for arm in kept.arms]
    for name, value in changes.items():
        setattr(kept, name, value)
    return kept


def cell(mechanism: str) -> Cell:
    """Our cell: 2 % fewer operations/s, interval 1.5 to 2.5."""
    arms = {
        "plain": {
            "throughput": 1000.0,
            "server_cpu_us_per_op": 100.0,
            "read_bytes_per_op": 0.0,
            "write_bytes_per_op": 9000.0,
        },
        "encrypted": {
            "throughput": 980.0,
            "server_cpu_us_per_op": 110.0,
            "read_bytes_per_op": 500.0,
            "write_bytes_per_op": 9500.0,
        },
    }
    ratios = {
        "throughput": Estimate(0.98, 0.975, 0.985),
        "server_cpu_per_op": Estimate(1.1, 1.09, 1.11),
        "disk_written_per_op": Estimate(1.11, 1.10, 1.12),
    }
    return Cell(
        "postgresql", "17.5", "rest", mechanism, "postgres-tde/tpcb", 50, "ok", "full",
        verdict="differs", overhead=ratios, arms=arms,
    )  # fmt: skip


PAIR = ("sqlcipher", "none")
"""Any mechanism at rest, and one that needs no witness: `compare` only needs the list of required witnesses."""


def compared(*mechanisms: str, **changes: object) -> StudyResult:
    return STUDY.compare(record(*mechanisms, **changes), [cell(name) for name in mechanisms])


def figure(result: StudyResult, heading: str, name: str, arm: str) -> Any:
    """(published, here, ours)."""
    (only,) = [
        figure
        for figure in result.figures
        if (figure.operation, figure.figure, figure.arm) == (f"TPC-B-like, {heading}", name, arm)
    ]
    return only.published, only.here, only.ours


def test_three_columns_of_each_pair_of_arms() -> None:
    result = compared("none")
    assert result.complete
    assert figure(result, "none", "TPS", "plain") == (1095.376634, 750.0, 1000.0)
    assert figure(result, "none", "TPS", "encrypted") == (182.695482, 900.0, 980.0)
    assert figure(result, "none", "TPS", "cost") == (pytest.approx(0.16679, abs=1e-5), 1.2, 0.98)
    assert figure(result, "none", "latency avg", "plain") == (36.539, pytest.approx(66.67, abs=0.01), 50.0)
    costs = figure(result, "none", "latency avg", "cost")
    assert costs == (pytest.approx(7.485, abs=0.001), pytest.approx(1 / 1.2), pytest.approx(1 / 0.98))
    assert figure(result, "none", "latency sd", "encrypted")[:2] == (284.734, pytest.approx(25_000 / 900))
    assert figure(result, "none", "transactions", "plain") == (500.0, 45_000.0, None)
    assert figure(result, "none", "server's CPU", "encrypted") == (None, None, 110.0)
    assert figure(result, "none", "written to disk", "encrypted") == (None, None, 9.5)
    other = [figure for figure in result.figures if "EnterpriseDB" in figure.operation]
    assert {figure.here for figure in other} == {figure.ours for figure in other} == {None}
    assert next(figure.published for figure in other if (figure.figure, figure.arm) == ("TPS", "plain")) == 777.428


def test_an_unproven_pair_has_no_figures() -> None:
    whole = record(*PAIR)
    heard = [proof for proof in whole.proofs if (proof.session, proof.arm) != (1, "encrypted")]
    result = compared(*PAIR, proofs=heard)
    assert not result.complete
    assert figure(result, "sqlcipher", "TPS", "plain")[1] is None
    assert figure(result, "none", "TPS", "plain")[1] == 750.0
    assert "not proven: sqlcipher" in result.procedure
    # Proofs of the other pair don't count for it.
    assert figure(compared(*PAIR), "sqlcipher", "TPS", "plain")[1] == 750.0


def test_the_reason_for_a_missing_procedure_is_reported() -> None:
    result = compared("none", runs=[], complete=False, reason="no pgbench beside it")
    assert "no pgbench beside it" in result.procedure
    assert figure(result, "none", "TPS", "plain") == (1095.376634, None, 1000.0)
    assert any("fio did not run" in finding for finding in result.findings)
    assert "cut off" in compared("none", runs=[], complete=False).procedure


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tools": {"fio": "not installed"}}, "Here fio did not run either: it is not installed."),
        (
            {"tools": {"fio": "installed"}, "settings": {"cell_seconds": 14.0}},
            "our cells had 14 s of load each, and it runs from 60 s on (--time)",
        ),
        ({"mechanisms": ["pg-tde"]}, "the server itself encrypts, so both arms lie on one file system."),
    ],
)
def test_the_one_reason_for_which_fio_did_not_run_is_given(changes: dict[str, Any], words: str) -> None:
    whole = record("none")
    whole.settings |= changes.pop("settings", {})
    for name, value in changes.items():
        setattr(whole, name, value)
    assert words in findings.fio(STUDY, whole, {"none": cell("none")})
    text = findings.fio(STUDY, whole, {"none": cell("none")})
    assert "too short, or" not in text


def test_what_encrypts_is_stated_in_plain_words() -> None:
    assert "no server with TDE was named (--bindir)" in compared("none").procedure


def test_the_studys_inconsistencies_are_counted_from_its_figures() -> None:
    text = " ".join(compared("none").findings)
    for words in (
        "25 to 35 %",
        "a factor of 6.0: 83 % lost",
        "ran 109,735 transactions; those without ran 500",
        "10 for each of 50 clients",
        "0.46 s and 0.64 s",
        "same mean latency is printed for 50, 500 and 5,000,000 rows",
        "one run, not three sizes",
        "1,368 by latency and 1,095 printed",
        "908 by latency and 777 printed",
        "183 by latency and 183 printed",
        "1.04 of its mean",
        "prints 2 pairs of figures for EnterpriseDB",
        "10 ÷ 0.073147 s = 136.711 TPS",
        "computed, not printed",
        "under low load was not published",
        "182.695482 in pgbench's output, 182.659 in the text",
        "1095.376634 in pgbench's output, 1095.3776 in the text",
        "15.052 ms, is called higher",
        "24.110 ms; it is lower",
        "SQL Server TDE: 7 % (TPS lost)",
        "StealthDB (Intel SGX): 30 %",
        "fio",
    ):
        assert words in text, words


def test_what_was_run_here_is_counted_too() -> None:
    text = " ".join(compared("none").findings)
    assert "none encrypted 900 and 900" in text
    assert "none plain 1,000 and 500" in text
    assert re.search(r"none 20\.0 % more, outside .*1\.5–2\.5 % fewer", text)
    assert "fsync, synchronous_commit and full_page_writes on" in text
    assert "every 300 s or 1,024 MB" in text
    assert "differ by at most 0.0 %" in text
    bare = " ".join(STUDY.compare(record("none", runs=[]), []).findings)
    assert "Here, TPS in the first" not in bare
    assert "checkpoints in a run" not in bare


def test_the_table_is_eighty_wide() -> None:
    text = _study.render(compared(*PAIR))
    assert max(map(len, text.splitlines())) <= 80
    assert "500 → 109,735" in text
    assert "1,095 → 182.7" in text
    assert "83.3 % fewer" in text
    assert "TPC-B-like, none" in text


# ── what it is run with ───────────────────────────────────────────────────────────────────────────────────────────────


def test_its_own_sizes_are_the_studys_and_can_be_changed() -> None:
    assert STUDY.begin("postgresql").settings == {
        "rows": 5_000_000,
        "scale": 50,
        "clients": 50,
        "threads": 50,
        "duration_s": 600.0,
        "interval_s": 1.0,
    }
    small = PostgresTde(mechanisms=("none",)).configured({"scale": 10, "duration": 60.0, "clients": 8})
    spec = small.spec("postgresql", 30.0, 1)
    (only,) = spec.cells
    assert (only.clients, only.rows, only.factors, only.workload) == (8, 1_000_000, {}, "postgres-tde/tpcb")
    assert small.begin("postgresql").settings["duration_s"] == 60.0
    assert small.begin("postgresql").arms == ["encrypted", "plain"], "in the study's order"
    workload = workloads.get("postgres-tde/tpcb")
    assert (workload.clients, workload.parameters["scale"]) == (50, 50)
    with pytest.raises(UsageError, match="did you mean 'tpcb'"):
        workloads.get("postgres-tde/tpcd")


SERVER = """#!/bin/sh
echo 'postgres (PostgreSQL) {version}'
"""
INITDB = """#!/bin/sh
echo 'initdb (PostgreSQL) {version}'
echo '{options}'
"""


def vendor(tmp_path: Path, name: str, version: str, *options: str) -> str:
    """Programs that print a vendor's version; nothing runs them as servers."""
    place = enterable(tmp_path) / name
    place.mkdir(mode=0o755)
    for program, text in (("postgres", SERVER), ("initdb", INITDB)):
        path = place / program
        path.write_text(text.format(version=version, options=" ".join(options)))
        path.chmod(0o755)
    return str(place)


@pytest.mark.parametrize(
    ("version", "options", "mechanism", "factors"),
    [
        ("15.8", ("--encryption-key-command", "--key-bits"), "cybertec-tde", {"bits": "256"}),
        ("13.9", ("--encryption-key-command",), "cybertec-tde", {"bits": "128"}),
        ("16.4", ("--data-encryption",), "edb-tde", {"bits": "256"}),
        ("15.10", ("--data-encryption",), "edb-tde", {"bits": "128"}),
    ],
    ids=["cybertec", "cybertec-128-only", "edb", "edb-128-only"],
)
def test_a_vendors_server_is_asked_for_256_bits_where_it_has_them(
    tmp_path: Path,
    version: str,
    options: tuple[str, ...],
    mechanism: str,
    factors: dict[str, str],
) -> None:
    study = STUDY.configured({"bindir": [vendor(tmp_path, "server", version, *options)]})
    cells = [*study.spec("postgresql", 60.0, 1).cells, *study.procedure_cells("postgresql")]
    assert {cell.mechanism for cell in cells} == {mechanism}
    assert all(cell.factors == factors for cell in cells)


def test_a_mechanism_that_no_server_would_use_is_refused(tmp_path: Path) -> None:
    tde = f"tde={vendor(tmp_path, 'tde', '16.4', '--data-encryption')}"
    stock = f"stock={vendor(tmp_path, 'stock', '16.4')}"
    with pytest.raises(UsageError, match=r"--mechanism fscrypt: .*leave --mechanism out"):
        tde_pairs.pairs([tde], ["fscrypt"])
    assert [pair.mechanism for pair in tde_pairs.pairs([tde, stock], ["fscrypt"])] == ["edb-tde", "fscrypt"]


@pytest.mark.parametrize("mechanism", tde_pairs.FACTORS_256)
def test_every_mechanism_has_a_key_of_256_bits(mechanism: str) -> None:
    assert (
        tde_pairs.FACTORS_256[mechanism].items()
        <= mechanisms.get(mechanism).check(tde_pairs.FACTORS_256[mechanism]).items()
    )


def test_stand_ins_encrypt_with_256_bits() -> None:
    assert [(cell.mechanism, cell.factors) for cell in STUDY.spec("postgresql", 60.0, 1).cells[::2]] == [
        ("fscrypt", {"mode": "aes-256-xts"}),
        ("gocryptfs", {"cipher": "aes-gcm"}),
    ]


@pytest.mark.parametrize(
    ("detail", "bits"),
    [
        ("41 of 41 server files have the policy AES-256-XTS, names AES-256-CBC-CTS", 256),
        ("the server's data lies on fuse.gocryptfs of a directory that is encrypted with AES-GCM-256", 256),
        ("data_encryption is on, pg_controldata prints on, 128 bits", 128),
        ("9 tables and indexes are encrypted, pg_tde.cipher is aes_256, pg_tde.wal_encrypt is on", 256),
        ("data_encryption_version is 1; pg_encryption/key.bin exists", None),
    ],
)
def test_the_key_length_comes_from_the_witnesses(detail: str, bits: int | None) -> None:
    assert (
        tde_pairs.bits_in([Proof("plain", "server", True, "AES-128"), Proof("encrypted", "server", True, detail)])
        == bits
    )
    assert tde_pairs.bits_in([Proof("encrypted", "server", False, detail)]) is None


def test_a_key_length_that_no_witness_shows_is_the_requested_one() -> None:
    kept = record("none")
    kept.runs[0].load["key_bits"] = 128.0
    procedure = STUDY.compare(kept, []).procedure
    assert "AES key: none 128 bits as requested" in procedure
    assert "(published: 256 bits)" in procedure
    assert tde_pairs.asked_bits("edb-tde", {"bits": "128"}) == {"key_bits": 128}
    assert tde_pairs.asked_bits("gocryptfs", {"cipher": "aes-gcm"}) == {"key_bits": 256}
    assert tde_pairs.asked_bits("none", {}) == {}


def test_a_record_of_an_earlier_version_is_read() -> None:
    """It has one point; its settings hold scale and clients."""
    settings = {"scale": 10.0, "clients": 50.0, "threads": 50.0, "duration_s": 60.0, "interval_s": 1.0}
    result = compared("none", grid=[], settings=settings)
    assert figure(result, "none", "TPS", "plain") == (1095.376634, 750.0, 1000.0)
    assert not [figure for figure in result.figures if figure.load is not None]


def test_low_and_high_load_are_run_and_share_their_servers() -> None:
    study = PostgresTde(mechanisms=("none",))
    assert [(cell.clients, cell.rows) for cell in study.spec("postgresql", 30.0, 1).cells] == [
        (10, 5_000_000),
        (50, 5_000_000),
    ]
    assert [point["clients"] for point in study.begin("postgresql").grid] == [10, 50]
    assert study.begin("postgresql").settings["clients"] == 50, (
        "the study's own load is compared with the published figures"
    )
    assert len({cell.group for cell in study.spec("postgresql", 30.0, 1).cells}) == 1


def test_a_sweep_is_one_grid_with_fio_at_matching_sizes() -> None:
    study = PostgresTde(mechanisms=("none",)).configured(
        {"rows": "50,500000,5_000_000", "clients": "10,50", "select_only": True}
    )
    cells = study.spec("postgresql", 30.0, 1).cells
    assert len(cells) == 3 * 2 * 2
    assert [cell.fio_bytes for cell in cells[::4]] == [16 << 20, 75_000_000, 750_000_000]
    assert {cell.workload for cell in cells} == {"postgres-tde/tpcb", "postgres-tde/select"}
    assert len(study.begin("postgresql").grid) == 12
    select = workloads.get("postgres-tde/select")
    assert select.read_only
    assert [statement.name for statement in select.transaction] == ["select"]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("postgres-tde", "--rows", "50,many"), "--rows 50,many: 'many' is not a whole number"),
        (("postgres-tde", "--clients", "0"), "--clients 0: must be at least 1"),
        (("postgres-tde", "--rows", "9" * 13), "must be at most 10,000,000,000"),
        (("postgres-tde", "--scale", "1000000"), "--scale 1000000: must be at most 100,000"),
        (
            ("jdbc-tls", "--rows", "5"),
            "study jdbc-tls has no option --rows, which mysql-tls, postgres-tde and turso-encryption have",
        ),
        (("postgres-tde", "--rows", "50", "--scale", "2"), "--scale and --rows both set"),
        (("postgres-tde", "--mechanism", "fscript"), "--mechanism fscript: did you mean 'fscrypt'"),
        (("postgres-tde", "--bindir", "a=/x", "--bindir", "/y"), "--bindir /y: with several servers each needs a name"),
        (("postgres-tde", "--bindir", "a=/x", "--bindir", "a=/y"), "two servers are named a"),
        (
            ("mysql-tls", "--scale", "10"),
            "study mysql-tls has no option --scale, which cybertec-tde-cost, pg-tde-small-cost, postgres-tde and volume-encryption have",
        ),
        (("mysql-tls", "--bindir", "/"), "study mysql-tls has no option --bindir"),
        (("postgres-tde", "--scale", "0"), "--scale 0: must be at least 1"),
        (("postgres-tde", "--duration", "soon"), "--duration: 'soon' is not a duration"),
        (("postgres-tde", "--duration", "500ms"), "--duration 0.5: must be at least 1"),
        (("postgres-tde", "--engine", "mysql"), "does not run on 'mysql'"),
        (("postgres-tde", "--bindir", "/nowhere"), "contains no 'postgres' and 'initdb'"),
    ],
    ids=lambda value: "-".join(value).replace("/", "_") if isinstance(value, tuple) else "",
)
def test_nonsense_is_one_clear_message(tmp_path: Path, argv: tuple[str, ...], words: str) -> None:
    done = warm.run(["replicate", *argv], cwd=tmp_path, timeout=300)
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 2
    assert not list(tmp_path.iterdir()), "nothing started"


def test_options_go_to_the_studies_that_have_them() -> None:
    chosen = {study.name: study for study in replicate.chosen("all", {"scale": 3})}
    assert isinstance(chosen["postgres-tde"], PostgresTde)
    assert chosen["postgres-tde"].sizes == (300_000,)
    assert chosen["mysql-tls"].begin("mysql") == studies.get("mysql-tls").begin("mysql"), "it has no --scale"
    with pytest.raises(UsageError, match="no option --flavour, which no study has"):
        replicate.chosen("all", {"flavour": 1})


# ── for real ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_missing_pgbench_is_an_error_with_advice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(pgbench_runs, "version_of", lambda _: "")
    with pytest.raises(MissingServer, match=r"no pgbench beside .*install postgresql@17"):
        pgbench_runs.find(Installation("postgresql", "17.5", "path", str(tmp_path)))


@pytest.mark.parametrize("mechanism", ["none", "fscrypt"])
def test_a_small_run_is_made_recorded_and_reported_again(
    tmp_path: Path, mechanism: str, require_possible: RequirePossible, require_postgresql: Installation
) -> None:
    if mechanism == "fscrypt":
        require_possible(image.check_rights)
    require_possible(lambda: pgbench_runs.find(require_postgresql))
    small = PostgresTde((100_000,), (3,), 2.0, mechanisms=(mechanism,))
    spec = msgspec.structs.replace(small.spec("postgresql", 2.0, 5), mode="quick", sessions=1)
    result, directory = replicate.run_in(small, spec, tmp_path / "run")
    kept = run_directory.read_study(directory)
    assert kept is not None
    assert not kept.reason
    assert kept.complete
    assert [(run.mechanism, run.arm) for run in kept.runs] == [(mechanism, "encrypted"), (mechanism, "plain")]
    heard = {(proof.arm, proof.witness) for proof in kept.proofs if proof.passed}
    assert heard == {(arm, witness) for arm in ARMS for witness in mechanisms.get(mechanism).witnesses}
    for run in kept.runs:
        (tps,), (count,) = run.series["tps"], run.series["transactions"]
        assert tps > 0
        assert count > 0
        assert run.series["failed"] == [0.0]
        assert run.series["latency_average_ms"][0] > 0
        assert len(run.series["progress_tps"]) == len(run.series["progress_at_s"]) >= 1
        assert (run.load["fsync"], run.load["clients"], run.load["scale"]) == (1.0, 3.0, 1.0)
    assert kept.tools["pgbench"].partition(".")[0].isdigit()
    logs = {path.name for path in (directory / "logs").glob("pgbench-*")}
    assert logs == {
        f"pgbench-{mechanism}-{arm}-{what}.log" for arm in ARMS for what in ("load-100000", "tpcb-100000-3")
    }
    assert result.study is not None
    bits = 256 if mechanism == "fscrypt" else None
    assert figure(result.study, mechanism, "AES key, bits", "encrypted") == (256.0, bits, bits)
    assert ("fscrypt 256 bits, seen by a witness" in result.study.procedure) == (mechanism == "fscrypt")
    text = terminal.render(result)
    assert "the same here" in text
    assert "a factor of 6.0" in text
    # A run that was interrupted after its first arm: nothing is made up.
    kept.runs, kept.complete = kept.runs[:1], False
    (directory / "study.json").write_bytes(msgspec.json.encode(kept))
    again = run_directory.read_study(directory)
    assert again is not None
    cut = STUDY.compare(again, result.cells)
    assert not cut.complete
    assert figure(cut, mechanism, "TPS", "encrypted")[1] is not None
    assert figure(cut, mechanism, "TPS", "plain")[1] is None
    assert figure(cut, mechanism, "TPS", "cost")[1] is None


def test_a_sweep_over_two_servers_is_one_table(tmp_path: Path, require_postgresql: Installation) -> None:
    """Sizes that pgbench can and can't create, also SELECT-only; each row's group has both servers."""
    place = require_postgresql.location
    study = PostgresTde(
        (50, 100_000), (2,), 1.0, (f"first={place}", f"second={place}"), mechanisms=("none",), select_only=True
    )
    spec = msgspec.structs.replace(study.spec("postgresql", 2.0, 5), mode="quick", sessions=1)
    result, directory = replicate.run_in(study, spec, tmp_path / "run")
    kept = run_directory.read_study(directory)
    assert kept is not None
    assert kept.complete, kept.reason
    assert kept.servers == ["first", "second"]
    assert set(kept.versions) == {"first none", "second none"}
    assert len(kept.runs) == 2 * 2 * 2 * 2
    assert {(run.server, run.operation, run.load["rows"]) for run in kept.runs} == {
        (server, operation, rows) for server in kept.servers for operation in study.operations for rows in (50, 100_000)
    }
    assert all(run.series["tps"][0] > 0 for run in kept.runs)
    assert result.study is not None
    swept = [figure for figure in result.study.figures if figure.load is not None and figure.arm == "cost"]
    assert len(swept) == 8
    assert all(figure.here for figure in swept)
    assert all(figure.ours for figure in swept), [(cell.variant, cell.status, cell.reason) for cell in result.cells]
    assert any(re.search("statements alone, .*first none, 50 rows, 2 clients", f) for f in result.study.findings)
    text = _study.render(result.study)
    assert max(map(len, text.splitlines())) <= 80
    part = text.partition("TPS by rows and clients: every server")[2].partition("TPC-B-like, 100,000 rows")[0]
    assert "TPC-B-like, 50 rows, 2 clients" in part
    assert "first none" in part
    assert "second none" in part


def test_a_run_that_pgbench_gives_up_leaves_the_reason(
    tmp_path: Path, require_postgresql: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The repeated column is absent with a reason, and our method still runs."""
    monkeypatch.setattr(pgbench_runs, "find", lambda _: (Path("/bin/false"), "17"))
    assert require_postgresql
    small = PostgresTde((100_000,), (2,), 1.0, mechanisms=("none",))
    spec = msgspec.structs.replace(small.spec("postgresql", 2.0, 5), mode="quick", sessions=1)
    result, directory = replicate.run_in(small, spec, tmp_path / "run")
    kept = run_directory.read_study(directory)
    assert kept is not None
    assert "ended with status 1" in kept.reason
    assert not kept.complete
    assert replicate.failed(result)
    assert result.study is not None
    assert "ended with status 1" in result.study.procedure
