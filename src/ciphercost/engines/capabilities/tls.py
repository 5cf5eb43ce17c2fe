"""Capability: the server encrypts connections by TLS."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from ciphercost.engines.capabilities.connections import EncryptsConnections
from ciphercost.model.connection import Changes

if TYPE_CHECKING:
    from ciphercost.host.pki import Pki


class HasTls(EncryptsConnections):
    """A server that ciphercost can configure for TLS, and which of the `tls` mechanism's factors it supports."""

    missing = "has no TLS"

    tls_resumption: tuple[str, ...] = ()
    """Ways in which this server can resume TLS sessions, besides `off`. Empty: it never resumes one."""
    tls_cbc: bool = True
    """Whether it can be configured to accept CBC cipher suites."""
    no_old_tls: str = "ciphercost offers TLS 1.0 and 1.1 on web servers only"
    """Why this server can't be measured with TLS 1.0 or 1.1; empty: it can. User-visible."""
    tls_weak_keys: bool = False
    """Whether it can be configured to accept RSA keys below 2048 bits."""
    no_post_quantum_keys: str = ""
    """Why it can't present an ML-DSA certificate; empty: it can, with OpenSSL 3.5. User-visible."""
    no_fips: str = ""
    """Why ciphercost can't start it in FIPS mode; empty: it can. User-visible."""
    own_fips: Mapping[str, str] = MappingProxyType({})
    """Environment variables by which a server without OpenSSL switches FIPS mode on or off, with `{}` for `on` or `off`. Empty:
    its OpenSSL loads the FIPS provider or does not.
    """
    tls_client_cert: bool = False
    """Whether it can be configured to require a client certificate."""
    tls_begins: Literal["at once", "on request", "either"] = "at once"
    """How a client begins TLS: with its first byte, or when the server agrees in its own protocol; either, if ciphercost's client can
    also begin at once with a hop that ends TLS.
    """
    tls_negotiations: tuple[str, ...] = ()
    """Ways in which a client can begin TLS with it, by the words of the factor `negotiation`; empty: there is one."""
    binds_logins: bool = False
    """Whether a login can be bound to the TLS connection (channel binding)."""
    tls_round_trips: int = 0
    """Round trips that the server's protocol needs to agree on TLS before the TLS handshake begins."""

    def plaintext_fields(self) -> Changes:
        return {"tls": "off"}

    def certified(self) -> Changes:
        """Return what else differs in the connections of an arm that presents a client certificate."""
        return {}

    @abstractmethod
    def tls_settings(self, pki: Pki, factors: Mapping[str, str]) -> dict[str, str]:
        """Return the server settings for TLS with this certificate and, where the server chooses it, this group.

        The settings offer every version and cipher suite; the client pins one. So cells that differ only in these can
        share a server.
        """
