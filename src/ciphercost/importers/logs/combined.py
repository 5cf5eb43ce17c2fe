"""Reads the common and combined log format of Apache, nginx, Caddy and others, also with a virtual host before it and times behind it. Pure.

192.0.2.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /index.html HTTP/1.0" 200 2326
… 200 2326 "http://example.org/" "Mozilla/5.0"                            combined
shop.example.org:443 192.0.2.1 - - […] "GET / HTTP/1.1" 200 2326 …        a virtual host before it
… "Mozilla/5.0" "203.0.113.7"                                             the address that a proxy forwards for
… "Mozilla/5.0" 0.012                                                     seconds ($request_time), with a point
… "Mozilla/5.0" 0.012 4711 3                                              … its connection, which request of it ($connection_requests)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ciphercost.importers.logs import More, Request
from ciphercost.importers.logs._refused import NO_REQUEST, NO_TIME, OTHER, TOO_LONG_REASON
from ciphercost.importers.logs._times import clf
from ciphercost.model.traffic import Kind

KIND: Kind = "web"
LINE = re.compile(
    rb'(?:(?:.*? )?(?P<client>\S+) - .*?|(?P<named>\S+) \S+ \S+) \[(?P<time>[^\]]+)\] "(?P<request>(?:[^"\\]|\\.)*)" (?P<status>\d{3}) (?P<size>\d+|-)'
    rb"(?P<rest>(?: .*)?)"
)
"""Slow and exact; most lines are read without it. Before the client's address may be a virtual host, or the addresses that a proxy forwards for."""
TIMES = 100_000
"""Times that are remembered."""
MORE = re.compile(
    rb"(?P<seconds>\d+\.\d{1,6})(?: (?P<connection>\d{1,12}) (?P<nth>\d{1,9}))?|(?P<only>\d{1,12}) (?P<only_nth>\d{1,9})"
)


def recognise(head: Sequence[bytes]) -> int:
    return sum(1 for line in head if LINE.fullmatch(line.rstrip(b"\r")))


def read(lines: Iterable[bytes], head: Sequence[bytes], zones: set[str]) -> Iterator[Request | str]:
    """Yield what each line says."""
    with_more = any(_more(line) for line in head)
    times: dict[bytes, int] = {}
    for line in lines:
        parts = line.split(b'"', 3)
        if len(parts) >= 3:
            before, request, after = parts[0], parts[1], parts[2]
            asked = request.split(b" ")
            answered = after.split(b" ", 3)
            # The usual form: client - user [day zone] "method path protocol" status size
            client, _, rest = before.partition(b" ")
            if rest[:2] != b"- ":
                client, _, rest = rest.partition(b" ")  # a virtual host is before it
            if (
                rest[:2] == b"- "
                and len(asked) == 3
                and asked[1][:1] == b"/"
                and asked[2][:5] == b"HTTP/"
                and len(answered) >= 3
                and len(answered[1]) == 3
                and answered[1].isdigit()
                and ((size := answered[2]).isdigit() or size == b"-")
                and asked[0].isalpha()
                and client
            ):
                time = before[-28:-2]
                at = times.get(time)
                if at is None and before[-29:-28] == b"[" and (at := _time(time)) is not None:
                    if len(times) > TIMES:
                        times.clear()
                    times[time] = at
                    zones.add(time[-5:].decode())
                if at is not None:
                    yield (
                        at,
                        client,
                        asked[0],
                        asked[1],
                        answered[1],
                        size,
                        asked[2],
                        _more(line) if with_more else None,
                    )
                    continue
        yield _exact(line, zones, with_more=with_more)


def _time(text: bytes) -> int | None:
    try:
        return clf(text)
    except ValueError:
        return None


def _exact(line: bytes, zones: set[str], *, with_more: bool) -> Request | str:
    """What a line says that is not of the usual form."""
    if line.startswith(b"\0"):
        return TOO_LONG_REASON
    match = LINE.fullmatch(line.rstrip(b"\r"))
    if match is None:
        return OTHER
    at = _time(match["time"])
    if at is None:
        return NO_TIME
    zones.add(match["time"][-5:].decode() if b" " in match["time"] else "")
    words = match["request"].split(b" ")
    if len(words) == 2:  # HTTP/0.9 has no protocol
        words.append(b"HTTP/0.9")
    method, path, protocol = words[0], b" ".join(words[1:-1]), words[-1]
    if not (method.isalpha() and method.isupper() and path and protocol.startswith(b"HTTP/")):
        return NO_REQUEST
    return (
        at,
        match["client"] or match["named"],
        method,
        path,
        match["status"],
        match["size"],
        protocol,
        _more(line) if with_more else None,
    )


def _more(line: bytes) -> More | None:
    """The times and the connection behind the last quotation mark, if they are there."""
    at = line.rfind(b'" ')
    match = MORE.fullmatch(line[at + 2 :].rstrip(b"\r ")) if at > 0 and line.count(b'"', 0, at + 1) >= 6 else None
    if match is None:
        return None
    if match["seconds"] is None:
        return More(connection=match["only"], nth=int(match["only_nth"]))
    return More(float(match["seconds"]), connection=match["connection"] or b"", nth=int(match["nth"] or 0))
