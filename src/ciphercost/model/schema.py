"""The JSON Schemas of a run's result and of a run over machines, generated from the record types.

`python -m ciphercost.model.schema` prints the first, with the word `machines` the second.
"""

from __future__ import annotations

import sys
from typing import Any

import msgspec

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
        **msgspec.json.schema(kind),
    }


if __name__ == "__main__":
    made = machines_schema() if sys.argv[1:] == ["machines"] else result_schema()
    print(msgspec.json.format(msgspec.json.encode(made), indent=2).decode())
