"""connections: servers that encrypt connections, by TLS or in a way of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciphercost.engines import Server
from ciphercost.engines.capabilities import Capability

if TYPE_CHECKING:
    from ciphercost.load.agent import Agent


class EncryptsConnections(Capability):
    """A server whose connections are encrypted or not, and which may say so of each."""

    missing = "does not encrypt connections"

    refuses_clear: tuple[str, ...] = ()
    """Codes of the agent's error when the server refuses a connection because it isn't encrypted."""
    tls_witness: str = ""
    """SQL that returns `encrypted (t or f), protocol, cipher` of the session it runs in."""

    def sessions(
        self,
        server: Server,  # noqa: ARG002
        agent: Agent,
        arm: str,
        *,
        everywhere: bool = False,
    ) -> list[list[str | None]]:
        """Ask the server about the sessions of an agent's arm. Returns a row per connection: encrypted (t or f), protocol, cipher.

        A fourth column means that the server has verified a certificate of the client.

        `everywhere`: ask on every connection of the arm, not only on its first.
        """
        return agent.query(arm, self.tls_witness, everywhere=everywhere)
