"""Capability: the server encrypts connections, by TLS or by its own protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciphercost.engines import Server
from ciphercost.engines.capabilities import Capability

if TYPE_CHECKING:
    from ciphercost.load.load_client import LoadClient


class EncryptsConnections(Capability):
    """A server whose connections may be encrypted, and that can report for each session whether it is.

    Set `tls_witness` if SQL answers that question; else override `sessions`.
    """

    missing = "does not encrypt connections"

    refuses_clear: tuple[str, ...] = ()
    """Error codes of the agent for a server that refuses a connection because it isn't encrypted."""
    tls_witness: str = ""
    """SQL that returns one row for the current session: encrypted (t or f), protocol, cipher."""

    resumed_witness: str = ""
    """SQL that returns one row for the current session: whether it resumed an earlier TLS session (t or f). Empty: the server does not
    report it.
    """
    certificate_witness: str = ""
    """SQL that returns one row for the current session: subject and serial number of the client's certificate, both NULL without one.
    Empty: the server does not report it.
    """
    certificate_in_sessions: bool = False
    """Whether the rows of `sessions` say that the server verified a client certificate."""

    def sessions(
        self,
        server: Server,  # noqa: ARG002
        agent: LoadClient,
        arm: str,
        *,
        everywhere: bool = False,
    ) -> list[list[str | None]]:
        """Ask the server about the sessions of an agent's arm.

        `everywhere`: ask on every connection of the arm instead of the first only.

        Returns one row per connection: encrypted (t or f), protocol, cipher. A fourth column means that the server
        verified a client certificate. Raises AgentError.
        """
        return agent.query(arm, self.tls_witness, everywhere=everywhere)
