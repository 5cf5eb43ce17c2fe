"""Parsers for other tools' output, one module per format. The content of a text determines its format. Pure.

Each module has `recognise(head) -> int`, the line that contains the tool's mark or 0, and `read(lines) ->
list[Reading]`, one reading per run in the text. A reader raises `Bad`, and nothing else, if figures are missing, cut
off, or clearly contradict each other.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from types import MappingProxyType
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
SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
"""Units of time in seconds. The sign for micro has two codes."""
PART = rf"{NUMBER}\s*(ns|us|µs|μs|ms|s|m(?!s)|h)"
"""A number with a unit of time. Several make one time, as in `1m2.5s`."""


LONGEST_LINE = 1000
"""Characters of a line that a tool prints, if it is no part of a JSON document."""


class Bad(Exception):
    """Line `line` (0: the whole text) is unusable. `what`: the problem and how to fix it."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line, self.what = line, what


class Nothing(Bad):
    """A whole text without a figure to use. A file of a folder is then skipped, with a message."""


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
    own: re.Pattern[str] | None = None
    """Matches whole lines that the tool prints and that state no arm, no warm-up and no command, whatever words they contain."""
    data: re.Pattern[str] | None = None
    """Matches the beginning of the mark's line where the text is JSON or a table, in which no line is a heading."""


REGISTRY = Registry(__name__)


def names() -> list[str]:
    """Names of all formats: their module names."""
    return REGISTRY.files()


@cache
def get(name: str) -> Importer:
    module = REGISTRY.load(name)
    return Importer(name, module.recognise, module.read, getattr(module, "OWN", None), getattr(module, "DATA", None))


@lru_cache(maxsize=4)
def recognised(head: str) -> Mapping[str, int]:
    """Return every format whose mark is in the beginning of a text, with the line of the mark.

    A file's beginning is asked about several times: what precedes its lines, what its format is, whether another tool's output follows.
    """
    mark_lines = {name: get(name).recognise(head) for name in names()}
    return MappingProxyType({name: line for name, line in mark_lines.items() if line})


def marks() -> list[re.Pattern[str]]:
    """Return the marks that begin a line of a tool's output; JSON has none."""
    modules = map(REGISTRY.load, names())
    return [module.MARK for module in modules if hasattr(module, "MARK") and module.MARK.flags & re.MULTILINE]


def line_of(pattern: re.Pattern[str], head: str) -> int:
    """Return the line of the first match, counted from 1; 0: no match.

    A mark that may be indented begins with `^[^\\S\\n]*`. `^\\s*` would also match the blank lines above it, and search each of them again.
    """
    match = pattern.search(head)
    return head.count("\n", 0, match.start()) + 1 if match else 0


def as_printed(line: str) -> str:
    """Return the line, or an empty one in place of what no tool prints: a longer one that is no JSON.

    Readers try many patterns on a line, which may take the square of its length.
    """
    if len(line) <= LONGEST_LINE or line.lstrip()[:1] in ('"', "{", "[", "}", "]"):
        return line
    return "\n" if line.endswith("\n") else ""


def number(text: str) -> float:
    """Parse `12.5` or `12,5`. Raises ValueError."""
    return float(text.replace(",", "."))


def with_thousands(text: str) -> float:
    """Parse `16,121` or `0.6`: commas stand between thousands. Raises ValueError."""
    return float(text.replace(",", ""))


def duration(text: str) -> float:
    """Parse `78.42us`, `1.10s`, `2.00m` or `1m2.5s` to seconds. Raises ValueError."""
    if not re.fullmatch(rf"(?:{PART})+", text.strip()):
        raise ValueError(f"'{text}' is not a time")
    return sum(number(match[1]) * SECONDS[match[2]] for match in re.finditer(PART, text.strip()))


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


def set_rate(run: Reading, rate: str = "") -> None:
    """Mark a run whose rate was set: it has latency but no throughput. Changes it. Raises Bad if nothing is left.

    `rate`: the rate as given, if known.
    """
    if any(note.code == "rate-limited" for note in run.notes):
        return
    what = f"the rate was set to {rate} per second" if rate else "the rate was set"
    for name in ("throughput", "host_cpu_per_op"):
        run.figures.pop(name, None)
        run.series.pop(name, None)
    if not run.figures:
        raise Bad(
            run.line, f"{what}, so its throughput is not a result, and it has no latency; import a run with latencies"
        )
    text = f"{what}, so throughput shows what the tool sent, not what the server can do; only latency is compared"
    run.notes.append(Warning_("rate-limited", text))


def digits(text: str) -> int:
    """Return the number of significant digits of a printed figure: 5 for `0.12340`."""
    return len(re.sub(r"\D", "", text.lower().partition("e")[0]).lstrip("0"))


def differ(one: float, other: float, share: float) -> bool:
    """Whether two figures that should be equal differ by more than this share of the larger one."""
    return abs(one - other) > share * max(abs(one), abs(other))


def errors_among(line: int, wrong: float, done: float, what: str) -> list[Warning_]:
    """Return a note that `wrong` of `done` operations failed. Raises Bad if more than half did: they may be quicker than answers."""
    if wrong > done / 2:
        text = f"{wrong:,.0f} of {done:,.0f} {what}, so this is the speed of errors; fix the cause and run it again"
        raise Bad(line, text)
    return [Warning_("errors", f"{wrong:,.0f} of {done:,.0f} {what}")] if wrong else []


def cut_off(line: int, end: str, figures: dict[str, float]) -> Warning_:
    """Return a note that the run that begins on this line lacks its end, which has a name."""
    lacks = "" if any(name.startswith("latency_") for name in figures) else ", so it has no latency"
    return Warning_("cut-off", f"the run that begins on line {line} is cut off before {end}{lacks}")


def above_zero(figures: dict[str, float]) -> dict[str, float]:
    """Return the figures that are above 0: a 0 is a time below the tool's resolution."""
    return {name: value for name, value in figures.items() if value > 0}
