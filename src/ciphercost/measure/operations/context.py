"""What an operator's task has of its session."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ciphercost.host import deadlines, procfs
from ciphercost.host.command_runner import Ended, Request
from ciphercost.host.environment import child_environment
from ciphercost.host.procfs import Sampler
from ciphercost.host.run_ownership import OWNER_MARK, RUN_MARK, hand_over, identity, server_user
from ciphercost.load.agent import Agent
from ciphercost.load.command_client import check
from ciphercost.load.command_output import MOST_OUTPUT
from ciphercost.load.command_process import CommandProcess
from ciphercost.load.load_client import SliceSampler
from ciphercost.load.operation_client import Operation
from ciphercost.model.facts import CellFacts
from ciphercost.model.spec import ARMS, Arm
from ciphercost.provision import cache
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

    def make(self, directory: Path) -> None:
        """Make a directory that the server can write to."""
        directory.mkdir(mode=0o700)
        if not self.bench.engine.embedded:
            hand_over(directory)

    def empty_cache(self, arm: Arm) -> None:
        """Empty the system's cache of an arm's files, if the cell asks for that."""
        if cache.empties(self.bench.cell):
            volume = self.pair.by_arm[arm].volume
            self.facts.encryption["page_cache"] = cache.drop([volume.path, *volume.backing] if volume else [])


class Tool:
    """Runs the programs of a task: on the client's CPUs, with nothing of the user's environment but what every process inherits."""

    def __init__(self, pair: ServerPair, bench: PreparedCell, stack: contextlib.ExitStack, hidden: str = "") -> None:
        """`hidden`: the beginning of paths that errors do not show."""
        env = {**child_environment(bench.mask), RUN_MARK: bench.supervisor.run_id, OWNER_MARK: identity()}
        self._process = CommandProcess(env, bench.logs / "commands.log")
        self._process.look = pair.watch.look
        self._pair, self._hidden = pair, hidden
        stack.callback(self._process.close)

    def run(self, command: Sequence[str], title: str, *, as_us: bool = False) -> Ended:
        """Run a command to its end, as the user who runs the servers, or `as_us`. Raises AgentError, in one line, if it fails."""
        timeout = deadlines.load()
        user = [] if as_us else list(server_user() or ())
        cpus = sorted(self._pair.agent_cpus)
        ended = self._process.run(Request(argv=list(command), timeout=timeout, most=MOST_OUTPUT, cpus=cpus, user=user))
        check(ended, title, timeout, lambda words: words.replace(self._hidden, "") if self._hidden else words)
        return ended


def tool_of(context: OperationContext, stack: contextlib.ExitStack) -> Tool:
    """What runs the programs of a task."""
    return Tool(context.pair, context.bench, stack, f"{context.directory}/")


def own_agent(context: OperationContext, stack: contextlib.ExitStack) -> Agent:
    """An agent for the task's statements, beside the one whose traffic may go on. An embedded database then runs in it, so it is sampled."""
    agent = stack.enter_context(context.bench.helper(context.pair.connect["plain"]))
    agent.watch(context.pair.watch.look)
    if context.bench.engine.embedded:
        for arm in ARMS:
            context.sampler(arm).follow(agent.pid, ())
    return agent


def timed(agent: Agent, arm: Arm, statements: Sequence[str]) -> tuple[float, int]:
    """Execute statements. Returns the seconds that they took, and CPU time of the agent, ns."""
    began, before = time.monotonic(), procfs.cpu_clock_ns(agent.pid)
    for statement in statements:
        agent.query(arm, statement, timeout=deadlines.load())
    return time.monotonic() - began, procfs.cpu_clock_ns(agent.pid) - before


Maker = Callable[[OperationContext, contextlib.ExitStack], Operation]
