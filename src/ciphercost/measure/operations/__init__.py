"""Operator's tasks that a slice may be one execution of, by the `operation` of a workload."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping

from ciphercost.load.agent import Agent
from ciphercost.load.load_client import SliceSampler
from ciphercost.load.operation_client import OperationClient
from ciphercost.measure.operations.backup import BackupOperation
from ciphercost.measure.operations.context import Maker, OperationContext
from ciphercost.measure.operations.encrypt_existing import encrypt_existing
from ciphercost.measure.operations.restart import RestartOperation
from ciphercost.measure.operations.traffic import WithTraffic
from ciphercost.model.facts import CellFacts
from ciphercost.model.spec import Arm
from ciphercost.provision.prepared_cell import PreparedCell
from ciphercost.provision.server_pair import ServerPair

MAKERS: Mapping[str, Maker] = {
    "backup": BackupOperation,
    "restart": RestartOperation,
    "encrypt-existing": encrypt_existing,
}


def client(
    bench: PreparedCell,
    pair: ServerPair,
    agent: Agent,
    facts: CellFacts,
    samplers: dict[Arm, SliceSampler],
    stack: contextlib.ExitStack,
) -> OperationClient:
    """What makes the slices of a session whose load is an operator's task. `stack` closes and removes what it makes."""
    directory = bench.directory / "operation"
    context = OperationContext(bench, pair, agent, facts, samplers, directory)
    context.make(directory)
    stack.callback(shutil.rmtree, directory, ignore_errors=True)
    operation = MAKERS[bench.program.operation](context, stack)
    if bench.planned.choices.get("traffic") == "on":
        operation = WithTraffic(operation, context)
    return OperationClient(operation, agent.pid, len(pair.agent_cpus) or 1, pair.watch.look)
