"""site: what a web site of the user's own would send to a browser and does not send to the load."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ciphercost.engines._web.answer import Answer, asked
from ciphercost.load.headers import named, with_headers
from ciphercost.model.connection import Connection
from ciphercost.model.errors import AgentError
from ciphercost.model.result import Warning_

if TYPE_CHECKING:
    from ciphercost.load.load_client import LoadClient
    from ciphercost.provision.prepared_cell import PreparedCell
    from ciphercost.provision.server_pair import ServerPair

BROWSER = "Accept-Encoding: gzip, deflate, br, zstd"
ARM = "browser"
COMPRESSED = "compressed-for-browsers"


def compressed(bench: PreparedCell, pair: ServerPair, agent: LoadClient) -> list[Warning_]:
    """The warning that a browser gets the page compressed, and the load does not. Asks once each way, over the encrypted arm.

    `agent`: the one on this machine.
    """
    connection = pair.connect["encrypted"].single
    if not (bench.engine.foreign and bench.engine.language == "http") or named("accept-encoding", connection):
        return []
    with contextlib.suppress(AgentError):
        usual, browser = _answer(agent, connection), _answer(agent, with_headers(connection, BROWSER))
        if usual.succeeded and browser.succeeded and browser.encoding and not usual.encoding:
            text = (
                f"a browser gets this page compressed ({browser.encoding}, {browser.length:,} instead of {usual.length:,} bytes), but the load "
                f"asks for it as it is; to measure what browsers get, add --header 'Accept-Encoding: {browser.encoding}'"
            )
            return [Warning_(COMPRESSED, text)]
    return []


def _answer(agent: LoadClient, connection: Connection) -> Answer:
    agent.connect(ARM, connection)
    try:
        return asked(agent, ARM, "GET")
    finally:
        agent.disconnect(ARM)
