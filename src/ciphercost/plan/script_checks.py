"""script_checks: refuses scripts and options of scripts that a cell's server or client can't run. What each can is listed here."""

from __future__ import annotations

from ciphercost.engines import Engine
from ciphercost.load import clients, own_scripts
from ciphercost.load.program import Program
from ciphercost.load.workloads import Workload
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec, QueryMode

MODES: dict[str, tuple[QueryMode, ...]] = {
    "postgresql": ("simple", "extended", "prepared"),
    "mysql": ("simple", "prepared"),
}
"""By dialect: how its statements may travel. Others: prepared alone."""
ONLY_PREPARED: tuple[QueryMode, ...] = ("prepared",)


def _by_driver(cell: CellSpec, engine: Engine) -> str:
    """What makes the cell's load, if that is a driver; empty: the Rust agent."""
    if engine.by_jdbc or clients.by_jdbc(cell):
        return "JDBC"
    return cell.client if clients.asked(cell) else ""


def check(cell: CellSpec, engine: Engine, workload: Workload) -> None:
    """Raises UsageError for options that have no effect on the cell, or that its client does not know."""
    if cell.builtin and engine.language != "sql":
        raise UsageError(f"--builtin: pgbench's scripts are SQL, which {cell.engine} does not speak; remove --builtin")
    if cell.builtin and cell.rows:
        raise UsageError(
            f"--rows: the size of pgbench's tables is their scale; write -D scale={max(1, cell.rows // 100_000)} instead"
        )
    if cell.define and not cell.own_script:
        raise UsageError(
            "-D sets a variable of scripts; add --sql or --builtin, or remove it (--set changes a workload's parameter)"
        )
    own_scripts.check_defined(cell.define, workload)
    for option, given in (("--protocol", cell.protocol), ("--max-tries", cell.max_tries)):
        if given and engine.language != "sql":
            raise UsageError(f"{option}: {cell.engine} takes no SQL; remove {option}")
    if cell.protocol and _by_driver(cell, engine):
        raise UsageError(
            f"--protocol {cell.protocol}: the driver decides that; only the Rust agent knows --protocol: remove it"
        )


def check_file(cell: CellSpec, engine: Engine, workload: Workload) -> None:
    """Raises UsageError for a workload in a file of the user's whose statements the cell's server does not understand."""
    if workload.written_for and engine.dialect != workload.written_for:
        raise UsageError(
            f"--workload {cell.workload}: its statements are written for {workload.written_for}, which {cell.engine} is not; run it on a server "
            "of the kind that the logs came from"
        )
    if workload.protocol and _by_driver(cell, engine):
        return
    if workload.protocol and workload.protocol not in MODES.get(engine.dialect, ONLY_PREPARED):
        able = " or ".join(MODES.get(engine.dialect, ONLY_PREPARED))
        raise UsageError(
            f"--workload {cell.workload}: protocol = '{workload.protocol}', but statements of {cell.engine} travel as {able}; change it in the file"
        )


def _check_protocol(cell: CellSpec, engine: Engine, program: Program) -> None:
    able = MODES.get(engine.dialect, ONLY_PREPARED)
    if cell.protocol not in able:
        known = f"statements of {cell.engine} travel as {' or '.join(able)}"
        raise UsageError(f"--protocol {cell.protocol}: {known}; write --protocol {able[0]}, or remove it")
    if cell.protocol != "simple" and (cell.per_request or program.per_request):
        raise UsageError(
            f"--protocol {cell.protocol}: operations that open connections send text, since each connection runs its statements once; write "
            "--protocol simple, or keep the connections"
        )


def check_program(cell: CellSpec, engine: Engine, program: Program) -> None:
    """Raises UsageError for a script that the cell's client can't run, or not in the way that the cell asks for."""
    if cell.protocol:
        _check_protocol(cell, engine, program)
    for name, _, script in program.transactions:
        if script.has_pipelines and (by := _by_driver(cell, engine)):
            raise UsageError(
                f"{name}: {by} has no pipelines here; remove \\startpipeline … \\endpipeline, or {clients.option(cell)}"
            )
