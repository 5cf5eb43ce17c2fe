"""csvfile: any table is read back as it was written; every error names its line."""

from __future__ import annotations

import csv
import os
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.load.tables import csvfile
from ciphercost.model.errors import UsageError
from tables import Table, tables


def read(path: Path, delimiter: str = "") -> list[list[str]]:
    return [values for _, values in csvfile.rows(path, delimiter)]


@given(tables(), st.sampled_from(csvfile.DELIMITERS))
def test_any_table_comes_back_as_it_was_written_whatever_separates(table: Table, delimiter: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "table.csv"
        assert read(table.write(path, delimiter)) == [table.titles, *table.rows]
        assert read(table.write(path, delimiter, csv.QUOTE_MINIMAL), delimiter) == [table.titles, *table.rows]


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_with_the_file_named_but_never_break(content: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        message = file.name
        try:
            read(Path(file.name))
        except UsageError as error:
            message = str(error)
    assert file.name in message


@pytest.mark.parametrize(
    ("content", "delimiter"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1,5;2,5\n3,0;4\n", ";"),
        ("a\tb,c\n1\t2\n", "\t"),
        ("a|b|c\n1|2|3\n", "|"),
        ('a,b\n"x;y;z",2\n', ","),
        ("word\nhello\n", ","),
        ("a,b,c\n1,2,3\n1,2\n", ","),
    ],
)
def test_the_delimiter_is_found_out(tmp_path: Path, content: str, delimiter: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(content)
    assert csvfile.delimiter_of(path) == delimiter


def test_a_mark_at_the_front_windows_line_ends_and_blank_lines_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(b'\xef\xbb\xbfa,b\r\n\r\n1,"two\r\nlines"\r\n\n')
    assert list(csvfile.rows(path)) == [(1, ["a", "b"]), (3, ["1", "two\r\nlines"])]


WRONG: dict[str, tuple[bytes, str, str]] = {
    "empty": (b"", "the file is empty", ""),
    "only blank lines": (b"\n\n\n", "the file is empty", ""),
    "too few values": (b"a,b,c\n1,2,3\n4,5\n", "2 values, but the first line has 3", "line 3"),
    "too many values": (b'a,b\n1,"x\ny"\n4,5,6\n', "3 values, but the first line has 2", "line 4"),
    "a quote never closed": (b'a,b\n1,2\n3,"x\n4,5\n', "is not closed", "line 3"),
    "a quote closed too early": (b'a,b\n1,"x"y\n', "Double a quote inside a quoted value", "line 2"),
    "a NUL": (b"a,b\n1,2\n3,x\0y\n", "NUL byte", "line 3"),
    "UTF-16": ("a,b\n1,2\n".encode("utf-16"), "UTF-8", "line 1"),
    "Latin-1": ("a,b\n1,2\n3,größe\n".encode("latin-1"), "byte 5 is not UTF-8", "line 3"),
    "CR alone": (b"a,b\r1,2\r3,4\r", "CR alone", "line 1"),
    "a long value": (
        b'a,b\n1,2\n3,"' + b"x" * (csvfile.MOST_FIELD + 9) + b'"\n',
        "longer than 1 Mi characters",
        "line 3",
    ),
    "a long line": (b"a,b\n" + b"x," * (csvfile.MOST_ROW // 2 + 9) + b"\n", "longer than 16 MiB", "line 2"),
    "a quote that swallows the file": (b'a,b\n1,"2\n' + b"3,4\n" * 2**19, "closing quote missing", "line 2"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, name: str) -> None:
    content, words, line = WRONG[name]
    path = tmp_path / "wrong.csv"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=re.escape(words)) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert line in str(caught.value)
    assert len(str(caught.value)) < 500


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, words in (("missing.csv", "No such file"), (".", "is a directory"), ("/dev/zero", "not a regular file")):
        with pytest.raises(UsageError, match=words):
            read(tmp_path / name)
    with pytest.raises(UsageError, match="not a regular file"):
        read(tmp_path / "pipe")  # must not block


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n")
    (tmp_path / "secret.csv").chmod(0)
    with pytest.raises(UsageError, match="Permission denied"):
        read(tmp_path / "secret.csv")
