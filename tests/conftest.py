"""What tests need of the machine. Missing: skipped with its reason; with CIPHERCOST_REQUIRE=all (CI): failed."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from ciphercost import engines
from ciphercost.engines import Installation

Require = Callable[[object, str], None]


def _require(found: object, reason: str) -> None:
    if found:
        return
    if os.environ.get("CIPHERCOST_REQUIRE") == "all":
        pytest.fail(f"required by CIPHERCOST_REQUIRE=all: {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def require() -> Require:
    """`require(found, reason)`: go on only where `found` is true."""
    return _require


@pytest.fixture(scope="session")
def require_postgresql() -> Installation:
    """A PostgreSQL that is here already; nothing is fetched for it."""
    found = list(engines.get("postgresql").available())
    _require(found, "no PostgreSQL here: `ciphercost install postgresql`")
    return found[0]


@pytest.fixture(scope="session")
def require_server() -> Callable[[str], Installation]:
    """`require_server(name)`: a server that is here already; nothing is fetched for it."""

    def require_one(name: str) -> Installation:
        found = list(engines.get(name).available())
        _require(found, f"no {name} here: `ciphercost install {name}`")
        return found[0]

    return require_one
