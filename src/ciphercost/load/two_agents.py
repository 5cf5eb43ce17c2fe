"""Two agents as one load client: each arm of a cell has the client that its settings name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ciphercost.load.agent import Agent
from ciphercost.load.agent_messages import Reply
from ciphercost.load.program import Program
from ciphercost.model.connection import Connected, Pool
from ciphercost.model.slices import AgentSlice
from ciphercost.model.spec import Arm


class TwoAgents(Agent):
    """An agent for the reference arm and one for the arm that is compared with it.

    What is named after an arm (`plain`, `prove-plain`, `check-plain`) goes to its agent, and everything else to the compared arm's.
    """

    def __init__(self, reference: Agent, compared: Agent) -> None:
        """Both are ended with this one."""
        self._agents: dict[Arm, Agent] = {"plain": reference, "encrypted": compared}
        self.hello = compared.hello
        self.compiles = reference.compiles or compared.compiles

    @property
    def pid(self) -> int:
        return self._agents["encrypted"].pid

    def of(self, arm: Arm) -> Agent:
        return self._agents[arm]

    def watch(self, look: Callable[[], None]) -> None:
        for agent in self._agents.values():
            agent.watch(look)

    def close(self) -> None:
        for agent in self._agents.values():
            agent.close()

    def _named(self, name: str) -> Agent:
        return self._agents["plain" if name.endswith("plain") else "encrypted"]

    def program(self, program: Program) -> None:
        for agent in self._agents.values():
            agent.program(program)

    def connect(self, arm: str, connection: Pool) -> Connected:
        return self._named(arm).connect(arm, connection)

    def disconnect(self, arm: str) -> None:
        self._named(arm).disconnect(arm)

    def query(
        self, arm: str, sql: str, *, everywhere: bool = False, timeout: float | None = None
    ) -> list[list[str | None]]:
        return self._named(arm).query(arm, sql, everywhere=everywhere, timeout=timeout)

    def reply(self, arm: str, sql: str) -> Reply:
        return self._named(arm).reply(arm, sql)

    def queries(self, arm: str, statements: Iterable[str], *, timeout: float | None = None) -> int:
        return self._named(arm).queries(arm, statements, timeout=timeout)

    def floor(self, *words: Any, **more: Any) -> Any:
        return self._agents["encrypted"].floor(*words, **more)

    def slice(self, arm: str, seconds: float, **more: Any) -> AgentSlice:
        return self._named(arm).slice(arm, seconds, **more)
