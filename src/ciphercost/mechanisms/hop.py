"""No encryption: the second arm goes through a hop, the first one straight to the server. It shows what the hop itself costs.

The factors are those of `tls`, so that both mechanisms can share a server.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ciphercost import hops
from ciphercost.engines import Engine
from ciphercost.mechanisms import Route
from ciphercost.mechanisms.tls import Tls, check_hop
from ciphercost.model.connection import Changes
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import Arm


class ThroughHop(Tls):
    name = "hop"
    title = "a hop before the server in one arm, no encryption in either (control)"
    layer = "control"
    protects = "nothing: it shows what the hop costs without encryption"

    def serves(self, engine: Engine) -> bool:
        return super().serves(engine) and not engine.foreign

    def fits(self, engine: Engine, factors: Mapping[str, str]) -> None:
        if not factors["hop"]:
            raise UsageError(f"{engine.name}:hop needs --set hop=NAME: {', '.join(hops.names())}")
        if not hops.get(factors["hop"]).forwards_plain:
            raise UsageError(f"hop={factors['hop']}: it passes on nothing without TLS, so it can't be measured alone")
        check_hop(engine, factors, "")

    def route(self, arm: Arm, factors: Mapping[str, str]) -> Route | None:
        return None if arm == "plain" else Route(hops.get(factors["hop"]), "")

    def promises(self, factors: Mapping[str, str]) -> dict[str, str]:  # noqa: ARG002
        return {}

    def connection(self, engine: Engine, arm: Arm, factors: Mapping[str, str], secrets: Path) -> Changes:  # noqa: ARG002
        return {"tls": "off"}


MECHANISM = ThroughHop()
