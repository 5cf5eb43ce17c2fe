"""A command of the user's that makes the load, and what one execution of it reported. No logic."""

from __future__ import annotations

import msgspec

from ciphercost.model.constrained_types import Amount, Count, Positive

SHORTEST = 1.0
"""Seconds of the shortest slice: tools take whole seconds."""


class CommandLoad(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """How a command makes the load of a cell: `[cells.command]` in a spec file."""

    plain: str
    """The plain arm's command, with `{seconds}`, `{seed}`, `{clients}`, `{host}`, `{port}`, `{ca}`. It runs without a shell."""
    encrypted: str = ""
    """The encrypted arm's. Empty: the same one, for mechanism `none`."""
    reads: str = ""
    """Name of the importer that reads its output. Empty: found from the content."""
    operations: Count = 0
    """Operations of one execution, if its output says nothing; its duration is then the figure. 0: the output says it."""
    before: str = ""
    """A command that runs before each session, e.g. to restart the server. Empty: none."""
    after: str = ""
    """A command that runs after each session, also after a failed one. Empty: none."""
    canary: str = ""
    """A text that the load sends or receives: it must be readable on the wire in the plain arm, and absent in the encrypted one."""
    server_pid: str = ""
    """Process of the server, or a file that holds its number. Empty: whoever listens on the port."""
    server_unit: str = ""
    """The server's systemd unit."""
    server_cgroup: str = ""
    """Directory of the server's control group, e.g. of a container."""
    unproven: bool = False
    """Measure although nothing proves which arm is encrypted; the cell is then labelled unproven."""
    hidden: bool = False
    """The record holds the commands without their secrets, so they can't be run again from it."""


class ToolFigures(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one execution of a command reported beside its operations, and how long its process took."""

    process_s: Positive
    """Seconds from the start of its process to its end."""
    startup_s: Amount = 0.0
    """The part of these seconds that the tool's own clock leaves out: start, connections, report. 0 with `whole`."""
    whole: bool = False
    """Whether the figures are of the whole process, because the tool reports no time."""
    tool: str = ""
    """As the tool names itself, with its version. Empty: unknown."""
    latency_ms: dict[str, Amount] = {}
    """The tool's own `mean`, `p50`, `p99`, milliseconds."""
    operation: str = ""
    """What the slice was, if it was one execution of an operator's task: `backup`, `restart` …; `process_s` is then its duration."""
    output_bytes: Count = 0
    """Bytes of the files that it made. 0: none, or unknown."""
    traffic: dict[str, Amount] = {}
    """Operations per second of the traffic on the same server: `quiet`, just before it, and `meanwhile`. Empty: there was none."""
