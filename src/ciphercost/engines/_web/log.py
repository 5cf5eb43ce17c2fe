"""log: a web server's own log -> what it says of its connections. A line each, separated by tabs: note, protocol, cipher, whether resumed, client certificate.

What is logged is the first request of a connection (or the one that closes it) and every request with a note, so that a server
under load writes little.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

NOTE = "ciphercost"
"""Parameter of a URL's query by which a witness finds its own request again."""
FIELDS = ("note", "protocol", "cipher", "resumed", "client")
WAIT_SECONDS = 5.0
NOTHING = ("", "-")
RESUMED = ("r", "Resumed")
"""In the words of nginx and of Apache."""
VERIFIED = "SUCCESS"
"""In the words of both: a certificate of the client's was verified."""


class Line(NamedTuple):
    """What the server says of one connection."""

    note: str
    protocol: str
    """`TLSv1.3`; empty in clear."""
    cipher: str
    resumed: bool
    client: bool = False
    """Whether the server has verified a certificate of the client's."""


def line(text: str) -> Line | None:
    """Of one line; None where it is none of ours. Pure."""
    fields = text.split("\t")
    if len(fields) != len(FIELDS):
        return None
    note, protocol, cipher, resumed, client = ("" if each in NOTHING else each for each in fields)
    return Line(note, protocol, cipher, resumed in RESUMED, client == VERIFIED)


class Log:
    """A log that is being written, read from its beginning on, each line once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._at = 0
        self.full = 0
        """TLS connections whose handshake was a full one, of those that are no witness's."""
        self.resumed = 0

    def read(self) -> list[Line]:
        """What has come since the last call."""
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            file.seek(self._at)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._at += len(whole)
        found = [made for each in whole.decode(errors="replace").splitlines() if (made := line(each))]
        for each in found:
            if each.protocol and not each.note:
                self.resumed += each.resumed
                self.full += not each.resumed
        return found

    def noted(self, note: str, count: int) -> list[Line]:
        """The lines with this note, waited for until there are so many."""
        deadline, found = time.monotonic() + WAIT_SECONDS, []
        while True:
            found += [each for each in self.read() if each.note == note]
            if len(found) >= count or time.monotonic() > deadline:
                return found
            time.sleep(0.01)
