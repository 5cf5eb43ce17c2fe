"""Finds the arm in the names of benchmarks that one file has of both arms, such as `Query/plain` and `Query/tls`. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ciphercost.importers.arm_words import arm_stated_in
from ciphercost.model.imported import Reading

HTTP = re.compile(r"http(?![a-z\d])|HTTP(?![A-Z\d]?s|S)", re.IGNORECASE)
VERSION = re.compile(r"v?1[._]?[0-3](?!\d)")
"""A version of TLS directly behind its name."""
KEY = re.compile(r"(?<=\s)[\w.-]+=$")
"""The name of a parameter whose value states the arm."""
BETWEEN = r"[-_ =/.:]*"
OFF = {"off": "(?:off|0)"}
"""`tls=0` is read as `tls off`."""


def state_arms(readings: Sequence[Reading], names: Sequence[str]) -> None:
    """Give each reading the name that states its arm, if these names state both arms. Changes the readings.

    `names`: of the readings. If a reading's workload is its name, the workload loses the words, so that both arms have the same one.
    """
    for without in (lambda name: name, lambda name: HTTP.sub("", name)):
        stated = [arm_stated_in(without(name)) for name in names]
        if {told[0] for told in stated if told} != {"plain", "encrypted"}:
            continue
        for reading, name, told in zip(readings, names, stated, strict=True):
            if told:
                reading.names = [without(name)]
                if reading.workload == name:
                    reading.workload = without_words(name, told[1])
        return


def without_words(name: str, words: str) -> str:
    """Return a name without the words that state its arm, as `arm_stated_in` gives them."""
    pattern = BETWEEN.join(OFF.get(word, re.escape(word)) for word in words.split())
    for match in re.finditer(pattern, name, re.IGNORECASE):
        begin, end = match.span()
        before, behind = name[begin - 1 : begin], name[end : end + 1]
        starts = (
            not before.isalpha() or (before.islower() and name[begin].isupper()) or name[begin : begin + 2].istitle()
        )
        if starts and not behind.islower():
            begin = key.start() if (key := KEY.search(name, 0, begin)) else begin
            end = version.end() if (version := VERSION.match(name, end)) else end
            rest = name[:begin].rstrip("-_ =/.:,") + _joint(name[:begin], name[end:]) + name[end:].lstrip("-_ =/.:,")
            return rest.strip("-_ =/.:,()") or "benchmark"
    return name


def _joint(before: str, behind: str) -> str:
    """Return the character that stood before or behind what was removed, if it separates the two parts."""
    for part in (before[-1:], behind[:1]):
        if part and part in "-_ =/.:,":
            return part
    return ""
