"""Mechanisms: one file per way to encrypt, with the code that switches it on and the witnesses that must confirm it.

A mechanism file defines `MECHANISM`, an instance of a subclass of `Mechanism` with the file's name, or `MECHANISMS`, several that
differ only in mode or key length, whose names begin with the file's: `aes-cbc-128` is in `aes.py`. Adding a file adds a mechanism; names
that begin with `_` are shared code. A cell's mechanism is imported alone; lists and suggestions import all.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import msgspec

from ciphercost import hops
from ciphercost.hops import Hop
from ciphercost.host.ports import LOOPBACK
from ciphercost.model.cipher_work import CipherWork
from ciphercost.model.connection import Changes
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.registry import Registry
from ciphercost.model.slices import Witness
from ciphercost.model.spec import Arm, Layer

if TYPE_CHECKING:
    from ciphercost.engines import Engine


Acts = Literal["", "operation", "connection", "handshake", "write", "start"]
"""When a factor acts, which decides what workloads show it: in each operation; when a connection or database opens; both, but mostly when a connection
opens; when data is written; before the load, when a server starts or a directory is mounted. Empty: not declared, which a test refuses."""


class Factor(msgspec.Struct, frozen=True):
    """One option of a mechanism. `values[0]` is the default; without values any text is accepted."""

    name: str
    values: tuple[str, ...]
    text: str
    aliases: dict[str, str] = {}
    """Other spellings of some values."""
    paths: bool = False
    """A path, which has a slash, is a value too."""
    acts: Acts = ""
    only_with: str = ""
    """Another factor, without which this one has no effect: its name, or `NAME=VALUE` if only that value will do."""

    def acts_beside(self, factors: Mapping[str, str]) -> bool:
        """Whether it has an effect beside the other factors, with defaults filled in."""
        name, equals, value = self.only_with.partition("=")
        return not name or (factors[name] == value if equals else bool(factors[name]))


class Route(msgspec.Struct, frozen=True):
    """The way of an arm's connections through a hop."""

    hop: Hop
    ends: hops.Ends

    @property
    def legs(self) -> tuple[bool, ...]:
        """Whether each part of the way is encrypted, from the client to the server."""
        return self.hop.legs(self.ends)


class Mechanism(ABC):
    """How to switch on one layer of encryption."""

    name: str
    title: str
    layer: Layer
    engines: tuple[str, ...] = ()
    """Names of the engines that have it; `serves` may decide otherwise."""
    factors: tuple[Factor, ...] = ()
    decided_settings: Mapping[str, str] = MappingProxyType({})
    """Server settings that the mechanism itself decides, so that a user can't give them: regular expressions of names, in lower
    case with `_` for `-`, and the factor that decides each; empty: being on or off.
    """
    witnesses: tuple[Witness, ...] = ()
    """Witnesses that must report on each arm; none for a control."""
    protects: str = ""
    """What it protects, at rest what it protects against, in one line: see `protection`."""
    family: str = ""
    """Short form of the names of all mechanisms in one file; empty if it is the only one."""

    def bindir(self) -> str:
        """Return the directory of binaries that only this mechanism needs; empty: any will do."""
        return ""

    def serves(self, engine: Engine) -> bool:
        """Whether this engine has the mechanism."""
        return engine.name in self.engines

    def check(self, factors: Mapping[str, str]) -> dict[str, str]:
        """Return the factors with defaults filled in. Raises UsageError that suggests the nearest factor or value."""
        known = {factor.name: factor for factor in self.factors}
        given = {}
        for name, value in factors.items():
            if name not in known:
                raise UsageError(f"{self.name} has no factor '{name}': {nearest(name, known)}")
            factor = known[name]
            given[name] = value = factor.aliases.get(value, value)
            if factor.values and value not in factor.values and not (factor.paths and "/" in value):
                raise UsageError(f"{self.name} has no {name} '{value}': {nearest(value, filter(None, factor.values))}")
        defaults = {factor.name: factor.values[0] if factor.values else "" for factor in self.factors}
        return {**defaults, **given}

    def called(self, settings: Mapping[str, str]) -> str:
        """Return what reports call an arm with these settings, in which it differs from another encrypted arm. Pure."""
        return ", ".join(f"{name}={value or 'default'}" for name, value in settings.items())

    def required(self, factors: Mapping[str, str]) -> tuple[Witness, ...]:  # noqa: ARG002
        """Witnesses that must report on each arm of a cell with these factors."""
        return self.witnesses

    def fits(self, engine: Engine, factors: Mapping[str, str]) -> None:  # noqa: B027 - most have nothing to refuse
        """Refuse what this engine can't do with these factors, before anything starts. Raises UsageError."""

    def check_version(self, engine: Engine, version: str) -> None:  # noqa: B027
        """Refuse a server version that lacks the mechanism. `version`: empty if not known yet. Raises UsageError."""

    def server_settings(
        self,
        engine: Engine,  # noqa: ARG002
        factors: Mapping[str, str],  # noqa: ARG002
        secrets: Path,  # noqa: ARG002
        address: str = LOOPBACK,  # noqa: ARG002
    ) -> dict[str, str]:
        """Return settings for a server that serves both arms.

        `secrets`: directory for keys (mode 0700), deleted with the run. `address`: where the server listens.
        """
        return {}

    def sign(self, sent: bytes, received: bytes) -> tuple[bool, str]:  # noqa: ARG002
        """In transit: judge the bytes of both directions. Returns (whether they look encrypted, the reason). Pure.

        The absence of the canary alone proves nothing: compressed bytes don't contain it either.
        """
        return False, f"it is not known what {self.name} looks like on the wire"

    def server_library(self, factors: Mapping[str, str]) -> str:  # noqa: ARG002
        """Return the directory of the OpenSSL libraries that the server must use; empty: its own."""
        return ""

    def server_fips(self, factors: Mapping[str, str]) -> str:  # noqa: ARG002
        """Return whether the server must be in FIPS mode, `on` or `off`; empty: nothing is proven about it."""
        return ""

    def if_not_started(self, factors: Mapping[str, str]) -> str:  # noqa: ARG002
        """Return what to try if the server does not start with these factors; empty: nothing is known. User-visible."""
        return ""

    def route(self, arm: Arm, factors: Mapping[str, str]) -> Route | None:  # noqa: ARG002
        """Return the hop through which this arm's connections go, and where their encryption ends; None: they go straight to the
        server.
        """
        return None

    def floors(self, factors: Mapping[str, str]) -> Sequence[CipherWork]:  # noqa: ARG002
        """Return what ciphers do with these factors (with defaults), so that a run measures what they alone cost on this CPU.
        Empty: it is not known, or the agents have no such cipher.
        """
        return ()

    def promises(self, factors: Mapping[str, str]) -> dict[str, str]:  # noqa: ARG002
        """Return further fields of a `connected` answer that follow from these factors."""
        return {}

    @abstractmethod
    def connection(self, engine: Engine, arm: Arm, factors: Mapping[str, str], secrets: Path) -> Changes:
        """Return what this arm adds to a connection to the server."""


LAYERS: tuple[Layer, ...] = ("transit", "rest", "column", "control")


REGISTRY = Registry(__name__)


def _in_file(file: str) -> tuple[Mechanism, ...]:
    """Return the mechanisms of one file."""
    module = REGISTRY.load(file)
    several: tuple[Mechanism, ...] = getattr(module, "MECHANISMS", ()) or (module.MECHANISM,)
    return several


@functools.cache
def find(name: str) -> Mechanism | None:
    """Return the mechanism with this name; None if there is none. Imports only files with whose name it begins."""
    files = [file for file in REGISTRY.names() if name == file or name.startswith(f"{file}-")]
    return next((mechanism for file in files for mechanism in _in_file(file) if mechanism.name == name), None)


@functools.cache
def _names() -> tuple[str, ...]:
    return tuple(sorted(mechanism.name for file in REGISTRY.names() for mechanism in _in_file(file)))


def names() -> list[str]:
    """List the names of all mechanisms. Imports them all."""
    return list(_names())


def has(engine: Engine, name: str) -> bool:
    """Whether there is a mechanism with this name, and this engine has it."""
    mechanism = find(name)
    return mechanism is not None and mechanism.serves(engine)


def of(engine: Engine, layer: Layer | None = None) -> tuple[str, ...]:
    """List the mechanisms of this engine (in one layer), layer by layer; in each layer those made for it come first. Imports all."""
    mechanisms = [
        mechanism for mechanism in map(get, names()) if mechanism.serves(engine) and layer in (None, mechanism.layer)
    ]
    mechanisms.sort(key=lambda mechanism: (LAYERS.index(mechanism.layer), engine.name not in mechanism.engines))
    return tuple(mechanism.name for mechanism in mechanisms)


def get(name: str) -> Mechanism:
    """Return the mechanism with this name. Raises UsageError that suggests the nearest name."""
    if (mechanism := find(name)) is None:
        raise UsageError(f"unknown mechanism '{name}': {nearest(name, names())}")
    return mechanism


def layer_of(name: str) -> Layer | None:
    """Return the layer of the mechanism with this name; None if there is no such mechanism."""
    mechanism = find(name)
    return mechanism.layer if mechanism else None


def folded(names: Sequence[str]) -> list[str]:
    """Shorten names for people: those of a family become one, `aes-{cbc,ecb}-{128,256}`. Names must exist. Pure."""
    by_family: dict[str, list[str]] = {}
    for name in names:
        family = get(name).family
        by_family.setdefault(family or name, []).append(name)
    return [_fold(those) for those in by_family.values()]


def _fold(those: list[str]) -> str:
    parts = [name.split("-") for name in those]
    words = [list(dict.fromkeys(alternatives)) for alternatives in zip(*parts, strict=True)]
    return "-".join(
        alternatives[0] if len(alternatives) == 1 else f"{{{','.join(alternatives)}}}" for alternatives in words
    )


def protection(mechanism: Mechanism) -> str:
    """Describe what it protects: in transit the data, in columns the values, at rest the threat. Pure."""
    return f"against {mechanism.protects}" if mechanism.layer == "rest" else mechanism.protects
