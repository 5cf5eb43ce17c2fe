"""The part of the CPU time that a stack belongs to: cipher, record layer, handshake, … Pure. The rules are data, in `profile_rules.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from ciphercost.model.profile import KERNEL, NAMELESS, SEPARATOR

PARTS = {
    "cipher": "cipher and MAC",
    "record": "TLS records",
    "handshake": "TLS handshake",
    "system-calls": "system calls and network",
    "copying": "copying",
    "locks": "locks",
    "page-cache": "page cache and files",
    "control": "busy wait (control)",
    "rest": "rest",
    "hidden": "kernel, not visible",
    "unresolved": "not resolved",
}
"""Names of the parts, in the order of tables."""
RULES = Path(__file__).with_name("profile_rules.toml")
_STARTS = re.compile(r"_start$|__libc_start|(?:__)?clone3?$|start_thread|thread_start|main$|ret_from_fork")
"""Where every stack begins, whatever the thread does."""


class Rule(NamedTuple):
    """Frames of one part."""

    part: str
    library: re.Pattern[str]
    symbol: re.Pattern[str]
    within: re.Pattern[str] | None
    """One of the callers must match; None: any callers."""


@cache
def rules() -> tuple[Rule, ...]:
    """All rules, in the order in which they are tried. Raises ValueError if one names an unknown part, key or caller."""
    rules = []
    read = tomllib.loads(RULES.read_text())
    callers = {name: re.compile(text) for name, text in read["callers"].items()}
    for row in read["rule"]:
        known = set(row) <= {"part", "library", "symbol", "within"} and row.get("within") in (None, *callers)
        if row.get("part") not in PARTS or not known:
            raise ValueError(f"{RULES.name}: {row}: unknown part, key or caller")
        within = callers.get(row.get("within", ""))
        rules.append(Rule(row["part"], re.compile(row.get("library", "")), re.compile(row.get("symbol", "")), within))
    return tuple(rules)


def split(frame: str) -> tuple[str, str]:
    """Library and symbol of a frame."""
    library, _, symbol = frame.partition(SEPARATOR)
    return library, symbol


@lru_cache(maxsize=1 << 16)
def _candidates(frame: str) -> tuple[Rule, ...]:
    """The rules that a frame matches, up to the first that asks nothing of its callers."""
    library, symbol = split(frame)
    candidates = []
    for rule in rules():
        if rule.library.match(library) and rule.symbol.match(symbol):
            candidates.append(rule)
            if rule.within is None:
                break
    return tuple(candidates)


@lru_cache(maxsize=1 << 16)
def _matches(rule: Rule, frame: str) -> bool:
    return rule.within is None or bool(rule.within.match(split(frame)[1]))


def part(frames: Sequence[str]) -> str:
    """The part of a stack, outermost frame first.

    It is that of the innermost frame that a rule matches. A stack that no rule matches is the rest, or not resolved if no
    function of it but the thread's start has a name.
    """
    for place in range(len(frames) - 1, -1, -1):
        for rule in _candidates(frames[place]):
            if rule.within is None or any(_matches(rule, caller) for caller in frames[:place]):
                return rule.part
    if frames and split(frames[-1])[0].startswith(KERNEL):
        return "system-calls"
    named = any(symbol != NAMELESS and not _STARTS.match(symbol) for _, symbol in map(split, frames))
    return "rest" if named else "unresolved"
