"""A busy wait of known length in one arm: a control whose effect ciphercost must detect and measure correctly."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ciphercost.engines import Engine
from ciphercost.load.units import share
from ciphercost.mechanisms import Factor, Mechanism
from ciphercost.model.connection import Changes
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import Arm

BASE_NS = 50_000
"""Length of an operation in both arms: the agent's own overhead (well below 1 µs) must not dilute the effect."""


class Busy(Mechanism):
    name = "busy"
    title = "a known busy wait (control)"
    layer = "control"
    engines = ("null",)
    factors = (Factor("effect", (), "how much longer the encrypted arm's operation is, e.g. 2%", acts="operation"),)
    protects = "nothing: it shows that an effect of known size is detected"

    def check(self, factors: Mapping[str, str]) -> dict[str, str]:
        known = super().check(factors)
        known["effect"] = known["effect"] or "2%"
        if share(known["effect"], "--set effect") >= 1:
            raise UsageError(f"--set effect={known['effect']}: must be below 100%")
        return known

    def connection(self, engine: Engine, arm: Arm, factors: Mapping[str, str], secrets: Path) -> Changes:  # noqa: ARG002
        effect = share(factors["effect"]) if arm == "encrypted" else 0.0
        return {"busy_ns": round(BASE_NS * (1 + effect))}


MECHANISM = Busy()
