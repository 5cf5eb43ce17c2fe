"""json: the result as docs/result.schema.json describes it."""

from __future__ import annotations

from ciphercost.model.result import Result
from ciphercost.model.run_directory import encode


def render(result: Result) -> str:
    """The contract's JSON, indented, with a newline at the end."""
    return encode(result).decode().rstrip("\n")
