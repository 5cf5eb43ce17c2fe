"""planned: PlannedCell: a cell with everything looked up and parsed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from ciphercost.engines import Engine
from ciphercost.load import tables, workloads
from ciphercost.load.codec import Codec, Encrypting
from ciphercost.load.jdbc.drivers import Driver
from ciphercost.load.program import Program
from ciphercost.mechanisms import Mechanism
from ciphercost.mechanisms._column import only
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec
from ciphercost.plan.conditions import Conditions


class Client(msgspec.Struct, frozen=True):
    """The JDBC client that makes a cell's load."""

    driver: Driver
    options: dict[str, str]
    """What `--set` says to it."""


class PlannedCell(msgspec.Struct, frozen=True):
    """A cell of a run, ready to be measured. `plan.resolve.resolve` makes it; nothing below looks a name up or parses a text again."""

    spec: CellSpec
    """As the user wrote it, and as the record keeps it."""
    engine: Engine
    mechanism: Mechanism
    factors: dict[str, str]
    """The mechanism's, with defaults filled in."""
    workload: workloads.Workload
    parameters: dict[str, str]
    """Of the workload: those that `--set` gave."""
    choices: dict[str, str]
    """Of the workload: the word chosen for each, by `--set` or by default."""
    secret: dict[str, str]
    """`secret` as `--set` has it or by default; empty where the workload's secret columns can't be chosen."""
    secret_columns: tuple[str, ...]
    """The columns that `secret` chooses."""
    client: Client | None
    """None: the Rust agent makes the load."""
    conditions: Conditions
    program: Program
    """The workload in the server's dialect, with nothing encrypted in its statements."""

    @property
    def clients(self) -> int:
        """Connections of an arm: as asked for, or the regime's or the workload's own number."""
        return self.spec.clients or (
            1 if self.engine.embedded or self.spec.regime == "one-core" else self.program.clients
        )

    def encrypted_program(self, codec: Codec) -> Program:
        """The program whose encrypted arm stores secret columns as `codec` says, which has the run's key. Raises UsageError."""
        if self.secret and isinstance(codec, Encrypting):
            codec = only(codec, self.secret_columns)
        made = prepare(self.spec, self.engine, self.workload, self.parameters, codec)
        return msgspec.structs.replace(made, per_request=self.program.per_request)


def prepare(
    cell: CellSpec,
    engine: Engine,
    workload: workloads.Workload,
    parameters: Mapping[str, str],
    codec: Codec | None = None,
) -> Program:
    """The workload in its server's dialect, on tables of its own or on the user's rows. Raises UsageError.

    `codec`: how the encrypted arm stores the workload's secrets.
    """
    if cell.csv:
        if cell.sql:
            raise UsageError("--csv and --sql both say what an operation is: leave one of them out")
        if workload.records:
            return workloads.prepare(workload, engine.dialect, parameters, cell.rows, codec, Path(cell.csv))
        if cell.rows:
            raise UsageError("--rows does not go with --csv: the file has as many rows as it has")
        return tables.program(Path(cell.csv), cell.workload, engine.dialect)
    marked_only = cell.factors.get("share", "all") != "all"
    return workloads.prepare(workload, engine.dialect, parameters, cell.rows, codec, marked_only=marked_only)
