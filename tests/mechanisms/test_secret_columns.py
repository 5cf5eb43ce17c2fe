"""`--set secret=…` encrypts these columns and no others, as the server stores them; impossible requests are refused."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from ciphercost import commands
from ciphercost.host import supervisor
from ciphercost.load.tables import hospital_sql
from ciphercost.model import run_directory
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import ARMS, CellSpec
from ciphercost.plan import schedule
from ciphercost.plan.resolve import resolve
from ciphercost.prove import same_rows
from ciphercost.prove.replies import Verdict
from ciphercost.provision import server_pairs
from ciphercost.provision.experiment_resources import ExperimentResources
from ciphercost.provision.prepared_cell import PreparedCell
from ciphercost.studies.column_functions import application
from conftest import RequireServer

MECHANISM = {"mariadb": "aes-ecb-128", "postgresql": "pgcrypto-cbc-256"}
STORED = {"mariadb": "HEX({})", "postgresql": "CAST({} AS text)"}
"""SQL for the content of a column, as text."""
VALUES = ("0", "1", "21", "state,cnes", "none", "all")
ROWS = 8


@pytest.mark.parametrize("name", MECHANISM)
def test_cells_that_share_a_run_store_encrypted_what_each_of_them_has_secret(
    name: str, require_server: RequireServer, tmp_path: Path
) -> None:
    require_server(name, "")
    known = application.SECRETS
    wanted = [(), known[:1], known, ("state", "cnes"), (), known]
    run_id = run_directory.new_id()
    encrypted = []
    with supervisor.Supervisor(run_id) as run_supervisor, contextlib.ExitStack() as benches:
        scratch = supervisor.scratch(run_id, run_supervisor)
        shared = ExperimentResources(scratch / "secrets" / "group-0")
        for number, value in enumerate(VALUES):
            cell = CellSpec(name, MECHANISM[name], workload="hospital-2024", rows=ROWS, factors={"secret": value})
            # As in a run, every cell's data stays until the run ends.
            bench = benches.enter_context(
                server_pairs.bench(resolve(cell), run_supervisor, scratch, tmp_path, number, shared)
            )
            with shared.session():
                encrypted.append(encrypted_columns(bench))
    assert [set(names) for names in encrypted] == [set(names) for names in wanted]


def encrypted_columns(bench: PreparedCell) -> list[str]:
    """Return the columns whose content differs between the arms' tables."""
    pair = server_pairs.start(bench, 1, set(), set(), schedule.arms(1, 0, 1))
    different = []
    with bench.agent(pair) as agent:
        for arm in ARMS:
            agent.connect(arm, pair.connect[arm])
        agent.program(bench.program)
        assert same_rows.same_rows(pair, agent, bench.rows_to_compare, 1) == Verdict()
        for table, fields in hospital_sql.APPLICATION.items():
            for column, field in fields.items():
                sql = f"SELECT {STORED[bench.engine.name].format(column)} FROM {table} ORDER BY id"
                plain, encrypted = (agent.query(arm, sql) for arm in ARMS)
                assert len(plain) == len(encrypted) == ROWS
                same = [one == other for one, other in zip(plain, encrypted, strict=True)]
                assert all(same) or not any(same), f"{table}.{column}: only some of the values are encrypted"
                different += [] if all(same) else [field]
    return different


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("mariadb:aes-ecb-128 --workload hospital-2024 --set secret=nam", "no secret column 'nam'"),
        ("mariadb:aes-ecb-128 --workload hospital-2024 --set secret=stat", "did you mean 'state'?"),
        ("mariadb:aes-ecb-128 --workload hospital-2024 --set secret=22", "write a number from 0 to 21"),
        ("mariadb:aes-ecb-128 --workload hospital-2024 --set secret=-1", "no secret column '-1'"),
        ("mariadb:aes-ecb-128 --workload hospital-2024 --set secret=", "secret=: names no columns"),
        ("mariadb:aes-ecb-128 --workload hospital-2024 --set secret=state,state", "'state' is listed twice"),
        ("mariadb:aes-ecb-128 --workload hospital-2024 --matrix secret=0,22", "write a number from 0 to 21"),
        ("mariadb:aes-ecb-128 --workload hospital-2024 --matrix secret=1,1", "lists a value twice"),
        ("mariadb:aes-ecb-128 --workload hospital --set secret=1", "no names for its secret columns; use --workload hospital-2024"),
        ("mariadb:aes-ecb-128 --workload search --matrix secret=0,1", "no names for its secret columns"),
        ("mariadb:tls --workload hospital-2024 --set secret=1", "tls does not encrypt columns"),
        ("postgresql:tls --workload tpcb --matrix secret=0,1", "tls does not encrypt columns"),
    ],
)  # fmt: skip
def test_what_can_not_be_is_refused(arguments: str, words: str) -> None:
    with pytest.raises(UsageError) as error:
        commands.cli.main(["run", *arguments.split(), "--print-spec"], standalone_mode=False)
    assert words in str(error.value)
