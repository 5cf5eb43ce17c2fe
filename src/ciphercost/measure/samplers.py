"""samplers: who samples each arm's CPU time and bytes in a session."""

from __future__ import annotations

import contextlib

from ciphercost.host import procfs
from ciphercost.load.load_client import SliceClient, SliceSampler
from ciphercost.model.spec import Arm
from ciphercost.provision.server_pair import ServerPair


def samplers_of(pair: ServerPair, agent: SliceClient, stack: contextlib.ExitStack) -> dict[Arm, SliceSampler]:
    """Samplers of each arm's CPU time and bytes: one for both arms if one process serves both."""
    if agent.server_sampler is not None:
        return dict.fromkeys(pair.by_arm, agent.server_sampler)
    by_process: dict[tuple[int, tuple[int, ...], tuple[int, ...]], procfs.Sampler] = {}
    by_arm: dict[Arm, SliceSampler] = {}
    for arm, server in pair.by_arm.items():
        root, helpers = agent.pid if pair.embedded else server.pid, server.volume.pids if server.volume else ()
        if (replica := pair.replicas.get(arm)) is not None:
            helpers = (*helpers, replica.pid)
        hops = pair.hop_pids(arm)
        if (root, helpers, hops) not in by_process:
            sampler = procfs.Sampler(
                root,
                server.cgroups,
                embedded=pair.embedded,
                relay=pair.relay,
                helpers=helpers,
                hops=hops,
                client=agent.pid,
            )
            by_process[root, helpers, hops] = stack.enter_context(contextlib.closing(sampler))
        by_arm[arm] = by_process[root, helpers, hops]
    return by_arm
