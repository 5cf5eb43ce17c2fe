"""Nodes of a Ray cluster in network namespaces of their own, joined by a bridge: each with its own address and loopback."""

from __future__ import annotations

import contextlib
import importlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import ray_nodes
from network_namespaces import ip, namespace
from processes import wait_for
from ray_nodes import QUIET, START_SECONDS

NETWORK = "198.18.79."
"""From a range that RFC 2544 sets aside for tests."""
PORT = 6380
STARTED = "Ray runtime started"
OTHER_NAMES = {"metrics_agent_port": "dashboard-agent-grpc-port"}
"""What `ray start` calls a port of `ray_nodes.PORTS`, if not by the same name."""


class Namespaced(NamedTuple):
    """A running cluster whose head is in this machine's own network namespace, with one more node in each of the others."""

    address: str
    """HOST:PORT of its head."""
    here: str
    """This machine's address on the bridge."""
    there: dict[str, str]
    """The bridge's port by the other nodes' addresses."""
    environment: dict[str, str]

    def cut(self, address: str) -> None:
        """Let no packet from or to this node through any more."""
        ip("link", "set", self.there[address], "down")


@contextlib.contextmanager
def nodes(count: int, environment: Mapping[str, str]) -> Iterator[Namespaced]:
    """A cluster of a head, which makes no load, and `count` nodes. Needs root and Ray."""
    with contextlib.ExitStack() as stack:
        directory = Path(tempfile.mkdtemp(prefix="rn", dir="/tmp"))
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        variables = {**os.environ, **QUIET, "RAY_TMPDIR": str(directory), **environment}
        variables.pop("RAY_ADDRESS", None)
        bridge = f"ccb{secrets.token_hex(4)}"
        ip("link", "add", bridge, "type", "bridge")
        stack.callback(ip, "link", "del", bridge)
        here = f"{NETWORK}1"
        ip("address", "add", f"{here}/24", "dev", bridge)
        ip("link", "set", bridge, "up")
        head = ["--head", f"--port={PORT}", "--include-dashboard=false", "--num-cpus=0"]
        stack.enter_context(_started([], head, here, variables, directory / "head"))
        there = {f"{NETWORK}{number}": f"ccp{secrets.token_hex(4)}" for number in range(2, count + 2)}
        for address, port in there.items():
            name = stack.enter_context(_joined(bridge, port, address))
            argv = [f"--address={here}:{PORT}", "--num-cpus=1"]
            stack.enter_context(_started(["ip", "netns", "exec", name], argv, address, variables, directory / address))
        yield Namespaced(f"{here}:{PORT}", here, there, variables)


@contextlib.contextmanager
def _joined(bridge: str, port: str, address: str) -> Iterator[str]:
    """The name of a network namespace with this address, joined to the bridge."""
    with namespace() as name:
        ip("link", "add", port, "type", "veth", "peer", "name", "out", "netns", name)
        ip("link", "set", port, "master", bridge, "up")
        ip("-n", name, "link", "set", "out", "up")
        ip("-n", name, "address", "add", f"{address}/24", "dev", "out")
        yield name


@contextlib.contextmanager
def _started(prefix: list[str], argv: list[str], address: str, variables: dict[str, str], log: Path) -> Iterator[None]:
    """`ray start` until the block ends."""
    with log.open("w") as said:
        command = [
            *prefix,
            sys.executable,
            __file__,
            "start",
            *argv,
            f"--node-ip-address={address}",
            "--block",
            *_ports(),
        ]
        process = subprocess.Popen(
            command, env=variables, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT, start_new_session=True
        )  # fmt: skip
    try:
        wait_for("a node", lambda: process.poll() is not None or STARTED in log.read_text(), START_SECONDS)
        assert STARTED in log.read_text(), log.read_text()[-2000:]
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(60)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _ports() -> list[str]:
    """Ports that are known before the node's processes have started; see `ray_nodes.be_patient`."""
    names = (OTHER_NAMES.get(each, each.replace("_", "-")) for each in ray_nodes.PORTS)
    return [f"--{name}={ray_nodes.free()}" for name in names]


if __name__ == "__main__":
    ray_nodes.be_patient()
    sys.argv[0] = "ray"
    importlib.import_module("ray.scripts.scripts").main()
