"""The agent's logins at PostgreSQL: SCRAM with few iterations gets no proof."""

from __future__ import annotations

import base64
import hashlib
import hmac
from pathlib import Path

import pytest

from ciphercost.load.agent import Agent
from ciphercost.model.errors import AgentError
from ciphercost.model.secret import Secret
from conftest import RequireServer
from userservers import user_server

SALT = b"0123456789abcdef"


def verifier(password: bytes, iterations: int) -> str:
    """What PostgreSQL stores of a password (RFC 5802)."""
    salted = hashlib.pbkdf2_hmac("sha256", password, SALT, iterations)
    client, server = (hmac.digest(salted, label, "sha256") for label in (b"Client Key", b"Server Key"))
    salt, stored, known = (base64.b64encode(part).decode() for part in (SALT, hashlib.sha256(client).digest(), server))
    return f"SCRAM-SHA-256${iterations}:{salt}${stored}:{known}"


def test_few_iterations_are_refused_and_the_usual_number_lets_in(require_server: RequireServer, tmp_path: Path) -> None:
    require_server("postgresql")
    with user_server("postgresql", tmp_path) as server, Agent() as agent:
        fields = server.fields | {"connections": 1, "threads": 1}
        agent.connect("admin", fields)
        for iterations in (1, 4095, 4096):
            agent.query("admin", f"CREATE ROLE u{iterations} LOGIN PASSWORD '{verifier(b'sesame', iterations)}'")
        with_password = fields | {"password": Secret("sesame")}
        assert agent.connect("usual", with_password | {"user": "u4096"}).auth == "scram-sha-256"
        for iterations in (1, 4095):
            with pytest.raises(AgentError, match=f"asks for {iterations} SCRAM iterations"):
                agent.connect("few", with_password | {"user": f"u{iterations}"})
