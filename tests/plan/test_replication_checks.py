"""A cell with replicas: what is planned of it, and what is refused in one line."""

from __future__ import annotations

from typing import Any

import pytest

from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import schedule, specs
from ciphercost.plan.planned import PlannedCell


def planned(engine: str, mechanism: str = "tls", spec: dict[str, Any] | None = None, **more: Any) -> PlannedCell:
    cell = CellSpec(engine, mechanism, workload="replication", **more)
    return specs.plan(Spec(cells=[cell], **(spec or {}))).cells[0]


@pytest.mark.parametrize("engine", ["postgresql", "mysql", "mariadb", "valkey", "redis"])
def test_every_server_has_the_statements_of_its_dialect(engine: str) -> None:
    program = planned(engine).program
    assert set(program.replication) == {"backlog", "each", "word", "beat", "seen"}
    assert len(program.backlog) == 1
    assert ":word" in program.replication["word"]


def test_its_figures_take_time_beside_the_load() -> None:
    cells = [CellSpec("postgresql", "tls", workload=name) for name in ("replication", "insert")]
    with_replicas, without = (schedule.time_estimate(Spec(cells=[cell])) for cell in cells)
    assert with_replicas > without + 8 * 4 * schedule.EVENT_S


@pytest.mark.parametrize(
    ("engine", "mechanism", "more", "words"),
    [
        ("memcached", "tls", {}, "use postgresql, mysql, mariadb or valkey"),
        ("firebird", "wire-crypt", {}, "use postgresql, mysql, mariadb or valkey"),
        ("nginx", "tls", {}, "does not run on nginx"),
        ("postgresql", "gocryptfs", {}, "use postgresql:tls"),
        ("postgresql", "tls", {"url": "postgresql://localhost/x"}, "remove --url"),
        ("postgresql", "tls", {"versus": {"version": "1.2"}}, "remove --versus"),
        ("postgresql", "tls", {"client": "jdbc"}, "--client jdbc: not with workload replication"),
        ("postgresql", "tls", {"per_request": True}, "--per-request: not with"),
        ("postgresql", "tls", {"delay": "1ms"}, "--delay: not with"),
        ("postgresql", "tls", {"storm": "160"}, "--storm: not with"),
        ("postgresql", "tls", {"connections": 100}, "--connections: not with"),
        ("postgresql", "tls", {"objective": "p99=5ms"}, "--objective: not with"),
        ("postgresql", "tls", {"factors": {"hop": "haproxy"}}, "hop=haproxy: is about connections of clients"),
        ("postgresql", "tls", {"factors": {"version": "1.2"}}, "version=1.2: is about connections of clients"),
        ("postgresql", "tls", {"spec": {"cluster": "local:2"}}, "remove --cluster"),
        ("postgresql", "tls", {"spec": {"profile": True}}, "--profile: samples one server"),
    ],
)
def test_what_does_not_go_with_replicas_is_refused(
    engine: str, mechanism: str, more: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError) as refused:
        planned(engine, mechanism, **more)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
