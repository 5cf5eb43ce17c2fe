"""The agent against valkey-benchmark: GET of 100 B, 1 KB and 64 KB, 1 and 8 connections, TLS off and TLS 1.3, ABBA.

One Valkey serves both ports on CPU 0, the client runs on CPU 1. Both ask for keys of 16 letters, drawn from the same 10,000. CPU time
is that of the whole program, handshakes included; ours is that of the agent's process from `connect` to `disconnect`.
"""

from __future__ import annotations

import os
import tempfile
from functools import partial
from pathlib import Path

from ciphercost.host import debian, package_cache, run_in_place
from ciphercost.host.package_cache import Receipt, Work
from ciphercost.load.agent import Agent
from ciphercost.model.connection import Connection
from ciphercost.model.secret import reveal
from pairs import SECONDS, asking, compared, served
from peers import Slice, encrypted, number, timed
from run import Row
from web_load import ours

SIZES = {"100 B": 100, "1 KB": 1000, "64 KB": 64_000}
CLIENTS = (1, 8)
KEYS = 10_000
LOAD = (
    "for i = 0, tonumber(ARGV[1]) - 1 do redis.call('SET', string.format('key:%012d', i), string.rep('x', ARGV[2])) end"
)
SCRIPT = "\\set id random(1000, 9999)\nGET key:00000000:id;"
"""The same keys as `key:__rand_int__`, but for those whose number has fewer than four digits."""


def program() -> Path:
    """valkey-benchmark, fetched if it is missing."""
    return Path(package_cache.keep("kv-load", "trixie-debian", _tools).location) / "valkey-benchmark"


def _tools(work: Work) -> Receipt:
    debian.unpack_suite("trixie", ["valkey-tools"], work)
    run_in_place.run_in_place(work, ["usr/bin/valkey-benchmark", "usr/bin/valkey-check-aof"])
    return Receipt("kv-load", "8.1", "debian", "usr/bin")


def theirs(program: Path, fields: Connection, clients: int, cpu: int, requests: int, directory: Path) -> Slice:
    """One run of valkey-benchmark with this many requests."""
    argv = [str(program), "-h", fields.host, "-p", str(fields.port), "-q", "-r", str(KEYS)]
    argv += ["-c", str(clients), "-n", str(requests), "--user", str(fields.user), "-a", reveal(fields.password)]
    if encrypted(fields):
        argv += ["--tls", "--cacert", str(fields.tls_ca), "--tls-ciphersuites", "TLS_AES_256_GCM_SHA384"]
    text, used = timed([*argv, "GET", "key:__rand_int__"], cpu, {}, directory)
    rate = number(r"([\d.]+) requests per second", text.replace("\r", "\n").splitlines()[-1])
    return Slice(rate, requests, used)


def rows() -> list[Row]:
    """Two rows per setting: requests per second, and requests per second of client CPU."""
    cpus = sorted(os.sched_getaffinity(0))
    benchmark = program()
    found: list[Row] = []
    with served("valkey", [cpus[0]]) as fields, tempfile.TemporaryDirectory() as directory:
        for size, length in SIZES.items():
            with Agent() as agent:
                agent.connect("loader", fields["plain"])
                agent.query("loader", f'EVAL "{LOAD}" 0 {KEYS} {length}')
            for arm in ("plain", "encrypted"):
                for clients in CLIENTS:
                    found += compare(benchmark, arm, size, clients, fields[arm], cpus[-1], Path(directory))
    return found


def compare(
    program: Path, arm: str, size: str, clients: int, fields: Connection, cpu: int, directory: Path
) -> list[Row]:
    """The rows of one setting."""
    with Agent(cpus=[cpu]) as agent:
        agent.program(asking("valkey", SCRIPT, "kv"))
        agent.connect("check", fields)
        checked = agent.slice("check", 0.2)
        assert checked.rows == checked.operations, "a key has no value"
        agent.disconnect("check")
        short = theirs(program, fields, clients, cpu, 10_000, directory)
        requests = int(short.rate * SECONDS)
        setting = f"{'TLS 1.3' if arm == 'encrypted' else 'TLS off'}, {size}, {clients} connection{'s' * (clients > 1)}"
        return compared(
            "kv_load",
            f"valkey-benchmark, {setting}",
            f"{arm} {size} {clients}",
            partial(ours, agent, arm, fields, clients),
            partial(theirs, program, fields, clients, cpu, requests, directory),
        )
