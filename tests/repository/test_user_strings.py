"""`make strings` lists every string that a user can see."""

from __future__ import annotations

import re
from pathlib import Path

import ciphercost
import user_strings

MODULE = '''"""A module."""
import click

@click.command()
@click.option("--rate", help="Operations per second.")
def measure(rate):
    """Measure something.

    At a rate.
    """
    if rate < 0:
        raise UsageError(f"rate {rate}: must be {'above 0' if rate else 'given and above 0'}")
    click.echo("saved in a directory")
    server.query("SELECT a FROM b")
    return Warning_("old-openssl", "OpenSSL 1.1.1 " "is no longer supported"), "not a sentence"[0], "word"
'''


def test_each_kind_of_string_is_listed_with_its_line() -> None:
    strings = user_strings.of_python(MODULE, "module.py", frozenset({"UsageError"}))
    assert [(string.line, string.kind, string.text) for string in sorted(strings)] == [
        (5, "help", "Operations per second."),
        (7, "help", "Measure something. At a rate."),
        (12, "error", "above 0"),
        (12, "error", "given and above 0"),
        (12, "error", "rate {rate}: must be {'above 0' if rate else 'given and above 0'}"),
        (13, "output", "saved in a directory"),
        (15, "text", "not a sentence"),
        (15, "warning", "OpenSSL 1.1.1 is no longer supported"),
    ]


def test_titles_of_workloads_are_listed() -> None:
    strings = list(user_strings.of_toml('title = "one row"\nclients = 2\nmeasures = "a request"\n', "a.toml"))
    assert strings == [("a.toml", 1, "title", "one row"), ("a.toml", 3, "title", "a request")]


def test_comments_and_tests_of_an_agent_are_left_out() -> None:
    source = '// says "not this one"\nfn f() { Err("the server \\\n    closed it") }\nlet c = \'"\';\n#[cfg(test)] "nor this one"'
    assert list(user_strings.of_agent(source, "a.rs")) == [("a.rs", 2, "agent", "the server closed it")]


def test_the_whole_project_is_listed_by_file_and_line() -> None:
    strings = user_strings.every()
    assert strings == sorted(strings)
    kinds = {"help", "error", "warning", "finding", "output", "title", "agent", "text"}
    assert {string.kind for string in strings} == kinds
    at = {(string.path, string.kind) for string in strings}
    assert ("src/ciphercost/commands/run.py", "help") in at
    assert ("src/ciphercost/plan/specs.py", "error") in at
    assert ("src/ciphercost/load/workloads/connect.toml", "title") in at


def test_a_share_has_a_space_before_its_percent_sign() -> None:
    """Python's own format of a share has none, so one function writes them all."""
    wrong = [
        f"{path.name}:{number}"
        for path in Path(ciphercost.__file__).parent.rglob("*.py")
        for number, line in enumerate(path.read_text().split("\n"), 1)
        if re.search(r":[^{}\s]*%\}", line)
    ]
    assert wrong == [], "use model.shares"
