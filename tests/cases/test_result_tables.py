"""`import` of tables as people have them, of files that are none, and the command that is suggested instead."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ciphercost.importers import csv_columns
from ciphercost.model.errors import UsageError
from ciphercost.report.formats import _imported
from ciphercost.runs import import_run
from test_results import MAP, REDIS_5, RESULTS, read, text, wrk

# ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────────────

TABLES = sorted((Path(__file__).parent / "tables").iterdir())
"""The same two rows in every frame."""


@pytest.mark.parametrize("path", TABLES, ids=[path.stem for path in TABLES])
def test_a_table_in_any_frame(path: Path) -> None:
    readings = read(path, MAP)
    assert [(reading.arm, reading.clients) for reading in readings] == [("plain", 8), ("encrypted", 8)]
    assert [reading.figures["throughput"] for reading in readings] == pytest.approx([600.1, 560.1])


@pytest.mark.parametrize(
    ("content", "columns", "expected"),
    [
        ("m|x\n---|---\noff|850us\non|1.2 ms\n", "latency=x,arm=m", [0.85, 1.2]),
        ("m;p95 ms\noff;15,8\non;17,7\n", "latency=p95 ms,arm=m", [15.8, 17.7]),
        ("m;lat (us)\noff;1500\non;2ms\n", "latency=lat (us),arm=m", [1.5, 2.0]),
        ("m;x [s]\noff;0.015 ± 0.001\non;0.020 ± 0.002\n", "latency=x [s],arm=m", [15.0, 20.0]),
    ],
)  # fmt: skip
def test_units_of_columns_and_of_values(content: str, columns: str, expected: list[float], tmp_path: Path) -> None:
    readings = text(content, tmp_path, columns=columns)
    assert [reading.figures["latency_mean"] for reading in readings] == pytest.approx(expected)


def test_thousands_beside_a_decimal_point(tmp_path: Path) -> None:
    table = "| mode | tps |\n|---|---|\n| plain | 120,481.93 |\n| tls | 98,765 |\n"
    assert [reading.figures["throughput"] for reading in text(table, tmp_path, columns="throughput=tps,arm=mode")] == [
        120_481.93,
        98_765,
    ]
    swiss = "mode;tps\nplain;120'481.9\ntls;98'765.0\n"
    assert [reading.figures["throughput"] for reading in text(swiss, tmp_path, columns="throughput=tps,arm=mode")] == [
        120_481.9,
        98_765,
    ]


def test_what_is_wrong_in_a_frame_is_refused_with_its_line(tmp_path: Path) -> None:
    for content, words in (
        ("| mode | tps |\n|---|---|\n| plain | 1 | 2 |\n", "line 3: 3 values for 2 columns"),
        ("mode | tps\n---|---\nplain | 1\nwhat is this\n", "line 4: 'what is this' is not a row"),
        (
            "| mode | tps |\n|---|---|\n| plain | 1 |\n\n| a | b | c |\n|---|---|---|\n| 1 | 2 | 3 |\n",
            "line 5: another table begins",
        ),
    ):
        with pytest.raises(UsageError, match=words):
            text(content, tmp_path, columns="throughput=tps,arm=mode")


def test_a_table_without_a_map_is_answered_with_one(tmp_path: Path) -> None:
    for file, expected in (
        ("table.md", "--columns throughput=tps,arm=mode,clients=clients"),
        ("usessl.csv", "--columns throughput=tps,arm=useSSL,clients=threads"),
        ("psql.txt", "--columns throughput=tps,arm=mode,clients=clients"),
        ("mysql.txt", "--columns throughput=tps,arm=mode,clients=clients"),
    ):
        with pytest.raises(UsageError, match=re.escape(expected)):
            read(RESULTS / file)


def test_a_table_without_a_header(tmp_path: Path) -> None:
    rows = "plain,8,600.1\ntls,8,560.1\n"
    with pytest.raises(UsageError, match=r"'tps' does not exist.*\('8'\).*--no-header"):
        text(rows, tmp_path, columns=MAP)
    readings = text(rows, tmp_path, columns="throughput=column3,arm=column1,clients=column2", header=False)
    assert [(reading.arm, reading.figures["throughput"]) for reading in readings] == [
        ("plain", 600.1),
        ("encrypted", 560.1),
    ]
    with pytest.raises(UsageError, match="--no-header describes a table; add --columns"):
        import_run.run([tmp_path / "plain.txt"], {"no_header": True})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"rps": 5, "latencyDistribution": []}', "is JSON of ghz"),
        ('[{"mode": "plain", "tps": 600.1}, {"mode": "tls", "tps": 560.1}]', "is JSON, which import can't read"),
        ('{"mode": "plain", "tps": 600.1}\n{"mode": "tls", "tps": 560.1}\n', "is JSON, which import can't read"),
        ("[1, 2, 3]", "is JSON, which import can't read"),
        ("<html><body><table><tr><td>1</td></tr></table></body></html>", "is HTML"),
        ("<?xml version='1.0'?><testResults/>", "is XML"),
    ],
)  # fmt: skip
def test_json_is_no_table(content: str, words: str, tmp_path: Path) -> None:
    for columns in ("", "throughput=tps"):
        with pytest.raises(UsageError, match=words) as refused:
            text(content, tmp_path, columns=columns)
        assert "\n" not in str(refused.value)


# ── what to measure instead ───────────────────────────────────────────────────────────────────────────────────────────

UNNAMED = "SERVER:tls\n  (SERVER: yours, which these files don't name"
SYSBENCH = (RESULTS / "sysbench11-plain.txt").read_text()


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("plain.txt", SYSBENCH, f"ciphercost run {UNNAMED}:\n  mysql, mariadb or postgresql)"),
        ("mysql-plain.txt", SYSBENCH, "ciphercost run mysql:tls"),
        ("mariadb/plain.txt", SYSBENCH, "ciphercost run mariadb:tls"),
        ("pg-plain.txt", SYSBENCH, "ciphercost run postgresql:tls"),
        ("plain.txt", "$ sysbench oltp_read_only --db-driver=pgsql run\n" + SYSBENCH, "ciphercost run postgresql:tls"),
        ("plain.txt", "$ sysbench oltp_read_only --mysql-host=db run\n" + SYSBENCH, f"{UNNAMED}:\n  mysql or mariadb)"),
        ("plain.txt", (RESULTS / "ab-plain.txt").read_text(), "ciphercost run nginx:tls"),
        ("plain.txt", wrk(4000.0), "ciphercost run url:tls --url http://YOUR-SITE/ --url https://YOUR-SITE/"),
        ("plain.txt", REDIS_5, f"{UNNAMED}:\n  redis or valkey)"),
        ("valkey-plain.txt", REDIS_5, "ciphercost run valkey:tls"),
    ],
)  # fmt: skip
def test_the_suggested_command_names_the_server_that_was_measured_or_none(
    name: str, content: str, expected: str, tmp_path: Path
) -> None:
    path = tmp_path / "given" / name
    path.parent.mkdir(parents=True)
    path.write_text(content)
    result, _, _ = import_run.run([path.parent], {"output": tmp_path / "made"})
    assert expected in _imported.real_answer(result)


def test_help_names_every_role() -> None:
    from ciphercost.commands.import_ import import_

    (option,) = (param for param in import_.params if param.name == "columns")
    words = str(option.help)
    assert all(re.search(rf"\b{role}\b", words) for role in csv_columns.ROLES)
