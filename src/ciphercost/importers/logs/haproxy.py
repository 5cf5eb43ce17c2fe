"""Reads HAProxy's HTTP log (`option httplog`), with or without what syslog puts before it. Pure.

    haproxy[14389]: 10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 "GET / HTTP/1.1"

The client's port tells its connections apart. Sizes include the headers, and times have no zone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ciphercost.importers.log_lines import TOO_LONG
from ciphercost.importers.logs import More, Request
from ciphercost.importers.logs._refused import NO_REQUEST, NO_TIME, OTHER, TOO_LONG_REASON
from ciphercost.importers.logs._times import clf
from ciphercost.model.traffic import Kind

KIND: Kind = "web"
LINE = re.compile(
    rb"(?:.*?(?:\]|\d|haproxy): )?(?P<client>[0-9a-fA-F.:]+|unix|-):(?P<port>\d+) \[(?P<time>[^\]]+)\] (?P<front>\S+) \S+/\S+ (?:\S+ )?"
    rb"(?:-?\d+/){4}\+?(?P<total>-?\d+) (?P<status>-?\d+) \+?(?P<size>\d+) \S+ \S+ \S{4} \d+/\d+/\d+/\d+/\+?\d+ \d+/\d+ .*?"
    rb'"(?P<request>[^"]*)"?.*'
)


def recognise(head: Sequence[bytes]) -> int:
    return sum(1 for line in head if LINE.fullmatch(line.rstrip(b"\r")))


def read(lines: Iterable[bytes], head: Sequence[bytes], zones: set[str]) -> Iterator[Request | str]:  # noqa: ARG001
    """Yield what each line says."""
    zones.add("")
    for line in lines:
        match = LINE.fullmatch(line.rstrip(b"\r"))
        if match is None:
            yield TOO_LONG_REASON if line == TOO_LONG else OTHER
            continue
        try:
            at = clf(match["time"])
        except ValueError:
            yield NO_TIME
            continue
        words = match["request"].split(b" ")
        if len(words) < 3 or not words[-1].startswith(b"HTTP/"):
            yield NO_REQUEST
            continue
        client = match["client"]
        # A frontend whose name ends with ~ received the request by TLS.
        more = More(
            max(0, int(match["total"])) / 1e3,
            connection=client + b":" + match["port"],
            tls=b"TLS" if match["front"].endswith(b"~") else b"",
        )
        yield at, client, words[0], b" ".join(words[1:-1]), match["status"], match["size"], words[-1], more
