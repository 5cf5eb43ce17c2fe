"""Report formats: one file per format, found by file name. A text format has `render(result) -> str`, which is pure.

A format that needs more than the result, or is not text, has `write(result, directory, output, budget)`. It writes from a run's directory
into a file or directory. `budget` is the highest acceptable cost, for formats that draw it. A text format that checks each cell
against a budget has `gated(result, budget) -> (text, exit status)`. One that shows `Cell.money` sets `SHOWS_MONEY`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from ciphercost.model.errors import UsageError
from ciphercost.model.registry import Registry
from ciphercost.model.result import Result
from ciphercost.report import advice, disturbed
from ciphercost.report.advice import Report

REGISTRY = Registry(__name__, "unknown report format '{}': {}")


def names() -> list[str]:
    """Names of all formats, by file: `github_action_benchmark.py` is `github-action-benchmark`."""
    return REGISTRY.names()


def get(name: str) -> Callable[[Result], str]:
    """The renderer of that format. Raises UsageError with the nearest name, or if the format is not text."""
    module = REGISTRY.get(name)
    if not hasattr(module, "render"):
        raise UsageError(f"--format {name} is not text; name the output file or directory with -o")
    render: Callable[[Result], str] = module.render
    return render


def writer(name: str) -> Callable[[Result, Path, Path, float | None], None] | None:
    """The writer of a format that is not text; None for a text format. Raises UsageError with the nearest name."""
    write: Callable[[Result, Path, Path, float | None], None] | None = getattr(REGISTRY.get(name), "write", None)
    return write


def gate(name: str) -> Callable[[Result, float], tuple[str, int]] | None:
    """What renders a format with each cell checked against a budget, and the exit status; None for formats that don't check."""
    gated: Callable[[Result, float], tuple[str, int]] | None = getattr(REGISTRY.get(name), "gated", None)
    return gated


def with_price() -> list[str]:
    """Names of the formats that show what encryption costs in money: their modules set SHOWS_MONEY."""
    return [name for name in names() if getattr(REGISTRY.load(name), "SHOWS_MONEY", False)]


def with_advice(name: str, result: Result, advised: Report) -> str:
    """The advice as terminal text, Markdown or JSON. Raises UsageError for other formats."""
    if name == "terminal":
        from ciphercost.report.formats import terminal

        warning = disturbed.warning(result.cells)
        texts = [*([f"! {warning}", ""] if warning else []), *advice.lines(advised, result)]
        return "\n".join(line for text in texts for line in terminal.advice_line(text))
    if name == "md":
        from ciphercost.report.formats import md

        return md.advice_list(advised, result)
    if name == "json":
        return msgspec.json.format(msgspec.json.encode(advised), indent=2).decode()
    raise UsageError(f"--need and --max-cost don't support --format {name}; use terminal, md or json")
