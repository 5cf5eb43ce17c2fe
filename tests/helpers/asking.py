"""asking: a message to an agent as a test writes it, and its answer as it comes: also those that ciphercost never sends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ciphercost.load import agent_messages
from ciphercost.load.agent import Agent
from ciphercost.model.connection import Pool


def ask(agent: Agent, message: Mapping[str, object]) -> dict[str, Any]:
    """Send one message and return its answer. Raises AgentError."""
    answer: dict[str, Any] = json.loads(agent.exchange(json.dumps(message).encode() + b"\n"))
    return answer


def raw(arm: str, pool: Pool) -> dict[str, Any]:
    """The `connect` that opens an arm's connections, as it is on the wire."""
    message: dict[str, Any] = json.loads(agent_messages.line(agent_messages.connect_message(arm, pool)))
    return message
