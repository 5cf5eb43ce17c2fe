"""no_sendfile: no encryption: the second arm is a web server's clear answers without sendfile, which TLS in user space has to do without.

What it costs is part of what TLS costs there, and none of cryptography's.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ciphercost.engines import Engine
from ciphercost.mechanisms import Mechanism, tls
from ciphercost.model.spec import Arm


class NoSendfile(Mechanism):
    name = "no-sendfile"
    title = "clear against clear without sendfile: what TLS has to do without"
    layer = "control"
    engines = ("nginx", "apache")
    protects = "nothing: it is the part of TLS's cost that is no cryptography"

    def server_settings(self, engine: Engine, factors: Mapping[str, str], secrets: Path) -> dict[str, str]:  # noqa: ARG002
        """Those of `tls` as it comes, so that both can share a server."""
        return tls.MECHANISM.server_settings(engine, {}, secrets)

    def connection(self, engine: Engine, arm: Arm, factors: Mapping[str, str], secrets: Path) -> dict[str, object]:  # noqa: ARG002
        return {"tls": "off"}


MECHANISM = NoSendfile()
