"""A cell whose load is an operator's task: what is planned of it, and what is refused in one line."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import schedule, specs
from ciphercost.plan.planned import PlannedCell


def planned(engine: str, mechanism: str, workload: str, spec: dict[str, Any] | None = None, **more: Any) -> PlannedCell:
    cell = CellSpec(engine, mechanism, workload=workload, **more)
    return specs.plan(Spec(cells=[cell], time=300.0, **(spec or {}))).cells[0]


@pytest.mark.parametrize(
    ("engine", "mechanism", "workload"),
    [
        ("postgresql", "gocryptfs", "backup"),
        ("postgresql", "fscrypt", "restart"),
        ("mysql", "innodb-tde", "encrypt-existing"),
        ("mariadb", "mariadb-tde", "encrypt-existing"),
        ("sqlite", "sqlcipher", "encrypt-existing"),
        ("mysql", "gocryptfs", "encrypt-existing"),
    ],
)
def test_a_task_is_planned_with_one_client(engine: str, mechanism: str, workload: str) -> None:
    cell = planned(engine, mechanism, workload)
    assert (cell.program.operation, cell.clients) == (workload, 1)


def test_a_slice_is_one_execution_so_there_is_no_open_loop() -> None:
    backup, select = (CellSpec("postgresql", "gocryptfs", workload=name) for name in ("backup", "point-select"))
    spec = Spec(cells=[backup], time=300.0)
    assert (schedule.one_shot(backup), schedule.one_shot(select)) == (True, False)
    assert schedule.budget(spec, backup).latency_s == 0 < schedule.budget(spec, select).latency_s


def test_statements_of_the_users_are_no_task_whatever_their_workload_is_called() -> None:
    own = msgspec.structs.replace(CellSpec("postgresql", "gocryptfs", workload="backup"), sql=["mix.sql"])
    assert not schedule.one_shot(own)


@pytest.mark.parametrize(
    ("engine", "mechanism", "workload", "more", "words"),
    [
        ("postgresql", "tls", "backup", {}, "measures encryption at rest, and tls is none"),
        ("duckdb", "encrypted", "backup", {}, "runs on postgresql, mysql, mariadb and sqlite"),
        ("firebird", "gocryptfs", "restart", {}, "runs on postgresql, mysql, mariadb and sqlite"),
        ("sqlite", "sqlcipher", "restart", {}, "there is no server to restart"),
        ("postgresql", "gocryptfs", "backup", {"factors": {"tool": "mysqldump"}}, "has no such tool"),
        ("postgresql", "gocryptfs", "backup", {"factors": {"tool": "tar"}}, "unknown value"),
        ("sqlite", "sqlcipher", "backup", {"factors": {"tool": "vacuum-into"}}, "both arms use sqlcipher_export"),
        ("postgresql", "gocryptfs", "backup", {"clients": 4}, "does one thing at a time"),
        ("postgresql", "gocryptfs", "backup", {"regime": "latency"}, "--regime latency: has no effect"),
        ("postgresql", "gocryptfs", "backup", {"rate": 5.0}, "--rate 5.0: has no effect"),
        ("postgresql", "gocryptfs", "backup", {"per_request": True}, "--per-request: has no effect"),
        ("postgresql", "gocryptfs", "backup", {"client": "psycopg"}, "--client psycopg: has no effect"),
        ("postgresql", "gocryptfs", "backup", {"spec": {"profile": True}}, "--profile: has no effect"),
    ],
)
def test_what_a_task_can_not_have_is_refused_in_one_line(
    engine: str, mechanism: str, workload: str, more: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        planned(engine, mechanism, workload, **more)
    assert "\n" not in str(refused.value)


def test_a_mechanism_that_can_not_encrypt_existing_data_says_which_can() -> None:
    with pytest.raises(UsageError, match="can't encrypt existing data with pg-tde; use innodb-tde"):
        planned("postgresql", "pg-tde", "encrypt-existing", bindir="/nowhere")
