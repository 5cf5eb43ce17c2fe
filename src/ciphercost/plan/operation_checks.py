"""operation_checks: whether a cell can have an operator's task as its load (`--workload backup`, …), before anything starts."""

from __future__ import annotations

from collections.abc import Mapping

from ciphercost.engines import Engine
from ciphercost.engines.capabilities.backups import VACUUM, BacksUp
from ciphercost.load.workloads import Workload
from ciphercost.mechanisms import Mechanism
from ciphercost.mechanisms._rest import AtRest
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import schedule


def check(cell: CellSpec, engine: Engine, mechanism: Mechanism, workload: Workload, choices: Mapping[str, str]) -> None:
    """Raises UsageError for what the cell's task can't have. Does nothing for a workload that is none."""
    if not workload.operation:
        return
    where = f"workload {workload.name}"
    if mechanism.layer != "rest":
        raise UsageError(
            f"{where} measures encryption at rest, and {cell.mechanism} is none; use a mechanism at rest (`ciphercost list mechanisms`)"
        )
    if not isinstance(engine, BacksUp):
        raise UsageError(
            f"{where} runs on postgresql, mysql, mariadb and sqlite, not on {cell.engine}; use one of these"
        )
    if cell.clients > 1:
        raise UsageError(f"--clients {cell.clients}: {where} does one thing at a time; remove --clients")
    for option, given in (
        ("--regime", cell.regime if cell.regime == "latency" else ""),
        ("--rate", cell.rate),
        ("--max-rate", cell.max_rate),
        ("--objective", cell.objective),
        ("--client", cell.client),
        ("--driver", cell.driver),
        ("--delay", cell.delay),
        ("--bandwidth", cell.bandwidth),
        ("--per-request", cell.per_request),
    ):
        if given:
            shown = "" if given is True else f" {given}"
            raise UsageError(f"{option}{shown}: has no effect on {where}, which makes no requests; remove it")
    if workload.operation == "backup":
        tools = engine.backup_tools
        if (tool := choices["tool"]) not in ("usual", *tools):
            raise UsageError(f"tool={tool}: {cell.engine} has no such tool; {nearest(tool, tools)}")
        if tool == VACUUM and mechanism.name == "sqlcipher":
            raise UsageError(
                f"tool={VACUUM}: SQLCipher refuses it in the plain arm, whose pages have a reserved end too; remove tool, and both arms use "
                "sqlcipher_export"
            )
    elif workload.operation == "encrypt-existing":
        assert isinstance(mechanism, AtRest)
        if not mechanism.loaded_once and type(mechanism).conversion is AtRest.conversion:
            raise UsageError(
                f"{where}: ciphercost can't encrypt existing data with {cell.mechanism}; use innodb-tde, mariadb-tde, sqlcipher, or a file system "
                "(fscrypt, gocryptfs, cryfs, path)"
            )
    elif engine.embedded:
        raise UsageError(
            f"{where}: {cell.engine} runs inside the application, so there is no server to restart; --workload connect opens the database"
        )


def check_spec(spec: Spec) -> None:
    """Raises UsageError for what a run with such a cell can't have."""
    named = [cell.workload for cell in spec.cells if schedule.operation_of(cell)]
    for field, option in (("cluster", "--cluster"), ("profile", "--profile")):
        if named and getattr(spec, field):
            raise UsageError(f"{option}: has no effect on workload {named[0]}, whose load no agent makes; remove it")
