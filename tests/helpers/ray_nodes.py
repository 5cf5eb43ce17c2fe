"""A Ray cluster of several nodes on this machine, in a process of its own, so that tests import nothing of Ray.

`python ray_nodes.py COUNT` starts it and prints its address; then each line of its input adds or kills a node.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

INSTALLED = importlib.util.find_spec("ray") is not None
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # A busy machine may take a minute to start the processes of a node.
    "RAY_agent_register_timeout_ms": "300000",
}
START_SECONDS = 300.0
SYSTEM: dict[str, Any] = {"health_check_initial_delay_ms": 0, "health_check_failure_threshold": 40}
"""A node of a busy machine is not taken for dead; one that was killed is missed by its calls."""


class RayNodes:
    """A running cluster; nodes have the numbers 0 (the head), 1, … in the order in which they were added."""

    def __init__(self, count: int, environment: Mapping[str, str] | None = None) -> None:
        # Short, because the sockets below it may have names of 107 characters at most.
        self.directory = Path(tempfile.mkdtemp(prefix="rn", dir="/tmp"))
        self.environment = {**os.environ, **QUIET, "RAY_TMPDIR": str(self.directory), **(environment or {})}
        # Agents inherit few variables; this one says whose they are.
        self.environment["XDG_DATA_HOME"] = str(self.directory)
        self.environment.pop("RAY_ADDRESS", None)
        with (self.directory / "nodes.err").open("w") as complaints:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(count)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                env=self.environment,
                text=True,
                start_new_session=True,
            )
        try:
            told = self._answer()
        except BaseException:
            self.close()
            raise
        self.address: str = told["address"]
        self.client: str = told["client"]
        """ray://HOST:PORT"""

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                found: dict[str, Any] = json.loads(line)
                return found
        raise RuntimeError(f"the cluster ended: {(self.directory / 'nodes.err').read_text()[-2000:]}")

    def _ask(self, words: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(words + "\n")
        self._process.stdin.flush()
        return self._answer()

    def kill(self, number: int) -> None:
        """Kill all processes of a node."""
        self._ask(f"kill {number}")

    def add(self, **environment: str) -> int:
        """Add a node and return its number. `environment`: added to its processes' variables."""
        return int(self._ask(f"add {json.dumps(environment)}")["number"])

    def alive(self) -> int:
        """The number of nodes that the cluster considers alive."""
        return int(self._ask("alive")["alive"])

    def pids(self, number: int) -> list[int]:
        """Processes of a node: its raylet and what it started itself."""
        return list(self._ask(f"pids {number}")["pids"])

    @property
    def sessions(self) -> Path:
        """Where Ray has its logs, sockets and spilled objects."""
        return self.directory / "ray"

    def close(self) -> None:
        with contextlib.suppress(Exception):
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait(60)
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        shutil.rmtree(self.directory, ignore_errors=True)


@contextlib.contextmanager
def nodes(count: int, environment: Mapping[str, str] | None = None) -> Iterator[RayNodes]:
    made = RayNodes(count, environment)
    try:
        yield made
    finally:
        made.close()


def main(count: int) -> None:
    # Imported by name: what they declare of their types is not complete.
    ray, raylet, utils = (importlib.import_module(name) for name in ("ray", "ray._raylet", "ray.cluster_utils"))
    be_patient()
    head = {"include_dashboard": False, "_system_config": SYSTEM, "ray_client_server_port": free(), **node_options()}
    cluster = utils.Cluster(initialize_head=True, head_node_args=head)
    made: dict[int, Any] = {0: cluster.head_node}
    for number in range(1, count):
        made[number] = cluster.add_node(**node_options())

    def say(**told: Any) -> None:
        print(json.dumps(told), flush=True)

    client = f"ray://127.0.0.1:{cluster.head_node._ray_params.ray_client_server_port}"
    say(address=cluster.address, client=client, ray=ray.__version__)
    for line in sys.stdin:
        word, _, rest = line.strip().partition(" ")
        if word == "kill":
            cluster.remove_node(made.pop(int(rest)), allow_graceful=False)
            say()
        elif word == "add":
            number = max(made) + 1
            before = dict(os.environ)
            os.environ.update(json.loads(rest))
            made[number] = cluster.add_node(**node_options())
            os.environ.clear()
            os.environ.update(before)
            say(number=number)
        elif word == "alive":
            states = raylet.GcsClient(cluster.address).get_all_node_info()
            say(alive=sum(each.state == 0 for each in states.values()))
        elif word == "pids":
            node = made[int(rest)]
            say(pids=[each.process.pid for kind in node.all_processes.values() for each in kind])
    cluster.shutdown()


PORTS = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port", "runtime_env_agent_port")


def node_options() -> dict[str, Any]:
    """One CPU, and ports that are known before the node's processes have started."""
    return {"num_cpus": 1, **{name: free() for name in PORTS}}


def be_patient() -> None:
    """Let nodes start on a busy machine. A raylet gives its Python processes 15 s to write down their ports, and Ray gives the
    raylet 30 s; there they may need a minute. So the ports are written down here, before.
    """
    services: Any = importlib.import_module("ray._private.services")
    get_node, start_raylet = services.get_node, services.start_raylet

    def patient(*arguments: Any, **named: Any) -> Any:
        until = time.monotonic() + START_SECONDS
        while True:
            try:
                return get_node(*arguments, **named)
            except RuntimeError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)

    def prepared(*arguments: Any, **named: Any) -> Any:
        given = inspect.signature(start_raylet).bind(*arguments, **named).arguments
        for name in PORTS:
            (Path(given["session_dir"]) / f"{name}_{given['node_id']}").write_text(str(given[name]))
        return start_raylet(*arguments, **named)

    services.get_node, services.start_raylet = patient, prepared


def free() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main(int(sys.argv[1]))
