"""A real H2 and the Java agent with H2's driver, for tests."""

from __future__ import annotations

from ciphercost.engines.h2 import DRIVER, ENGINE
from ciphercost.host.supervisor import Supervisor
from ciphercost.load.jdbc.jdbc_agent import JdbcAgent
from ciphercost.model.connection import Connection


def agent(like: Connection, supervisor: Supervisor) -> JdbcAgent:
    """Start the agent for connections with these fields."""
    return JdbcAgent(DRIVER, ENGINE, {}, like, supervisor=supervisor)
