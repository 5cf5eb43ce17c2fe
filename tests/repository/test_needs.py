"""Everything that tests require is on the list that `make test` fetches, and a run starts by printing what is missing."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import needs
import userservers
import web_servers
from ciphercost.model.errors import CiphercostError

TESTS = Path(__file__).parents[1]
SOURCES = sorted({*TESTS.rglob("*.py")} - {TESTS / "needs.py"})


def calls(name: str) -> Iterator[tuple[str, list[str]]]:
    """(file, literal arguments) of every call of a function or method of this name whose first argument is a literal."""
    for path in SOURCES:
        text = path.read_text()
        if name not in text:  # parsing takes longest
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call) or getattr(node.func, "attr", getattr(node.func, "id", "")) != name:
                continue
            if node.args and isinstance(node.args[0], ast.Constant):
                yield path.name, [str(argument.value) for argument in node.args if isinstance(argument, ast.Constant)]


def test_every_server_that_a_test_names_is_fetched() -> None:
    named = list(calls("require_server"))
    assert len(named) > 20
    wanted = {re.fullmatch(r"([^@]+)@?(.*)", "@".join(words)) for _, words in named}
    wanted |= {re.fullmatch(r"(.+)@(.+)", server) for server in web_servers.SERVERS}
    wanted |= {re.fullmatch(r"(.+?)()", engine) for engine in userservers.ENGINES}
    for match in wanted:
        assert match is not None
        assert needs.is_server(match[1], match[2]), f"{match[0]} is not in needs.SERVERS"


def test_every_program_that_a_test_looks_for_is_fetched() -> None:
    looked_for = {(file, words[0]) for file, words in calls("which")}
    assert ("test_postgresql.py", "psql") in looked_for
    for file, name in looked_for:
        assert name in (*needs.PROGRAMS, *needs.BUILD), f"{file} looks for {name}, which is not in needs.PROGRAMS"


def test_a_run_starts_by_printing_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> object:
        raise CiphercostError("not fetched yet")

    monkeypatch.setattr(
        needs,
        "everything",
        lambda: [
            needs.Need("one", lambda: "here", lambda: None),
            needs.Need("two", lambda: "", lambda: None),
            needs.Need("three", gone, gone),
        ],
    )
    monkeypatch.setenv("CIPHERCOST_REQUIRE", "all")
    first, second, third, last = needs.report()
    assert first == "required and available: one"
    assert (second, third) == ("required and MISSING: two", "required and MISSING: three")
    assert "fail (CIPHERCOST_REQUIRE=all)" in last
    assert needs.get() == ["can't fetch three: not fetched yet"]


def test_several_workers_print_the_header_once(tmp_path: Path) -> None:
    # In its own base directory: pytest makes the shared one private, and servers of other tests run in it.
    options = ["-n", "2", "--basetemp", str(tmp_path / "own"), "-p", "no:cacheprovider"]
    test = f"{Path(__file__)}::test_every_program_that_a_test_looks_for_is_fetched"
    command = [sys.executable, "-m", "pytest", *options, test]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=TESTS.parent, timeout=250)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("required and available: ") == 1
