"""Reads hyperfine's `--export-json`. Each time of a command is a run, since each one is a new process. Pure.

Commands are identified by number because they may contain passwords.
"""

from __future__ import annotations

import math
import re

import msgspec

from ciphercost.importers.formats import Bad, Lines, line_of
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

MARK = re.compile(r'\A\s*\{\s*"results"\s*:\s*\[')
LONGEST = 50_000_000
"""Characters; JSON is read as a whole."""


class Command(msgspec.Struct):
    command: str
    mean: float
    times: list[float] | None = None
    user: float | None = None
    system: float | None = None
    exit_codes: list[int | None] = []
    parameters: dict[str, str] = {}


class Export(msgspec.Struct):
    results: list[Command]


def recognise(head: str) -> int:
    return line_of(MARK, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading for each time of each command."""
    text, size = [], 0
    for line in lines:
        text.append(line)
        size += len(line)
        if size > LONGEST:
            raise Bad(lines.number, "too long for an export of hyperfine")
    try:
        export = msgspec.json.decode("\n".join(text), type=Export)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError, RecursionError) as error:
        raise Bad(
            lines.number, f"not a complete export of hyperfine ({error}); export it again with --export-json"
        ) from None
    if not export.results:
        raise Bad(1, "the export contains no command")
    return [reading for count, command in enumerate(export.results, 1) for reading in of_command(command, count)]


def of_command(command: Command, count: int) -> list[Reading]:
    times = command.times or [command.mean]
    if not all(math.isfinite(seconds) and seconds > 0 for seconds in times):
        raise Bad(1, f"command {count} has an invalid time")
    notes = []
    if command.times is None:
        notes.append(Warning_("iterations-hidden", "the export has only the mean, not the individual times"))
    if wrong := sum(1 for code in command.exit_codes if code):
        runs = max(len(times), len(command.exit_codes))
        if wrong > runs / 2:
            raise Bad(
                1,
                f"{wrong} of {runs} runs of command {count} ended with an error; fix the command and run it again",
            )
        notes.append(Warning_("errors", f"{wrong} of {runs} runs of command {count} ended with an error"))
    readings = [
        Reading(
            tool="hyperfine",
            line=1,
            engine="command",
            workload="a command",
            names=[*command.parameters.values(), command.command],
            operations=1,
            seconds=seconds,
            figures={"throughput": 1 / seconds, "latency_mean": seconds * 1e3},
        )
        for seconds in times
    ]
    readings[0].notes = notes
    if command.user is not None and command.system is not None and command.user + command.system > 0:
        # Only the mean CPU time is exported, so one run gets it and it has no interval.
        readings[0].figures["client_cpu_per_op"] = (command.user + command.system) * 1e6
    return readings
