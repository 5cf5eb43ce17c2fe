"""A run over several machines, as machines.json holds it: the plan, the machines, and what their costs have in common. No logic."""

from __future__ import annotations

from typing import Literal

import msgspec

from ciphercost.model.constrained_types import Count, Seed, Verdict
from ciphercost.model.result import Added, Estimate
from ciphercost.model.spec import Spec

MACHINES_FORMAT = 1
MACHINES_FILE = "machines.json"
MachineState = Literal["waiting", "measured", "lost"]


class Machine(msgspec.Struct, frozen=True, omit_defaults=True):
    """One node of the cluster, and its part of the run."""

    name: str
    """`node-1`, …: the name of its run's directory below `machines/`."""
    node: str
    """Its name in the cluster, by which `resume` finds it again."""
    host: str
    """What nodes on one physical or virtual machine have in common: the kernel's boot id. Empty: unknown."""
    cells: list[Count]
    """Numbers of the cells that it measures."""
    cpus: float = 1.0
    """CPUs that the cluster says it has. Its task takes all of them."""
    cpu: str = ""
    """CPU model, by which costs are grouped. Empty until it has measured."""
    state: MachineState = "waiting"
    reason: str = ""
    """Why it has no run, if it was lost."""


class MachineCost(msgspec.Struct, frozen=True, omit_defaults=True):
    """One metric of one cell on one machine."""

    machine: str
    estimate: Estimate


class TypeCost(msgspec.Struct, frozen=True):
    """One metric of one cell on the machines with one CPU model."""

    cpu: str
    machines: list[str]
    estimate: Estimate
    """With one machine, its own interval, which covers that machine alone."""
    covers: str
    """What the interval covers, in words."""


class Between(msgspec.Struct, frozen=True):
    """How much the machines' true costs differ from each other."""

    sd: float
    """Standard deviation of the log ratio between machines, without the error of each machine's own estimate."""
    low: float
    high: float
    """95 % interval of `sd`."""
    p_value: float
    """How probable machines without any difference would be to scatter this much."""


class OverMachines(msgspec.Struct, frozen=True):
    """One metric of one cell over all machines that measured it."""

    overall: Estimate
    """Unweighted mean over machines, encrypted ÷ plain; `n` is their number. With one machine, that machine's own interval."""
    covers: str
    """What the interval covers, in words."""
    machines: list[MachineCost]
    types: list[TypeCost]
    """By CPU model, the most machines first."""
    between: Between | None = None
    """None: fewer than two machines."""


class AddedOn(msgspec.Struct, frozen=True):
    """CPU time that encryption adds to an operation, on one machine or over several, µs."""

    added: Added
    plain: float
    """Of an operation without encryption; over several machines the mean, each counting the same."""
    encrypted: float
    machines: list[str]
    cpu: str = ""
    """Their CPU model; empty: all machines of the cell."""


class AddedOverMachines(msgspec.Struct, frozen=True):
    """CPU time that encryption adds to an operation of one cell."""

    metric: str
    """The metric whose levels these are: `server_cpu_per_op`."""
    whose: str
    """`server CPU`."""
    overall: AddedOn
    """The mean of the machines, each counting the same, with t over machines. With one machine, that machine's own interval."""
    machines: list[AddedOn]
    types: list[AddedOn]
    """By CPU model, the most machines first."""


class Loss(msgspec.Struct, frozen=True):
    """A machine that was to measure a cell and has no number for it."""

    machine: str
    reason: str


class CellOverMachines(msgspec.Struct, frozen=True):
    """One cell over all machines."""

    cell: int
    """Its number in the spec."""
    engine: str
    versions: list[str]
    """Versions of the server; several if the machines have different ones."""
    mechanism: str
    workload: str
    title: str
    metric: str
    """The metric of the headline. Empty: no machine has a number."""
    machines: int
    """Machines with a number for this cell."""
    hosts: int
    """Hosts on which those machines run. Fewer than `machines` if some share a host."""
    overhead: dict[str, OverMachines]
    verdict: Verdict | None = None
    lost: list[Loss] = []
    added: AddedOverMachines | None = None
    """None: a machine does not tell it."""


class MachinesRun(msgspec.Struct, frozen=True):
    """`machines.json`: rewritten completely each time a machine's part arrives."""

    format: int
    id: str
    started: str
    tool: dict[str, str]
    seed: Seed
    spec: Spec
    machines: list[Machine]
    cells: list[CellOverMachines] = []
    command: str = ""
    ended: str = ""
    """Empty: parts are missing; `ciphercost resume` continues the run."""
