"""A real H2 and the Java agent with H2's driver, for tests."""

from __future__ import annotations

from collections.abc import Mapping

from ciphercost.engines.h2 import DRIVER, ENGINE
from ciphercost.host.supervisor import Supervisor
from ciphercost.load.jdbc.jdbc_agent import JdbcAgent


def agent(like: Mapping[str, object], supervisor: Supervisor) -> JdbcAgent:
    """Start the agent for connections with these fields."""
    return JdbcAgent(DRIVER, ENGINE, {}, like, supervisor=supervisor)
