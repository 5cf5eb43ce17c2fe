"""A web server's answer to one request, as the agent describes it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from ciphercost.model.errors import AgentError

if TYPE_CHECKING:
    from ciphercost.load.load_client import LoadClient


NO_CERTIFICATE = re.compile(
    r"No required SSL certificate was sent|The SSL certificate error|client certificate (?:is )?required", re.IGNORECASE
)
"""What a page says where a client certificate is missing: nginx's words, and others'."""


class Answer(msgspec.Struct, frozen=True):
    """What a query returns of a response (PROTOCOL.md, HTTP)."""

    status: str
    location: str
    server: str
    body: str
    """Its beginning."""
    length: int
    """Bytes of the whole body."""
    type: str
    encoding: str
    closes: bool
    """The server closes the connection after it."""
    stretch: str
    """The beginning of the longest part of the body that came in one piece."""

    @classmethod
    def of(cls, row: Sequence[str | None]) -> Answer:
        """Parse the row of a query. Pure."""
        status, location, server, body, length, kind, encoding, closes, stretch = (str(field or "") for field in row)
        return cls(status, location, server, body, int(length), kind, encoding, bool(closes), stretch)

    @property
    def succeeded(self) -> bool:
        """Whether the load counts such an answer as a success."""
        return self.status.startswith("2") or self.status == "304"


def asked(agent: LoadClient, arm: str, request: str) -> Answer:
    """Send one request and return its answer, whatever its status. Raises AgentError."""
    return Answer.of(agent.query(arm, request)[0])


def request_ok(agent: LoadClient, arm: str, request: str) -> Answer:
    """Return the answer to a request. Raises AgentError with code `status-404` or similar if it is no success."""
    answer = asked(agent, arm, request)
    if answer.succeeded:
        return answer
    to = f" (to {answer.location}; ciphercost follows no redirects)" if answer.location else ""
    secure = "-https" if answer.location.startswith("https:") else ""
    why = f" ({match[0]})" if (match := NO_CERTIFICATE.search(answer.body)) else ""
    raise AgentError(f"{request}: the server answers {answer.status}{to}{why}", f"status-{answer.status}{secure}")
