"""A command as words: split, filled in, and refused; and what of it is a secret."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.load import command_secrets, command_words
from ciphercost.model.command_load import CommandLoad
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec, Spec

VALUES: dict[str, str | int] = {"seconds": 2, "seed": 3, "clients": 4, "host": "h", "port": 5, "ca": "ca.pem"}


@given(
    st.lists(
        st.text(st.characters(codec="ascii", exclude_characters="{}|&;<>", min_codepoint=32), min_size=1), min_size=1
    )
)
def test_words_without_placeholders_come_back_as_they_are(parts: list[str]) -> None:
    assert command_words.filled(command_words.words("--plain", shlex.join(parts)), VALUES) == parts


@given(st.text())
def test_doubled_braces_are_literal_ones(text: str) -> None:
    doubled = text.replace("{", "{{").replace("}", "}}")
    assert command_words.placeholders("--plain", doubled) == set()
    assert command_words.filled([doubled], {}) == [text]


@given(st.text())
def test_any_command_is_split_or_refused_in_one_line(text: str) -> None:
    try:
        command_words.words("--plain", text)
        command_words.placeholders("--plain", text)
    except UsageError as error:
        said = str(error)
    else:
        return
    assert said.startswith("--plain")


def test_a_value_is_never_split_again() -> None:
    words = command_words.words("--plain", "tool -h {host} '{{x}} {port}'")
    assert command_words.filled(words, VALUES | {"host": "a b {port}"}) == ["tool", "-h", "a b {port}", "{x} 5"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("tool 'x", "no closing quotation"),
        ("tool -T {secs}", r"unknown placeholder \{secs\}: did you mean 'seconds'"),
        ("tool {", r"has a single '\{'; write \{\{"),
        ("tool }", r"has a single '\}'"),
        ("tool | grep x", "the command runs without a shell, so '|' would be an argument; write sh -c".replace("|", r"\|")),
        ("tool > out", "write sh -c"),
        ("a && b", "write sh -c"),
    ],
)  # fmt: skip
def test_what_can_not_be_a_command_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        command_words.placeholders("--plain", " ".join(command_words.words("--plain", text)))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('pgbench "host=h password=geheim sslmode=disable"', 'pgbench "host=h password=[hidden] sslmode=disable"'),
        ("sysbench --mysql-password=geheim run", "sysbench --mysql-password=[hidden] run"),
        ("mysqlslap -h h -pgeheim -P3306", "mysqlslap -h h -p[hidden] -P3306"),
        ("redis-benchmark -a geheim -t get", "redis-benchmark -a [hidden] -t get"),
        ("curl -u me:geheim http://h", "curl -u me:[hidden] http://h"),
        ("wrk http://me:geheim@h:1/?a=1", "wrk http://me:[hidden]@h:1/?a=1"),
        ("sh -c 'PGPASSWORD=geheim pgbench'", "sh -c 'PGPASSWORD=[hidden] pgbench'"),
        ("tool --token geheim -n 1", "tool --token [hidden] -n 1"),
        ("tool ssl.keystore.password=geheim", "tool ssl.keystore.password=[hidden]"),
    ],
)  # fmt: skip
def test_a_secret_is_hidden(text: str, shown: str) -> None:
    assert command_secrets.shown(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "pgbench -S -p {port} postgresql://me@{host}/shop?sslmode=require",
        "valkey-benchmark --tls --cacert ca.pem -p 6379 -n 1000 --threads 2",
        "wrk -t 2 -c 4 https://{host}:{port}/?page=1",
        "h2load -n 10 -p h2c http://{host}",
        "mysqlslap -P 3306 --author=x",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert command_secrets.shown(text) == text
    assert not command_secrets.without(CommandLoad(text)).hidden


def test_the_record_says_that_it_lacks_a_secret() -> None:
    cell = CellSpec("command", "none", command=CommandLoad("tool password=geheim", before="start --token geheim"))
    (recorded,) = command_secrets.recorded_spec(Spec(cells=[cell])).cells
    assert recorded.command is not None
    assert recorded.command.hidden
    assert "geheim" not in str(recorded)
