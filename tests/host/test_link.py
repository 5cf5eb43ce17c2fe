"""link: a veth pair between agent and server, shaped as requested; nothing of it stays, however the run ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ciphercost.host import confined_start, leftovers, link, namespaces, run_ownership
from ciphercost.host.supervisor import Supervisor
from ciphercost.load import agent
from ciphercost.model import run_directory
from ciphercost.model.errors import RunError, UsageError
from conftest import RequirePossible
from processes import wait_for


@pytest.fixture
def rights(require_possible: RequirePossible) -> None:
    """The right to make a link."""
    require_possible(link.check_rights)


@pytest.fixture
def run_supervisor() -> Iterator[Supervisor]:
    with Supervisor(run_directory.new_id()) as run_supervisor:
        yield run_supervisor
    assert run_supervisor.problems == []


def device_of(name: str) -> bool:
    return (Path("/sys/class/net") / name).exists()


def discipline(device: str, *where: str) -> dict[str, object]:
    """What the kernel reports as shaping an interface."""
    done = subprocess.run(["tc", *where, "-j", "qdisc", "show", "dev", device], capture_output=True, check=True)
    shaping: dict[str, object] = next(queue for queue in json.loads(done.stdout) if queue.get("root"))
    return shaping


def talk(path: Path, size: int) -> bytes:
    """Connect from within the namespace to a server on this one's 127.0.0.1. Returns its answer after `size` bytes were
    sent.
    """
    got: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            peer, address = listener.accept()
            with peer:
                left = size
                while left:
                    left -= len(peer.recv(1 << 16))
                peer.sendall(address[0].encode())

        def ask() -> None:
            confined_start.enter(str(path))  # this thread only
            with socket.create_connection(listener.getsockname(), timeout=30) as connection:
                connection.sendall(b"x" * size)
                got.append(connection.recv(100))

        threads = [threading.Thread(target=target, daemon=True) for target in (serve, ask)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    return got[0]


@pytest.mark.usefixtures("rights")
def test_the_link_is_shaped_as_asked_and_all_traffic_crosses_it(run_supervisor: Supervisor) -> None:
    with link.linked(run_supervisor, 100e6, 1400) as way:
        for device, where in ((way.device, ()), (namespaces.NEAR_END, ("-n", way.namespace))):
            shaping = discipline(device, *where)
            assert shaping["kind"] == "tbf"
            assert shaping["options"]["rate"] == 100e6 / 8  # type: ignore[index]
            done = subprocess.run(["ip", *where, "-j", "link", "show", "dev", device], capture_output=True, check=True)
            assert json.loads(done.stdout)[0]["mtu"] == 1400
        before = way.crossed()
        assert talk(way.path, 1_000_000).startswith(b"127.2")  # a client from loopback's own addresses
        assert way.crossed() - before > 1_000_000
    assert not device_of(way.device)
    assert not way.path.exists()


@pytest.mark.usefixtures("rights")
@pytest.mark.parametrize("mtu", [576, 9000, 65_535])
def test_without_a_bandwidth_only_the_mtu_is_set(run_supervisor: Supervisor, mtu: int) -> None:
    with link.linked(run_supervisor, 0, mtu) as way:
        assert discipline(way.device)["kind"] != "tbf"
        assert talk(way.path, 10)


@pytest.mark.usefixtures("rights")
def test_an_agent_in_the_namespace_reaches_the_server_and_nothing_else(run_supervisor: Supervisor) -> None:
    with link.linked(run_supervisor, 0, 0) as way, agent.Agent(netns=way.path) as inside:
        inode = os.stat(f"/proc/{inside.pid}/ns/net").st_ino  # noqa: PTH116
        assert inode == way.path.stat().st_ino
        assert inode != os.stat("/proc/self/ns/net").st_ino  # noqa: PTH116


@pytest.mark.usefixtures("rights")
def test_two_simultaneous_links_are_separate(run_supervisor: Supervisor) -> None:
    with link.linked(run_supervisor, 0, 0) as one, link.linked(run_supervisor, 0, 0) as other:
        assert talk(one.path, 10)
        before = one.crossed()
        assert talk(other.path, 1_000_000)
        # A late acknowledgement, or an address query, may still cross.
        assert one.crossed() - before < 10_000


@pytest.mark.usefixtures("rights")
def test_a_link_that_cannot_be_made_leaves_nothing(run_supervisor: Supervisor) -> None:
    with pytest.raises(RunError, match=r"^ip failed"), link.linked(run_supervisor, 1.0, 100_000_000):
        pass
    assert not [name for name in namespaces.left_behind() if run_supervisor.run_id in name]


SCRIPT = """
import sys, time
from ciphercost.host import link
from ciphercost.host.supervisor import Supervisor
with Supervisor(sys.argv[1]) as supervisor, link.linked(supervisor, 1e8, 0) as way:
    print(way.namespace, way.device, supervisor.pid, flush=True)
    time.sleep(600)
"""


def killed(run_id: str, *, supervisor_too: bool) -> tuple[str, str]:
    """(namespace, interface) of a run that was killed with its link up."""
    with subprocess.Popen([sys.executable, "-c", SCRIPT, run_id], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        namespace, device, supervisor_pid = process.stdout.readline().split()
        assert device_of(device)
        if supervisor_too:
            os.kill(int(supervisor_pid), signal.SIGKILL)
        process.kill()
    if supervisor_too:
        wait_for("the supervisor to be gone", lambda: not run_ownership.start_time(int(supervisor_pid)))
    return namespace, device


@pytest.mark.usefixtures("rights")
def test_a_killed_run_leaves_no_namespace_and_no_interface() -> None:
    namespace, device = killed(run_directory.new_id(), supervisor_too=False)
    wait_for(
        "the namespace and its card to go", lambda: namespace not in namespaces.left_behind() and not device_of(device)
    )


@pytest.mark.usefixtures("rights", "alone")
def test_clean_finds_the_namespace_of_a_run_whose_supervisor_was_killed_too() -> None:
    run_id = run_directory.new_id()
    namespace, device = killed(run_id, supervisor_too=True)
    remains = [
        leftover
        for leftover in leftovers.leftovers()
        if leftover.kind == "network namespace" and leftover.run == run_id
    ]
    assert [leftover.what for leftover in remains] == [namespace]
    assert leftovers.remove(remains) == []
    assert namespace not in namespaces.left_behind()
    assert not device_of(device)


def test_without_rights_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/sbin/ip")
    monkeypatch.setattr(Path, "read_text", lambda _: "CapEff:\t0000000000000000\n")
    with pytest.raises(UsageError, match=r"as root.*--delay without --loss.*no rights"):
        link.check_rights()


def test_without_iproute2_the_refusal_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(UsageError, match="iproute2"):
        link.check_rights()


def test_a_shaper_holds_two_packets_however_slow_it_is() -> None:
    assert link.shaper(64e3)[4] == str(2 * (1500 + link.FRAME))
    assert link.shaper(64e3, 9000)[4] == str(2 * (9000 + link.FRAME))
    assert link.shaper(10e9)[:3] == ["tbf", "rate", "10000000000bit"]


def test_a_slow_links_burst_is_smaller_than_a_handshake_and_a_fast_ones_is_not() -> None:
    """A burst that holds a whole handshake would make its bytes free, whatever the bandwidth."""
    assert int(link.shaper(2e6)[4]) <= 2e6 / 8 * 0.0125
    assert int(link.shaper(10e6)[4]) == 10e6 / 8 * 0.01
    assert link.shaper(100e6)[4] == str(link.LEAST_BURST)
    assert int(link.shaper(1e9)[4]) == 1e9 / 8 * 0.001
    bursts = [int(link.shaper(bits)[4]) for bits in (1e6, 5e6, 20e6, 100e6, 1e9, 10e9)]
    assert bursts == sorted(bursts)
