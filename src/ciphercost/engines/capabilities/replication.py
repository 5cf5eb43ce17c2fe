"""Capability: a second server of the kind repeats what the first one writes, over a link that TLS may encrypt."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ciphercost.engines.capabilities import Capability
from ciphercost.host.installation import Installation
from ciphercost.load.agent_messages import Reply
from ciphercost.model.connection import Connection


class Ask:
    """Sends statements to one server."""

    def __init__(self, query: Callable[[str], list[list[str | None]]], reply: Callable[[str], Reply]) -> None:
        self._query, self._reply = query, reply

    def __call__(self, statement: str) -> list[list[str | None]]:
        """Return its rows. Raises AgentError."""
        return self._query(statement)

    def row(self, statement: str) -> dict[str, str]:
        """Return its first row by column; {}: there is none. Raises AgentError."""
        reply = self._reply(statement)
        return {name: value or "" for row in reply.rows[:1] for name, value in zip(reply.columns, row, strict=True)}


class ReplicationLink(msgspec.Struct, frozen=True):
    """How a replica reaches its primary: by TLS, or unencrypted."""

    to: Connection
    """The primary's unencrypted address, user and password."""
    host: str
    port: int
    """Where the replica connects: to the primary, or to a relay before it."""
    ca: str = ""
    """PEM file of the authority that the primary's certificate must be from; empty: the link is not encrypted."""
    directory: Path = Path()
    """The replica's own, for a file with the password."""


class LinkEnd(msgspec.Struct, frozen=True):
    """What one server reports about the link."""

    encrypted: bool | None
    """None: it does not report it."""
    words: str
    protocol: str = ""
    cipher: str = ""


class CopyRequest(msgspec.Struct, frozen=True):
    """What a full copy is made of, and where to."""

    installation: Installation
    link: ReplicationLink
    target: Path
    """An empty directory, owned by the user who runs the servers; the replica may write there."""
    secrets: Path
    """Directory for a file with the password (mode 0600), which a tool reads."""


class FullCopy(msgspec.Struct, frozen=True):
    """How a copy is made: by a command, or by statements that the replica is sent."""

    command: Sequence[str] = ()
    statements: Sequence[str] = ()
    joins: bool = False
    """Whether the replica has to follow the primary again before the copy is complete."""


class Replicates(Capability):
    """Has replicas that repeat its changes."""

    missing = "has no replication that ciphercost measures; use postgresql, mysql, mariadb or valkey"

    copied_by: str
    """What makes a full copy, for reports."""
    link_word: str
    """A text that a replica sends unencrypted if the link is not encrypted."""
    link_settings: tuple[str, str]
    """The setting of the link in the plain arm, and in the encrypted one."""
    same_port: bool = True
    """Whether encrypted links go to the same port as others."""

    @abstractmethod
    def replication_settings(self, number: int) -> dict[str, str]:
        """Return the settings of a primary (number 1) or a replica (2)."""

    @abstractmethod
    def make_replica(self, directory: Path) -> None:
        """Turn a copy of the primary's directory, of before its start, into that of a replica."""

    @abstractmethod
    def join(self, primary: Ask, replica: Ask, link: ReplicationLink) -> None:
        """Let the replica follow the primary over this link from now on, whatever it followed before. Raises AgentError."""

    @abstractmethod
    def joined(self, primary: Ask, replica: Ask) -> str:
        """Return why the replica does not follow the primary yet; empty: it does. Raises AgentError."""

    @abstractmethod
    def synchronous(self, primary: Ask, replica: Ask, *, on: bool) -> None:
        """Decide whether commits on the primary wait for the replica. Raises AgentError."""

    @abstractmethod
    def position(self, primary: Ask) -> int:
        """Return how far the primary has written. It only grows."""

    @abstractmethod
    def applied(self, replica: Ask) -> int:
        """Return how far of it the replica has applied."""

    def accepted(self, primary: Ask) -> int:  # noqa: ARG002
        """Return how many TLS connections the primary has accepted, where only that tells how a link is encrypted."""
        return 0

    @abstractmethod
    def primary_end(self, primary: Ask, accepted: int) -> LinkEnd:
        """Return what the primary reports about the link. `accepted`: as counted before the replica joined."""

    @abstractmethod
    def replica_end(self, replica: Ask) -> LinkEnd:
        """Return what the replica reports about it."""

    @abstractmethod
    def full_copy(self, request: CopyRequest) -> FullCopy:
        """Return how all of the primary's data are copied over such a link. Raises MissingServer if a tool is missing."""
