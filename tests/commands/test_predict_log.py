"""`predict LOG --from RUN`: what it refuses, in one clear line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import records
import warm
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


def test_a_password_is_for_a_server_of_the_users(record: str, log: str, tmp_path: Path) -> None:
    for argv in (("predict", record, "--rate", "9/s", "--cpu", "1ms"), ("predict", log, "--from", record)):
        done = warm.run([*argv, "--password-command", "true"], cwd=tmp_path)
        assert done.returncode == 2
        assert "--password-command has no effect without --url" in " ".join(done.stderr.split())


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


def test_every_statement_of_a_databases_log_counts(tmp_path: Path) -> None:
    """Also those within transactions, and those that write, which a replay leaves out."""
    statements = ("BEGIN", "SELECT 1", "SELECT 2", "COMMIT", "SELECT 3", "INSERT INTO a VALUES (1)")
    written = tmp_path / "postgresql.log"
    written.write_text(
        "".join(
            f"2026-01-01 1{hour}:00:0{place}.000 UTC [7] LOG:  statement: {statement}\n"
            for hour in range(2)
            for place, statement in enumerate(statements)
        )
    )
    found = predict_log.traffic([written])
    assert [hour.statements for hour in found.hours] == [len(statements)] * 2


def test_statements_that_no_replay_can_repeat_count(tmp_path: Path) -> None:
    written = tmp_path / "postgresql.log"
    written.write_text("2026-01-01 10:00:00.000 UTC [7] LOG:  statement: COPY a FROM STDIN\n" * 3)
    assert [hour.statements for hour in predict_log.traffic([written]).hours] == [3]


def test_a_log_without_sizes_or_of_writes_alone_is_no_reason_to_refuse(tmp_path: Path) -> None:
    """A replay needs sizes and reads; a prediction does not."""
    unsized, writes = tmp_path / "access.log", tmp_path / "postgresql.log"
    unsized.write_text('192.0.2.1 - - [01/Jul/1995:01:00:01 +0000] "GET /a HTTP/1.1" 200 -\n' * 3)
    writes.write_text("2026-01-01 10:00:00.000 UTC [7] LOG:  statement: DELETE FROM a\n" * 3)
    assert predict_log.traffic([unsized]).operations == 3
    assert [hour.statements for hour in predict_log.traffic([writes]).hours] == [3]


def test_a_log_that_holds_no_request_is_refused(tmp_path: Path) -> None:
    broken = tmp_path / "access.log"
    broken.write_text('192.0.2.1 - - [41/Jul/1995:01:00:01 +0000] "GET /a HTTP/1.1" 200 5\n' * 3)
    with pytest.raises(UsageError, match=r"access\.log"):
        predict_log.traffic([broken])
