"""mechanisms: one file a way to encrypt: how it is switched on, and what must be witnessed. Found by file name.

A mechanism file defines `MECHANISM`, an instance of a subclass of `Mechanism`, or `MECHANISMS`, several that are one but for a mode or a key length.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.slices import Witness
from ciphercost.model.spec import Arm, Layer

if TYPE_CHECKING:
    from ciphercost.engines import Engine


class Factor(msgspec.Struct, frozen=True):
    """One option of a mechanism. `values[0]` is the default; no values: any text."""

    name: str
    values: tuple[str, ...]
    text: str
    aliases: dict[str, str] = {}
    """Other words for some of the values."""


class Mechanism(ABC):
    """How one layer of encryption is switched on."""

    name: str
    title: str
    layer: Layer
    engines: tuple[str, ...] = ()
    """Names of the engines that it is for, where `serves` does not say otherwise."""
    factors: tuple[Factor, ...] = ()
    witnesses: tuple[Witness, ...] = ()
    """Which witnesses must speak for each arm; none for the control."""
    protects: str = ""
    """What it protects against, in one line."""
    family: str = ""
    """How the names of all that are in one file are written in short; empty: it is alone."""

    def bindir(self) -> str:
        """Where the binaries are that this mechanism alone has, if the user has said so elsewhere; empty: any will do."""
        return ""

    def serves(self, engine: Engine) -> bool:
        """Whether this engine has it."""
        return engine.name in self.engines

    def check(self, factors: Mapping[str, str]) -> dict[str, str]:
        """The factors with defaults filled in. Raises UsageError naming the nearest factor or value."""
        known = {factor.name: factor for factor in self.factors}
        given = {}
        for name, value in factors.items():
            if name not in known:
                raise UsageError(f"{self.name} has no factor '{name}': {nearest(name, known)}")
            given[name] = value = known[name].aliases.get(value, value)
            if known[name].values and value not in known[name].values:
                raise UsageError(f"{self.name} has no {name} '{value}': {nearest(value, known[name].values)}")
        defaults = {factor.name: factor.values[0] if factor.values else "" for factor in self.factors}
        return {**defaults, **given}

    def fits(self, engine: Engine, factors: Mapping[str, str]) -> None:  # noqa: B027 - most have nothing to refuse
        """Refuse what this engine can't do with these factors, before anything is started. Raises UsageError."""

    def check_version(self, engine: Engine, version: str) -> None:  # noqa: B027
        """Refuse a version of the server that does not have it. `version`: as far as it is known. Raises UsageError."""

    def server_settings(self, engine: Engine, factors: Mapping[str, str], secrets: Path) -> dict[str, str]:  # noqa: ARG002
        """Settings of a server that serves both arms. `secrets`: a directory for keys, 0700, gone with the run."""
        return {}

    def sign(self, sent: bytes, received: bytes) -> tuple[bool, str]:  # noqa: ARG002
        """In transit: what the bytes of both directions show when they are encrypted: (whether they show it, in words). Pure.

        The canary's absence alone proves nothing: compressed bytes have none either.
        """
        return False, f"nothing is known of how {self.name} looks on the wire"

    def promises(self, factors: Mapping[str, str]) -> dict[str, str]:  # noqa: ARG002
        """What of a `connected` answer follows from these factors, beside what the fields of `connect` ask for by name."""
        return {}

    @abstractmethod
    def connection(self, engine: Engine, arm: Arm, factors: Mapping[str, str], secrets: Path) -> dict[str, object]:
        """Fields of the agent's `connect` that this arm adds to the server's own."""


LAYERS: tuple[Layer, ...] = ("transit", "rest", "column", "control")


@functools.cache
def _all() -> dict[str, Mechanism]:
    """Every mechanism by its name (what begins with `_` is shared by several files)."""
    found: dict[str, Mechanism] = {}
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("_"):
            file = importlib.import_module(f"{__name__}.{module.name}")
            several: tuple[Mechanism, ...] = getattr(file, "MECHANISMS", ()) or (file.MECHANISM,)
            found |= {each.name: each for each in several}
    return dict(sorted(found.items()))


def names() -> list[str]:
    """Names of all mechanisms."""
    return list(_all())


def of(engine: Engine, layer: Layer | None = None) -> tuple[str, ...]:
    """Names of the mechanisms that this engine has (in one layer), layer by layer; of each layer those first that are its own."""
    own = [each for each in map(get, names()) if each.serves(engine) and layer in (None, each.layer)]
    own.sort(key=lambda each: (LAYERS.index(each.layer), engine.name not in each.engines))
    return tuple(each.name for each in own)


def get(name: str) -> Mechanism:
    """The mechanism of that name. Raises UsageError with the nearest name."""
    if name not in _all():
        raise UsageError(f"unknown mechanism '{name}': {nearest(name, names())}")
    return _all()[name]


def folded(names: Sequence[str]) -> list[str]:
    """Names as people read them: those of a family as one, `aes-{cbc,ecb}-{128,256}`. Pure; of names that exist."""
    found: dict[str, list[str]] = {}
    for name in names:
        own = get(name).family
        found.setdefault(own or name, []).append(name)
    return [_fold(those) for those in found.values()]


def _fold(those: list[str]) -> str:
    parts = [name.split("-") for name in those]
    words = [list(dict.fromkeys(each)) for each in zip(*parts, strict=True)]
    return "-".join(each[0] if len(each) == 1 else f"{{{','.join(each)}}}" for each in words)


def protection(mechanism: Mechanism) -> str:
    """What it protects: in columns values are named, elsewhere those whom it is against. Pure."""
    return mechanism.protects if mechanism.layer in ("column", "control") else f"against {mechanism.protects}"
