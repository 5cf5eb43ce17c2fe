"""What commands print. Names of files, answers of servers and records of others may hold anything, also what steers a terminal."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path

import click

from ciphercost.model.printable import printable

CLEAR = "\x1b[K"
"""Clears the rest of a terminal's line."""


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


class Loading:
    """Lines about data that is loaded before a run begins: on a terminal one that changes, elsewhere one now and then."""

    EVERY = 30.0
    """Seconds between two lines where each line stays."""

    def __init__(self) -> None:
        self._open = False
        """Whether the last line may still change."""
        self._shown = time.monotonic()

    def say(self, text: str) -> None:
        """Print a line that stays."""
        if self._open:
            click.echo(f"\r{CLEAR}", err=True, nl=False)
        self._open = False
        note(text)

    def show(self, text: str) -> None:
        """Print how far it is loaded."""
        if sys.stderr.isatty():
            import shutil  # loads three compressors

            width = shutil.get_terminal_size().columns - 1
            click.echo(f"\r{printable(text)[:width]}{CLEAR}", err=True, nl=False)
            self._open = True
        elif time.monotonic() - self._shown >= self.EVERY:
            self._shown = time.monotonic()
            note(text)
