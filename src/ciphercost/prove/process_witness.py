"""process_witness: checks which libraries the server's processes have mapped, where the cell chooses them."""

from __future__ import annotations

from ciphercost.host import tls_library
from ciphercost.model.spec import Arm
from ciphercost.prove.probe import Probe


def process(probe: Probe, arm: Arm) -> tuple[bool, str]:
    """Whether the arm's server uses the OpenSSL libraries that the cell asks for, and no others."""
    probe.connection(arm)  # a server that starts a process for each connection has one now
    pid, libraries = probe.pair.by_arm[arm].pid, probe.pair.libraries
    if libraries[arm]:
        return tls_library.proof(pid, libraries[arm])
    return tls_library.own_libraries(pid, next(filter(None, libraries.values())))
