"""PlannedCell: a cell with all names resolved and all options parsed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ciphercost.engines import Engine
from ciphercost.load import clients, own_scripts, tables, workloads
from ciphercost.load.codec import Codec, Encrypting
from ciphercost.load.program import Program
from ciphercost.mechanisms import Mechanism
from ciphercost.mechanisms._column import only
from ciphercost.model.errors import UsageError
from ciphercost.model.secret import Secret
from ciphercost.model.slices import Witness
from ciphercost.model.spec import Arm, CellSpec, Spec
from ciphercost.model.storms import Storm
from ciphercost.plan.conditions import Conditions
from ciphercost.plan.dump_rows import Table


class Client(msgspec.Struct, frozen=True):
    """The driver that makes a cell's load, instead of the Rust agent."""

    driver: clients.Driver
    options: dict[str, str]
    """Options of the driver that `--set` gives."""


class PlannedCell(msgspec.Struct, frozen=True):
    """A cell that is ready to be measured. `plan.resolve.resolve` creates it; lower layers neither look up names nor parse text."""

    spec: CellSpec
    """As the user wrote it and as the run records it."""
    engine: Engine
    mechanism: Mechanism
    factors: dict[str, str]
    """Factors of the mechanism, with defaults filled in."""
    workload: workloads.Workload
    parameters: dict[str, str]
    """Parameters of the workload that `--set` gives."""
    choices: dict[str, str]
    """Choices of the workload: the word for each, from `--set` or the default."""
    secret: dict[str, str]
    """`secret` from `--set` or the default; empty if the workload's secret columns can't be chosen."""
    secret_columns: tuple[str, ...]
    """The columns that `secret` selects."""
    client: Client | None
    """None: the Rust agent makes the load."""
    conditions: Conditions
    program: Program
    """The workload in the server's dialect, with nothing encrypted in its statements."""
    header_names: tuple[str, ...] = ()
    """Headers of every request, beside those that the agent sends by itself."""
    headers: Secret | None = None
    """The same with their values, as the agent takes them."""
    rows: Table | None = None
    """The rows of a table of the user's dump. None: the data is something else."""
    storm: Storm | None = None
    """New connections while the cell's own carry load. None: there are none."""
    idle_connections: int = 0
    """Idle connections up to which memory per connection is measured; 0: it is not."""
    rotates_key: bool = False
    """Whether the encrypted arm's key is rotated as well."""
    reference: PlannedCell | None = None
    """The cell as the other encrypted arm sees it, which takes the plain arm's place. None: that arm is plain."""

    def of(self, arm: Arm) -> PlannedCell:
        """The cell with the settings of an arm."""
        return self.reference if self.reference is not None and arm == "plain" else self

    def side(self, arm: Arm) -> Arm:
        """What its mechanism has to do for an arm: encrypt, or leave it plain."""
        return arm if self.reference is None else "encrypted"

    @property
    def witnesses(self) -> tuple[Witness, ...]:
        """Witnesses that must report on each arm."""
        both = [self] if self.reference is None else [self, self.reference]
        return tuple(dict.fromkeys(witness for one in both for witness in one.mechanism.required(one.factors)))

    @property
    def clients(self) -> int:
        """Connections of an arm: the spec's number, or the default of the regime or workload."""
        return self.spec.clients or (
            1 if self.engine.embedded or self.spec.regime == "one-core" else self.program.clients
        )

    @property
    def opens(self) -> bool:
        """Whether operations open connections of their own."""
        return self.spec.per_request or self.program.per_request

    @property
    def datagrams(self) -> bool:
        """Whether the encrypted arm's requests go by QUIC, over UDP."""
        return str(self.program.parameters.get("http")) == "3"

    @property
    def by_packet(self) -> bool:
        """Whether the link itself delays and loses packets. Otherwise a relay of TCP connections makes the delay."""
        return bool(self.conditions.loss or (self.conditions.delay_s and self.datagrams))

    @property
    def linked(self) -> bool:
        """Whether the cell needs its own link between agent and server."""
        return self.conditions.shaped or self.by_packet

    def encrypted_program(self, codec: Codec, *, beside_client: bool = False) -> Program:
        """The program whose encrypted arm stores secret columns with `codec`, which holds the run's key. Raises UsageError.

        `beside_client`: the arm that it is compared with encrypts in the application.
        """
        if self.secret and isinstance(codec, Encrypting):
            codec = only(codec, self.secret_columns)
        cell = self.rows.as_csv(self.spec) if self.rows else self.spec
        program = prepare(
            cell, self.engine, self.workload, self.parameters, codec, self.secret_columns, beside_client=beside_client
        )
        program = self.rows.named(program) if self.rows else program
        return msgspec.structs.replace(program, per_request=self.program.per_request)


class Plan(msgspec.Struct, frozen=True):
    """A checked spec and its cells, resolved. `plan.specs.plan` creates it once; every later step of a run takes it."""

    spec: Spec
    """With full names."""
    cells: tuple[PlannedCell, ...]


def prepare(
    cell: CellSpec,
    engine: Engine,
    workload: workloads.Workload,
    parameters: Mapping[str, str],
    codec: Codec | None = None,
    secret: Sequence[str] = (),
    *,
    beside_client: bool = False,
) -> Program:
    """The workload in its server's dialect, on generated tables or on the user's rows. Raises UsageError.

    `codec`: how the encrypted arm stores secret values. `secret`: which columns of the user's rows are secret. `beside_client`: as in
    `tables.program`.
    """
    if cell.csv:
        if cell.own_script:
            option = "--sql" if cell.sql else "--builtin"
            raise UsageError(f"--csv and {option} both define the operation; remove one of them")
        if workload.records and cell.no_header:
            raise UsageError("--no-header: the register's file names its columns in its first line; remove --no-header")
        if workload.records:
            return workloads.prepare(workload, engine.dialect, parameters, cell.rows, codec, Path(cell.csv))
        if cell.rows:
            raise UsageError("--rows does not work with --csv, which loads all rows of the file; remove --rows")
        return tables.program(
            Path(cell.csv),
            cell.workload,
            engine.dialect,
            header=not cell.no_header,
            secret=secret,
            codec=codec,
            beside_client=beside_client,
        )
    if cell.dump and cell.rows:
        raise UsageError("--rows does not work with --dump, which loads all rows of the dump; remove --rows")
    marked_only = cell.factors.get("share", "all") != "all"
    defined = dict(cell.define)
    asks_scale = (
        workload.own_sql
        and engine.language == "sql"
        and own_scripts.SCALE not in {*defined, *workload.parameters}
        and own_scripts.asks_scale(workload)
    )
    program = workloads.prepare(
        workload,
        engine.dialect,
        parameters,
        cell.rows,
        codec,
        marked_only=marked_only,
        defined=defined | ({own_scripts.SCALE: "1"} if asks_scale else {}),
        simple=cell.protocol == "simple",
    )
    dump = {"dump": Path(cell.dump).name} if cell.dump else {}
    return msgspec.structs.replace(
        program,
        asks_scale=asks_scale,
        mode=cell.protocol or program.mode,
        tries=cell.max_tries,
        parameters=program.parameters | dump,
    )
