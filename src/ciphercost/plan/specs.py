"""specs: command line or TOML file -> Spec, checked as far as can be without starting anything."""

from __future__ import annotations

import math
from pathlib import Path

from ciphercost import engines, mechanisms
from ciphercost.engines import Engine
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.load import workloads
from ciphercost.load.jdbc import options
from ciphercost.mechanisms._column import BLOCK, Columns
from ciphercost.model import checked
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.spec import CellSpec, Language, Spec
from ciphercost.plan import conditions, schedule
from ciphercost.plan.resolve import FOREIGN_WORKLOADS, client_options, program_of, split_factors, workload_of


def check(spec: Spec, *, load: bool = True) -> Spec:
    """The spec, if it can be run: every name known, every number possible. Raises UsageError saying what, where and what to write."""
    if not spec.cells:
        raise UsageError(
            'nothing to run: the spec has no cells; add one, e.g. engine = "postgresql", mechanism = "tls"'
        )
    if spec.sessions < 1:
        raise UsageError(f"sessions {spec.sessions}: at least 1 is needed (8 for an interval that covers restarts)")
    if spec.mode == "full" and spec.sessions < 2:
        raise UsageError("one session can't say how much a restart changes: use --sessions 8, or quick mode (--quick)")
    for name in ("time", "margin"):
        value = getattr(spec, name)
        if not (math.isfinite(value) and value > 0):
            raise UsageError(f"{name} {value}: must be above 0")
    if spec.seed < 0:
        raise UsageError(f"seed {spec.seed}: must be 0 (drawn at the start) or above")
    if spec.precision and any(cell.regime == "latency" for cell in spec.cells):
        raise UsageError("precision stops a closed loop; regime latency has none: leave one of them out")
    if not 0 <= spec.precision < 1:
        raise UsageError(f"precision {spec.precision}: must lie between 0 and 1")
    if spec.slice_seconds and not 0.05 <= spec.slice_seconds <= 60:
        raise UsageError(f"slice_seconds {spec.slice_seconds}: must lie between 0.05 and 60")
    for cell in spec.cells:
        _check_cell(cell)
        if load and cell.url:
            TakesUrl.of(engines.get(cell.engine)).check_pair(cell.url)
    for group in {cell.group for cell in spec.cells} - {""}:
        if len({cell.regime for cell in spec.cells if cell.group == group}) > 1:
            raise UsageError(f"group '{group}': its cells share their sessions, so they must share their regime")
    checked.ranged(spec, "the spec")
    return spec


def long_enough(spec: Spec) -> Spec:
    """The spec, if every cell has time for the blocks that an interval needs. Raises UsageError with the least time."""
    if spec.precision or spec.slice_seconds:
        return spec
    for cell in spec.cells:
        if spec.time < (least := schedule.least_seconds(spec, cell)):
            sessions = f"{spec.sessions} sessions of " if spec.mode == "full" else ""
            shorter = "" if spec.mode == "quick" else ", or fewer --sessions, or --quick"
            raise UsageError(
                f"--time {spec.time:g}s: too short for {cell.engine}:{cell.mechanism}, which needs at least {least:.0f}s "
                f"({sessions}{schedule.MIN_BLOCKS} blocks of {schedule.SLICES_A_BLOCK:g} slices of {schedule.CANDIDATES[0]:g} s, and warm-up): "
                f"give it --time {least:.0f}s{shorter}"
            )
    return spec


SPLITS: dict[Language, tuple[tuple[str, str], ...]] = {
    "sql": (("connect", ""), ("point-select", ""), ("bulk-read", "10KB"), ("bulk-read", "100KB"), ("bulk-read", "1MB")),
    "http": (("connect", ""), ("file", "1KB"), ("file", "10KB"), ("file", "100KB"), ("file", "1MB")),
    "kv": (("connect", ""), ("kv-get", "100"), ("kv-get", "1KB"), ("kv-get", "10KB")),
}
"""By what an operation is written in: workloads, the last ones at several sizes, that together tell handshake, request and byte apart."""
MATRIX_FIELDS = (
    "clients",
    "rows",
    "workload",
    "cpu_crypto",
    "bandwidth",
    "delay",
    "mtu",
    "cache",
    "client",
    "driver",
    "idle",
)
"""What of a cell, beside factors and parameters, a matrix may vary."""


def _check_cell(cell: CellSpec) -> None:
    engine = engines.get(cell.engine)
    parts = cell.mechanism.split("+")
    for part in parts:
        if part not in mechanisms.of(engine):
            raise UsageError(f"{cell.engine} has no mechanism '{part}': {nearest(part, mechanisms.of(engine))}")
    if len(parts) > 1:
        raise UsageError(
            f"{cell.engine}:{cell.mechanism}: these mechanisms can't be switched on together; run them as two cells"
        )
    factors, parameters = split_factors(cell)
    if cell.clients < 0 or cell.clients > 1000:
        raise UsageError(f"clients {cell.clients}: must lie between 1 and 1000")
    if cell.rows < 0:
        raise UsageError(f"rows {cell.rows}: must be at least 1")
    if not math.isfinite(cell.rate) or cell.rate < 0:
        raise UsageError(f"rate {cell.rate}: must be above 0")
    if cell.ca and not Path(cell.ca).is_file():
        raise UsageError(f"--ca {cell.ca}: there is no such file")
    if isinstance(mechanism := mechanisms.get(cell.mechanism), Columns):
        _check_secrets(cell, mechanism)
    check_language(cell, engine)
    program = program_of(cell, parameters)
    engine.way(cell.version, program.parameters)
    if options.asked(cell):
        options.check(cell, program, client_options(cell), factors)
    if isinstance(mechanism, Columns):
        codec = mechanism.codec(engine, factors, bytes(mechanism.key_bytes), bytes(BLOCK))
        if codec.client_side:
            if options.asked(cell):
                raise UsageError(
                    f"{cell.mechanism} is encryption by the application, which the Java agent does not do: leave --client out"
                )
            program_of(cell, parameters, codec)  # raises what an application can't do
    if engine.embedded and (cell.per_request or program.per_request):
        raise UsageError(
            f"{cell.engine} is embedded: it has no connections to open, so workload '{program.name}' does not fit"
        )
    if cell.ca and "tls" not in mechanisms.of(engine):
        raise UsageError(f"--ca {cell.ca}: {cell.engine} has no TLS, so there is no certificate to check")
    if cell.url and schedule.at_rest(cell):
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
    conditions.check(cell, engine)
    if engine.embedded and (cell.url or cell.bindir):
        raise UsageError(f"{cell.engine} is embedded in the agent: --url and --bindir do not fit")


def check_language(cell: CellSpec, engine: Engine) -> None:
    """A web server is sent requests, any other statements. Raises UsageError."""
    if cell.csv and engine.language != "sql":
        raise UsageError(f"--csv makes a table of the file, and {cell.engine} has none: leave it out")
    if engine.foreign and not cell.sql and cell.workload not in FOREIGN_WORKLOADS:
        raise UsageError(
            f"workload {cell.workload} asks for documents of ours, and this server is yours: use --workload "
            f"{' or '.join(FOREIGN_WORKLOADS)}, which ask for the address itself, or --sql with requests of your own"
        )
    if cell.sql or engine.language in workload_of(cell).languages:
        _check_share(cell)
        return
    fit = [name for name in workloads.names() if engine.language in workloads.get(name).languages]
    raise UsageError(
        f"workload {cell.workload} does not fit {cell.engine}: use --workload with one of {', '.join(fit)}"
    )


def _check_share(cell: CellSpec) -> None:
    """Where only some requests are to be encrypted, the workload must say which. Raises UsageError."""
    if cell.factors.get("share", "all") == "all":
        return
    if cell.delay:
        raise UsageError("--delay is put into one way, and share=checkout takes two: leave one of them out")
    if not workloads.has_marks(workload_of(cell)):
        have = ", ".join(name for name in workloads.names() if workloads.has_marks(workloads.get(name)))
        raise UsageError(
            f"share={cell.factors['share']}: workload {cell.sql or cell.workload} marks no request SECURE, so nothing would be encrypted; "
            f"use --workload {have}, or leave share out"
        )


def _check_secrets(cell: CellSpec, mechanism: Columns) -> None:
    """A mechanism in columns needs values that are secret. Raises UsageError."""
    if cell.sql:
        raise UsageError(
            f"--sql runs on tables as they are, and {mechanism.name} needs them twice, in clear and encrypted: use --workload search"
        )
    if not workloads.has_secrets(workload_of(cell)):
        have = ", ".join(name for name in workloads.names() if workloads.has_secrets(workloads.get(name)))
        raise UsageError(
            f"workload {cell.workload} has no secret column, so {mechanism.name} would encrypt nothing: use --workload with one of {have}"
        )
