"""The JSON Schemas of a run's result and of a run over machines, generated from the record types.

`python -m ciphercost.model.schema` prints the first, with the word `machines` the second.
"""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from ciphercost.model import pair
from ciphercost.model.constrained_types import FORMAT
from ciphercost.model.machines import MACHINES_FORMAT, MachinesRun
from ciphercost.model.result import Result


def result_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of result.json. Pure."""
    return _schema(Result, f"ciphercost result, format {FORMAT}")


def machines_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of machines.json. Pure."""
    return _schema(MachinesRun, f"ciphercost run over machines, format {MACHINES_FORMAT}")


def _schema(kind: type[msgspec.Struct], title: str) -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **_with_places(msgspec.json.schema(kind)),
    }


def _with_places(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema, in which each field and value that names an arm also has the name that a cell with two encrypted arms gives it."""
    for definition in schema["$defs"].values():
        fields = definition.get("properties", {})
        others = {other: fields[name] for name in fields if (other := pair.outward_key(name)) != name}
        if not others:
            _name_arms(fields)
            continue
        fields |= others
        arm_names = [name for name in definition["required"] if pair.outward_key(name) != name]
        definition["required"] = [name for name in definition["required"] if name not in arm_names]
        if arm_names:
            definition["anyOf"] = [
                {"required": arm_names},
                {"required": [pair.outward_key(name) for name in arm_names]},
            ]
    return schema


def _name_arms(fields: dict[str, Any]) -> None:
    for field in fields.values():
        if isinstance(values := field.get("enum"), list) and sorted(values) == sorted(pair.PLACES):
            field["enum"] = [*values, *pair.PLACES.values()]


if __name__ == "__main__":
    schema = machines_schema() if sys.argv[1:] == ["machines"] else result_schema()
    print(msgspec.json.format(msgspec.json.encode(schema), indent=2).decode())
