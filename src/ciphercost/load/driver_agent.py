"""An agent with somebody else's driver, behind the Rust agent's interface: it takes the same `connect` fields and translates them.

A driver's settings don't prove that it verifies its peer: an impostor must have shown it another certificate and must have been
refused.
"""

from __future__ import annotations

import contextlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from ciphercost.host.impostor import Speech
from ciphercost.host.supervisor import Supervisor, temporary
from ciphercost.load.agent import Agent
from ciphercost.load.peer_checks import MOST_SHOWN, Verdict, refuses_impostor, refuses_other_name
from ciphercost.load.plaintext_guard import encrypted_first, words
from ciphercost.model.connection import Connected, Connection, Pool
from ciphercost.model.errors import AgentError, RunError, Unproven, server_code
from ciphercost.model.slices import AgentSlice
from ciphercost.model.spec import ARMS, Arm

SPEECHES: dict[str, Speech] = {"mysql": "mysql", "postgres": "postgres", "h2": "tls"}
"""How a server's protocol begins, by name of the Rust agent's driver. Other servers have no certificates."""
CHECKS = ("verify-ca", "verify-full")
"""How a connection asks that the server's certificate be checked."""


class EngineDialect(Protocol):
    """What an agent with a driver needs to know about the engine."""

    name: str

    @property
    def driver(self) -> str:
        """The protocol, by name of the Rust agent's driver."""

    @property
    def tls_witness(self) -> str:
        """SQL that returns how the session is encrypted."""


class AgentProcess(NamedTuple):
    """How an agent is started."""

    argv: list[str]
    env: Mapping[str, str] = {}
    """Variables added to its environment."""


class DriverAgent(Agent, ABC):
    """An agent with one driver. `connect` takes the Rust agent's fields."""

    draws_evenly = takes_times = False
    title: str
    """The driver's name and version."""

    def __init__(
        self,
        engine: EngineDialect,
        *,
        cpus: Iterable[int] | None = None,
        log: Path | None = None,
        netns: Path | None = None,
        supervisor: Supervisor,
    ) -> None:
        """Start the agent. `supervisor`: that of the run, which owns the agent's files."""
        self.engine = engine
        self._closing = contextlib.ExitStack()
        self._place = self._closing.enter_context(temporary(supervisor, "driver"))
        self._checked: dict[tuple[str, str], Verdict] = {}
        self.connect_answers: dict[str, Connected] = {}
        """The answers to `connect`, by arm."""
        try:
            argv, env = self.command()
            super().__init__(argv, cpus=cpus, log=log, env=env, netns=netns)
        except BaseException:
            self._closing.close()
            raise

    @abstractmethod
    def command(self) -> AgentProcess:
        """How its process is started. Its files go to `_place`. Raises MissingServer."""

    @abstractmethod
    def translated(self, connection: Connection) -> Pool:
        """Translate a connection of the Rust agent's kind to one of this agent's."""

    @abstractmethod
    def checked_by(self, connection: Connection) -> tuple[str, str]:
        """How this driver is told to check the server's certificate (`require`, `verify-ca`, `verify-full`), and against which
        authorities: a file, or empty.
        """

    @abstractmethod
    def settings(self, connection: Connection) -> dict[str, str]:
        """The driver's settings for a connection, without secrets and paths of this machine."""

    def demanded(self, connection: Connection) -> Connection:
        """A connection without what this driver can't be told, and so need not be negotiated."""
        return connection

    def strangers_name(self, connection: Connection) -> str | None:  # noqa: ARG002
        """A name that is not the server's, for the test whether the driver refuses that. None: the address of the test is its name."""
        return None

    def cipher_name(self, name: str) -> str:
        """A cipher suite as OpenSSL names it."""
        return name

    def hint(self, error: AgentError) -> str:  # noqa: ARG002
        """What to do if the driver can't connect, as the end of a sentence; empty: nothing is known."""
        return ""

    def close(self) -> None:
        super().close()
        self._closing.close()

    # ── connecting ────────────────────────────────────────────────────────────────────────────────────────────────────

    def connect(self, arm: str, connection: Pool) -> Connected:
        """Open an arm's connections; those of the Rust agent's kind are translated."""
        if not isinstance(connection, Connection):
            return super().connect(arm, connection)
        answer = super().connect(arm, self.translated(connection))
        answer = msgspec.structs.replace(
            answer,
            server_version=plain_version(answer.server_version),
            cipher=self.cipher_name(answer.cipher),
            resumed=None,  # no driver can report it
        )
        if answer.encrypted and connection.by_tls:
            by, said, _ = self._verified(connection)
            answer = msgspec.structs.replace(answer, peer="the server", checked=said, verified=bool(by), verified_by=by)
        self.connect_answers[arm] = answer
        return answer

    def disconnect(self, arm: str) -> None:
        super().disconnect(arm)
        self.connect_answers.pop(arm, None)

    def _verified(self, connection: Connection) -> Verdict:
        """Return by what the driver refuses every other server, and a sentence about it.

        Tried once per set of connection settings.
        """
        key = self.checked_by(connection)
        if key[0] not in CHECKS or self.engine.driver not in SPEECHES:
            return Verdict("", "")
        if key not in self._checked:
            self._checked[key] = self._try(connection, key[0])
        return self._checked[key]

    def _try(self, connection: Connection, mode: str) -> Verdict:
        kind = "ecdsa-p256" if "ECDSA" in (connection.tls_ciphers or "") else "rsa2048"

        def call(port: int, host: str = "127.0.0.1") -> str:
            return self._reached(connection.single | {"host": host, "port": port})

        verdict = refuses_impostor(
            SPEECHES[self.engine.driver], connection.host, connection.port, self._place, call, kind
        )
        if verdict.by != "certificate" or mode != "verify-full":
            return verdict

        def call_stranger(port: int, host: str) -> str:
            return self._reached(connection.single | {"host": host, "port": port}, self.strangers_name(connection))

        named, more = refuses_other_name(connection.host, connection.port, call_stranger)
        return Verdict("certificate" if named else "", f"{verdict.words}, {more}")

    def _reached(self, connection: Connection, name: str | None = None) -> str:
        """Return why this connection fails; empty: it succeeds.

        `name`: what the driver takes for the server's; None: the address.
        """
        try:
            super().connect("stranger", self.translated(connection | {"tls_server_name": name}))
        except AgentError as error:
            return str(error) or error.code
        super().disconnect("stranger")
        return ""

    def enter(
        self,
        connect: Mapping[Arm, Connection],
        told: Callable[[AgentError, Arm], None] | None = None,
        encrypted: Collection[Arm] = (ARMS[1],),
    ) -> None:
        """Check that the driver can log in at all, in these arms. Raises RunError with the driver's reason and a hint.

        `told`: on a server that the user runs, called with the reason if an arm of `encrypted` can't log in; no other is tried
        then.
        """
        for arm in encrypted_first(connect):
            try:
                super().connect("enter", self.translated(connect[arm].single))
                super().disconnect("enter")
            except AgentError as error:
                more = self.hint(error)
                if told and arm in encrypted:
                    told(error, arm)
                    more += f". {words(str(error), error.code)}"
                raise RunError(
                    f"{self.title} can't connect, {arm} arm: {str(error)[:MOST_SHOWN]}{server_code(error.code)}{more}"
                ) from None

    # ── loading ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def slice(
        self,
        arm: str,
        seconds: float,
        **more: Any,
    ) -> AgentSlice:
        """Run a slice like any agent.

        Raises Unproven if its driver or its session's encryption differs from what `connect` reported.
        """
        answer = super().slice(arm, seconds, **more)
        answer = msgspec.structs.replace(answer, cipher=self.cipher_name(answer.cipher))
        if (connected := self.connect_answers.get(arm)) is None:
            return answer
        for name in ("driver_version", "encrypted", "protocol", "cipher"):
            now, then = getattr(answer, name), getattr(connected, name)
            if now != then:
                raise Unproven(
                    f"client witness, {arm} arm, under load: {name} is '{now}', but at connect it was '{then}'"
                )
        return answer


def settings_diff(settings: Mapping[Arm, Mapping[str, str]]) -> list[str]:
    """List how the drivers' settings differ between the arms. Pure."""
    plain, encrypted = settings["plain"], settings["encrypted"]
    names = [name for name in sorted({*plain, *encrypted}) if plain.get(name) != encrypted.get(name)]
    return [f"{name}: {plain.get(name, 'not set')} | {encrypted.get(name, 'not set')}" for name in names]


def plain_version(text: str) -> str:
    """Reduce `5.5.5-10.11.18-MariaDB-deb12` to `10.11.18`. Pure."""
    match = re.match(r"(?:5\.5\.5-)?(\d+(?:\.\d+)*)", text)
    return match[1] if match else text
