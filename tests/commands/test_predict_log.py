"""`predict LOG --from RUN`: what it refuses, in one clear line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import records
from ciphercost import commands
from ciphercost.model.errors import UsageError
from ciphercost.runs import predict_log


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(records.unpacked("postgresql-tls", tmp_path_factory.mktemp("record")))


def predict(*argv: str) -> Result:
    return CliRunner().invoke(commands.cli, ("predict", *argv))


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "access.log"
    path.write_text(
        "".join(
            f'192.0.2.{place % 9} - - [01/Jul/1995:0{hour}:{place % 60:02}:01 +0000] "GET /a HTTP/1.1" 200 {1000 * (1 + hour)}\n'
            for hour in range(3)
            for place in range(60 * (1 + hour))
        )
    )
    return str(path)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("--rate", "9/s"), "--rate 9/s has no effect with a log"),
        (("--connections", "9/s"), "--connections 9/s has no effect with a log"),
        (("--for", "3s"), "--for 3s has no effect with a log"),
        (("--pages-read", "9/s"), "--pages-read 9/s has no effect with a log"),
        (("--round-trips", "7"), r"--round-trips 7\S* has no effect with a log"),
        (("--url", "postgresql://me@prod/shop"), "--url postgresql://me@prod/shop has no effect with a log"),
        (("--format", "pdf"), "unknown format 'pdf': terminal, md or json"),
        (("--requests-per-connection", "0.5"), "--requests-per-connection 0.5: must be 1 or more"),
        (("--requests-per-connection", "nan"), "--requests-per-connection nan: must be 1 or more"),
        (("--cores", "0"), "--cores 0: must be above 0"),
        (("--cpu", "300"), "--cpu: '300' is not a time"),
        (("--price", "4"), "--price: '4' is not a price"),
        (("--against", "nothing"), "no run 'nothing'"),
        (("--from", "nothing"), "no run 'nothing'"),
        ((), r"run \S+ did not measure what a handshake, a request and a byte cost in transit"),
    ],
)
def test_what_makes_no_sense_is_one_clear_line(record: str, log: str, argv: tuple[str, ...], words: str) -> None:
    done = predict(log, "--from", record, *argv)
    assert isinstance(done.exception, UsageError), done.output
    with pytest.raises(UsageError, match=words):
        raise done.exception


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("--rate", "9/s", "--cpu", "1ms", "--against", "run"), "--against needs a log"),
        (("--rate", "9/s", "--cpu", "1ms", "--requests-per-connection", "3"), "--requests-per-connection needs a log"),
        (("--rate", "9/s", "--cpu", "1ms", "--format", "md"), "--format md needs a log"),
    ],
)
def test_options_of_logs_need_one(record: str, argv: tuple[str, ...], words: str) -> None:
    done = predict(record, *argv)
    assert isinstance(done.exception, UsageError), done.output
    with pytest.raises(UsageError, match=words):
        raise done.exception


def test_a_log_without_a_run_says_how_to_name_one(record: str, log: str) -> None:
    for argv in ((log,), (record, log)):
        done = predict(*argv)
        assert isinstance(done.exception, UsageError), done.output
        assert f"ciphercost predict {log} --from" in str(done.exception)


def test_a_workload_file_is_given_alone_and_was_made_from_logs(log: str, tmp_path: Path) -> None:
    made = tmp_path / "mine.toml"
    made.write_text(
        'title = "t"\nmeasures = "m"\nlanguages = ["http"]\n[[transaction]]\nname = "a"\nscript = "GET /a"\n'
    )
    with pytest.raises(UsageError, match="give it alone"):
        predict_log.traffic([Path(log), made])
    with pytest.raises(UsageError, match="was not made from logs"):
        predict_log.traffic([made])
