"""Codes of errors are data: decisions use them, and no text for people holds an agent's code."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from ciphercost.model.errors import AGENT_CODES, AgentError, server_code, without_codes
from ciphercost.model.result import Cell
from ciphercost.model.slices import Proof

ROOT = Path(__file__).resolve().parents[2]
BRACKETED = re.compile(rf"\[(?:{'|'.join(AGENT_CODES)}|status-\d+(?:-https)?)\]|\(tls_\w+\)")
SOURCES = sorted(
    [
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "agents/rust/src").rglob("*.rs"),
        *(ROOT / "agents/java/src").rglob("*.java"),
    ]
)


def test_every_code_of_the_protocol_is_known() -> None:
    table = (ROOT / "PROTOCOL.md").read_text().partition("| code | meaning |")[2].partition("\n\n")[0]
    written = set(re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE))
    assert written
    assert written <= set(AGENT_CODES)
    raised = {
        code
        for path in (ROOT / "agents/rust/src").rglob("*.rs")
        for code in re.findall(r'Failure::new\("([a-z-]+)"', path.read_text())
    }
    assert raised <= set(AGENT_CODES)


def test_no_source_writes_a_code_or_an_agents_field_into_a_text() -> None:
    wrong = [
        (path.name, line.strip())
        for path in SOURCES
        for line in path.read_text().splitlines()
        if re.search(r"\[\{\w*\.?code\}\]", line) or ('"' in line and re.search(r"\(tls_(?:ca|key|min|max)\)", line))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("code", "words"),
    [
        *((code, "") for code in AGENT_CODES),
        ("status-301-https", ""),
        ("42501", " (SQLSTATE 42501)"),
        ("28P01", " (SQLSTATE 28P01)"),
        ("1045 (28000)", " (error 1045, SQLSTATE 28000)"),
        ("1040", " (error 1040)"),
        ("NOAUTH", ""),
    ],
)
def test_a_servers_code_is_printed_in_words_and_an_agents_is_not(code: str, words: str) -> None:
    assert server_code(code) == words
    assert AgentError("no", code).words == f"no{words}"
    assert not BRACKETED.search(AgentError("no", code).words)


@pytest.mark.parametrize("code", [*AGENT_CODES, "status-301-https", "42501", "1045 (28000)"])
def test_a_proof_of_an_older_version_is_read_with_its_code_apart(code: str) -> None:
    old = f'{{"arm":"plain","witness":"client","passed":false,"detail":"the server says no [{code}]","session":1}}'
    proof = msgspec.json.decode(old, type=Proof)
    assert proof.code == code
    assert proof.detail == f"the server says no{server_code(code)}"
    assert msgspec.json.decode(msgspec.json.encode(proof), type=Proof) == proof


def test_a_reason_of_an_older_version_is_read_without_codes() -> None:
    old = "client witness, plain arm: not that way [status-301-https]; server witness, plain arm: gone [connect]. Try again"
    text, _ = without_codes(old)
    assert text == "client witness, plain arm: not that way; server witness, plain arm: gone. Try again"
    cell = Cell("mysql", "9", "transit", "tls", "w", 1, "unproven", "full", reason=old)
    assert cell.reason == text


def test_other_brackets_stay() -> None:
    for text in ("a list [1, 2]", "array[i]", "[key] is hidden", "see [RFC 8446]"):
        assert without_codes(text) == (text, "")
