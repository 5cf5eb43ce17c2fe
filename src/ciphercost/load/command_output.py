"""command_output: what one execution of a command did, as a slice: from a reader's figures, or from the command's own duration. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from ciphercost.model.command_load import ToolFigures
from ciphercost.model.constrained_types import Amount, Count
from ciphercost.model.errors import AgentError
from ciphercost.model.imported import Reading
from ciphercost.model.slices import AgentSlice


class Reader(NamedTuple):
    """What makes sense of one execution's output."""

    read: Callable[[str, str], Reading]
    """Of standard output and standard error. Raises AgentError with CODE if there is no result in them."""
    shown: Callable[[str], str]
    """A command or a line of its output without the secrets that can be recognised in it."""


CODE = "output"
"""Code of the error for output that has no usable figures."""
MOST_OUTPUT = 16 << 20
"""Bytes that one execution may print."""
LATENCIES = ("mean", "p50", "p99")
FASTER = 1.1
"""Times its process's duration that a tool may claim to have measured: it rounds, and its clock may be another one."""
SLACK = 0.1
"""Seconds more that it may claim."""


class Latency(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """Milliseconds."""

    mean: Amount = 0.0
    p50: Amount = 0.0
    p99: Amount = 0.0


class Line(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A line of JSON that any program can print: `{"operations": 1234, "seconds": 2.0}`."""

    operations: Count
    """Finished without an error."""
    seconds: Amount = 0.0
    """That they took, by the program's own clock. 0: the whole process."""
    errors: Count = 0
    """Operations that failed; they are not among `operations`."""
    latency_ms: Latency | None = None
    tool: str = ""
    """Name and version, for the report."""


def own_line(out: str) -> Reading | None:
    """The figures of the last line that is in ciphercost's own form; None: there is none. Raises AgentError if it is damaged."""
    lines = [line for line in out.split("\n") if line.lstrip().startswith('{"operations"')]
    if not lines:
        return None
    if len(lines) > 1:
        raise AgentError(
            f"the command printed {len(lines)} lines with operations, and one execution is one slice: print one", CODE
        )
    try:
        line = msgspec.json.decode(lines[0], type=Line)
    except msgspec.DecodeError as error:
        raise AgentError(f"can't read the line {lines[0].strip()[:80]}: {error}", CODE) from None
    latency = msgspec.structs.asdict(line.latency_ms) if line.latency_ms else {}
    return Reading(
        tool=line.tool or "own",
        line=1,
        operations=line.operations,
        errors=line.errors,
        seconds=line.seconds,
        figures={f"latency_{name}": value for name, value in latency.items() if value},
    )


def counted(operations: int) -> Reading:
    """The figures of a command that reports nothing: so many operations, in the time that its process took."""
    return Reading(tool="", line=0, operations=operations)


def converted(
    reading: Reading, seconds: float, cpu: tuple[int, int], threads: int, arm: str
) -> tuple[AgentSlice, ToolFigures]:
    """A reading as a slice, and what else the tool reported. `seconds`: of the process; `cpu`: its CPU time in user mode and in the
    kernel, ns; `threads`: CPUs that it may use. Raises AgentError if the figures can't be of this execution.
    """
    if any(note.code == "rate-limited" for note in reading.notes):
        raise AgentError(
            f"{reading.tool} was given a rate, so its throughput is what it was told to send; remove the rate from the command",
            CODE,
        )
    rate = reading.figures.get("throughput", 0.0)
    whole = not (reading.seconds or (rate and reading.operations))
    measured = seconds if whole else reading.operations / rate if rate and reading.operations else reading.seconds
    done = float(reading.operations) if reading.operations else rate * measured
    if measured > FASTER * seconds + SLACK:
        raise AgentError(
            f"{reading.tool or 'the command'} reports {measured:.3g} s of load, but its process ran for {seconds:.3g} s: is it the output "
            "of another run?",
            CODE,
        )
    if not done and not reading.errors:
        raise AgentError(f"{reading.tool or 'the command'} finished no operation", CODE)
    latency = {name: value for name in LATENCIES if (value := reading.figures.get(f"latency_{name}"))}
    figures = ToolFigures(
        process_s=seconds,
        startup_s=0.0 if whole else max(0.0, seconds - measured),
        whole=whole,
        tool=f"{reading.tool} {reading.version}".strip(),
        latency_ms=latency,
    )
    answer = AgentSlice(
        arm=arm,
        seconds=measured,
        operations=round(done),
        errors=reading.errors,
        rows=0,
        checksum="",
        cpu_user_ns=cpu[0],
        cpu_system_ns=cpu[1],
        bytes_sent=0,
        bytes_received=0,
        segments_sent=0,
        segments_received=0,
        connects=0,
        resumed=0,
        late=0,
        threads=int(reading.factors.get("threads", "0") or 0) or threads,
        histogram="",
        first_error=f"{reading.tool} reports {reading.errors} failed operations" if reading.errors else "",
        work=done,
    )
    return answer, figures
