"""own_schema: servers on which ciphercost can make a schema (database, file) of its own and drop it again."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ciphercost.engines.capabilities import Capability

if TYPE_CHECKING:
    from ciphercost.load.agent import Agent


class OwnSchema(Capability):
    """Makes, marks, lists and drops schemas of ours. Touches nothing else on the server."""

    missing = "has no schema of our own on a running server"

    unlisted: str = ""
    """Why `schemas` may not find all of them, for people; empty: it does."""
    sizes: str = ""
    """SQL that returns one row for the current schema: bytes of its tables, bytes of its indexes. Empty: the server counts neither."""

    @abstractmethod
    def make_schema(self, agent: Agent, fields: Mapping[str, object], name: str, run_id: str) -> None:
        """Make an empty schema of this name, marked as made by this run. Raises AgentError, also if it exists.

        `fields`: of the agent's `connect`, as the server is reached without the schema. `run_id`: one line of up to 100
        letters, digits, `.:_-` and spaces (run, machine, process), which `schemas` returns unchanged.
        """

    @abstractmethod
    def drop_schema(self, agent: Agent, fields: Mapping[str, object], name: str, *, unmarked: bool = False) -> None:
        """Drop a schema that `make_schema` made, with everything in it. `unmarked`: it may have been interrupted before the mark."""

    @abstractmethod
    def schemas(self, agent: Agent, fields: Mapping[str, object]) -> dict[str, str]:
        """Names that begin with `ciphercost_`, each with its mark; '' where it has none of ours."""

    def schema(self, agent: Agent, fields: Mapping[str, object], name: str) -> str | None:
        """The mark of the schema of this name: '' where it has none of ours, None where there is no such schema."""
        return self.schemas(agent, fields).get(name)

    @abstractmethod
    def in_schema(self, name: str) -> dict[str, object]:
        """Fields of the agent's `connect` that make statements work in this schema."""

    def in_own_schema(self, name: str) -> dict[str, object]:
        """The same on a server of ours, whose data directory may have been copied since `make_schema`."""
        return self.in_schema(name)

    def stored_bytes(self, directory: Path, name: str) -> tuple[int, int] | None:  # noqa: ARG002
        """The two figures of `sizes`, read from the files of a server of ours. None: they can't be."""
        return None

    @abstractmethod
    def right_to_make(self, fields: Mapping[str, object]) -> str:
        """What an administrator writes so that this user may make a schema, for people."""
