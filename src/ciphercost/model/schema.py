"""The JSON Schema of the result, generated from the record types. `python -m ciphercost.model.schema` prints it."""

from __future__ import annotations

from typing import Any

import msgspec

from ciphercost.model.result import Result
from ciphercost.model.terms import FORMAT


def result_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of result.json. Pure."""
    schema = msgspec.json.schema(Result)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"ciphercost result, format {FORMAT}",
        **schema,
    }


if __name__ == "__main__":
    print(msgspec.json.format(msgspec.json.encode(result_schema()), indent=2).decode())
