"""The counters on the page of nginx's module stub_status (http_stub_status_module), which count all of its sites."""

from __future__ import annotations

import re
import time

from ciphercost.engines._web.answer import request_ok
from ciphercost.engines.capabilities.load_counters import Counted, CounterReader
from ciphercost.model.errors import UsageError
from ciphercost.model.server_counters import Count

PAGE = re.compile(
    r"\s*Active connections:\s*\d+\s+server accepts handled requests(?: request_time)?\s+(\d+)\s+(\d+)\s+(\d+)\b[\d\s]*Reading:"
)
"""Tengine, which is made from nginx, adds a column."""
SETTLE_SECONDS = 0.1
EXPECTED = "write the address of the page with `stub_status`, e.g. http://HOST/nginx_status"


def parse(page: str) -> tuple[int, int]:
    """(connections accepted, requests) on the page. Raises ValueError if it is another one. Pure."""
    if not (match := PAGE.match(page)):
        raise ValueError
    return int(match[1]), int(match[3])


class StubStatus(CounterReader):
    """Gets the page by one connection for each read, so that it is known how many of the connections are ours."""

    operation = "request"

    def prepare(self) -> None:
        # Any worker accepts the connections that found the server's address, each in its own time.
        time.sleep(SETTLE_SECONDS)
        self._reads = 0

    def read(self) -> Counted:
        if self._reads:
            self.agent.disconnect(self.arm)
            self.agent.connect(self.arm, self.connection)
        answer = request_ok(self.agent, self.arm, "GET")
        self._reads += 1
        try:
            accepts, requests = parse(answer.body)
        except ValueError:
            kind = answer.type.partition(";")[0] or "no type"
            raise UsageError(
                f"--url: the page ({kind}, {answer.length:,} bytes) is not nginx's stub_status; {EXPECTED}"
            ) from None
        return Counted(
            (
                Count("operations", float(requests - self._reads), "requests on the stub_status page"),
                Count("connections", float(accepts - self._reads), "accepts on the stub_status page"),
            )
        )
