"""`predict` on the record of a real run: answers, data, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import records
from ciphercost import commands
from ciphercost.model.errors import UsageError

HERE = ("--url", "postgresql://me@localhost:1/shop")
LOAD = ("--rate", "2000/s", "--cpu", "0.3ms")


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(records.unpacked("postgresql-tls", tmp_path_factory.mktemp("record")))


def predict(*argv: str) -> Result:
    return CliRunner().invoke(commands.cli, ("predict", *argv))


def test_it_answers_in_words_and_as_data(record: str) -> None:
    done = predict(record, *LOAD, "--cores", "4", "--price", "$0.04/vcpu-hour")
    assert done.exit_code == 0, done.output
    assert done.output.startswith("4 cores at 15")
    assert "a month" in done.output
    (prediction,) = json.loads(
        predict(record, *LOAD, "--cores", "4", "--price", "$0.04/vcpu-hour", "--format", "json").output
    )
    assert prediction["basis"] == "operation"
    assert prediction["load"] == {
        "rate": 2000.0,
        "cpu_us": 300.0,
        "bytes_per_operation": None,
        "connections": 0.0,
        "cores": 4.0,
        "round_trips": 1.0,
        "units": {},
    }
    assert prediction["utilisation"] == pytest.approx(0.15)
    added = prediction["added_us"]
    assert 0 < added["low"] < added["value"] < added["high"]
    assert prediction["utilisation_encrypted"]["value"] == pytest.approx(2000 * (300 + added["value"]) / 1e6 / 4)
    assert prediction["per_month"]["value"] == pytest.approx(0.04 * 730 * prediction["added_cores"]["value"])


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("--rate", "2000", "--cpu", "300us"), "--rate: '2000' is not a rate"),
        (("--rate", "0/s", "--cpu", "300us"), "--rate 0/s: must be above 0"),
        (("--rate", "9/s", "--cpu", "300"), "--cpu: '300' is not a time"),
        ((*LOAD, "--cores", "0"), "--cores 0: must be above 0"),
        ((*LOAD, "--cores", "nan"), "--cores nan: must be above 0"),
        ((*LOAD, "--response", "4XB"), "--response: '4XB' is not a length"),
        ((*LOAD, "--response", "4KB"), "--response: run .* a byte and a connection"),
        ((*LOAD, "--round-trips", "7"), "--round-trips: run .* a byte and a connection"),
        ((*LOAD, "--round-trips", "0"), "--round-trips 0: must be above 0"),
        ((*LOAD, "--pages-read", "9"), "--pages-read: '9' is not a rate"),
        (
            (*LOAD, "--pages-read", "9/s"),
            "--pages-read: run .* a page read .*at rest",
        ),
        (
            (*LOAD, "--sealed", "9/s"),
            "--sealed: run .* a value sealed .* in columns --split",
        ),
        ((*LOAD, "--log", "2MB"), "--log: '2MB' is not bytes per second"),
        ((*LOAD, "--log", "many/s"), "--log: 'many' is not a length"),
        ((*LOAD, "--price", "4"), "--price: '4' is not a price"),
        ((*LOAD, "--format", "pdf"), "unknown format 'pdf': terminal or json"),
        (("--rate", "10000/s", "--cpu", "2ms", "--cores", "2"), "20 cores .*--cores is 2"),
        (("--cpu", "300us"), "^--rate is missing; .* --url postgresql://USER@HOST/DATABASE"),
        ((), "^--rate and --cpu are missing; give "),
        ((*LOAD, "--for", "3s"), "--for 3s has no effect without --url"),
        ((*LOAD, "--ca", "ca.pem"), "--ca ca.pem has no effect without --url"),
        ((*HERE, "--for", "0.2s"), "--for 0.2s: .*1 s to 1 h"),
        ((*HERE, "--for", "2h"), "--for 2h: .*1 s to 1 h"),
        ((*HERE, "--for", "soon"), "--for: 'soon' is not a duration"),
        (
            ("--url", "oracle://me@prod/shop"),
            "--url: oracle://: .* mysql://, postgres://",
        ),
        (
            ("--url", "firebird://me@prod/shop"),
            "--url: firebird://: .* rediss://, valkey://",
        ),
        (
            ("--url", "prod:5432"),
            "--url: no known scheme: .*postgres://",
        ),
        (
            ("--url", "mysql://me@prod/"),
            "--url names MySQL, .* postgresql: .*`ciphercost run mysql:tls --split`",
        ),
        (
            ("--url", "http://prod/nginx_status"),
            "--url names nginx, .* postgresql: .*`ciphercost run nginx:tls",
        ),
        (("--url", "postgresql://me:word@prod/shop"), "--url holds a password"),
        (("--url", "postgresql://me@a,b/shop"), "--url names 2 servers"),
        (("--url", "postgresql://me@prod/shop?sslmood=off"), "unknown parameter 'sslmood'"),
    ],
)
def test_what_makes_no_sense_is_one_clear_line(record: str, argv: tuple[str, ...], words: str) -> None:
    done = predict(record, *argv)
    assert isinstance(done.exception, UsageError), done.output
    with pytest.raises(UsageError, match=words):
        raise done.exception


def test_there_is_no_run(tmp_path: Path) -> None:
    assert isinstance(predict(str(tmp_path), *LOAD).exception, UsageError)
