"""process_witness: checks which OpenSSL the server's processes use, and whether they are in FIPS mode, where the cell decides it.

A module that is mapped could be idle, and Go has none to map. So a client that offers only ChaCha20, which FIPS mode does not
allow, must be refused in FIPS mode, and accepted out of it.
"""

from __future__ import annotations

from ciphercost.host import fips, tls_library
from ciphercost.host.tls_names import SUITES_13
from ciphercost.load.agent import Agent
from ciphercost.mechanisms import _fips
from ciphercost.model.connection import Connection
from ciphercost.model.errors import AgentError
from ciphercost.model.spec import Arm
from ciphercost.prove.probe import Probe

UNAPPROVED = SUITES_13["chacha20"]
"""A cipher that every server which ciphercost starts offers, except in FIPS mode."""
TLS_ERROR = "tls"
"""The agent's code of a failed handshake."""


def process(probe: Probe, arm: Arm) -> tuple[bool, str]:
    """Whether the arm's server uses the OpenSSL that the cell asks for and no other, and is in FIPS mode, or is not, as it asks."""
    probe.connection(arm)  # a server that starts a process for each connection has one now
    pid, mode, libraries = probe.pair.by_arm[arm].pid, probe.pair.fips.get(arm, ""), probe.pair.libraries
    proofs = []
    if libraries.get(arm):
        proofs.append(tls_library.proof(pid, libraries[arm]))
    elif other := next(filter(None, libraries.values()), ""):
        proofs.append(tls_library.own_libraries(pid, other))
    if mode:
        variables = _fips.own_variables(probe.engine, mode)
        proofs.append(fips.environment_proof(pid, variables) if variables else fips.module_proof(pid, mode))
        if probe.pair.connect[arm].by_tls:
            # On the shortest way, and by an agent of its own: the cell's client may be a JDBC driver.
            proofs.append(refuses_unapproved(probe.pair.direct[arm].single, mode))
    failed = [detail for passed, detail in proofs if not passed]
    return not failed, "; ".join(failed or [detail for _, detail in proofs])


def refuses_unapproved(connection: Connection, mode: str) -> tuple[bool, str]:
    """Whether the server refuses a client that offers only ChaCha20 in FIPS mode (`mode` ON), and accepts it out of it.

    Raises AgentError if the connection fails for another reason than TLS.
    """
    name, wanted = "only-chacha20", connection | {"tls_min": "1.3", "tls_max": "1.3", "tls_ciphers": UNAPPROVED}
    if connection.http == "3":  # the same certificate and TLS, by TCP
        wanted |= {"http": "1.1", "early_data": False}
    with Agent() as agent:
        try:
            agent.connect(name, wanted)
        except AgentError as error:
            if error.code != TLS_ERROR:
                raise
            return mode == fips.ON, f"it refuses a client that offers only ChaCha20: {error}"
        agent.disconnect(name)
    return mode == fips.OFF, "it accepts a client that offers only ChaCha20"
