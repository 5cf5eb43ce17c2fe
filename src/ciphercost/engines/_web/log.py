"""Reads what a web server's own log states about its connections.

One line each. Most servers write the fields that `line` parses, separated by tabs: note, protocol, cipher, whether the
session was resumed, client certificate, HTTP version. The servers log the first request of a connection (or the last one) and
every request with a note, so they write little under load.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ciphercost.host import deadlines

NOTE = "ciphercost"
"""Parameter in a URL's query by which a witness recognises its own request."""
FIELDS = ("note", "protocol", "cipher", "resumed", "client", "http")
NOTHING = ("", "-")
RESUMED = ("r", "Resumed")
"""In nginx's and Apache's words."""
VERIFIED = "SUCCESS"
"""In both servers' words: the server verified a client certificate."""


class Line(NamedTuple):
    """What the log states about one connection."""

    note: str
    protocol: str
    """`TLSv1.3`; empty for an unencrypted connection."""
    cipher: str
    resumed: bool
    client: bool = False
    """Whether the server verified a client certificate."""
    http: str = ""
    """`HTTP/1.1`, `HTTP/2.0` or `HTTP/3.0`."""
    early: bool = False
    """Whether the request came before the handshake was complete (0-RTT); False if the log does not say."""


def line(text: str) -> Line | None:
    """Parse one line; None if it is not in our format. Pure."""
    fields = text.split("\t")
    if len(fields) != len(FIELDS):
        return None
    note, protocol, cipher, resumed, client, http = ("" if field in NOTHING else field for field in fields)
    return Line(note, protocol, cipher, resumed in RESUMED, client == VERIFIED, http)


class Log:
    """A growing log, read from its start; returns each line once."""

    def __init__(self, path: Path, parse: Callable[[str], Line | None] = line) -> None:
        """`parse`: returns None for a line that states nothing about a connection."""
        self.path = path
        self._parse = parse
        self._at = 0
        self.full = 0
        """Number of full TLS handshakes, without those of witnesses."""
        self.resumed = 0

    def read(self) -> list[Line]:
        """Return the lines added since the last call."""
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            file.seek(self._at)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._at += len(whole)
        parsed_lines = [parsed for row in whole.decode(errors="replace").splitlines() if (parsed := self._parse(row))]
        for entry in parsed_lines:
            if entry.protocol and not entry.note:
                self.resumed += entry.resumed
                self.full += not entry.resumed
        return parsed_lines

    def noted(self, note: str, count: int) -> list[Line]:
        """Wait until `count` lines carry this note, or a query's time has passed, and return them.

        A server writes a line after its answer, on a busy machine a good deal later.
        """
        deadline, lines = time.monotonic() + deadlines.query(), []
        while True:
            lines += [entry for entry in self.read() if entry.note == note]
            if len(lines) >= count or time.monotonic() > deadline:
                return lines
            time.sleep(0.01)
