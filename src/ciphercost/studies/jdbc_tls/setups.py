"""The driver, call and arm of each compared setup, and its names. Pure."""

from __future__ import annotations

from typing import NamedTuple

from ciphercost.model.spec import Arm

OLD, NEW = "5.1.6", "8.0.16"
"""MySQL Connector/J before and after the upgrade."""
UPDATE, EXECUTE = "executeUpdate", "execute"
"""JDBC calls that run an INSERT. The post does not say which one its loop used."""
CALLS = (UPDATE, EXECUTE)
LOCAL = "useLocalSessionState"
SERVER_VERSION = "5.7.19-log"
"""The version that the server announces, so that both drivers treat it as MySQL. With a server that announces MariaDB, the newer driver
omits the queries that it sends to MySQL."""


class Setup(NamedTuple):
    """One way to run the loop."""

    driver: str
    call: str
    arm: Arm
    local: bool = False
    """Whether the driver caches the session's state instead of querying it."""

    @property
    def name(self) -> str:
        """`8.0.16`, or `8.0.16 useLocalSessionState`: the driver's name in the record."""
        return f"{self.driver} {LOCAL}" if self.local else self.driver

    @property
    def variant(self) -> str:
        """Variant of our cell, which has both arms: `8.0.16 execute`, `8.0.16 execute useLocalSessionState`."""
        return " ".join([self.driver, self.call, *[LOCAL] * self.local])

    @property
    def options(self) -> dict[str, str]:
        """Client options, as for `--set`."""
        return {"how": self.call} | ({LOCAL: "true"} if self.local else {})

    @property
    def words(self) -> str:
        return f"{self.name}, {'TLS' if self.arm == 'encrypted' else 'without TLS'}"


def before(call: str) -> Setup:
    """The old driver, whose TLS today's Java no longer speaks and which by default used none."""
    return Setup(OLD, call, "plain")


def after(call: str) -> Setup:
    """The new driver with its defaults: it encrypts wherever the server can."""
    return Setup(NEW, call, "encrypted")


def after_in_clear(call: str) -> Setup:
    return Setup(NEW, call, "plain")


def without_queries(call: str) -> Setup:
    """The new driver without TLS and without its own queries."""
    return Setup(NEW, call, "plain", local=True)


LOOP = "a loop of inserts"
PUBLISHED = (before(UPDATE), after(UPDATE), after_in_clear(UPDATE))
"""In the published order."""
EVERY = tuple(make(call) for call in CALLS for make in (before, after, after_in_clear))
ON_THE_WIRE = (before(UPDATE), after_in_clear(UPDATE), after(UPDATE), after(EXECUTE))
"""Setups whose packets and records are observed."""
