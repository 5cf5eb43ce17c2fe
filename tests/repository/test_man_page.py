"""The man page holds every command and option, and roff reads it without a warning. The build hook makes it anew for each wheel."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest

from ciphercost import commands
from conftest import Require

ROOT = Path(__file__).parents[2]
MADE: dict[str, Any] = runpy.run_path(str(ROOT / "release" / "man_page.py"))
PAGE: str = MADE["page"](commands.cli, "1.2.3", "2024-12-01")


def plain(text: str) -> str:
    """The page's text without roff's escapes."""
    return re.sub(r"\\f.|\\:|\\&", "", text).replace(r"\-", "-").replace(r"\(aq", "'").replace("\n", " ")


def test_every_command_and_option_is_on_it() -> None:
    text = plain(PAGE)
    for name, command in commands.cli.commands.items():
        if command.hidden:
            continue
        _, _, section = text.partition(f".SS ciphercost {name} ")
        section = section.partition(".SS ")[0]
        assert section, name
        assert command.get_short_help_str(1000).rstrip(".") in section, name
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                for option in (*parameter.opts, *parameter.secondary_opts):
                    assert option in section, (name, option)


def test_it_names_version_and_date() -> None:
    assert PAGE.splitlines()[0] == '.TH CIPHERCOST 1 2024-12-01 "ciphercost 1.2.3" "User Commands"'


def test_a_version_without_a_date_gets_that_of_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise wheels of one commit would differ from day to day."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert MADE["released"]("99.99.99") == "2023-11-14"


def test_lists_keep_their_lines_and_nothing_that_is_text_looks_like_a_roff_command() -> None:
    assert "\n  0  done\n  1  a cell or a proof failed\n" in PAGE
    for line in PAGE.splitlines():
        assert re.match(r"[^.']|\.(TH|SH|SS|PP|TP|B|nf|fi|nh|ad)\b", line), line
        assert line.isascii(), line


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        (".5 s", r"\&.5 s"),
        ("'s", r"\(aqs"),
        ("a-b", r"a\-b"),
        (r"C:\x", r"C:\ex"),
        ("A,B…", r"A,\:B..."),
        ("ä", r"\[u00E4]"),
    ],
)
def test_text_is_printed_as_it_is(text: str, escaped: str) -> None:
    assert MADE["escaped"](text) == escaped


def test_words_in_backticks_are_bold() -> None:
    assert MADE["marked"]("see `ciphercost list`") == r"see \fBciphercost list\fR"


def test_mandoc_has_nothing_to_say(require: Require, tmp_path: Path) -> None:
    mandoc = shutil.which("mandoc")
    require(mandoc, "mandoc is not installed (Debian: apt-get install mandoc)")
    page = tmp_path / "ciphercost.1"
    page.write_text(PAGE)
    environment = {**os.environ, "MANWIDTH": "80"}
    done = subprocess.run([str(mandoc), "-Tlint", page], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout + done.stderr == ""
