"""command_cells: a cell whose load commands of the user's make: checks it and plans it. Pure but for the file of --ca."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ciphercost.engines import Engine
from ciphercost.load import command_words
from ciphercost.load.command_place import places
from ciphercost.load.program import Program
from ciphercost.load.workloads import Workload
from ciphercost.mechanisms import Mechanism
from ciphercost.model.command_load import CommandLoad
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import cell_checks, conditions
from ciphercost.plan.planned import PlannedCell

TAKEN = frozenset(
    {
        *("engine", "mechanism", "workload", "clients", "regime", "url", "ca", "group", "variant", "idle", "max_errors", "command"),
    }
)  # fmt: skip
"""Fields of a cell that a command can honour."""
OPTIONS = {
    "factors": "--set",
    "settings": "--setting",
    "headers": "--header",
    "headers_file": "--header",
    "define": "--define",
}
"""By field: its option, where that is not its name."""
UNNAMED = ("", "command", "point-select")
"""Workloads of a cell for which the user gave none."""
CLIENTS = 4
"""The default of `{clients}`."""
EXAMPLE = "ciphercost run command:tls --url HOST:PORT --plain 'CMD' --encrypted 'CMD'"


def check_absent(cell: CellSpec) -> None:
    """Raises UsageError for commands in a cell of another engine."""
    if cell.command is not None:
        raise UsageError(
            f"{cell.engine}:{cell.mechanism}: only engine command takes commands (--plain, --encrypted …); write command:{cell.mechanism}, or "
            "remove them"
        )


def check_spec(spec: Spec) -> None:
    """Raises UsageError for what a run with such a cell can't have."""
    if not any(cell.command for cell in spec.cells):
        return
    if spec.cluster:
        raise UsageError(
            "--cluster: agents of ciphercost's own are needed for it, and a command makes this load; remove it"
        )


def workload(cell: CellSpec) -> Workload:
    """What stands for a workload, with the name that the user gave it, or its program's."""
    name = cell.workload
    if name in UNNAMED and cell.command:
        name = Path(command_words.words("--plain", cell.command.plain)[0]).name
    return Workload(title="your command", measures="", transaction=[], name=name, languages=("command",))


def planned(cell: CellSpec, engine: Engine, mechanism: Mechanism) -> PlannedCell:
    """The cell, ready to be measured. Raises UsageError."""
    load = cell.command
    if load is None or not load.plain:
        example = EXAMPLE if cell.mechanism == "tls" else "ciphercost run command:none --url HOST:PORT --plain 'CMD'"
        raise UsageError(f"command:{cell.mechanism}: give the command that makes the load: {example}")
    usual = CellSpec("", "")
    for field in CellSpec.__struct_fields__:
        if field not in TAKEN and (value := getattr(cell, field)) != getattr(usual, field):
            option = OPTIONS.get(field, f"--{field.replace('_', '-')}")
            what = f" {value}" if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
            raise UsageError(f"{option}{what}: has no effect on a command's load; let the command do it, or remove it")
    if cell.regime == "latency":
        raise UsageError(
            "--regime latency: a command has no phase at a fixed rate; its tool's own latencies are reported; remove it"
        )
    engine.find(url=cell.url)
    if mechanism.name not in ("tls", "none"):
        raise UsageError(
            f"command:{cell.mechanism}: a command is measured with tls, or with none, which compares it with itself"
        )
    _check_arms(cell, load, mechanism)
    cell_checks.check_numbers(cell)
    _check_words(cell, load)
    named = workload(cell)
    cell = msgspec.structs.replace(cell, workload=named.name)
    program = Program(
        name=cell.workload,
        load=(),
        check="",
        transactions=(),
        read_only=False,
        per_request=False,
        clients=CLIENTS if _uses(load, "clients") else 1,
        parameters={},
        creates=False,
    )
    return PlannedCell(
        spec=cell,
        engine=engine,
        mechanism=mechanism,
        factors=mechanism.check({}),
        workload=named,
        parameters={},
        choices={},
        secret={},
        secret_columns=(),
        client=None,
        conditions=conditions.Conditions(),
        program=program,
    )


def _check_arms(cell: CellSpec, load: CommandLoad, mechanism: Mechanism) -> None:
    """Raises UsageError unless there is one command for each arm that the mechanism has."""
    if mechanism.name == "none":
        if load.encrypted or len(cell.url.split()) > 1:
            raise UsageError(
                "command:none compares a command with itself: give --plain and one --url only; to measure TLS write command:tls"
            )
        if load.canary or load.unproven:
            raise UsageError("command:none proves nothing about encryption: remove --canary and --unproven")
        return
    if not load.encrypted:
        raise UsageError(f"command:tls: --encrypted is missing: the same load over TLS; {EXAMPLE}")
    plain, encrypted = places(cell.url)
    if load.plain == load.encrypted and plain == encrypted:
        raise UsageError(
            "--plain and --encrypted are the same command on the same address, so both arms are the same; let one use TLS, or write "
            "command:none to compare a command with itself"
        )


def _check_words(cell: CellSpec, load: CommandLoad) -> None:
    """Raises UsageError for a command that can't be split or filled in."""
    for option, text in (("--plain", load.plain), ("--encrypted", load.encrypted)):
        if text:
            command_words.words(option, text)
            command_words.placeholders(option, text)
    for option, text in (("--before", load.before), ("--after", load.after)):
        if text:
            command_words.words(option, text)
            command_words.placeholders(option, text, command_words.PLACES)
    if _uses(load, "ca") and not cell.ca:
        raise UsageError("{ca} in a command stands for the file of --ca: give --ca FILE, or write the path itself")
    if cell.ca and not _uses(load, "ca"):
        raise UsageError(
            f"--ca {cell.ca}: no command has {{ca}}, so it would have no effect; write {{ca}} in --encrypted, or remove --ca"
        )
    if cell.clients and not _uses(load, "clients"):
        raise UsageError(
            f"--clients {cell.clients}: no command has {{clients}}, so it would have no effect; write {{clients}} in both, or remove --clients"
        )
    if [bool(name) for name in (load.server_pid, load.server_unit, load.server_cgroup)].count(True) > 1:
        raise UsageError("--server-pid, --server-unit and --server-cgroup name the same thing; give one of them")


def _uses(load: CommandLoad, name: str) -> bool:
    """Whether a command has a placeholder."""
    texts = (load.plain, load.encrypted, load.before, load.after)
    return any(name in command_words.placeholders("a command", text) for text in texts)
