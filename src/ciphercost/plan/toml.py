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
            if isinstance(cell.get("secret"), str):
                cell["secret"] = [name.strip() for name in cell["secret"].split(",")]
            if "csv" in cell or {"dump", "secret"} <= cell.keys():
                cell.setdefault("workload", tables.DEFAULT_WORKLOAD)
    timed = "time" in data
    if isinstance(data.get("time"), str):
        data["time"] = duration(data["time"], f"{path}, time")
    for name in ("precision", "margin"):
        if isinstance(data.get(name), str):
            data[name] = share(data[name], f"{path}, {name}")
    try:
        spec = msgspec.convert(data, Spec, strict=True)
        spec = spec if timed else msgspec.structs.replace(spec, time=schedule.seconds(spec.cells))
        spec = msgspec.structs.replace(spec, **elsewhere) if elsewhere else spec
        return specs.long_enough(specs.plan(spec))
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {checked.short(error)}") from None


def dump(spec: Spec) -> str:
    """The spec as TOML, which `load` can read. Pure."""
    data: dict[str, Any] = msgspec.to_builtins(spec)
    cells = data.pop("cells")
    data = _given(data, Spec) | {"time": spec.time}  # written even if it is the default, which depends on the cells
    lines = [f"{key} = {_toml(value)}" for key, value in data.items()]
    for cell_spec, fields in zip(spec.cells, cells, strict=True):
        cell = _given(fields, CellSpec)
        cell["workload"] = cell_spec.workload  # written even if it is the default, which depends on other keys
        lines += ["", "[[cells]]", *(f"{key} = {_toml(value)}" for key, value in cell.items())]
    return "\n".join(lines) + "\n"


def _given(data: Mapping[str, Any], shape: type[msgspec.Struct]) -> dict[str, Any]:
    """What differs from the defaults; msgspec itself writes a 0.0 that is not the very object of the default."""
    usual = {field.name: field.default for field in msgspec.structs.fields(shape)}
    return {name: value for name, value in data.items() if value != usual.get(name)}


def _toml(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return repr(value)
        case Mapping():
            return "{ " + ", ".join(f"{_toml(key)} = {_toml(item)}" for key, item in value.items()) + " }"
        case Sequence() if not isinstance(value, str):
            return "[" + ", ".join(_toml(item) for item in value) + "]"
        case _:
            # A JSON string is a valid TOML string, except that TOML requires DEL to be escaped.
            return msgspec.json.encode(str(value)).decode().replace("\x7f", "\\u007f")


def _check_keys(data: Mapping[str, Any], shape: type[msgspec.Struct], where: str) -> None:
    for key in data:
        if key not in shape.__struct_fields__:
            raise UsageError(f"{where}: unknown key '{key}': {nearest(key, shape.__struct_fields__)}")
