"""cell_checks: what is refused of a cell before anything is started, once its names have been looked up."""

from __future__ import annotations

import math
from pathlib import Path

from ciphercost import mechanisms
from ciphercost.engines import Engine
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.load import workloads
from ciphercost.load.workloads import Workload
from ciphercost.mechanisms._column import BLOCK, Columns
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec
from ciphercost.plan.planned import PlannedCell

FOREIGN_WORKLOADS = ("page", "connect")


def check_numbers(cell: CellSpec) -> None:
    """Raises UsageError for a number out of range, or a file of authorities that is not there."""
    if cell.clients < 0 or cell.clients > 1000:
        raise UsageError(f"clients {cell.clients}: must lie between 1 and 1000")
    if cell.rows < 0:
        raise UsageError(f"rows {cell.rows}: must be at least 1")
    if not math.isfinite(cell.rate) or cell.rate < 0:
        raise UsageError(f"rate {cell.rate}: must be above 0")
    if cell.ca and not Path(cell.ca).is_file():
        raise UsageError(f"--ca {cell.ca}: there is no such file")


def check_secrets(cell: CellSpec, mechanism: Columns, workload: Workload) -> None:
    """A mechanism in columns needs values that are secret. Raises UsageError."""
    if cell.sql:
        raise UsageError(
            f"--sql runs on tables as they are, and {mechanism.name} needs them twice, in clear and encrypted: use --workload search"
        )
    if not workloads.has_secrets(workload):
        raise UsageError(
            f"workload {cell.workload} has no secret column, so {mechanism.name} would encrypt nothing: "
            f"use --workload with one of {workloads.fitting(workloads.has_secrets)}"
        )


def check_language(cell: CellSpec, engine: Engine, workload: Workload) -> None:
    """A workload must be written in what the server understands. Raises UsageError."""
    if cell.csv and engine.language != "sql":
        raise UsageError(f"--csv makes a table of the file, and {cell.engine} has none: leave it out")
    if engine.foreign and not cell.sql and cell.workload not in FOREIGN_WORKLOADS:
        raise UsageError(
            f"workload {cell.workload} asks for documents of ours, and this server is yours: use --workload "
            f"{' or '.join(FOREIGN_WORKLOADS)}, which ask for the address itself, or --sql with requests of your own"
        )
    if not cell.sql and engine.language not in workload.languages:
        fit = workloads.fitting(lambda each: engine.language in each.languages)
        raise UsageError(f"workload {cell.workload} does not fit {cell.engine}: use --workload with one of {fit}")
    _check_share(cell, workload)


def _check_share(cell: CellSpec, workload: Workload) -> None:
    """Where only some requests are to be encrypted, the workload must say which. Raises UsageError."""
    if cell.factors.get("share", "all") == "all":
        return
    if cell.delay:
        raise UsageError("--delay is put into one way, and share=checkout takes two: leave one of them out")
    if not workloads.has_marks(workload):
        raise UsageError(
            f"share={cell.factors['share']}: workload {cell.sql or cell.workload} marks no request SECURE, so nothing would be encrypted; "
            f"use --workload {workloads.fitting(workloads.has_marks)}, or leave share out"
        )


def check_column_client(cell: PlannedCell) -> None:
    """Where the application encrypts values, it is the Rust agent, and the workload must allow it. Raises UsageError."""
    mechanism = cell.mechanism
    if not isinstance(mechanism, Columns):
        return
    codec = mechanism.codec(cell.engine, cell.factors, bytes(mechanism.key_bytes), bytes(BLOCK))
    if codec.client_side:
        if cell.client:
            raise UsageError(
                f"{mechanism.name} is encryption by the application, which the Java agent does not do: leave --client out"
            )
        cell.encrypted_program(codec)  # raises what an application can't do


def check_server(planned: PlannedCell) -> None:
    """What is asked of the server must fit it: connections, authority, address. Raises UsageError."""
    cell, engine = planned.spec, planned.engine
    if engine.embedded and (cell.per_request or planned.program.per_request):
        raise UsageError(
            f"{cell.engine} is embedded: it has no connections to open, so workload '{planned.program.name}' does not fit"
        )
    if cell.ca and "tls" not in mechanisms.of(engine):
        raise UsageError(f"--ca {cell.ca}: {cell.engine} has no TLS, so there is no certificate to check")
    if cell.url and planned.mechanism.layer == "rest":
        raise UsageError(
            f"{cell.engine}:{cell.mechanism} compares two servers that ciphercost starts itself, so --url does not fit: leave it "
            "out, and name your binaries by --bindir"
        )
    if cell.url and "certificate" in cell.factors:
        raise UsageError("certificate: a server of yours shows the one that it has; leave it out")
    if (cell.url or engine.foreign) and not engine.embedded:
        if len(cell.url.split()) > (engine.urls if isinstance(engine, TakesUrl) else 1):
            raise UsageError(f"--url is given {len(cell.url.split())} times, and {cell.engine} is one server: give one")
        TakesUrl.of(engine).check_url(cell.url)
