"""What an operator's task has of its session."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import msgspec

from ciphercost.host.procfs import Sampler
from ciphercost.load.agent import Agent
from ciphercost.load.load_client import SliceSampler
from ciphercost.load.operation_client import Operation
from ciphercost.model.facts import CellFacts
from ciphercost.model.spec import Arm
from ciphercost.provision.prepared_cell import PreparedCell
from ciphercost.provision.server_pair import ServerPair


class OperationContext(msgspec.Struct, frozen=True):
    """A session in which servers run and both arms are proven."""

    bench: PreparedCell
    pair: ServerPair
    agent: Agent
    """Connected to both arms."""
    facts: CellFacts
    samplers: dict[Arm, SliceSampler]
    directory: Path
    """For what the task makes: on the disk of the run's scratch, unencrypted in both arms, owned by the user who runs the servers."""

    def sampler(self, arm: Arm) -> Sampler:
        """The sampler of an arm's server, which runs on this machine."""
        sampler = self.samplers[arm]
        assert isinstance(sampler, Sampler)
        return sampler


Maker = Callable[[OperationContext, contextlib.ExitStack], Operation]
