"""Check a spec from the command line or a TOML file, as far as possible without starting anything."""

from __future__ import annotations

import math
import resource
from collections.abc import Sequence

import msgspec

from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.load import redact
from ciphercost.model import checked
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import ARMS, CellSpec, Spec
from ciphercost.plan import (
    authority_checks,
    cell_checks,
    cluster_checks,
    command_cells,
    connection_loads,
    latency_objective,
    operation_checks,
    replication_checks,
    schedule,
)
from ciphercost.plan.planned import Plan, PlannedCell
from ciphercost.plan.resolve import resolve


def check(spec: Spec, *, load: bool = True) -> Spec:
    """The spec with full names, if every name is known and every number in range. Raises UsageError as `plan` does."""
    return plan(spec, load=load).spec


IN_CLEAR = ("http", "redis", "valkey", "memcached")
"""Schemes of URLs at which a server has no TLS."""


def plan(spec: Spec, *, load: bool = True) -> Plan:
    """The spec with full names and its cells, resolved. `load` false: nothing will be measured.

    Raises UsageError with what to write instead.
    """
    if not spec.cells:
        raise UsageError(
            'nothing to run: the spec has no cells; add one, e.g. engine = "postgresql" and mechanism = "tls"'
        )
    check_length(spec)
    if spec.precision and any(cell.regime == "latency" for cell in spec.cells):
        raise UsageError(
            "precision: applies to the capacity phase, which regime latency does not have; remove one of them"
        )
    if not 0 <= spec.precision < 1:
        raise UsageError(f"precision {spec.precision}: must be between 0 and 1")
    if spec.profile and (spec.cluster or spec.spread):
        raise UsageError(
            "--profile: perf samples processes of this machine only, so it can't be used with --cluster; remove one"
        )
    if spec.slice_seconds and not 0.05 <= spec.slice_seconds <= 60:
        raise UsageError(f"slice_seconds {spec.slice_seconds}: must be between 0.05 and 60")
    latency_objective.check(spec)
    command_cells.check_spec(spec)
    operation_checks.check_spec(spec)
    cells = []
    for cell in spec.cells:
        cells.append(resolve(cell))
        if load and cell.url:
            cell_checks.check_keys(cells[-1])
            if cell.versus:
                check_one(cell)
            else:
                TakesUrl.of(cells[-1].engine).check_pair(cell.url)
    for group in {cell.group for cell in spec.cells} - {""}:
        together = [cell for cell in spec.cells if cell.group == group]
        if len({cell.regime for cell in together}) > 1:
            raise UsageError(f"group '{group}': its cells share their sessions, so they need the same regime")
        if len({cell.listen for cell in together}) > 1:
            raise UsageError(f"group '{group}': its cells share data and certificates, so they need the same listen")
    authority_checks.check(cells)
    cluster_checks.check(spec, cells, load=load)
    connection_loads.check_spec(spec, cells)
    replication_checks.check_spec(spec, cells)
    for numbers in schedule.groups(spec):
        _check_connections([cells[number] for number in numbers])
    if load and not spec.cluster:  # a cluster's agents check the limits of their own nodes
        for planned in cells:
            _check_files(planned)
            connection_loads.check_machine(planned)
    checked.ranged(spec, "the spec")
    full = [planned.spec for planned in cells]
    return Plan(spec if full == spec.cells else msgspec.structs.replace(spec, cells=full), tuple(cells))


def check_one(cell: CellSpec) -> None:
    """Raises UsageError if a cell with two encrypted arms is given an address for a plain one."""
    clear = [address for address in cell.url.split() if address.partition(":")[0].lower() in IN_CLEAR]
    if clear:
        raise UsageError(
            f"--url {redact.shown(clear[0])}: both arms of --versus are encrypted, so nothing goes to an address without TLS; remove it, and "
            "give the one with TLS"
        )


def check_length(spec: Spec) -> None:
    """Raises UsageError if sessions, time, margin or seed are out of range."""
    if spec.sessions < 1:
        raise UsageError(f"sessions {spec.sessions}: must be at least 1; use 8 for an interval that covers restarts")
    if spec.mode == "full" and spec.sessions < 2:
        raise UsageError("sessions 1: one session can't show how much a restart changes; use --sessions 8, or --quick")
    for name in ("time", "margin"):
        value = getattr(spec, name)
        if not (math.isfinite(value) and value > 0):
            raise UsageError(f"{name} {value}: must be above 0")
    if spec.seed < 0:
        raise UsageError(f"seed {spec.seed}: must be above 0, or 0 to draw one")


OWN_CONNECTIONS = 2
"""Connections that ciphercost may have open beside those of the load: a witness's, and one that asks the server about others."""


def most_connections(cells: Sequence[PlannedCell]) -> int:
    """Connections that these cells have open at once at most: those of both arms, of all cells that share their sessions, and our own."""
    together: dict[str, int] = {}
    for number, cell in enumerate(cells):
        group = cell.spec.group or f"{number}"
        together[group] = together.get(group, 0) + len(ARMS) * cell.clients + connection_loads.new_connections(cell)
    return max(together.values()) + OWN_CONNECTIONS


def _check_connections(cells: Sequence[PlannedCell]) -> None:
    """Raises UsageError if cells that share their sessions need more connections than allowed."""
    allowed = min((cell.spec.max_connections for cell in cells if cell.spec.max_connections), default=0)
    needed = most_connections(cells)
    if not allowed or needed <= allowed:
        return
    clients = (allowed - OWN_CONNECTIONS) // (len(ARMS) * len(cells))
    together = f"{len(cells)} cells in the same sessions need" if len(cells) > 1 else "this cell needs"
    if not clients:
        least = len(ARMS) * len(cells) + OWN_CONNECTIONS
        raise UsageError(
            f"--max-connections {allowed}: {together} at least {least}, for one client in each arm; allow {least}"
        )
    raise UsageError(
        f"--max-connections {allowed}: {together} {needed}, because the connections of both arms stay open and ciphercost needs "
        f"{OWN_CONNECTIONS} more; write --clients {clients}, or allow {needed}"
    )


SPARE_FILES = 64
"""Files that the agent has open beside those of its connections."""


def _check_files(cell: PlannedCell) -> None:
    """Raises UsageError if this machine's limit on open files is too low for the agent's connections of both arms.

    A connection of one operation opens while the last one still waits for the server's close. The agent itself counts more
    exactly, but only once the servers run.
    """
    if cell.engine.embedded:
        return
    per_client = 2 if cell.opens else 1
    needed = len(ARMS) * cell.clients * per_client + SPARE_FILES
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if allowed != resource.RLIM_INFINITY and needed > allowed:
        fits = (allowed - SPARE_FILES) // (len(ARMS) * per_client)
        raise UsageError(
            f"--clients {cell.clients}: the connections of both arms need {needed} open files, but the hard limit here is "
            f"{allowed} (ulimit -Hn); write --clients {max(fits, 1)}, or raise the limit: as root, "
            f"prlimit --nofile={needed} --pid $$ in the shell that starts ciphercost"
        )


def long_enough(plan: Plan) -> Plan:
    """The plan, if every cell has time for the blocks that an interval needs. Raises UsageError with the shortest possible time."""
    spec = plan.spec
    if spec.precision or spec.slice_seconds:
        return plan
    for cell in spec.cells:
        if spec.time < (least := schedule.least_seconds(spec, cell)):
            sessions = f"{spec.sessions} sessions of " if spec.mode == "full" else ""
            shorter = "" if spec.mode == "quick" else ", or fewer --sessions, or --quick"
            raise UsageError(
                f"--time {spec.time:g}s: too short for {cell.engine}:{cell.mechanism}, which needs at least {least:.0f}s "
                f"({sessions}{schedule.MIN_BLOCKS} blocks of {schedule.SLICES_A_BLOCK:g} slices of {schedule.shortest(cell):g} s, and warm-up); "
                f"use --time {least:.0f}s{shorter}"
            )
    return plan
