"""No encryption: the second arm is a web server's unencrypted answers without sendfile, which TLS in user space can't
use.

The cost is part of the cost of TLS there, but not of cryptography.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from ciphercost.engines import Engine
from ciphercost.host.ports import LOOPBACK
from ciphercost.mechanisms import Mechanism, tls
from ciphercost.model.connection import Changes
from ciphercost.model.spec import Arm


class NoSendfile(Mechanism):
    name = "no-sendfile"
    title = "sendfile off in one arm, no encryption in either (control)"
    layer = "control"
    engines = ("nginx", "apache")
    decided_settings = MappingProxyType({"(enable)?sendfile.*": ""})
    protects = "nothing: it shows which part of the cost of TLS is not cryptography"

    def server_settings(
        self,
        engine: Engine,
        factors: Mapping[str, str],  # noqa: ARG002
        secrets: Path,
        address: str = LOOPBACK,
    ) -> dict[str, str]:
        """Use the default settings of `tls`, so that both mechanisms can share a server."""
        return tls.MECHANISM.server_settings(engine, {}, secrets, address)

    def connection(self, engine: Engine, arm: Arm, factors: Mapping[str, str], secrets: Path) -> Changes:  # noqa: ARG002
        return {"tls": "off"}


MECHANISM = NoSendfile()
