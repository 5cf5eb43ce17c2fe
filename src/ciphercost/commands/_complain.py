"""complain: what went wrong, on standard error."""

from __future__ import annotations

import sys


def complain(text: str) -> None:
    """On a terminal in its width; a program that reads it gets it in one piece."""
    from ciphercost.report.words.figure_text import printable

    said = printable(f"ciphercost: {text}")
    if sys.stderr.isatty():
        import shutil

        from ciphercost.report.layout import wrap

        width = max(20, min(shutil.get_terminal_size().columns - 1, 100))
        said = "\n".join(line for each in said.splitlines() for line in wrap(each, further="  ", width=width))
    print(said, file=sys.stderr)
