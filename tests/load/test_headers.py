"""Headers of the user's: checked by name, never repeated in a message, and recorded by name alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from ciphercost.load import headers
from ciphercost.model.connection import Connection
from ciphercost.model.errors import UsageError
from ciphercost.model.secret import Secret, reveal

WORD = "s3cr3t"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (WORD, "written as 'NAME: VALUE'"),
        (f"Co okie: {WORD}", "written as 'NAME: VALUE'"),
        (f":authority: {WORD}", "written as 'NAME: VALUE'"),
        (f"Host: {WORD}", "header Host can't be set: it comes from the URL"),
        (f"CONTENT-LENGTH: {WORD}", "header CONTENT-LENGTH can't be set"),
        (f"Connection: {WORD}", "`--per-request` opens a connection for each request"),
        (f"Upgrade: {WORD}", "`--set http=2`"),
        (f"Cookie: a\r\nX-Injected: {WORD}", "header Cookie: its value has a line break"),
        (f"Cookie: {WORD}\n", "header Cookie: its value has a line break"),
        ("Cookie:", "header Cookie has no value"),
        ("@", "names no file"),
    ],
)
def test_what_can_t_be_sent_is_refused_without_its_value(given: str, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        headers.remember([given])
    assert words in str(refused.value)
    assert WORD not in str(refused.value)


def test_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="Cookie is given twice"):
        headers.remember(["cookie: a", "Cookie: b"])
    with pytest.raises(UsageError, match="names two files"):
        headers.remember(["@a", "@b"])


def test_values_stay_in_memory_and_in_the_users_file(tmp_path: Path) -> None:
    file = tmp_path / "headers.txt"
    file.write_text(f"# of the test user\r\nCookie: session={WORD}; a=b\r\n\r\nX-Both: file\n")
    names, path = headers.remember([f"Authorization: Bearer {WORD}", f"@{file}", "x-both:\tmine "])
    assert (names, path) == (["Authorization", "x-both"], str(file))
    shown, value = headers.of(names, path)
    assert shown == ("Cookie", "x-both", "Authorization")
    assert WORD not in f"{value} {value!r}"
    assert reveal(value) == f"Cookie: session={WORD}; a=b\nx-both: mine\nAuthorization: Bearer {WORD}"
    with pytest.raises(UsageError, match=r"X-Never .*--header 'X-Never: …'"):
        headers.of(["X-Never"], "")
    with pytest.raises(UsageError, match=r"headers_file = \"FILE\"") as refused:
        headers.of([f"Cookie: {WORD}"], "")
    assert WORD not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "words"), [(b"", "has no header"), (b"Cookie\n", "line 1: a header is written"), (b"\xff", "not UTF-8")]
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(UsageError, match=words):
        headers.read(tmp_path / "file")
    with pytest.raises(UsageError, match="can't read it"):
        headers.read(tmp_path / "none")


def test_a_recorded_command_has_names_alone() -> None:
    argv = ["run", "--header", f"Cookie: {WORD}", f"--header=X: {WORD}", "--header", "@file", "--header", WORD]
    assert headers.without_values(argv) == [
        "run",
        "--header",
        "Cookie: …",
        "--header=X: …",
        "--header",
        "@file",
        "--header",
        "…",
    ]
    assert headers.without_values(["--header"]) == ["--header"]


def test_a_requests_own_headers_replace_those_of_all() -> None:
    plain = Connection(driver="http", port=1)
    connection = plain | {"headers": Secret("Cookie: a\nAccept: b")}
    assert reveal(headers.with_headers(connection, "accept: c").headers) == "Cookie: a\naccept: c"
    assert headers.with_headers(plain, "") == plain
    assert headers.named("accept", connection) == "b"
    assert headers.named("accept", plain) == ""
