"""replication_checks: whether a cell can have a replica (`--workload replication`), before anything starts. Raises UsageError."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ciphercost.engines import Engine
from ciphercost.engines.capabilities.replication import Replicates
from ciphercost.load import clients
from ciphercost.mechanisms import Mechanism
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan.planned import PlannedCell

LINK_FACTORS = ("certificate",)
"""Factors of TLS that a replication link can have."""


def check(cell: CellSpec, engine: Engine, mechanism: Mechanism, factors: Mapping[str, str]) -> None:
    """Raises UsageError for what a cell with replicas can't have. `factors`: those of the mechanism, with defaults."""
    where = f"workload {cell.workload}"
    if not isinstance(engine, Replicates):
        raise UsageError(f"{where}: {Replicates.refusal(engine)}")
    if mechanism.name != "tls":
        raise UsageError(
            f"{where} measures TLS on the link between two servers, and {cell.mechanism} is none; use {cell.engine}:tls"
        )
    if cell.url:
        raise UsageError(f"{where} needs two servers for each arm, which ciphercost starts; remove --url")
    if cell.versus:
        raise UsageError(f"{where} compares an encrypted link with an unencrypted one; remove --versus")
    for option, given in (
        (clients.option(cell) if clients.asked(cell) else "", clients.asked(cell)),
        ("--per-request", cell.per_request),
        ("--delay", cell.delay),
        ("--bandwidth", cell.bandwidth),
        ("--mtu", cell.mtu),
        ("--loss", cell.loss),
        ("--cpu-crypto", cell.cpu_crypto == "off"),
        ("--storm", cell.storm),
        ("--connections", cell.connections),
        ("--objective", cell.objective),
        ("--cache cold", cell.cache != "warm"),
        ("--csv", cell.csv),
        ("--dump", cell.dump),
    ):
        if given:
            raise UsageError(
                f"{option}: not with {where}, which loads two servers of each arm in its own way; remove it"
            )
    usual = {factor.name: factor.values[0] for factor in mechanism.factors}
    for name, value in factors.items():
        if name not in LINK_FACTORS and value != usual.get(name, value):
            raise UsageError(
                f"{name}={value}: is about connections of clients, and {where} encrypts the link between two servers; remove it "
                f"(it takes {', '.join(LINK_FACTORS)})"
            )


def check_spec(spec: Spec, cells: Sequence[PlannedCell]) -> None:
    """Raises UsageError for what a run with such a cell can't have."""
    if not any(cell.program.replication for cell in cells):
        return
    if spec.cluster:
        raise UsageError("--cluster: the replicas run on this machine; remove --cluster, or use another workload")
    if spec.profile:
        raise UsageError(
            "--profile: samples one server of each arm, and with workload replication there are two; remove it"
        )
    if len(cells) > 1 and any(cell.group for cell in spec.cells):
        raise UsageError("workload replication is measured by itself; leave out --matrix, and name its targets instead")
