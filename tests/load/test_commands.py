"""commands: scripts for key-value stores; and text_file: the files that hold scripts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.load import commands, text_file
from ciphercost.model.errors import UsageError


def test_keys_with_colons_keep_them_and_variables_are_found() -> None:
    text = "\\set id random(1, 9)\n# why\nGET user::id\nHGET user:name \"it's;\"; SET 'user::id:name' :id\n"
    parsed = commands.parse(text, {})
    assert [statement.sql for statement in parsed.statements] == [
        "GET user:$1",
        'HGET user:name "it\'s;"',
        "SET 'user:$1:name' $1",
    ]
    assert [statement.parameters for statement in parsed.statements] == [("id",), (), ("id",)]
    assert not parsed.read_only
    assert commands.parse("get a\nMGET a b", {}).read_only


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# nothing\n", "contains no command"),
        ("GET a\nGET :id", "my.sql, line 2: ':id' is not set"),
        ("GET $1", "reserved for the agent"),
        ("SET a 'open", "line 1: the quote that begins with 'open is not closed"),
    ],
)
def test_commands_that_can_not_be_are_refused_with_their_place(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        commands.parse(text, {}, "my.sql")


@given(st.text(max_size=80))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        parsed = commands.parse(text, {})
    except UsageError:
        return
    assert all(statement.sql.strip() for statement in parsed.statements)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty; write statements"),
        (b" \r\n\t", "is empty"),
        (b"SELECT 1;\nSELECT 'caf\xe9'", "line 2: is not UTF-8 text (byte 0xe9)"),
        ("SELECT 1".encode("utf-16"), "is UTF-16 text"),
        (b"SELECT\x00 1", "zero byte"),
    ],
)
def test_a_file_that_is_no_text_is_refused(content: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "own.sql").write_bytes(content)
    with pytest.raises(UsageError, match=re.escape(words)):
        text_file.read(tmp_path / "own.sql", "--sql")


def test_no_file_is_refused_and_marks_and_line_ends_are_understood(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a directory"):
        text_file.read(tmp_path, "--sql")
    with pytest.raises(UsageError, match="No such file"):
        text_file.read(tmp_path / "nowhere", "--sql")
    (tmp_path / "own.sql").write_bytes(b"\xef\xbb\xbfSELECT 1;\r\nSELECT 2")
    assert text_file.read(tmp_path / "own.sql", "--sql") == "SELECT 1;\nSELECT 2"
