"""JSON: the result as docs/result.schema.json describes it."""

from __future__ import annotations

from ciphercost.model.result import Result
from ciphercost.model.run_directory import encode

SHOWS_MONEY = True


def render(result: Result) -> str:
    """The result as indented JSON, without a final newline."""
    return encode(result).decode().rstrip("\n")
