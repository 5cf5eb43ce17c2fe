"""Read and write a spec as a TOML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ciphercost.load import tables
from ciphercost.load.units import duration, share
from ciphercost.model import checked
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import schedule, specs
from ciphercost.plan.planned import Plan


def load(path: Path) -> Spec:
    """Read a Spec as `plan` does."""
    return plan(path).spec


def plan(path: Path, elsewhere: Mapping[str, Any] | None = None) -> Plan:
    """Read and plan a Spec from a TOML file: top-level keys of Spec, and one `[[cells]]` table for each cell.

    `elsewhere`: fields of the Spec that replace the file's. Raises UsageError with file and key.
    """
    data = checked.toml(path)
    _check_keys(data, Spec, str(path))
    if not isinstance(data.get("cells", []), list):
        raise UsageError(f"{path}: cells must be a list of tables; begin each with [[cells]]")
    for number, cell in enumerate(data.get("cells", []), start=1):
        if isinstance(cell, dict):
            _check_keys(cell, CellSpec, f"{path}, cell {number}")
            if "csv" in cell:
                cell.setdefault("workload", tables.DEFAULT_WORKLOAD)
    timed = "time" in data
    if isinstance(data.get("time"), str):
        data["time"] = duration(data["time"], f"{path}, time")
    for name in ("precision", "margin"):
        if isinstance(data.get(name), str):
            data[name] = share(data[name], f"{path}, {name}")
    try:
        made = msgspec.convert(data, Spec, strict=True)
        made = made if timed else msgspec.structs.replace(made, time=schedule.seconds(made.cells))
        made = msgspec.structs.replace(made, **elsewhere) if elsewhere else made
        return specs.long_enough(specs.plan(made))
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {checked.short(error)}") from None


def dump(spec: Spec) -> str:
    """The spec as TOML, which `load` can read. Pure."""
    data: dict[str, Any] = msgspec.to_builtins(spec)
    cells = data.pop("cells")
    data = _given(data, Spec) | {"time": spec.time}  # written even if it is the default, which depends on the cells
    lines = [f"{key} = {_toml(value)}" for key, value in data.items()]
    for made, each in zip(spec.cells, cells, strict=True):
        cell = _given(each, CellSpec)
        cell["workload"] = made.workload  # written even if it is the default, which depends on other keys
        lines += ["", "[[cells]]", *(f"{key} = {_toml(value)}" for key, value in cell.items())]
    return "\n".join(lines) + "\n"


def _given(data: Mapping[str, Any], shape: type[msgspec.Struct]) -> dict[str, Any]:
    """What differs from the defaults; msgspec itself writes a 0.0 that is not the very object of the default."""
    usual = {each.name: each.default for each in msgspec.structs.fields(shape)}
    return {name: value for name, value in data.items() if value != usual.get(name)}


def _toml(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return repr(value)
        case Mapping():
            return "{ " + ", ".join(f"{_toml(key)} = {_toml(each)}" for key, each in value.items()) + " }"
        case Sequence() if not isinstance(value, str):
            return "[" + ", ".join(_toml(each) for each in value) + "]"
        case _:
            # A JSON string is a valid TOML string, except that TOML requires DEL to be escaped.
            return msgspec.json.encode(str(value)).decode().replace("\x7f", "\\u007f")


def _check_keys(data: Mapping[str, Any], shape: type[msgspec.Struct], where: str) -> None:
    for key in data:
        if key not in shape.__struct_fields__:
            raise UsageError(f"{where}: unknown key '{key}': {nearest(key, shape.__struct_fields__)}")
