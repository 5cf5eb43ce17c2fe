"""Makes the man page `ciphercost.1` from the commands, their options and their help. The build hook puts it into the wheel.

python release/man_page.py     print it, for `python release/man_page.py | man -l -`

click-man was tried: it cuts summaries in the middle, joins the lines of lists and writes today's date into every build.
"""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[1]
NAME = "ciphercost"
LETTERS = {"…": "...", "–": r"\(en", "×": r"\(mu", "·": r"\(bu", "±": r"\(+-", "→": r"\(->", "÷": r"\(di"}
"""Names that roff has in every output, also where a terminal shows only ASCII."""


def page(cli: click.Group, version: str, date: str) -> str:
    """The page, in man(7) macros. `date`: YYYY-MM-DD."""
    return "\n".join(_lines(cli, version, date)) + "\n"


def _lines(cli: click.Group, version: str, date: str) -> Iterator[str]:
    context = click.Context(cli, info_name=NAME)
    yield f'.TH {NAME.upper()} 1 {date} "{NAME} {version}" "User Commands"'
    # Text without hyphens at line ends and without stretched spaces: options stay whole.
    yield from (".nh", ".ad l")
    yield from (".SH NAME", *_filled(f"{NAME} - {cli.get_short_help_str(1000).rstrip('.')}"))
    yield from (".SH SYNOPSIS", *_usage(context))
    yield from (".SH DESCRIPTION", *_help(cli.help or ""))
    yield from (".SH OPTIONS", *_options(context))
    yield ".SH COMMANDS"
    for name, command in sorted(cli.commands.items()):
        if command.hidden:
            continue
        below = click.Context(command, info_name=name, parent=context)
        yield f".SS {NAME} {escaped(name)}"
        yield from _usage(below)
        yield ".PP"
        yield from _help(command.help or "")
        yield from _options(below)
        yield from _help(command.epilog) if command.epilog else ()


def _usage(context: click.Context) -> Iterator[str]:
    yield f".B {escaped(context.command_path)}"
    pieces = escaped(" ".join(context.command.collect_usage_pieces(context)))
    yield from textwrap.wrap(pieces, 78, break_long_words=False, break_on_hyphens=False)


def _help(text: str) -> Iterator[str]:
    """Paragraphs; one that begins with \\b keeps its lines."""
    first = True
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        lines = [line.rstrip() for line in paragraph.splitlines()]
        if lines[0].strip() == "\b":
            yield from ([] if first else [".PP"])
            block = textwrap.dedent("\n".join(lines[1:])).splitlines()
            yield from (".nf", *(marked(line) for line in block), ".fi")
        else:
            yield from ([] if first else [".PP"])
            yield from _filled(" ".join(line.strip() for line in lines))
        first = False


def _options(context: click.Context) -> Iterator[str]:
    for parameter in context.command.get_params(context):
        # Newer versions of click have a record for arguments too; the usage names them already.
        if isinstance(parameter, click.Option) and (record := parameter.get_help_record(context)) is not None:
            yield from (".TP", rf"\fB{escaped(record[0])}\fR", *_filled(record[1]))


def _filled(text: str) -> Iterator[str]:
    """A paragraph in short lines, none of which begins like a roff command."""
    for line in textwrap.wrap(marked(text), 78, break_long_words=False, break_on_hyphens=False):
        yield rf"\&{line}" if line.startswith((".", "'")) else line


def marked(text: str) -> str:
    """Escaped text in which `words in backticks` are bold."""
    return re.sub(r"`([^`]+)`", r"\\fB\1\\fR", escaped(text))


def escaped(text: str) -> str:
    """Text that roff prints as it is, in one line."""
    text = (
        text.replace("\\", r"\e").replace("-", r"\-").replace("~", r"\(ti").replace("^", r"\(ha").replace("'", r"\(aq")
    )
    text = "".join(LETTERS.get(each, each if each.isascii() else rf"\[u{ord(each):04X}]") for each in text)
    # A line may break inside a long list without spaces.
    text = re.sub(r"(?<=[,|])(?=\S)", r"\:", text)
    return rf"\&{text}" if text.startswith(".") else text


def released(version: str) -> str:
    """The date of this version in CHANGELOG.md; before it has one, that of SOURCE_DATE_EPOCH or today's."""
    found = re.search(
        rf"^## {re.escape(version)} \((\d{{4}}-\d\d-\d\d)\)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    if found:
        return found[1]
    now = os.environ.get("SOURCE_DATE_EPOCH")
    return (datetime.fromtimestamp(int(now), UTC) if now else datetime.now(UTC)).date().isoformat()


def made() -> str:
    """The page of this source tree. Needs click and nothing else."""
    sys.path.insert(0, str(ROOT / "src"))
    try:
        from ciphercost.commands import cli
        from ciphercost.model.version import VERSION
    finally:
        sys.path.pop(0)
    return page(cli, VERSION, released(VERSION))


if __name__ == "__main__":
    sys.stdout.write(made())
