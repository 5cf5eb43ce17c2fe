"""command_readers: reads a measured command's output by the importers: the one that the user names, or the one that recognises it."""

from __future__ import annotations

from collections.abc import Iterable

from ciphercost.importers import formats, unwrap
from ciphercost.importers.formats import Bad, Lines, as_printed, without_secrets
from ciphercost.load import command_output, command_secrets
from ciphercost.load.command_output import CODE, Reader
from ciphercost.model.command_load import CommandLoad
from ciphercost.model.errors import AgentError, UsageError, nearest
from ciphercost.model.imported import Reading
from ciphercost.model.printable import printable
from ciphercost.model.spec import CellSpec

OWN = "own"
"""The name of ciphercost's own form, `{"operations": …}`."""
NO_LOAD = frozenset({"atop", "sadf", "sar", "csv", "pgbench_log", "hyperfine"})
"""Importers of files that no load generator prints in one execution."""
SHOWN = 60
"""Characters of unreadable output in an error."""


def names() -> list[str]:
    """What `--reads` may name."""
    return sorted([OWN, *(name.replace("_", "-") for name in formats.names() if name not in NO_LOAD)])


def check(cells: Iterable[CellSpec]) -> None:
    """Raises UsageError if a cell's `reads` names no reader."""
    for cell in cells:
        if cell.command:
            _check(cell.command)


def _check(load: CommandLoad) -> None:
    if load.reads and load.reads not in names():
        raise UsageError(f"--reads {load.reads}: {nearest(load.reads, names())}")
    if load.reads and load.operations:
        raise UsageError(
            f"--operations {load.operations} takes the command's duration as the figure, and --reads {load.reads} its output; remove one of them"
        )


def reader(load: CommandLoad) -> Reader:
    """What reads the output of a cell's commands."""

    def read(out: str, err: str) -> Reading:
        for text in (out, err):
            if (found := _in(text, load.reads)) is not None:
                return found
        first = next((line for text in (out, err) for line in text.splitlines() if line.strip()), "")
        printed = (
            f"its output begins with '{without_secrets(printable(first[:300]))[:SHOWN]}'"
            if first
            else "it printed nothing"
        )
        wanted = f"no result of {load.reads}" if load.reads else "no result of a known tool"
        raise AgentError(
            f'the command printed {wanted}: {printed}; name the tool with --reads, print a line {{"operations": N, "seconds": S}}, or give '
            "--operations N",
            CODE,
        )

    return Reader(read, lambda text: command_secrets.shown(without_secrets(printable(text))))


def _in(text: str, reads: str) -> Reading | None:
    """The one result in a text, without colours and overwritten progress; None: there is none. Raises AgentError for a damaged one, or several."""
    if reads in ("", OWN) and (line := command_output.own_line(text)) is not None:
        return line
    wrapping = unwrap.wrapping(text)
    lines = [wrapping.off(line) for line in text.split("\n")]
    fits = [name for name in formats.recognised("\n".join(lines)) if name not in NO_LOAD]
    if reads:
        fits = [name for name in fits if name == reads.replace("-", "_")]
    if not fits:
        return None
    if len(fits) > 1:
        raise AgentError(f"the output looks like results of {' and '.join(fits)}; name the tool with --reads", CODE)
    try:
        readings = [
            reading
            for reading in formats.get(fits[0]).read(Lines([as_printed(line) + "\n" for line in lines]))
            if reading.kind == "load"
        ]
    except Bad as error:
        where = f", line {error.line}" if error.line else ""
        raise AgentError(f"can't use the output of {fits[0].replace('_', '-')}{where}: {error.what}", CODE) from None
    if len(readings) != 1:
        raise AgentError(
            f"the output holds {len(readings)} results of {fits[0].replace('_', '-')}, and one execution is one slice: let the command do one "
            "kind of operation once",
            CODE,
        )
    return readings[0]
