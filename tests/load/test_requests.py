"""requests: a script of HTTP requests, one per line, is parsed as written."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.load import requests, workloads
from ciphercost.model.errors import UsageError

SCRIPT = r"""
-- a comment, and a request that looks like one:
\set id random(1, 9)
GET /x?a=foo--bar;
GET /y?id=:id
POST /z {"id": :id, "name": ":id", "at": "12:30", "on":true, "rows": :rows}
"""


def test_a_line_is_a_request() -> None:
    parsed = requests.parse(SCRIPT, {"rows": 7})
    assert [statement.sql for statement in parsed.statements] == [
        "GET /x?a=foo--bar",
        "GET /y?id=$1",
        'POST /z {"id": $1, "name": "$1", "at": "12:30", "on":true, "rows": 7}',
    ]
    assert [statement.parameters for statement in parsed.statements] == [(), ("id",), ("id",)]


@given(st.text("abcxyz019-_.~/%?&=", max_size=40), st.text("abc{}[]\",'=&;-1 ", max_size=40))
def test_what_is_no_variable_goes_as_it_stands(path: str, body: str) -> None:
    request = f"POST /{path} x{body}".rstrip().rstrip(";").rstrip()
    assert requests.parse(request, {}).statements[0].sql == request


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("GET /a GET /b", "line 1: a GET request has no body .'GET /b'.; write one request per line"),
        ("\nSELECT 1", "line 2: 'SELECT' is not a method"),
        ("GET a", "'a' is not a path; a path begins with /"),
        ("GET /x?id=:nobody", "':nobody' is not set"),
        ("GET /x?cost=$5", "are reserved for the agent"),
        ("THINK 5\nTHINK 6", "contains no request"),
        ("THINK", "write THINK and a number of microseconds"),
        ("-- nothing", "contains no request"),
    ],
)
def test_what_can_not_be_meant_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        requests.parse(text, {})


def test_where_only_marked_requests_are_encrypted_the_others_go_in_clear_in_that_arm_alone() -> None:
    parsed = requests.parse("GET /a\nTHINK 5\nSECURE POST /b x=1", {})
    everything = requests.unmarked(parsed, clear=False)
    assert [(statement.sql, statement.arm) for statement in everything.statements] == [
        ("GET /a", ""),
        ("THINK 5", ""),
        ("POST /b x=1", ""),
    ]
    some = requests.unmarked(parsed, clear=True)
    arms = {
        arm: [statement.sql for statement in some.statements if statement.arm == arm] for arm in ("plain", "encrypted")
    }
    assert arms == {
        "plain": ["GET /a", "THINK 5", "POST /b x=1"],
        "encrypted": ["CLEAR GET /a", "THINK 5", "POST /b x=1"],
    }


def test_the_shop_marks_what_it_should() -> None:
    marked = [
        transaction.name for transaction in workloads.get("shop").transaction if requests.marks(transaction.script)
    ]
    assert marked == ["buy"]
    assert not workloads.has_marks(workloads.get("file"))


def test_headers_and_bodies_belong_to_the_request_above(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text('a,"$5"\n')
    text = (
        "\\set id random(1, 9)\n"
        "POST /item?of=:id\n"
        "    Content-Type: text/csv\n"
        "    X-Request: :id-:size\n"
        "    < rows.csv\n"
        "\n"
        "GET /\n"
        "Accept-Language: de\n"
        'PATCH /item {"id": :id};\n'
    )
    post, get, patch = requests.parse(text, {"size": 7}, directory=tmp_path).statements
    assert (post.sql, post.headers, post.body) == (
        "POST /item?of=$1",
        "Content-Type: text/csv\nX-Request: $1-7",
        'a,"$5"\n',
    )
    assert (post.parameters, get.headers, get.body) == (("id",), "Accept-Language: de", None)
    assert (patch.sql, patch.headers) == ('PATCH /item {"id": $1}', "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Cookie: s3cr3t\nGET /", "line 1: no request is above this line"),
        ("GET /\nHost: s3cr3t", "line 2: header Host can't be set"),
        ("GET /\nA: s3cr3t\na: s3cr3t", "line 3: header a is given twice"),
        ("GET /\n< body.txt", "line 2: a GET request has no body"),
        ("POST / a=b\n< body.txt", "line 2: the request above has a body already"),
        ("POST /\n< none.txt", "line 2: can't read the body in none.txt: No such file"),
        ("POST /\n< bytes", "line 2: the body in bytes is not UTF-8 text"),
        ("THINK 5\nA: b", "no request is above"),
    ],
)
def test_lines_that_belong_to_no_request_are_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError) as refused:
        requests.parse(text, {}, directory=tmp_path)
    assert words in str(refused.value)
    assert "s3cr3t" not in str(refused.value)
