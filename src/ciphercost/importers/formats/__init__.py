"""formats: what another tool printed -> readings. One file a format, found by file name; the format of a text by its content. Pure.

Each has `recognise(head) -> int`: the line on which the tool's mark stands, 0 where the text is not its own; and `read(lines) ->
list[Reading]`, a reading for each run that the text holds. A reader raises `Bad` where figures are missing, cut off or contradict
themselves beyond doubt, and never anything else.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

NUMBER = r"(-?(?:nan|inf|\d+(?:[.,]\d+)?(?:[eE][-+]?\d+)?))"
"""As tools print it, with a point or, in some languages, a comma."""
UNSEEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Kinds of letters that steer a terminal, turn a line round, or can't be written."""
SECRET = re.compile(
    r"""(?P<url>\b[a-z][a-z0-9+.-]*://)(?:[^\s/@'"]+@)?(?P<address>[^\s?#'"]*)(?:[?#][^\s'"]*)?
    |(?P<option>(?<!\S)(?-i:-p))(?!\d+(?:\s|$))[^\s-]\S*
    |(?P<user>(?<!\S)(?-i:-u)\s*[^\s:]+:)\S+
    |(?P<name>(?<![a-z0-9])[\w-]*(?:password|passwd|passphrase|pwd|secret|token|api_?key|credential)[\w-]*["']?\s*[=:]\s*
     |(?<!\S)--[\w-]*(?:password|passwd|passphrase|pwd|secret|token|api-?key|credential)[\w-]*\s+(?!-))
     (?:"[^"]*"?|'[^']*'?|[^\s&;,]+)""",
    re.IGNORECASE | re.VERBOSE,
)
"""Of command lines and addresses: user and query of a URL, what stands behind a word for a password, and `-pX`, as MySQL has it."""
SECONDS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
"""Units of time in seconds."""


class Bad(Exception):
    """Line `line` (0: the whole) of a text can't be used: `what`, and what to do about it."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line, self.what = line, what


class Lines:
    """The lines of a text without their ends; `number`: of the last one given; `cut`: it had no end."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self.number = 0
        self.cut = False

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.number += 1
            self.cut = not line.endswith("\n")
            yield line.rstrip("\r\n")


class Importer(NamedTuple):
    """One format."""

    name: str
    recognise: Callable[[str], int]
    read: Callable[[Lines], list[Reading]]


def names() -> list[str]:
    """Names of all formats, by file."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def get(name: str) -> Importer:
    module = importlib.import_module(f"{__name__}.{name}")
    return Importer(name, module.recognise, module.read)


def recognised(head: str) -> dict[str, int]:
    """Every format whose mark is in this beginning of a text, and on which line."""
    found = {name: get(name).recognise(head) for name in names()}
    return {name: line for name, line in found.items() if line}


def line_of(pattern: re.Pattern[str], head: str) -> int:
    """The line of the first match, from 1; 0: there is none."""
    match = pattern.search(head)
    return head.count("\n", 0, match.start()) + 1 if match else 0


def number(text: str) -> float:
    """`12.5`, `12,5`. Raises ValueError."""
    return float(text.replace(",", "."))


def duration(text: str) -> float:
    """Seconds of `78.42us`, `1.10s`, `2.00m`. Raises ValueError."""
    match = re.fullmatch(rf"{NUMBER}\s*(us|µs|ms|s|m|h)", text.strip())
    if match is None:
        raise ValueError(f"'{text}' is no time")
    return number(match[1]) * SECONDS[match[2]]


def clean(text: str) -> str:
    """The text, with `�` for each letter that isn't one: names are printed, drawn, and written as UTF-8."""
    return "".join("\ufffd" if unicodedata.category(letter) in UNSEEN else letter for letter in text)


def discreet(text: str) -> str:
    """The text without passwords, as far as they can be told; and clean."""
    return clean(SECRET.sub(_without, text))


def _without(match: re.Match[str]) -> str:
    if match["url"]:
        return match["url"] + match["address"]
    return (match["name"] or match["option"] or match["user"]) + "[hidden]"


def set_rate(made: Reading, rate: str = "") -> None:
    """Mark a run whose rate the tool was told to keep: it has latency, and no throughput. Changes it. Raises Bad where nothing is left.

    `rate`: as it was given, where it is known.
    """
    if any(note.code == "rate-limited" for note in made.notes):
        return
    what = f"the rate was set to {rate} a second" if rate else "the rate was set"
    for name in ("throughput", "host_cpu_per_op"):
        made.figures.pop(name, None)
        made.series.pop(name, None)
    if not made.figures:
        raise Bad(
            made.line, f"{what}, so its throughput is no result, and it has no latency: import a run with latencies"
        )
    text = f"{what}: throughput is what the tool was told to send, not what the server can do; only latency is compared"
    made.notes.append(Warning_("rate-limited", text))


def digits(text: str) -> int:
    """Significant digits of a figure as it was printed: 5 of `0.12340`."""
    return len(re.sub(r"\D", "", text.lower().partition("e")[0]).lstrip("0"))


def differ(one: float, other: float, share: float) -> bool:
    """Whether two figures that should be one differ by more than this share of the larger."""
    return abs(one - other) > share * max(abs(one), abs(other))
