"""Two Envoys, one beside the client and one beside the server, with mutual TLS between them: a service mesh's data path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciphercost.engines.capabilities.tls import HasTls
from ciphercost.hops import Ends, Stage
from ciphercost.hops._envoy import EnvoyProgram

if TYPE_CHECKING:
    from ciphercost.engines import Engine


class TwoEnvoys(EnvoyProgram):
    name = "two-envoys"
    title = "two Envoys"
    own_tls = "mutual TLS between the Envoys"

    def stages(self, ends: Ends) -> tuple[Stage, ...]:
        between = ends == "hop"
        return (Stage(connects=between), Stage(accepts=between))

    def legs(self, ends: Ends) -> tuple[bool, ...]:
        return (ends == "server", bool(ends), ends == "server")

    def refuses(self, engine: Engine, ends: Ends) -> str:  # noqa: ARG002
        """Between them they need no help from the server's protocol."""
        return "" if isinstance(engine, HasTls) else f"{self.title} carry servers with TLS, and {engine.name} has none"


HOP = TwoEnvoys()
