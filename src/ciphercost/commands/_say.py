"""What commands print. Names of files, answers of servers and records of others may hold anything, also what steers a terminal."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from ciphercost.model.printable import printable


def say(text: str, *, err: bool = False) -> None:
    """Print text for people. Control characters become U+FFFD."""
    click.echo(printable(text), err=err)


def note(text: str) -> None:
    """Print a line for people on standard error."""
    say(text, err=True)


def say_data(text: str, *, nl: bool = True) -> None:
    """Print text that a program may read: as it is, but without control characters if a terminal shows it."""
    if sys.stdout.isatty():
        text = printable(text)
    click.echo(text, nl=nl)


def say_saved(directory: Path, page: Path) -> None:
    """Print where a run is kept, and how to see it again. `page`: its web page, if there is one."""
    say(f"saved in {directory}; to print this report again:\n  ciphercost report {shlex.quote(str(directory))}")
    if page.is_file():
        say(f"as a web page:\n  {page}")
