"""cluster_checks: which runs can use the nodes of a cluster, for their load or for whole cells."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

from ciphercost.load.fleet import addresses
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import Spec
from ciphercost.plan import connection_strings
from ciphercost.plan.planned import PlannedCell

INSTALL = "pip install 'ciphercost[ray]'"


def check(spec: Spec, cells: Sequence[PlannedCell], *, load: bool) -> None:
    """Raises UsageError if the spec names a cluster that can't make its load, or sets what only a cluster has.

    `load` false: nothing will be measured, so Ray need not be here.
    """
    if not spec.cluster:
        for name, value in (*_of_agents(spec), ("--spread", spec.spread), ("--machines", spec.machines)):
            if value:
                raise UsageError(f"{name}: only a cluster has machines to use; add --cluster auto, or remove {name}")
        return
    addresses.check(spec.cluster)
    if spec.spread:
        _check_spread(spec)
    else:
        _check_load(spec, cells)
    if load and not installed():
        raise UsageError(f"--cluster needs Ray, which is not installed: {INSTALL}")


def _of_agents(spec: Spec) -> tuple[tuple[str, object], ...]:
    """What only load from many machines has, by option, with whether it was given."""
    return (
        ("--agents", spec.agents),
        ("--min-agents", spec.min_agents),
        ("--placement", spec.placement != "spread"),
    )


def _check_spread(spec: Spec) -> None:
    """Raises UsageError if the cells can't be measured on the machines of a cluster."""
    if wrong := [name for name, value in _of_agents(spec) if value]:
        raise UsageError(
            f"{wrong[0]}: with --spread every machine loads its own server; remove {wrong[0]}, or --spread to let the "
            "machines load one server together"
        )
    if cell_with_url := next((cell for cell in spec.cells if cell.url), None):
        raise UsageError(
            f"--spread: {cell_with_url.engine}:{cell_with_url.mechanism} is a server that you run (url), which is the same "
            "one from every machine; --spread measures servers that ciphercost starts on each machine"
        )
    if any(cell.dump for cell in spec.cells):
        raise UsageError(
            "--dump: the dump does not go to other machines with --spread; remove --spread, or run the same command on each machine"
        )
    if any(cell.headers or cell.headers_file for cell in spec.cells):
        raise UsageError("--header: its values do not go to other machines with --spread; remove one of them")


def _check_load(spec: Spec, cells: Sequence[PlannedCell]) -> None:
    """Raises UsageError if the nodes of a cluster can't make the load of these cells."""
    if spec.machines:
        raise UsageError("--machines: says on how many machines --spread measures each cell; add --spread")
    if spec.agents and spec.min_agents > spec.agents:
        raise UsageError(f"--min-agents {spec.min_agents}: more than --agents {spec.agents}")
    for cell in cells:
        if reason := obstacle(cell):
            raise UsageError(f"--cluster: {reason}")
        if cell.clients < max(spec.agents, spec.min_agents):
            agents = f"--agents {spec.agents}" if spec.agents >= spec.min_agents else f"--min-agents {spec.min_agents}"
            raise UsageError(
                f"{agents}: {cell.spec.engine}:{cell.spec.mechanism} has {cell.clients} clients, and each agent needs one; use "
                f"--clients {max(spec.agents, spec.min_agents)} or more"
            )


def obstacle(cell: PlannedCell) -> str:
    """Why a cluster's nodes can't make a cell's load, and what to do. Empty: they can. Pure."""
    spec, held = cell.spec, cell.conditions
    if cell.engine.embedded:
        return f"{spec.engine} runs inside the agent, so every node would have a database of its own; remove --cluster"
    if cell.client is not None:
        return "the driver of --client runs on this machine only; remove --client and --driver, or --cluster"
    if cell.linked:
        return "the link of --bandwidth, --mtu and --loss ends on this machine; remove them, or --cluster"
    if held.delay_s:
        return "the delay of --delay is added on this machine; remove it, or --cluster"
    asked = connection_strings.of(spec, cell.engine)
    if asked and asked.plain_socket:
        return "the Unix socket of --url is on this machine; remove socket from it, or --cluster"
    if spec.regime == "one-core":
        return "--regime one-core lets client and server share a core of this machine; use --regime capacity, or remove --cluster"
    return ""


def installed() -> bool:
    """Whether Ray can be imported. Does not import it."""
    try:
        return importlib.util.find_spec("ray") is not None
    except (ImportError, ValueError):
        return False
