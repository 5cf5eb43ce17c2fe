"""tls: servers that encrypt connections by TLS."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ciphercost.engines.capabilities.connections import EncryptsConnections

if TYPE_CHECKING:
    from ciphercost.host.pki import Pki


class HasTls(EncryptsConnections):
    """A server that can be configured for TLS, and what it can be asked for."""

    missing = "has no TLS"

    tls_resumption: tuple[str, ...] = ()
    """Ways to make this server resume TLS sessions, beside `off`. Empty: it never does."""
    tls_cbc: bool = True
    """Whether it can be configured to accept CBC suites."""
    no_old_tls: str = "ciphercost offers TLS 1.0 and 1.1 on web servers only"
    """Why this server can't be asked for TLS 1.0 or 1.1; empty: it can."""
    tls_weak_keys: bool = False
    """Whether it can be configured to accept an RSA key below 2048 bits."""
    tls_client_cert: bool = False
    """Whether it can be configured to require a client certificate, and says whether it has verified one."""
    tls_round_trips: int = 0
    """Round trips that the protocol needs to agree on TLS before TLS's own handshake begins."""

    def in_clear(self) -> dict[str, object]:
        return {"tls": "off"}

    @abstractmethod
    def tls_settings(self, pki: Pki, factors: Mapping[str, str]) -> dict[str, str]:
        """Return the server settings for TLS with this certificate and, where a server chooses it, this group.

        Offer every version and suite; the client pins them. Then cells that differ in these can share a server.
        """
