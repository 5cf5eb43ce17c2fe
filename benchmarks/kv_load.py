"""The agent against valkey-benchmark: GET of 100 B, 1 KB and 64 KB, 1 and 8 connections, TLS off and TLS 1.3, ABBA.

One Valkey serves both ports on CPU 0, the client runs on CPU 1. Both ask for keys of 16 letters, drawn from the same 10,000. CPU time
is that of the whole program, handshakes included; ours is that of the agent's process from `connect` to `disconnect`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ciphercost import engines, mechanisms
from ciphercost.estimate.statistics import session_interval
from ciphercost.host import debian, marks, package_cache, run_in_place, supervisor
from ciphercost.host.package_cache import Receipt, Work
from ciphercost.load import workloads
from ciphercost.load.agent import Agent
from ciphercost.model import run_directory
from ciphercost.model.secret import reveal
from load_generator import AIM
from peers import Slice, encrypted, number, timed
from run import Row
from web_load import ours

SECONDS, BLOCKS = 2, 4
SIZES = {"100 B": 100, "1 KB": 1000, "64 KB": 64_000}
CLIENTS = (1, 8)
KEYS = 10_000
LOAD = (
    "for i = 0, tonumber(ARGV[1]) - 1 do redis.call('SET', string.format('key:%012d', i), string.rep('x', ARGV[2])) end"
)
SCRIPT = "\\set id random(1000, 9999)\nGET key:00000000:id;"
"""The same keys as `key:__rand_int__`, but for those whose number has fewer than four digits."""


def _tools(work: Work) -> Receipt:
    debian.unpack_suite("trixie", ["valkey-tools"], work)
    run_in_place.run_in_place(work, ["usr/bin/valkey-benchmark", "usr/bin/valkey-check-aof"])
    return Receipt("kv-load", "8.1", "debian", "usr/bin")


def theirs(program: Path, fields: dict[str, object], clients: int, cpu: int, requests: int, directory: Path) -> Slice:
    """One run of valkey-benchmark with this many requests."""
    argv = [str(program), "-h", str(fields["host"]), "-p", str(fields["port"]), "-q", "-r", str(KEYS)]
    argv += ["-c", str(clients), "-n", str(requests), "--user", str(fields["user"]), "-a", reveal(fields["password"])]
    if encrypted(fields):
        argv += ["--tls", "--cacert", str(fields["tls_ca"]), "--tls-ciphersuites", "TLS_AES_256_GCM_SHA384"]
    text, used = timed([*argv, "GET", "key:__rand_int__"], cpu, {}, directory)
    rate = number(r"([\d.]+) requests per second", text.replace("\r", "\n").splitlines()[-1])
    return Slice(rate, requests, used)


@contextmanager
def server(cpus: list[int]) -> Iterator[dict[str, dict[str, object]]]:
    """Valkey, and the connection fields of both arms."""
    engine, tls = engines.get("valkey"), mechanisms.get("tls")
    run_id = run_directory.new_id()
    with tempfile.TemporaryDirectory() as logs, supervisor.Supervisor(run_id) as run_supervisor:
        scratch = supervisor.scratch(run_id, run_supervisor)
        installation, home = engine.find(), scratch / "server"
        engine.initialise(installation, home, run_supervisor)
        factors, secrets = tls.check({"version": "1.3", "cipher": "aes256-gcm"}), scratch / "secrets"
        marks.hand_over(secrets)
        settings = tls.server_settings(engine, factors, secrets)
        running = engine.start(installation, home, run_supervisor, cpus=cpus, settings=settings, logs=Path(logs))
        try:
            print(f"{engine.title} {installation.version} ({installation.source})", flush=True)
            plain = running.connection() | tls.connection(engine, "plain", factors, secrets)
            own = running.connection() | tls.connection(engine, "encrypted", factors, secrets)
            yield {"plain": plain, "encrypted": {**own, **running.other_ports["tls"]}}
        finally:
            running.stop()


def rows() -> list[Row]:
    """Two rows per setting: requests per second, and requests per second of client CPU."""
    cpus = sorted(os.sched_getaffinity(0))
    program = Path(package_cache.keep("kv-load", "trixie-debian", _tools).location) / "valkey-benchmark"
    found: list[Row] = []
    with server([cpus[0]]) as fields, tempfile.TemporaryDirectory() as directory:
        for size, length in SIZES.items():
            with Agent() as agent:
                agent.connect("loader", **fields["plain"])
                agent.query("loader", f'EVAL "{LOAD}" 0 {KEYS} {length}')
            for arm in ("plain", "encrypted"):
                for clients in CLIENTS:
                    found += compare(program, arm, size, clients, fields[arm], cpus[-1], Path(directory))
    return found


def compare(
    program: Path, arm: str, size: str, clients: int, fields: dict[str, object], cpu: int, directory: Path
) -> list[Row]:
    """Blocks of ours, theirs, theirs, ours (or mirrored); one log ratio per block."""
    own = workloads.Workload(
        title="", measures="", languages=("kv",), transaction=[workloads.Transaction("get", SCRIPT)], name="get"
    )
    per_second, per_cpu = [], []
    with Agent(cpus=[cpu]) as agent:
        agent.program(workloads.prepare(own, "valkey", {}))
        agent.connect("check", **fields)
        checked = agent.slice("check", 0.2)
        assert checked.rows == checked.operations, "a key has no value"
        agent.disconnect("check")
        short = theirs(program, fields, clients, cpu, 10_000, directory)
        requests = int(short.rate * SECONDS)
        for block in range(BLOCKS):
            values: dict[str, list[tuple[float, float]]] = {"ours": [], "theirs": []}
            for who in ("ours", "theirs", "theirs", "ours") if block % 2 else ("theirs", "ours", "ours", "theirs"):
                each = (
                    ours(agent, arm, fields, clients, block)
                    if who == "ours"
                    else theirs(program, fields, clients, cpu, requests, directory)
                )
                values[who].append((each.rate, each.operations / each.cpu))
            mine, other = (np.log(np.array(values[who])).mean(axis=0) for who in ("ours", "theirs"))
            per_second.append(mine[0] - other[0])
            per_cpu.append(mine[1] - other[1])
            print(
                f"  {arm} {size} {clients}: {np.exp(per_second[-1]):.3f} per second, "
                f"{np.exp(per_cpu[-1]):.3f} per CPU second",
                flush=True,
            )
    setting = f"{'TLS 1.3' if arm == 'encrypted' else 'TLS off'}, {size}, {clients} connection{'s' * (clients > 1)}"
    return [
        row(f"valkey-benchmark, {setting}: per second", per_second),
        row(f"valkey-benchmark, {setting}: per client-CPU-second", per_cpu),
    ]


def row(name: str, values: list[float]) -> Row:
    interval = session_interval(np.array(values))
    ratio, low, high = (float(np.exp(each)) for each in (interval.centre, *interval.bounds()))
    return {"bench": "kv_load", "row": name, "ratio": ratio, "low": low, "high": high, "aim": AIM}
