"""The agent against wrk and h2load (and oha, if installed): 1 KB and 100 KB, 1 and 64 kept connections, HTTP and HTTPS, ABBA.

One nginx runs on CPU 0, the client on CPU 1, with TLS 1.3 and AES-256-GCM on all sides. CPU time is that of the whole program,
handshakes included; ours is that of the agent's process from `connect` to `disconnect`.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from functools import partial
from pathlib import Path

from ciphercost.host import debian, package_cache, run_in_place
from ciphercost.host.package_cache import Receipt, Work
from ciphercost.load.agent import Agent
from ciphercost.model.connection import Connection
from pairs import SECONDS, asking, compared, documents, served
from peers import Slice, number, timed
from run import Row

SIZES = {"1 KB": 1000, "100 KB": 100_000}
CLIENTS = (1, 64)
CIPHER = "TLS_AES_256_GCM_SHA384"
TICK = os.sysconf("SC_CLK_TCK")


def bindir() -> Path:
    """The directory of wrk and h2load, fetched if they are missing."""
    return Path(package_cache.keep("web-load", "bookworm-debian", _tools).location)


def _tools(work: Work) -> Receipt:
    debian.unpack_suite("bookworm", ["wrk", "nghttp2-client"], work)
    run_in_place.run_in_place(work, ["usr/bin/wrk", "usr/bin/h2load"])
    return Receipt("web-load", "bookworm", "debian", "usr/bin")


class Tool:
    """A peer: its command line, and how it reports its rate and its requests (empty: rate × seconds)."""

    def __init__(self, name: str, program: str, words: list[str], rate: str, requests: str = "") -> None:
        self.name, self.program, self.words, self.rate, self.requests = name, program, words, rate, requests

    def slice(self, url: str, clients: int, cpu: int, directory: Path) -> Slice:
        given = {"clients": str(clients), "seconds": str(SECONDS), "url": url}
        text, used = timed([self.program, *(word.format(**given) for word in self.words)], cpu, {}, directory)
        if failed := re.search(r"Non-2xx[^\n]*|Socket errors[^\n]*|[1-9]\d* failed[^\n]*", text):
            raise SystemExit(f"{self.name}: {failed[0]}")
        if url.startswith("https") and self.name == "h2load" and CIPHER not in text:
            raise SystemExit(f"h2load negotiated another cipher:\n{text}")
        rate = number(self.rate, text)
        return Slice(rate, number(self.requests, text) if self.requests else rate * SECONDS, used)


def tools() -> list[Tool]:
    programs = bindir()
    h2load = ["--h1", "-m1", "-t1", "-c{clients}", "-D{seconds}", f"--tls13-ciphers={CIPHER}", "{url}"]
    found = [
        Tool(
            "wrk",
            str(programs / "wrk"),
            ["-t1", "-c{clients}", "-d{seconds}s", "{url}"],
            r"Requests/sec:\s+([\d.]+)",
            r"(\d+) requests in",
        ),  # it checks its clock only every 100 ms
        Tool("h2load", str(programs / "h2load"), h2load, r"finished in [\d.]+s, ([\d.]+) req/s", r"(\d+) succeeded"),
    ]
    if oha := shutil.which("oha"):
        words = ["--no-tui", "--insecure", "-z", "{seconds}s", "-c", "{clients}", "{url}"]
        found.append(Tool("oha", oha, words, r"Requests/sec:\s+([\d.]+)"))
    return found


def rows() -> list[Row]:
    """Two rows per setting and peer: requests per second, and requests per second of client CPU."""
    cpus = sorted(os.sched_getaffinity(0))
    found: list[Row] = []
    with (
        served("nginx", [cpus[0]], partial(documents, SIZES.values())) as fields,
        tempfile.TemporaryDirectory() as directory,
    ):
        for tool in tools():
            for arm in ("plain", "encrypted"):
                for size in SIZES:
                    for clients in CLIENTS:
                        found += compare(tool, arm, size, clients, fields[arm], cpus[-1], Path(directory))
    return found


def compare(tool: Tool, arm: str, size: str, clients: int, fields: Connection, cpu: int, directory: Path) -> list[Row]:
    """The rows of one tool and setting."""
    path = f"/{SIZES[size]}"
    url = f"{'https' if arm == 'encrypted' else 'http'}://localhost:{fields.port}{path}"
    url = url.replace("localhost", fields.host)
    with Agent(cpus=[cpu]) as agent:
        agent.program(asking("http", f"GET {path}", "http"))
        ours(agent, arm, fields, clients, 0)
        tool.slice(url, clients, cpu, directory)
        setting = f"{'HTTPS' if arm == 'encrypted' else 'HTTP'}, {size}, {clients} connection{'s' * (clients > 1)}"
        return compared(
            "web_load",
            f"{tool.name}, {setting}",
            f"{tool.name} {arm} {size} {clients}",
            partial(ours, agent, arm, fields, clients),
            partial(tool.slice, url, clients, cpu, directory),
        )


def ours(agent: Agent, arm: str, fields: Connection, clients: int, seed: int) -> Slice:
    before = cpu_of(agent.pid)
    connected = agent.connect(arm, fields | {"connections": clients, "threads": 1})
    assert connected.encrypted == (arm == "encrypted")
    answer = agent.slice(arm, SECONDS, discard=0.0, seed=seed)
    agent.disconnect(arm)
    if answer.errors:
        raise SystemExit(f"ours: {answer.first_error}")
    return Slice(answer.operations / answer.seconds, answer.operations, cpu_of(agent.pid) - before)


def cpu_of(pid: int) -> float:
    """CPU seconds of the process, including ended threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK
