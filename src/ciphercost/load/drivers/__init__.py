"""Drivers that applications use: one file per language, with its drivers, their versions, and how its agent is made and started.

A language's file defines `LANGUAGE`, an instance of a subclass of `Language`. Adding a driver to it, or a file, adds a client;
names that begin with `_` are shared code. JDBC's drivers have properties of their own, and their own registry (`load/jdbc`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from ciphercost.host import package_cache, versions
from ciphercost.model.errors import MissingServer, UsageError, nearest
from ciphercost.model.registry import Registry

if TYPE_CHECKING:
    from ciphercost.load.driver_agent import AgentProcess
    from ciphercost.model.connection import Connection

REGISTRY = Registry(__name__)
POSTGRESQL = ("postgresql",)
MYSQL = ("mysql", "mariadb")


class Option(msgspec.Struct, frozen=True):
    """A setting of a driver (`--set NAME=VALUE`). It applies to both arms."""

    name: str
    values: tuple[str, ...]
    """The first is the default; `number` is any integer from 0 on."""
    text: str


class Driver(msgspec.Struct, frozen=True):
    """One version of a driver, and what it can do."""

    name: str
    """As in `--client`."""
    version: str
    language: str
    """Of the registry: the name of its file."""
    engines: tuple[str, ...]
    """Servers that it speaks to."""
    options: tuple[Option, ...] = ()
    verify: tuple[str, ...] = ("full", "ca", "require")
    """How it can check the server's certificate, as the factor `verify` of `tls`."""
    checks_addresses: bool = True
    """Whether it looks for an address in the server's certificate, if the server's name is one."""
    cipher: tuple[str, ...] = ("1.3", "1.2")
    """TLS versions in which it can be told which cipher suite to use."""
    at_once: bool = False
    """Whether it can begin TLS with the first byte (PostgreSQL)."""
    binding: tuple[str, ...] = ()
    """The values of channel binding that it can be told (PostgreSQL)."""

    @property
    def title(self) -> str:
        return f"{self.name} {self.version}"


class Language(ABC):
    """A language, its agent, and the drivers that its agent has."""

    name: str
    """As people write it."""
    drivers: Sequence[Driver]
    """Those of a name beside one another, the oldest first."""
    compiles: bool = False
    """Whether its code is compiled while it runs, so that it needs its own warm-up."""
    without_aes: Mapping[str, str] = MappingProxyType({})
    """Variables that hide the CPU's AES instructions from a TLS library that is not OpenSSL."""
    concurrency: str
    """How the agent runs several connections, as a sentence."""

    @abstractmethod
    def fetch(self, driver: Driver) -> None:
        """Make or find all that the agent needs with this driver. After the first time nothing is fetched. Raises MissingServer, RunError."""

    def is_here(self, driver: Driver) -> bool:
        """Whether the agent can be started with this driver, and nothing must be fetched or built."""
        try:
            with package_cache.offline():
                self.fetch(driver)
        except MissingServer:
            return False
        return True

    @abstractmethod
    def process(self, driver: Driver, like: Connection, place: Path) -> AgentProcess:
        """How the agent is started with this driver, which has been fetched.

        `like`: the encrypted arm's connection, for settings that the whole process must have. `place`: a directory for files of
        the process, which only its user can read.
        """


@cache
def language(name: str) -> Language:
    """The language of that file's name."""
    found: Language = REGISTRY.load(name).LANGUAGE
    return found


def every() -> list[Driver]:
    """Every version of every driver: languages by name, a driver's oldest version first."""
    return [driver for name in REGISTRY.names() for driver in language(name).drivers]


def names() -> list[str]:
    """What `--client` may name, in the order of the registry."""
    return list(dict.fromkeys(driver.name for driver in every()))


def named(name: str) -> list[Driver]:
    """The versions of a driver, the oldest first. Raises UsageError for an unknown name."""
    if found := [driver for driver in every() if driver.name == name]:
        return found
    raise UsageError(f"unknown driver '{name}': {nearest(name, names())}")


def find(client: str, engine: str) -> Driver:
    """The driver of `psycopg`, its newest version, or of `psycopg@3.2`, the newest that matches. Raises UsageError if there is none, or
    it does not speak to this engine.
    """
    name, at, version = client.partition("@")
    known = named(name)
    fitting = [driver for driver in known if versions.matches(driver.version, version)]
    if not fitting or (at and not version):
        raise UsageError(f"--client {client}: {nearest(version, [driver.version for driver in known])}")
    if engine not in fitting[-1].engines:
        others = [other.name for other in every() if engine in other.engines]
        use = f"use {', '.join(dict.fromkeys(others))}" if others else "remove --client"
        raise UsageError(
            f"--client {client}: {name} speaks to {' and '.join(fitting[-1].engines)}, not to {engine}; {use}"
        )
    return fitting[-1]
