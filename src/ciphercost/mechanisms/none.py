"""Both arms unencrypted. It measures this machine's noise floor."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ciphercost.engines import Engine
from ciphercost.mechanisms import Mechanism
from ciphercost.model.connection import Changes
from ciphercost.model.spec import Arm


class NoEncryption(Mechanism):
    name = "none"
    title = "no encryption in either arm (control)"
    layer = "control"
    protects = "nothing: it shows how far apart two equal arms come out on this machine"

    def serves(self, engine: Engine) -> bool:  # noqa: ARG002
        return True

    def connection(self, engine: Engine, arm: Arm, factors: Mapping[str, str], secrets: Path) -> Changes:  # noqa: ARG002
        # Explicit: a relay then also keeps the server's name, which tells the agent whether traffic leaves the machine.
        return engine.plaintext_fields()


MECHANISM = NoEncryption()
