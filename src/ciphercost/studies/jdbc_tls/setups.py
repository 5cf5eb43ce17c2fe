"""setups: which driver, which call and which arm are compared, and what each is called. Pure."""

from __future__ import annotations

from typing import NamedTuple

from ciphercost.model.spec import Arm

OLD, NEW = "5.1.6", "8.0.16"
"""MySQL Connector/J before the upgrade, and after it."""
UPDATE, EXECUTE = "executeUpdate", "execute"
"""The calls of JDBC that run an INSERT. The post does not say which one its loop made."""
CALLS = (UPDATE, EXECUTE)
LOCAL = "useLocalSessionState"
SERVER_VERSION = "5.7.19-log"
"""What the server says it is: a version that both drivers take for MySQL's own. Of a server that says it is MariaDB, the newer driver
leaves out the questions that it asks MySQL."""


class Setup(NamedTuple):
    """One way to run the loop."""

    driver: str
    call: str
    arm: Arm
    local: bool = False
    """Whether the driver remembers the session's state, so that it needs not ask."""

    @property
    def name(self) -> str:
        """`8.0.16`, or `8.0.16 useLocalSessionState`: the record's word for the driver."""
        return f"{self.driver} {LOCAL}" if self.local else self.driver

    @property
    def variant(self) -> str:
        """Of a cell of ours, which has both arms: `8.0.16 execute`, `8.0.16 execute useLocalSessionState`."""
        return " ".join([self.driver, self.call, *[LOCAL] * self.local])

    @property
    def options(self) -> dict[str, str]:
        """As `--set` says them to the client."""
        return {"how": self.call} | ({LOCAL: "true"} if self.local else {})

    @property
    def words(self) -> str:
        return f"{self.name}, {'TLS' if self.arm == 'encrypted' else 'without TLS'}"


def before(call: str) -> Setup:
    """The old driver, which has no TLS that Java still speaks, and by default asked for none."""
    return Setup(OLD, call, "plain")


def after(call: str) -> Setup:
    """The new driver as it comes: it encrypts wherever the server can."""
    return Setup(NEW, call, "encrypted")


def after_in_clear(call: str) -> Setup:
    return Setup(NEW, call, "plain")


def quiet(call: str) -> Setup:
    """The new driver in clear, kept from asking."""
    return Setup(NEW, call, "plain", local=True)


LOOP = "a loop of inserts"
PUBLISHED = (before(UPDATE), after(UPDATE), after_in_clear(UPDATE))
"""In the published order."""
EVERY = tuple(make(call) for call in CALLS for make in (before, after, after_in_clear))
ON_THE_WIRE = (before(UPDATE), after_in_clear(UPDATE), after(UPDATE), after(EXECUTE))
"""Whose packets and records are looked at."""
