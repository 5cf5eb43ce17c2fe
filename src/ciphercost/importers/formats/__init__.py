"""Parsers for other tools' output, one module per format. The content of a text determines its format. Pure.

Each module has `recognise(head) -> int`, the line that contains the tool's mark or 0, and `read(lines) ->
list[Reading]`, one reading per run in the text. A reader raises `Bad`, and nothing else, if figures are missing, cut
off, or clearly contradict each other.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ciphercost.model.imported import Reading
from ciphercost.model.registry import Registry
from ciphercost.model.result import Warning_

NUMBER = r"(-?(?:nan|inf|\d+(?:[.,]\d+)?(?:[eE][-+]?\d+)?))"
"""A number as tools print it, with a point or, in some languages, a comma."""
UNSEEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Unicode categories of characters that control a terminal, reverse a line, or can't be written."""
SECRET = re.compile(
    r"""(?P<url>\b[a-z][a-z0-9+.-]*://)(?:[^\s/@'"]+@)?(?P<address>[^\s?#'"]*)(?:[?#][^\s'"]*)?
    |(?P<option>(?<!\S)(?-i:-p))(?!\d+(?:\s|$))[^\s-]\S*
    |(?P<user>(?<!\S)(?-i:-u)\s*[^\s:]+:)\S+
    |(?P<name>(?<![a-z0-9])[\w-]*(?:password|passwd|passphrase|pwd|secret|token|api_?key|credential)[\w-]*["']?\s*[=:]\s*
     |(?<!\S)--[\w-]*(?:password|passwd|passphrase|pwd|secret|token|api-?key|credential)[\w-]*\s+(?!-))
     (?:"[^"]*"?|'[^']*'?|[^\s&;,]+)""",
    re.IGNORECASE | re.VERBOSE,
)
"""Secrets in command lines and addresses: user and query of a URL, the value after a password word, and MySQL's `-pX`.
"""
SECONDS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
"""Units of time in seconds."""


class Bad(Exception):
    """Line `line` (0: the whole text) is unusable. `what`: the problem and how to fix it."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line, self.what = line, what


class Lines:
    """The lines of a text without their ends. `number`: of the last line yielded; `cut`: that line had no end."""

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


REGISTRY = Registry(__name__)


def names() -> list[str]:
    """Names of all formats: their module names."""
    return REGISTRY.files()


def get(name: str) -> Importer:
    module = REGISTRY.load(name)
    return Importer(name, module.recognise, module.read)


def recognised(head: str) -> dict[str, int]:
    """Return every format whose mark is in the beginning of a text, with the line of the mark."""
    found = {name: get(name).recognise(head) for name in names()}
    return {name: line for name, line in found.items() if line}


def marks() -> list[re.Pattern[str]]:
    """Return the marks that begin a line of a tool's output; JSON has none."""
    found = map(REGISTRY.load, names())
    return [module.MARK for module in found if hasattr(module, "MARK") and module.MARK.flags & re.MULTILINE]


def line_of(pattern: re.Pattern[str], head: str) -> int:
    """Return the line of the first match, counted from 1; 0: no match."""
    match = pattern.search(head)
    return head.count("\n", 0, match.start()) + 1 if match else 0


def number(text: str) -> float:
    """Parse `12.5` or `12,5`. Raises ValueError."""
    return float(text.replace(",", "."))


def duration(text: str) -> float:
    """Parse `78.42us`, `1.10s` or `2.00m` to seconds. Raises ValueError."""
    match = re.fullmatch(rf"{NUMBER}\s*(us|µs|ms|s|m|h)", text.strip())
    if match is None:
        raise ValueError(f"'{text}' is not a time")
    return number(match[1]) * SECONDS[match[2]]


def clean(text: str) -> str:
    """Return the text with `�` for each unprintable character, since names are printed, drawn, and written as UTF-8."""
    return "".join("\ufffd" if unicodedata.category(letter) in UNSEEN else letter for letter in text)


def without_secrets(text: str) -> str:
    """Return the cleaned text without passwords, as far as they can be recognised."""
    return clean(SECRET.sub(_without, text))


def _without(match: re.Match[str]) -> str:
    if match["url"]:
        return match["url"] + match["address"]
    return (match["name"] or match["option"] or match["user"]) + "[hidden]"


def set_rate(made: Reading, rate: str = "") -> None:
    """Mark a run whose rate was set: it has latency but no throughput. Changes it. Raises Bad if nothing is left.

    `rate`: the rate as given, if known.
    """
    if any(note.code == "rate-limited" for note in made.notes):
        return
    what = f"the rate was set to {rate} per second" if rate else "the rate was set"
    for name in ("throughput", "host_cpu_per_op"):
        made.figures.pop(name, None)
        made.series.pop(name, None)
    if not made.figures:
        raise Bad(
            made.line, f"{what}, so its throughput is not a result, and it has no latency; import a run with latencies"
        )
    text = f"{what}, so throughput shows what the tool sent, not what the server can do; only latency is compared"
    made.notes.append(Warning_("rate-limited", text))


def digits(text: str) -> int:
    """Return the number of significant digits of a printed figure: 5 for `0.12340`."""
    return len(re.sub(r"\D", "", text.lower().partition("e")[0]).lstrip("0"))


def differ(one: float, other: float, share: float) -> bool:
    """Whether two figures that should be equal differ by more than this share of the larger one."""
    return abs(one - other) > share * max(abs(one), abs(other))
