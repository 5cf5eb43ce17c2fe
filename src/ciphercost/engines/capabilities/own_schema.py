"""Capability: ciphercost can create a schema (a database, a file) of its own on the server and drop it again."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

from ciphercost.engines.capabilities import Capability
from ciphercost.model.connection import Changes, Connection

if TYPE_CHECKING:
    from ciphercost.load.agent import Agent


class OwnSchema(Capability):
    """Creates, marks, lists and drops ciphercost's own schemas, and touches nothing else on the server.

    The mark records which run created a schema, so that `ciphercost clean` removes only schemas of dead runs.
    """

    missing = "can't hold a schema of ciphercost's own on a running server"

    unlisted: str = ""
    """User-visible text: why `schemas` may miss some; empty: it lists all."""
    sizes: str = ""
    """SQL that returns one row for the current schema: bytes of tables, bytes of indexes; empty: there is none."""

    @abstractmethod
    def make_schema(self, agent: Agent, connection: Connection, name: str, run_id: str) -> None:
        """Create an empty schema with this name and mark it with the run. Raises AgentError, also if it exists already.

        `connection`: reaches the server without the schema. `run_id`: one line of up to 100
        letters, digits, `.:_-` and spaces (run, machine, process), which `schemas` returns unchanged.
        """

    @abstractmethod
    def drop_schema(self, agent: Agent, connection: Connection, name: str, *, unmarked: bool = False) -> None:
        """Drop a schema that `make_schema` created, with everything in it. Raises AgentError.

        `unmarked`: `make_schema` may have been interrupted before it wrote the mark, so drop the schema without one
        too.
        """

    @abstractmethod
    def schemas(self, agent: Agent, connection: Connection) -> dict[str, str]:
        """Return the mark of every schema whose name begins with `ciphercost_`; '' for one without a mark of ours."""

    def schema(self, agent: Agent, connection: Connection, name: str) -> str | None:
        """Return the mark of this schema: '' if it has none of ours, None if there is no such schema."""
        return self.schemas(agent, connection).get(name)

    @abstractmethod
    def in_schema(self, name: str) -> Changes:
        """Return the `connect` fields that make statements work in this schema."""

    def in_own_schema(self, name: str) -> Changes:
        """The same on a server that ciphercost started; its data may have been copied since `make_schema`."""
        return self.in_schema(name)

    def stored_bytes(self, directory: Path, name: str) -> tuple[int, int] | None:  # noqa: ARG002
        """Return the figures of `sizes` from the files of a server that ciphercost started; None if impossible."""
        return None

    @abstractmethod
    def right_to_make(self, connection: Connection) -> str:
        """Return the statement with which an administrator lets this user create a schema. User-visible."""
