"""A user's own statements on tables that ciphercost did not make: measured with the right to read alone, and nothing is created."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ciphercost import engines
from conftest import Require
from shops import ENGINES, Shop, shop
from test_real import SHORT, ciphercost, result_of

FORBIDDEN = re.compile(r"\b(CREATE|DROP|ALTER|GRANT|search_path|Init DB)\b|^Query USE ", re.IGNORECASE)
"""What no statement of a run on own tables may contain."""
TABLE = "\\set id random(1, 200)\nSELECT customer, note FROM orders WHERE id = :id;\n"


@pytest.fixture(scope="module", params=ENGINES)
def own(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, require: Require) -> Iterator[Shop]:
    name = request.param
    require(list(engines.get(name).available()), f"no {name} here: `ciphercost install {name}`")
    with shop(name, tmp_path_factory.mktemp("shop")) as found:
        yield found


@pytest.mark.parametrize("client", ["rust", "jdbc"])
@pytest.mark.parametrize("sql", [TABLE], ids=["table"])
def test_own_tables_are_measured_with_the_right_to_read_alone(own: Shop, client: str, sql: str, tmp_path: Path) -> None:
    (tmp_path / "own.sql").write_text(sql)
    before = own.state()
    argv = (*own.argv, "--sql", "own.sql", *SHORT, *(("--client", "jdbc") if client == "jdbc" else ()))
    done = ciphercost(*argv, "--json", "out.json", cwd=tmp_path, **own.environment)
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout, done.stderr)
    cell = result_of(tmp_path)["cells"][0]
    assert cell["status"] == "ok"
    assert "creates nothing" in " ".join(done.stderr.replace("===", " ").split())
    assert own.state() == before
    assert [each for each in own.said() if FORBIDDEN.search(each)] == []
