"""run_context: what the cells of a run share while they are measured, and one cell that is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from ciphercost.host.supervisor import Supervisor
from ciphercost.load.command_output import Reader
from ciphercost.load.fleet.agent_pool import Cluster
from ciphercost.measure.cell_measurement import CellMeasurement
from ciphercost.measure.progress import Display
from ciphercost.measure.session import Session
from ciphercost.measure.stopping import Start
from ciphercost.model.command_load import CommandLoad
from ciphercost.model.run_directory import Record
from ciphercost.plan.planned import PlannedCell
from ciphercost.provision.prepared_cell import PreparedCell
from ciphercost.provision.servers import Servers


class Run(msgspec.Struct):
    """What every cell of a run needs."""

    cells: Sequence[PlannedCell]
    record: Record
    supervisor: Supervisor
    scratch: Path
    display: Display
    stopping: Start
    """Makes the object that decides when a cell has been measured long enough; see `CellMeasurement`."""
    servers: Servers
    """Servers that were already found."""
    reader: Callable[[CommandLoad], Reader]
    """Makes what reads the output of a cell's commands."""
    cluster: Cluster | None = None
    """Nodes that make the load. None: this machine makes it."""
    stopped: dict[str, str] = {}
    """By URL: the cell at which the load on that server was stopped; no other cell may load it."""


class CellRun(msgspec.Struct):
    """A cell being measured: its binaries, its data and its measurement."""

    bench: PreparedCell
    measurement: CellMeasurement

    @property
    def wants_more(self) -> bool:
        facts = self.measurement.facts
        wanted = self.measurement.budget.sessions + len(facts.void_sessions)
        return facts.status is None and len(facts.whole_sessions) < wanted and not self.measurement.precise_enough()


class LiveCell(msgspec.Struct, frozen=True):
    """A cell in one session: its servers run, its connections are open."""

    session: Session
    phases: tuple[Iterator[None], ...]
    """In order; see `Session.phases`."""
