"""GitHub Markdown: rows, lists, folds, and texts that can't format, link or mention anyone. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ciphercost.model.printable import printable

MOST = 65_536
"""Longest comment on GitHub, in characters."""
LONGEST = 300
"""Longest reason or warning, in characters."""
SHORT = 120
"""Longest text in a table, which may have many."""

BREAK = "\u200b"
"""A zero-width space."""

_SPECIAL = re.compile(r"[\\`*|<>\[\]&~$^!{}]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|:(?=//)|(?<=www)\.")
_MENTIONS = re.compile(r"[@#]|(?i:gh)-(?=\d)|:(?=[\w+-]+:)")
"""GitHub mentions, links and draws emoji even from character references; a zero-width space prevents it."""
_LEADING = re.compile(r"^(?:[-+=#]|\d+[.)])")


def fitting(pieces: Iterable[str], room: int) -> Iterator[str]:
    """The first pieces that fit into `room` characters, including line ends."""
    for piece in pieces:
        room -= len(piece) + 1
        if room < 0:
            return
        yield piece


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def fold(title: str, lines: Iterable[str]) -> str:
    return "\n".join([f"<details><summary>{escaped(title, LONGEST)}</summary>", "", *lines, "", "</details>"])


def item(text: str, most: int = LONGEST) -> str:
    return f"- {escaped(text, most)}"


def code(text: str) -> str:
    """The text unchanged, in a fence longer than any fence inside it."""
    text = printable(text)
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def in_row(text: str, most: int = SHORT) -> str:
    """The same for a cell of a table, where nothing begins a list or a heading."""
    return _inline(text, most)


def escaped(text: str, most: int = 0) -> str:
    """One line, escaped for Markdown: formatting characters become character references.

    A zero-width space follows what would mention or link on GitHub (`@name`, `#12`, `GH-12`, `:tada:`). `most`: longest text in
    characters; an ellipsis replaces the rest.
    """
    # These begin a list or underline a heading, but only at the start of a line.
    return _LEADING.sub(lambda match: "".join(f"&#{ord(letter)};" for letter in match[0]), _inline(text, most))


def _inline(text: str, most: int) -> str:
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    if most and len(line) > most:
        line = line[: most - 1].rstrip() + "…"
    # The text itself can't contain zero-width spaces, which are not printable. They go in before the references, which contain a #.
    line = _MENTIONS.sub(lambda match: f"{match[0]}{BREAK}", line)
    return _SPECIAL.sub(lambda match: f"&#{ord(match[0])};", line).replace(BREAK, "&#8203;")
