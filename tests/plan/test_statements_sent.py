"""How many statements, requests or commands an operation sends is known from its workload."""

from __future__ import annotations

from pathlib import Path

import pytest

from ciphercost.model.spec import CellSpec
from ciphercost.plan.resolve import resolve


@pytest.mark.parametrize(
    ("engine", "workload", "count"),
    [
        ("postgresql", "point-select", 1),
        ("postgresql", "tpcb", 7),
        ("mysql", "tpcb", 7),
        ("nginx", "file", 1),
        ("valkey", "kv-get", 1),
        ("postgresql", "insert-loop", 1),
    ],
)
def test_statements_of_an_operation(engine: str, workload: str, count: float) -> None:
    assert resolve(CellSpec(engine, "tls", workload=workload)).program.statements == count


def test_statements_that_a_loop_repeats_must_be_counted(tmp_path: Path) -> None:
    script = tmp_path / "loop.sql"
    script.write_text("\\set n each(1, 10)\nSELECT :n;\n")
    assert resolve(CellSpec("postgresql", "tls", sql=str(script))).program.statements == 0


def test_waits_are_no_statements() -> None:
    program = resolve(CellSpec("nginx", "tls", workload="shop")).program
    sent = [statement.sql for _, _, script in program.transactions for statement in script.statements]
    assert any(text.startswith("THINK ") for text in sent)
    assert 0 < program.statements < len(sent)
