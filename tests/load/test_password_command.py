"""A command that prints the password: when it runs, and what is wrong with it in one line."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import warm
from ciphercost.load import password_command
from ciphercost.load.agent import Agent
from ciphercost.load.password_command import PasswordCommand, Renewals, Token
from ciphercost.model.connection import Connection
from ciphercost.model.errors import AgentError, RunError
from ciphercost.model.secret import reveal
from conftest import RequireServer
from userservers import user_server


@pytest.fixture
def counted(tmp_path: Path) -> str:
    """A command that prints a new word each time: word1, word2 …"""
    runs = tmp_path / "runs"
    return f"echo >> {runs}; echo word$(wc -l < {runs})"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_a_word_is_kept_until_it_is_old(counted: str, clock: list[float]) -> None:
    command = PasswordCommand(counted, every=600)
    assert (command.runs, command.is_old) == (0, True)
    assert [command.word(), command.word()] == ["word1", "word1"]
    clock[0] += 599
    assert command.word() == "word1"
    clock[0] += 1
    assert command.word() == "word2"


def test_without_a_time_a_word_is_kept_until_it_is_refused(counted: str, clock: list[float]) -> None:
    command = PasswordCommand(counted)
    assert command.word() == "word1"
    clock[0] += 1e6
    assert command.word() == "word1"
    command.forget()
    assert command.word() == "word2"


def test_a_refused_login_is_tried_again_once_with_a_new_word(counted: str) -> None:
    connection = Connection(driver="postgres", password=Token(PasswordCommand(counted)))
    tried: list[str] = []

    def log_in() -> str:
        assert connection.password
        tried.append(connection.password.reveal())
        if tried[-1] != "word2":
            raise AgentError("password authentication failed", "28P01")
        return "in"

    assert connection.password
    connection.password.reveal()
    assert password_command.logged_in(connection, log_in) == "in"
    assert tried == ["word1", "word2"]


@pytest.mark.parametrize(("code", "tries"), [("28P01", 1), ("connect", 1)])
def test_a_new_word_that_is_refused_is_not_tried_again(counted: str, code: str, tries: int) -> None:
    connection = Connection(driver="postgres", password=Token(PasswordCommand(counted)))
    tried = []

    def log_in() -> None:
        assert connection.password
        tried.append(connection.password.reveal())
        raise AgentError("refused", code)

    with pytest.raises(AgentError):
        password_command.logged_in(connection, log_in)
    assert len(tried) == tries


def test_connections_of_operations_are_opened_again_with_a_new_word(counted: str, clock: list[float]) -> None:
    command = PasswordCommand(counted, every=600)
    kept = Connection(driver="postgres", password=Token(command))
    renewals = Renewals()
    command.word()
    renewals.connected("plain", kept)
    renewals.connected("encrypted", kept | {"per_request": True})
    assert renewals.due("encrypted") is None
    clock[0] += 600
    assert renewals.due("plain") is None, "open connections outlive their token"
    again = renewals.due("encrypted")
    assert again is not None
    command.word()
    renewals.connected("encrypted", again)
    assert renewals.due("encrypted") is None


def test_a_real_server_lets_a_new_word_in(require_server: RequireServer, tmp_path: Path) -> None:
    require_server("postgresql")
    word = tmp_path / "word"
    with user_server("postgresql", tmp_path) as server, Agent() as agent:
        password = reveal(server.fields.password)
        word.write_text(password)
        command = PasswordCommand(f"cat {word}")
        connection = server.fields | {"password": Token(command)}
        agent.connect("first", connection)
        agent.query("first", "ALTER ROLE ciphercost PASSWORD 'rotated'")
        word.write_text("rotated")
        agent.connect("second", connection)
        assert command.runs == 2
        agent.query("second", f"ALTER ROLE ciphercost PASSWORD '{password}'")


def test_a_token_shows_itself_to_nobody(counted: str) -> None:
    token = Token(PasswordCommand(counted))
    assert token
    assert {f"{token}", repr(token), str(Connection(driver="x", password=token)).count("word1")} == {"redacted", 0}
    assert token != Token(PasswordCommand(counted))


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("exit 3", "failed with exit status 3"),
        ("kill -9 $$", "failed with signal 9"),
        ("true", "printed nothing; it must print the password"),
        ("echo; echo", "printed nothing"),
        ("echo one; echo two", "printed 2 lines"),
        ("printf 'a\\tb'", "printed what no password is"),
        ("printf '\\377'", "printed bytes that are no text"),
        ("no-such-program-anywhere 2> /dev/null", "failed with exit status 127"),
    ],
)
def test_what_is_wrong_with_a_command_is_one_line(command: str, why: str) -> None:
    with pytest.raises(RunError) as failed:
        PasswordCommand(command).word()
    assert str(failed.value).startswith("--password-command: the command ")
    assert why in str(failed.value)
    assert "\n" not in str(failed.value)
    assert "two" not in str(failed.value), "what it printed may be a secret"


def test_a_command_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIPHERCOST_TIMEOUT", "0.3")
    with pytest.raises(RunError, match=r"did not end within 0\.3 s"):
        PasswordCommand("exec sleep 100").word()
    with pytest.raises(RunError, match=r"did not end within 0\.3 s"):
        PasswordCommand("sleep 100 | cat").word()
    with pytest.raises(RunError, match=r"did not end within 0\.3 s"):
        PasswordCommand("echo x; exec > /dev/null; sleep 100").word()


def test_a_command_that_prints_without_end_is_ended() -> None:
    with pytest.raises(RunError, match="printed more than 65,536 bytes"):
        PasswordCommand("yes | cat").word()


def test_the_passphrase_of_a_key_is_not_the_commands_business(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIPHERCOST_KEY_PASSPHRASE", "sesame")
    monkeypatch.setenv("AWS_PROFILE", "shop")
    assert PasswordCommand("echo $AWS_PROFILE${CIPHERCOST_KEY_PASSPHRASE:-none}").word() == "shopnone"


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("run", "postgresql:tls", "--password-command", "echo x"), "no login of this run takes that password"),
        (("prove", "https://localhost:1/", "--password-command", "echo x"), "no login of this run takes that password"),
        (("prove", "postgresql://h/x", "--password-every", "10m"), "--password-every 10m has no effect without"),
        (("prove", "postgresql://h/x", "--password-command", " "), "--password-command is empty"),
        (
            ("prove", "postgresql://h/x", "--password-command", "echo", "--password-every", "soon"),
            "--password-every: 'soon' is not a duration",
        ),
    ],
)
def test_options_without_effect_are_refused(argv: tuple[str, ...], why: str, tmp_path: Path) -> None:
    done = warm.run(argv, cwd=tmp_path)
    assert (done.returncode, why in done.stderr) == (2, True), done.stderr
