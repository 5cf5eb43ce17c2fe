"""The agent against pgbench on pgbench's own three scripts, and on one that computes and branches: tables of `pgbench -i -s 10`,
prepared statements, 8 connections on one core, TLS off and TLS 1.3, ABBA.

The server runs on CPU 0, the client on CPU 1. In a block both change the same tables; as the blocks alternate, what the tables become
does to both alike.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec

from ciphercost import engines
from ciphercost.load import own_scripts
from ciphercost.load.agent import Agent
from ciphercost.load.pgbench.builtins import BUILTINS
from ciphercost.load.program import Program
from ciphercost.load.workloads import prepare
from ciphercost.model.connection import Connection
from load_generator import Match, server
from pairs import SECONDS, compared
from peers import Pgbench, Slice
from run import Row

SCALE, CLIENTS = 10, 8
BRANCHES = """\\set n random(1, 100000)
\\set half case when :n % 2 = 0 then :n / 2 else 3 * :n + 1 end
\\if :half > 50000
SELECT abalance FROM pgbench_accounts WHERE aid = :n;
\\else
SELECT bid FROM pgbench_accounts WHERE aid = :half;
\\endif
"""


def programs(directory: Path) -> dict[str, tuple[list[str], Program]]:
    """By name: how pgbench is told the script, and the agent's program."""
    dialect, script = engines.get("postgresql").dialect, directory / "branches.sql"
    script.write_text(BRANCHES)
    defined = {"scale": str(SCALE)}
    of_pgbench = {name: own_scripts.workload([], [name], tables=False) for name in BUILTINS}
    known = {name: (["-b", name], prepare(own, dialect, {}, defined=defined)) for name, own in of_pgbench.items()}
    branches = prepare(own_scripts.workload([str(script)], [], tables=False), dialect, {})
    return known | {"branches": (["-f", str(script)], branches)}


def made(peer: Pgbench, fields: Connection) -> None:
    """The tables of `pgbench -i`."""
    subprocess.run(
        [peer.program, "-q", "-i", "-s", str(SCALE), *peer.where(fields)],
        env={**os.environ, **peer.environment(fields)},
        check=True,
        capture_output=True,
    )


def rows() -> list[Row]:
    """Two rows per script and arm: operations per second, and operations per second of client CPU."""
    cpus = sorted(os.sched_getaffinity(0))
    measured: list[Row] = []
    with server(Match("postgresql", "", ()), [cpus[0]]) as (_, fields, scratch):
        peer = Pgbench(scratch)
        made(peer, fields["plain"])
        for name, (script, program) in programs(scratch).items():
            peer.script_options = script
            for arm in ("plain", "encrypted"):
                measured += compare(name, peer, arm, fields[arm], program, cpus[-1])
    return measured


def compare(name: str, peer: Pgbench, arm: str, fields: Connection, program: Program, cpu: int) -> list[Row]:
    """The rows of one script and arm."""
    connecting = sorted(peer.slice(fields, CLIENTS, cpu, 0).cpu for _ in range(5))[2]
    with Agent(cpus=[cpu]) as agent:
        agent.program(program)
        connected = agent.connect(arm, msgspec.structs.replace(fields, connections=CLIENTS, threads=1))
        assert connected.encrypted == (arm == "encrypted")
        agent.slice(arm, 1.0)
        peer.slice(fields, CLIENTS, cpu, 1)

        def ours(seed: int) -> Slice:
            answer = agent.slice(arm, SECONDS, discard=0.0, seed=seed)
            assert not answer.errors, answer.first_error
            used = (answer.cpu_user_ns + answer.cpu_system_ns) / 1e9
            return Slice(answer.operations / answer.seconds, answer.operations, used)

        def theirs() -> Slice:
            found = peer.slice(fields, CLIENTS, cpu, SECONDS)
            return found._replace(cpu=found.cpu - connecting)

        tls = "TLS 1.3" if arm == "encrypted" else "TLS off"
        return compared("script_load", f"{name}, {tls}", f"{name} {arm}", ours, theirs)
