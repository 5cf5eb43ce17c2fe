"""aes_mask: proves that the CPU's AES instructions are hidden from server and agent. I/O through the agent.

The mask is an environment variable, which proves nothing by itself: a library may ignore it, a server may overwrite it.
So AES is compared with ChaCha20, which uses none of the hidden instructions. With those instructions AES costs less on
every CPU that has them; without them it costs several times as much. The ratio needs no knowledge of the machine.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ciphercost.engines.capabilities.payload import Payload
from ciphercost.host import tls_names
from ciphercost.host.procfs import Sampler
from ciphercost.load.agent import Agent
from ciphercost.load.program import Program
from ciphercost.load.script_parts import Script, Statement
from ciphercost.model.errors import AgentError
from ciphercost.model.slices import Proof
from ciphercost.plan import conditions

if TYPE_CHECKING:
    from ciphercost.provision.prepared_cell import PreparedCell
    from ciphercost.provision.server_pair import ServerPair

HIDDEN = 2.0
"""Ratio AES ÷ ChaCha20 above which the AES instructions are hidden. Measured: 0.4 (cipher alone) and 0.9 (a whole
transfer) with them, 12 and 4 without.
"""
ANSWER_BYTES = 8_000_000
"""Bytes of one answer of the server, which is one operation of the known transfer."""
PROBED = ("aes256-gcm", "chacha20")
OPERATIONS, ROUNDS = 2, 3
"""Answers per transfer, and transfers per way, interleaved. The lowest cost counts, because disturbances only add."""


def prove(bench: PreparedCell, pair: ServerPair, agent: Agent, session: int) -> list[Proof]:
    """Check that the agent's AES, and under `tls` the server's, runs without the CPU's instructions. Never raises for a
    failed proof.
    """
    passed, detail = judge_agent(agent.hello.aes, floor_ratio(agent))
    proofs = [Proof(arm="encrypted", witness="client", passed=passed, detail=detail, session=session)]
    if conditions.mask_provable(bench.cell):
        try:
            passed, detail = judge_server(*transfers(bench, pair), size=OPERATIONS * ANSWER_BYTES)
        except AgentError as error:
            passed, detail = False, f"the CPU's AES: a transfer of known size failed: {error.words}"
        proofs.append(Proof(arm="encrypted", witness="server", passed=passed, detail=detail, session=session))
    return proofs


def floor_ratio(agent: Agent) -> float:
    return agent.floor("aes256-gcm")["seal"] / agent.floor("chacha20")["seal"]


def judge_agent(says_aes: bool, ratio: float) -> tuple[bool, str]:
    """Whether the agent's AES is masked, judged by its library's report and by its cost. Pure."""
    report = "reports that it uses AES instructions" if says_aes else "reports that it uses no AES instructions"
    detail = (
        f"the CPU's AES hidden from the agent: it {report}; AES-256-GCM costs it {ratio:.1f} times as much as ChaCha20"
    )
    return not says_aes and ratio >= HIDDEN, detail


def judge_server(clear: float, aes: float, chacha: float, *, size: int) -> tuple[bool, str]:
    """Whether the server's AES is masked. `clear`, `aes`, `chacha`: its CPU time (ns) for one transfer of `size` bytes
    each way. Pure.
    """
    if min(clear, aes, chacha) <= 0:
        return False, "the CPU's AES hidden from the server: its CPU time could not be read"
    per_byte = [f"{max(0.0, spent - clear) / size:.2f}" for spent in (aes, chacha)]
    ratio = aes / chacha
    detail = (
        f"the CPU's AES hidden from the server: {size / 1e6:.0f} MB cost it {aes / 1e6:.0f} ms of CPU with "
        f"AES-256-GCM, {chacha / 1e6:.0f} ms with ChaCha20 ({ratio:.1f} times; {HIDDEN:g} or more without AES "
        f"instructions), {clear / 1e6:.0f} ms unencrypted: {per_byte[0]} and {per_byte[1]} ns per byte more than "
        "unencrypted"
    )
    return ratio >= HIDDEN, detail


def transfers(bench: PreparedCell, pair: ServerPair) -> tuple[float, float, float]:
    """CPU time (ns) of the server for the known transfer: unencrypted, with AES-256-GCM, with ChaCha20. Raises
    AgentError.
    """
    server = pair.server
    if server is None:
        return 0.0, 0.0, 0.0
    # Use a separate agent on the shortest route to the server: this measures the transfer's cost, not the link's.
    with (
        Agent(log=bench.logs / "agent.log", env=bench.mask) as agent,
        contextlib.closing(Sampler(server.pid, server.cgroups)) as sampler,
    ):
        statement = Statement(sql=Payload.of(bench.engine).payload(ANSWER_BYTES), parameters=())
        agent.program(_program(statement))
        ways = {"clear": pair.direct["plain"].single}
        for cipher in PROBED:
            suite = tls_names.suite({**bench.factors, "cipher": cipher})
            ways[cipher] = pair.direct["encrypted"].single | {"tls_ciphers": suite}
        for way, connection in ways.items():
            agent.connect(way, connection)
        sampler.refresh()
        spent: dict[str, list[int]] = {way: [] for way in ways}
        for _ in range(ROUNDS):
            for way in ways:
                agent.slice(
                    way, 120, discard=0.0, operations=OPERATIONS, on_counting=sampler.begin, on_counted=sampler.stop
                )
                spent[way].append(sampler.end().server_cpu_ns)
    clear, aes, chacha = (float(min(times)) for times in spent.values())
    return clear, aes, chacha


def _program(statement: Statement) -> Program:
    """The known transfer as a program of one statement."""
    return Program(
        name="transfer",
        load=(),
        check="",
        transactions=(("transfer", 1, Script(variables=(), statements=(statement,))),),
        read_only=True,
        per_request=False,
        clients=1,
        parameters={},
    )
