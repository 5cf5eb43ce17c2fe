"""A command as the load (`command:tls`) beside the agent's own cell on the same server: pgbench, sysbench, wrk, valkey-benchmark. And a command
against itself (`command:none`), 40 runs.

    python benchmarks/command_load.py [pgbench] [sysbench] [wrk] [valkey-benchmark] [a_a] [SECONDS]

The server runs on CPU 0, ciphercost, its agent and the commands on CPU 1. Both cells ask for the same thing, on 8 connections. Each ratio is
encrypted ÷ plain by the command, divided by the same by the agent; its interval is that of the difference of two independent log ratios.
"""

from __future__ import annotations

import json
import math
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import kv_load
import web_load
from ciphercost.load.agent import Agent
from ciphercost.model.command_load import CommandLoad
from ciphercost.model.connection import Connection
from ciphercost.model.result import Cell, Estimate
from ciphercost.model.secret import reveal
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.runs import pipeline
from kv_load import KEYS, LOAD, SCRIPT
from load_generator import PGBENCH_TABLE, SYSBENCH_TABLE, Match, server
from pairs import documents, served
from peers import ROWS, Pgbench, Sysbench
from run import Row

SECONDS = 60.0
CLIENTS = 8
RUNS, RUN_SECONDS, ALLOWED = 40, 30.0, 5
TRANSACTIONS = 1000
"""Of each connection in one execution of an A/A run, which takes about half a second."""
FIGURES = {"throughput": "per second", "server_cpu_per_op": "server CPU", "client_cpu_per_op": "client CPU"}


class Both(NamedTuple):
    """A tool's cell and the agent's, on one server, and the environment that the tool needs."""

    command: CellSpec
    own: CellSpec
    environment: dict[str, str]


@contextmanager
def pgbench(cpu: int) -> Iterator[Both]:
    with server(Match("postgresql", "", PGBENCH_TABLE), [cpu]) as (_, fields, scratch):
        peer, both = Pgbench(scratch), fields["encrypted"]
        where = f"host={{host}} port={{port}} user={both.user} dbname={both.database} gssencmode=disable channel_binding=disable"
        plain, own = (
            shlex.join(
                [
                    peer.program,
                    "-n",
                    "-M",
                    "prepared",
                    "-j",
                    "1",
                    "-f",
                    str(peer.script),
                    "-c",
                    "{clients}",
                    "-T",
                    "{seconds}",
                ]
            )
            + f" '{where} sslmode={mode}'"
            for mode in ("disable", "verify-ca sslrootcert={ca} ssl_min_protocol_version=TLSv1.3")
        )
        url = f"postgresql://{both.user}@{both.host}:{both.port}/{both.database}"
        yield Both(
            _command(f"{both.host}:{both.port}", both, plain, own),
            CellSpec("postgresql", "tls", url=url, ca=str(both.tls_ca), sql=str(peer.script), clients=CLIENTS),
            {"PGPASSWORD": reveal(both.password)},
        )


@contextmanager
def sysbench(cpu: int) -> Iterator[Both]:
    with server(Match("mysql", "", SYSBENCH_TABLE), [cpu]) as (_, fields, scratch):
        peer, both = Sysbench(scratch), fields["encrypted"]
        share = peer.root / "usr" / "share" / "sysbench"
        environment = {
            "LUA_PATH": f"{share}/?.lua",
            "MARIADB_PLUGIN_DIR": str(next(peer.root.glob("usr/lib/*/libmariadb3/plugin"))),
        }
        config, pem = scratch / "command.conf", Path(str(both.tls_ca)).parent
        config.touch(0o600)
        config.write_text(f"mysql-password={reveal(both.password)}\n")
        # sysbench looks for these names in its working directory.
        links = "; ".join(
            f"ln -sf {shlex.quote(str(pem / source))} {name}.pem"
            for name, source in (("cacert", "ca.pem"), ("client-cert", "server.pem"), ("client-key", "server.key"))
        )
        words = [
            str(peer.root / "usr" / "bin" / "sysbench"),
            str(share / "oltp_point_select.lua"),
            f"--config-file={config}",
        ]
        words += [
            "--mysql-host={host}",
            "--mysql-port={port}",
            f"--mysql-user={both.user}",
            f"--mysql-db={both.database}",
        ]
        words += ["--threads={clients}", "--tables=1", f"--table-size={ROWS}", "--rand-type=uniform"]
        words += ["--time={seconds}", "--events=0"]
        place = shlex.quote(str(scratch))
        plain, own = (
            shlex.join(["sh", "-c", f"cd {place}; {links}; exec {shlex.join([*words, *more, 'run'])}"])
            for more in ([], ["--mysql-ssl=on"])
        )
        script = scratch / "select.sql"
        script.write_text(peer.sql)
        url = f"mysql://{both.user}@{both.host}:{both.port}/{both.database}"
        yield Both(
            _command(f"{both.host}:{both.port}", both, plain, own),
            CellSpec("mysql", "tls", url=url, ca=str(both.tls_ca), sql=str(script), clients=CLIENTS),
            environment | {"MYSQL_PWD": reveal(both.password)},
        )


@contextmanager
def wrk(cpu: int) -> Iterator[Both]:
    with served("nginx", [cpu], partial(documents, [1000])) as fields:
        words = [str(web_load.bindir() / "wrk"), "-t1", "-c{clients}", "-d{seconds}s"]
        plain, own = (shlex.join([*words, f"{scheme}://{{host}}:{{port}}/1000"]) for scheme in ("http", "https"))
        ends = [
            f"{scheme}://localhost:{fields[arm].port}/1000"
            for arm, scheme in (("plain", "http"), ("encrypted", "https"))
        ]
        yield Both(
            _command(_two(fields), fields["encrypted"], plain, own),
            CellSpec(
                "url", "tls", url=" ".join(ends), ca=str(fields["encrypted"].tls_ca), clients=CLIENTS, workload="page"
            ),
            {},
        )


@contextmanager
def valkey_benchmark(cpu: int) -> Iterator[Both]:
    with served("valkey", [cpu]) as fields, tempfile.TemporaryDirectory() as directory:
        both = fields["encrypted"]
        with Agent() as agent:
            agent.connect("loader", fields["plain"])
            agent.query("loader", f'EVAL "{LOAD}" 0 {KEYS} 100')
        words = [
            str(kv_load.program()),
            "-h",
            "{host}",
            "-p",
            "{port}",
            "-r",
            str(KEYS),
            "-c",
            "{clients}",
            "-n",
            "30000",
        ]
        words += ["--user", str(both.user), "-a", reveal(both.password)]
        tls = ["--tls", "--cacert", "{ca}", "--tls-ciphersuites", "TLS_AES_256_GCM_SHA384"]
        plain, own = (shlex.join([*words, *more, "GET", "key:__rand_int__"]) for more in ([], tls))
        script = Path(directory) / "get.txt"
        script.write_text(SCRIPT)
        login = str(both.user)
        urls = [
            f"{scheme}://{login}@{fields[arm].host}:{fields[arm].port}"
            for arm, scheme in (("plain", "valkey"), ("encrypted", "valkeys"))
        ]
        yield Both(
            _command(_two(fields), both, plain, own),
            CellSpec("valkey", "tls", url=" ".join(urls), ca=str(both.tls_ca), sql=str(script), clients=CLIENTS),
            {"VALKEYCLI_AUTH": reveal(both.password)},
        )


TOOLS: dict[str, Callable[[int], AbstractContextManager[Both]]] = {
    "pgbench": pgbench,
    "sysbench": sysbench,
    "wrk": wrk,
    "valkey-benchmark": valkey_benchmark,
}


def _two(fields: dict[str, Connection]) -> str:
    """The addresses of a server with a port for each arm."""
    return " ".join(
        f"{scheme}://{fields[arm].host}:{fields[arm].port}" for arm, scheme in (("plain", "tcp"), ("encrypted", "tls"))
    )


def _command(url: str, fields: Connection, plain: str, encrypted: str) -> CellSpec:
    load = CommandLoad(plain, encrypted)
    ca = str(fields.tls_ca) if "{ca}" in encrypted else ""
    return CellSpec("command", "tls", url=url, ca=ca, clients=CLIENTS, workload="tool", command=load)


def rows(names: tuple[str, ...] = tuple(TOOLS), seconds: float = SECONDS) -> list[Row]:
    """A row for each tool and figure."""
    server_cpu, client_cpu, *_ = [*sorted(os.sched_getaffinity(0)), *sorted(os.sched_getaffinity(0))]
    return [row for name in names for row in beside(name, server_cpu, client_cpu, seconds)]


def beside(name: str, server_cpu: int, client_cpu: int, seconds: float) -> list[Row]:
    """The rows of one tool."""
    found: list[Row] = []
    with TOOLS[name](server_cpu) as both, _only(client_cpu), _environment(both.environment):
        cells = [_measured(cell, seconds) for cell in (both.command, both.own)]
    for figure, shown in FIGURES.items():
        theirs, ours = (cell.overhead.get(figure) for cell in cells)
        if theirs is None or ours is None:
            print(f"  {name}, {shown}: not known", flush=True)
            continue
        difference = math.log(theirs.ratio / ours.ratio)
        width = math.hypot(_half(theirs), _half(ours))
        meet = theirs.low <= ours.high and ours.low <= theirs.high
        print(
            f"  {name}, {shown}: {_text(theirs)} by {name}, {_text(ours)} by the agent: "
            f"the intervals {'meet' if meet else 'are apart'}",
            flush=True,
        )
        ratio, low, high = (math.exp(difference + by) for by in (0.0, -width, width))
        found.append(
            {
                "bench": "command_load",
                "row": f"{name}, cost by {shown}",
                "ratio": ratio,
                "low": low,
                "high": high,
                "aim": 0.0,
            }
        )
    return found


@contextmanager
def _only(cpu: int) -> Iterator[None]:
    """This process and its children on one CPU."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def _environment(more: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(more)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _measured(cell: CellSpec, seconds: float, seed: int = 1) -> Cell:
    with tempfile.TemporaryDirectory() as place:
        spec = Spec([cell], mode="quick", sessions=1, time=seconds, latency=False, seed=seed)
        (found,) = pipeline.run(spec, Path(place) / "run").cells
    assert not found.reason, found.reason
    return found


def _half(of: Estimate) -> float:
    return (math.log(of.high) - math.log(of.low)) / 2


def _text(of: Estimate) -> str:
    return f"{of.ratio:.4f} ({of.low:.4f}–{of.high:.4f})"


def a_a() -> Row:
    """How many intervals of pgbench against pgbench miss 1."""
    server_cpu, client_cpu = sorted(os.sched_getaffinity(0))[:2]
    missed = 0
    with pgbench(server_cpu) as both, _only(client_cpu), _environment(both.environment):
        assert both.command.command is not None
        cell = CellSpec(
            "command",
            "none",
            url=both.command.url,
            clients=CLIENTS,
            workload="tool",
            command=CommandLoad(both.command.command.plain.replace("-T '{seconds}'", f"-t {TRANSACTIONS}")),
        )
        for number in range(RUNS):
            rate = _measured(cell, RUN_SECONDS, seed=number + 1).overhead["throughput"]
            missed += not rate.low <= 1 <= rate.high
            print(f"  {number + 1}: {rate.ratio - 1:+.3%} ({rate.low - 1:+.3%} to {rate.high - 1:+.3%})", flush=True)
    ratio = (ALLOWED + 1) / (missed + 1)
    row = f"{RUNS} runs of pgbench against itself: {missed} intervals miss 1; at most {ALLOWED}"
    return {"bench": "command_load", "row": row, "ratio": ratio, "low": ratio, "high": ratio, "aim": 1.0}


if __name__ == "__main__":
    named = tuple(each for each in sys.argv[1:] if each in TOOLS) or (tuple(TOOLS) if "a_a" not in sys.argv else ())
    length = next((float(each) for each in sys.argv[1:] if each.isdigit()), SECONDS)
    found_rows = rows(named, length) + ([a_a()] if "a_a" in sys.argv else [])
    print(json.dumps(found_rows, indent=1))
