"""Errors on standard error."""

from __future__ import annotations

import sys

from ciphercost.model.printable import printable


def complain(text: str) -> None:
    """Print a message on standard error: wrapped on a terminal, as one line for a program that reads it."""
    message = printable(f"ciphercost: {text}")
    if sys.stderr.isatty():
        import shutil

        from ciphercost.report.layout import wrap

        width = max(20, min(shutil.get_terminal_size().columns - 1, 100))
        message = "\n".join(
            line for paragraph in message.splitlines() for line in wrap(paragraph, further="  ", width=width)
        )
    print(message, file=sys.stderr)
