"""`--matrix`, `--split` and controls: expand one cell into several that are measured together. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from ciphercost import engines, hops, mechanisms
from ciphercost.engines.capabilities.settings import canonical
from ciphercost.load import clients, tables
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec, Language, Spec
from ciphercost.plan import schedule, versus
from ciphercost.plan.resolve import workload_of


class SplitCell(NamedTuple):
    """One cell of a split."""

    workload: str
    size: str = ""
    rows: int = 0
    """Of the table, if the workload's own would take much memory at this size. 0: the workload's own."""


SPLITS: dict[Language, tuple[SplitCell, ...]] = {
    "sql": (
        SplitCell("connect"),
        SplitCell("point-select"),
        SplitCell("bulk-read", "10KB"),
        SplitCell("bulk-read", "100KB"),
        SplitCell("bulk-read", "1MB"),
    ),
    "http": (
        SplitCell("connect"),
        SplitCell("file", "1KB"),
        SplitCell("file", "10KB"),
        SplitCell("file", "100KB"),
        SplitCell("file", "1MB"),
    ),
    "kv": (
        SplitCell("connect"),
        SplitCell("kv-get", "100"),
        SplitCell("kv-get", "1KB"),
        SplitCell("kv-get", "10KB"),
        SplitCell("kv-get", "100KB", 1000),
    ),
}
"""By language: the cells that together separate the costs of handshake, request and byte."""
COLUMN_SPLIT = (SplitCell("secret-insert"), SplitCell("secret-read"), SplitCell("search"))
"""The same for a mechanism in columns: the costs of a value sealed, opened and searched for."""
MATRIX_FIELDS = (
    "clients",
    "rows",
    "workload",
    "cpu_crypto",
    "bandwidth",
    "delay",
    "mtu",
    "loss",
    "cache",
    "client",
    "driver",
    "idle",
    "protocol",
)
"""Fields of a cell that a matrix may vary, besides factors and parameters."""


def matrix(cell: CellSpec, given: Sequence[str], number: int = 0) -> list[CellSpec]:
    """Expand `cipher=a,b` and `certificate=c,d`: first the reference (a, c), then one change at a time. Raises UsageError.

    `number`: position of the target on the command line, which keeps experiments of equal targets apart.
    """
    axes: dict[str, list[str]] = {}
    for text in given:
        name, equals, values = text.partition("=")
        listed = [value.strip() for value in values.split(",") if value.strip()]
        if not equals or not name or len(listed) < 2:
            raise UsageError(f"--matrix {text}: write NAME=VALUE,VALUE…, e.g. --matrix cipher=aes256-gcm,chacha20")
        if name in axes:
            raise UsageError(f"--matrix {name} is given twice; list all its values in one --matrix")
        if name in cell.factors:
            raise UsageError(f"--matrix and --set both set {name}; remove it from --set")
        if name in cell.versus:
            raise UsageError(f"--matrix and --versus both set {name}; remove one of them")
        if len(set(listed)) < len(listed):
            raise UsageError(f"--matrix {text}: lists a value twice; list it once")
        axes[name] = listed
    if not axes:
        return [cell]
    first = {name: values[0] for name, values in axes.items()}
    changes = [first, *({**first, name: value} for name, values in axes.items() for value in values[1:])]
    group = f"{_target(cell, number)} {', '.join(axes)}"
    return [
        _changed(cell, change, group, " ".join(f"{n}={v}" for n, v in change.items() if number == 0 or v != first[n]))
        for number, change in enumerate(changes)
    ]


def _changed(cell: CellSpec, change: Mapping[str, str], group: str, variant: str) -> CellSpec:
    fields: dict[str, Any] = {"group": group, "variant": variant}
    factors = dict(cell.factors)
    for name, value in change.items():
        field = name.replace("-", "_")
        if field in ("client", "driver"):
            fields |= _client(cell, field, value)
            continue
        if field not in MATRIX_FIELDS:
            factors[name] = value
            continue
        kind = type(getattr(cell, field))
        try:
            fields[field] = kind(value)
        except ValueError:
            raise UsageError(f"--matrix {name}={value}: not a whole number; write e.g. {name}=1,4") from None
    factors = versus.without_effect(mechanisms.get(cell.mechanism), factors, change)
    changed = msgspec.structs.replace(cell, factors=factors, **fields)
    if "client" in change and not clients.asked(changed):
        # Options of a driver apply only to the cells that use one.
        ours = clients.every_option()
        remaining = {name: value for name, value in factors.items() if name not in ours}
        changed = msgspec.structs.replace(changed, factors=remaining)
    return changed


def _client(cell: CellSpec, field: str, value: str) -> dict[str, str]:
    """Fields for a matrix value of `client=rust,jdbc,psycopg`, `driver=5.1.49,9.7.0` or `driver=one.jar,other.jar`. Raises UsageError."""
    if field == "client":
        if cell.client:
            raise UsageError("--matrix client and --client both choose what makes the load; remove --client")
        return {"client": value}
    if cell.client not in ("", clients.JDBC) or cell.driver:
        raise UsageError("--matrix driver conflicts with --driver, and with any --client but jdbc; remove them")
    return (
        {"client": clients.JDBC, "driver": value} if value.endswith(".jar") else {"client": f"{clients.JDBC}:{value}"}
    )


def _target(cell: CellSpec, number: int) -> str:
    version = f"@{cell.version}" if cell.version else ""
    return f"{number + 1}. {cell.engine}{version}:{cell.mechanism}"


def split(cell: CellSpec, number: int = 0) -> list[CellSpec]:
    """The cell's server and mechanism with each workload of SPLITS or COLUMN_SPLIT, as one experiment. Pure."""
    in_columns = mechanisms.get(cell.mechanism).layer == "column"
    group = f"{_target(cell, number)} where the cost comes from"
    return [
        msgspec.structs.replace(
            cell,
            workload=split_cell.workload,
            factors=cell.factors | ({"size": split_cell.size} if split_cell.size else {}),
            rows=cell.rows or split_cell.rows,
            group=group,
            variant=f"{split_cell.workload} {split_cell.size}".strip(),
        )
        for split_cell in (COLUMN_SPLIT if in_columns else SPLITS[engines.get(cell.engine).language])
    ]


def operations(cell: CellSpec, number: int = 0) -> list[CellSpec]:
    """The cell with each operation on the user's own rows, as one experiment. Pure."""
    group = f"{_target(cell, number)} on your own rows"
    return [
        msgspec.structs.replace(cell, workload=workload, group=group, variant=workload)
        for workload in tables.OPERATIONS
    ]


def through(cell: CellSpec, name: str, number: int = 0) -> list[CellSpec]:
    """The cells that show what a hop costs and what its encryption costs, as one experiment: the hop alone, then TLS that ends
    at the hop and at the server, each against the same hop without TLS. Raises UsageError.
    """
    hop, engine = hops.get(name), engines.get(cell.engine)
    if cell.mechanism != "tls":
        raise UsageError(
            f"--hop {name}: measures TLS through a hop; write {cell.engine}:tls, not {cell.engine}:{cell.mechanism}"
        )
    if wrong := [factor for factor in ("hop", "ends") if factor in cell.factors]:
        raise UsageError(f"--hop and --set both set {wrong[0]}; remove it from --set")
    refused = {ends: reason for ends in hop.ends if (reason := hop.refuses(engine, ends))}
    if len(refused) == len(hop.ends):
        raise UsageError(f"--hop {name}: {refused[hop.ends[0]]}")
    group = f"{_target(cell, number)} through {name}"
    hop_cells: list[CellSpec] = []
    if hop.forwards_plain:
        factors = cell.factors | {"hop": name}
        hop_cells.append(
            msgspec.structs.replace(cell, mechanism="hop", factors=factors, group=group, variant="hop alone")
        )
    for ends in hop.ends:
        if ends not in refused:
            factors = cell.factors | {"hop": name, "ends": ends}
            hop_cells.append(msgspec.structs.replace(cell, factors=factors, group=group, variant=f"ends={ends}"))
    return hop_cells


def with_controls(cells: list[CellSpec]) -> list[CellSpec]:
    """Append to each experiment the controls of its cells (`Workload.beside`), which share its sessions. Pure.

    Cells that differ only in the mechanism's factors share one control.
    """
    all_cells: list[CellSpec] = []
    for numbers in schedule.groups(Spec(cells=cells)):
        members = [cells[number] for number in numbers]
        controls: list[CellSpec] = []
        for cell in members:
            if (control := _control(cell)) and control not in controls:
                controls.append(control)
        if controls and not members[0].group:
            members = [msgspec.structs.replace(cell, group=_target(cell, numbers[0])) for cell in members]
            controls = [msgspec.structs.replace(control, group=members[0].group) for control in controls]
        all_cells += [*members, *controls]
    return all_cells


def _control(cell: CellSpec) -> CellSpec | None:
    """The control of one cell; None if it has none."""
    name = workload_of(cell).beside
    if not name or cell.mechanism != "tls" or cell.engine not in mechanisms.get(name).engines:
        return None
    if cell.factors.get("hop"):
        return None  # it has controls of its own
    if cell.versus:
        return None  # neither arm is plain
    if cell.factors.get("http", "1") != "1":
        return None  # over HTTP/2 the server uses sendfile for neither arm
    if any(
        re.fullmatch(pattern, canonical(setting))
        for pattern in mechanisms.get(name).decided_settings
        for setting in cell.settings
    ):
        return None  # the user has set in both arms what it compares
    known = {factor.name for factor in mechanisms.get(cell.mechanism).factors}
    factors = {key: value for key, value in cell.factors.items() if key not in known}
    words = [word for word in cell.variant.split() if word.partition("=")[0] not in known]
    return msgspec.structs.replace(cell, mechanism=name, factors=factors, variant=" ".join([*words, name]))


def control_of(cells: Sequence[CellSpec], number: int) -> int | None:
    """Number of the cell that is the control of this one; None if there is none. Pure."""
    wanted = _control(cells[number])
    return cells.index(wanted) if wanted in cells else None
