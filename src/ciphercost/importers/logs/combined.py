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

from ciphercost.importers.log_lines import TOO_LONG
from ciphercost.importers.logs import More, Request
from ciphercost.importers.logs._refused import NO_REQUEST, NO_TIME, OTHER, TOO_LONG_REASON
from ciphercost.importers.logs._times import clf
from ciphercost.model.traffic import Kind

KIND: Kind = "web"
ANSWERED = re.compile(rb'"(?P<request>(?:[^"\\]|\\.)*)" (?P<status>\d{3}) (?P<size>\d+|-)(?: .*)?')
"""What follows the time."""
TIMES = 100_000
"""Times that are remembered."""
MORE = re.compile(
    rb"(?P<seconds>\d+\.\d{1,6})(?: (?P<connection>\d{1,12}) (?P<nth>\d{1,9}))?|(?P<only>\d{1,12}) (?P<only_nth>\d{1,9})"
)


def recognise(head: Sequence[bytes]) -> int:
    return sum(1 for line in head if _parts(line))


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
                and len(rest) > 31  # it has a user before the time
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
    if line == TOO_LONG:
        return TOO_LONG_REASON
    parts = _parts(line)
    if parts is None:
        return OTHER
    client, time, match = parts
    at = _time(time)
    if at is None:
        return NO_TIME
    zones.add(time[-5:].decode() if b" " in time else "")
    words = match["request"].split(b" ")
    if len(words) == 2:  # HTTP/0.9 has no protocol
        words.append(b"HTTP/0.9")
    method, path, protocol = words[0], b" ".join(words[1:-1]), words[-1]
    if not (method.isalpha() and method.isupper() and path and protocol.startswith(b"HTTP/")):
        return NO_REQUEST
    return (
        at,
        client,
        method,
        path,
        match["status"],
        match["size"],
        protocol,
        _more(line) if with_more else None,
    )


def _parts(line: bytes) -> tuple[bytes, bytes, re.Match[bytes]] | None:
    """The client's address, the time and what follows it. None: it is no such line. Takes time in proportion to the line's length."""
    line = line.rstrip(b"\r")
    end = line.find(b'] "')
    begin = line.rfind(b" [", 0, end) if end > 0 else -1
    match = ANSWERED.fullmatch(line, end + 2) if begin > 0 else None
    if match is None:
        return None
    before = line[:begin]
    # A virtual host, or the addresses that a proxy forwards for, may stand before the client's.
    named, found, _ = before.partition(b" - ")
    if not found and before.count(b" ") == 2:
        named = before.partition(b" ")[0]
    client = named.rpartition(b" ")[2]
    return (client, line[begin + 2 : end], match) if client and (found or before.count(b" ") == 2) else None


def _more(line: bytes) -> More | None:
    """The times and the connection behind the last quotation mark, if they are there."""
    at = line.rfind(b'" ')
    match = MORE.fullmatch(line[at + 2 :].rstrip(b"\r ")) if at > 0 and line.count(b'"', 0, at + 1) >= 6 else None
    if match is None:
        return None
    if match["seconds"] is None:
        return More(connection=match["only"], nth=int(match["only_nth"]))
    return More(float(match["seconds"]), connection=match["connection"] or b"", nth=int(match["nth"] or 0))
