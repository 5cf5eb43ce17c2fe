"""A fleet of real agents in this process: dealt connections, slices that begin together, and members that are lost or late."""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ciphercost.host import deadlines
from ciphercost.load import workloads
from ciphercost.load.agent import Agent
from ciphercost.load.fleet import fleet as fleets
from ciphercost.load.fleet.agent_pool import AgentPool
from ciphercost.load.fleet.fleet import Fleet
from ciphercost.load.fleet.messages import Call, Failure, Sealed, Start
from ciphercost.load.fleet.remote_agent import SAMPLING, RemoteAgent, be_punctual, boot_id, usual_priority, wait_until
from ciphercost.load.load_client import LATE, SKEWED, AgentsLost
from ciphercost.load.program import Program
from ciphercost.model import histogram
from ciphercost.model.connection import Connection
from ciphercost.model.errors import AgentError, RunError, Unproven, UsageError
from ciphercost.model.fleet import FleetFacts
from ciphercost.model.slices import AgentSlice
from local_fleet import LocalCluster, local_cluster

PROGRAM = (
    "title = 't'\nmeasures = 'm'\n[[transaction]]\nname = 't'\nscript = '''\\set n random(1, 1000000)\nSELECT :n;'''"
)


def program() -> Program:
    return workloads.prepare(workloads.read(PROGRAM, "t"), "null", {})


class WatchedFleet:
    """A fleet with what tests look at."""

    def __init__(self, cluster: LocalCluster, logs: Path, least: int) -> None:
        self.cluster = cluster
        seats = cluster.seats()
        self.facts = FleetFacts(agents=len(seats), least=least, nodes=fleets.described(seats, boot_id()))
        crew = AgentPool(cluster, seats, boot_id(), 1, self.facts, lambda: None)
        self.fleet = Fleet(
            Agent(), crew, self.facts, Start(None, {}, os.environ.get(deadlines.VARIABLE, "")), logs, lambda: None
        )
        self.fleet.program(program())

    def connect(self, connections: int = 8) -> None:
        for arm in ("plain", "encrypted"):
            assert (
                self.fleet.connect(arm, Connection(driver="null", connections=connections)).connections == connections
            )

    def slice(self, **options: Any) -> AgentSlice:
        """A long slice of the plain arm; again, if this machine was too busy for all to begin in time."""
        options = {"rate": CALM} | options
        for _ in range(4):
            try:
                return self.fleet.slice("plain", LONG, **options)
            except AgentError as error:
                if error.code not in (LATE, SKEWED):
                    raise
        return self.fleet.slice("plain", LONG, **options)


@contextmanager
def watched_fleet(
    tmp_path: Path, count: int = 3, *, least: int = 1, boots: Sequence[str] = ()
) -> Iterator[WatchedFleet]:
    with ExitStack() as stack:
        cluster = stack.enter_context(local_cluster(count, boots=boots))
        watched = WatchedFleet(cluster, tmp_path, least)
        stack.enter_context(watched.fleet)
        yield watched


CALM = 2000.0
"""Operations per second, where a test is not about what all cores can do."""
TRIES = 5
"""Slices until one fails by what is tested, not by a busy machine."""
LONG = 2.0
"""Seconds of a slice whose 400 ms before the counted part are enough for the threads of a busy machine."""


def test_a_slice_of_many_agents_counts_what_all_did(tmp_path: Path) -> None:
    with watched_fleet(tmp_path) as here:
        here.connect(8)
        called: list[str] = []
        answer = here.slice(
            rate=0.0, seed=1, on_counting=lambda: called.append("counting"), on_counted=lambda: called.append("counted")
        )
        assert called[-2:] == ["counting", "counted"]
        assert answer.seconds == pytest.approx(0.8 * LONG, rel=0.05)
        assert histogram.decode(answer.histogram).total == answer.operations > 0
        assert answer.threads == sum(min(share, len(os.sched_getaffinity(0))) for share in (3, 3, 2))
        assert here.fleet.start_skew is not None
        assert [node.slices for node in here.facts.nodes] == [1, 1, 1]
        assert here.fleet.own_cpu(answer)[0] == answer.cpu_user_ns + answer.cpu_system_ns
        (machine,) = here.fleet.machines
        assert machine.counters is None


def test_both_arms_run_the_same_operations_and_every_member_others(tmp_path: Path) -> None:
    with watched_fleet(tmp_path) as here:
        here.connect()
        one, other = (here.fleet.slice(arm, 60, discard=0.0, seed=3, operations=64) for arm in ("plain", "encrypted"))
        assert (one.operations, one.rows, one.checksum) == (64, other.rows, other.checksum)
        assert here.fleet.slice("plain", 60, discard=0.0, seed=4, operations=1).operations == 1


def test_other_arms_belong_to_the_controllers_agent(tmp_path: Path) -> None:
    with watched_fleet(tmp_path) as here:
        here.fleet.connect("prove-plain", Connection(driver="null"))
        before = [remote.calls.count("request") for remote in here.cluster.remotes]
        assert here.fleet.slice("prove-plain", 60, discard=0.0, operations=5).operations == 5
        assert [remote.calls.count("request") for remote in here.cluster.remotes] == before


# ── losses ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_member_that_died_is_lost_and_the_others_take_its_connections(tmp_path: Path) -> None:
    with watched_fleet(tmp_path) as here:
        here.connect(8)
        here.cluster.remotes[1].dead = "its node has died"
        with pytest.raises(AgentsLost, match="node-1 was lost: its node has died"):
            here.fleet.slice("plain", 0.1)
        assert here.fleet.names == ["node-0", "node-2"]
        assert [(loss.node, loss.session) for loss in here.facts.lost] == [("node-1", 1)]
        assert here.facts.failed_slices == 1
        assert here.cluster.dismissed == ["node-1"]
        here.connect(8)
        assert here.slice().operations > 0


def test_an_agent_that_was_killed_is_lost_with_its_member(tmp_path: Path) -> None:
    with watched_fleet(tmp_path) as here:
        here.connect()
        os.kill(here.cluster.remotes[2].member._started.agent.pid, signal.SIGKILL)
        with pytest.raises(AgentsLost, match="node-2"):
            here.slice()
        assert here.fleet.names == ["node-0", "node-1"]


def test_a_member_that_froze_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(deadlines.VARIABLE, "3")
    with watched_fleet(tmp_path) as here:
        here.connect()
        here.cluster.remotes[0].frozen = True
        with pytest.raises(AgentsLost, match=r"node-0 was lost: .* for 1 s"):
            here.fleet.slice("plain", 0.1)
        here.cluster.remotes[0].frozen = False


def test_with_too_few_left_the_cell_ends(tmp_path: Path) -> None:
    with watched_fleet(tmp_path, least=3) as here:
        here.connect()
        here.cluster.remotes[1].dead = "its node has died"
        with pytest.raises(RunError, match=r"2 of 3 agents.*--min-agents is 3: .*node-1") as caught:
            here.fleet.slice("plain", 0.1)
        assert not isinstance(caught.value, AgentError)


def test_an_order_that_comes_too_late_fails_its_slice_and_a_member_that_is_always_late_is_lost(
    tmp_path: Path,
) -> None:
    with watched_fleet(tmp_path) as here:
        here.connect()
        here.fleet._lead = fleets.MOST_LEAD  # so that no other member is late
        here.cluster.remotes[1].delay = 2 * fleets.MOST_LEAD
        for _ in range(fleets.LATE_IN_A_ROW - 1):
            with pytest.raises(AgentError, match=r"order came \d+\.\d ms") as caught:
                here.fleet.slice("plain", 0.1)
            assert caught.value.code == LATE
        with pytest.raises(AgentsLost, match=f"node-1 was lost: {fleets.LATE_IN_A_ROW} orders"):
            here.fleet.slice("plain", 0.1)
        assert here.facts.failed_slices == fleets.LATE_IN_A_ROW


def test_a_late_order_shortens_only_what_is_not_counted(tmp_path: Path) -> None:
    with watched_fleet(tmp_path) as here:
        here.connect()
        here.cluster.remotes[1].delay = 0.05
        for _ in range(TRIES):
            answer = here.slice()
            if answer.seconds == pytest.approx(0.8 * LONG, rel=0.02):
                break
        assert answer.seconds == pytest.approx(0.8 * LONG, rel=0.02)


def test_agents_that_began_too_far_apart_did_not_count_the_same_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with watched_fleet(tmp_path) as here:
        here.connect()
        member = here.cluster.remotes[1].member
        monkeypatch.setattr(member, "slice_at", skewed(member.slice_at, 0.3 * LONG))
        for _ in range(TRIES):
            with pytest.raises(AgentError) as caught:
                here.fleet.slice("plain", LONG, rate=CALM)
            if caught.value.code != LATE:
                break
        assert caught.value.code == SKEWED
        assert re.search(r"\d+\.\d ms apart, .* 400 ms", str(caught.value))
        assert here.fleet.names == ["node-0", "node-1", "node-2"]


def test_a_server_that_was_sampled_late_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with watched_fleet(tmp_path) as here:
        here.connect()
        monkeypatch.setattr(fleets, "wait_until", lambda moment: wait_until(moment + 0.3 * LONG))
        called: list[str] = []
        for _ in range(TRIES):
            with pytest.raises(AgentError) as raised:
                here.fleet.slice("plain", LONG, rate=CALM, on_counting=lambda: called.append("counting"))
            if "sampled" in str(raised.value):
                break
        assert re.search(r"sampled \d{3,}\.\d ms", str(raised.value))
        assert raised.value.code == SKEWED
        assert set(called) == {"counting"}
        assert here.facts.late_slices == here.facts.failed_slices == len(called)


def test_what_the_punctual_thread_starts_has_the_usual_priority() -> None:
    look = "import os; print(os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0))"

    def punctual() -> str:
        be_punctual(SAMPLING)
        usual_priority()
        return subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(punctual).result().split() == [str(os.SCHED_OTHER), "0"]


def skewed(slice_at: Any, seconds: float) -> Any:
    def act(order: Any) -> Any:
        report = slice_at(order)
        return msgspec.structs.replace(report, counting=report.counting + seconds)

    return act


# ── clocks and hosts ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_node_with_another_clock_starts_with_the_others(tmp_path: Path) -> None:
    with ExitStack() as stack:
        cluster = stack.enter_context(local_cluster(2, boots=("elsewhere", "another")))
        cluster.remotes[1].ahead = 90_000.0
        here = WatchedFleet(cluster, tmp_path, 1)
        stack.enter_context(here.fleet)
        here.fleet._place = "elsewhere", here.fleet._place[1]
        here.connect()
        answer = here.slice()
        assert answer.seconds == pytest.approx(0.8 * LONG, rel=0.05)
        offsets = {clock.node: clock for clock in here.facts.clocks}
        assert abs(offsets["node-0"].offset_s) <= offsets["node-0"].error_s
        assert abs(offsets["node-1"].offset_s - 90_000) <= offsets["node-1"].error_s + 1e-6
        assert all(node.cpu is not None and node.steal is not None for node in here.facts.nodes)
        assert len(here.fleet.machines) == 2
        assert here.fleet.own_cpu(answer) == (0, 0)


def test_a_node_that_can_not_reach_the_servers_address_is_named(tmp_path: Path) -> None:
    with (
        watched_fleet(tmp_path, 2, boots=(boot_id(), "elsewhere")) as here,
        pytest.raises(UsageError, match=r"127\.0\.0\.1.* node-1 can't reach.*--listen"),
    ):
        here.fleet.connect("plain", Connection(driver="null", host="127.0.0.1", connections=2))


# ── what is proven, and what is not shown ─────────────────────────────────────────────────────────────────────────────


def test_agents_that_negotiated_differently_prove_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with watched_fleet(tmp_path) as here:
        member = here.cluster.remotes[2].member
        request = member.request
        monkeypatch.setattr(
            member, "request", lambda call: request(call).replace(b'"cipher":""', b'"cipher":"TLS_NONE"')
        )
        with pytest.raises(Unproven, match=r"cipher .*'' on node-0 .*'TLS_NONE' on node-2"):
            here.fleet.connect("encrypted", Connection(driver="null", connections=3))


def test_an_agents_error_names_its_node(tmp_path: Path) -> None:
    with watched_fleet(tmp_path) as here, pytest.raises(AgentError, match=r"\(on node-0\)") as caught:
        here.fleet.connect("plain", Connection(driver="nothing", connections=3))
    assert caught.value.code == "bad-message"


def test_what_may_hold_a_password_is_never_shown() -> None:
    call = Call(Sealed(b'{"password":"sesame"}'), {"tls_key": Sealed(b"PRIVATE KEY")}, 1.0)
    for text in (repr(call), str(call), f"{call}"):
        assert "sesame" not in text
        assert "PRIVATE" not in text
    assert pickle.loads(pickle.dumps(call.message)).reveal() == call.message.reveal()


def test_files_reach_the_agent_without_touching_a_disk(tmp_path: Path) -> None:
    member = RemoteAgent()
    try:
        assert member.begin(Start(None, {}, "")) is None
        content = b"-----BEGIN CERTIFICATE-----\n"
        call = Call(
            Sealed(b'{"type":"connect","arm":"plain","driver":"postgres","host":"127.0.0.1","port":1,"user":"u","database":"d"'
                   b',"password":"p","tls":"verify-full"}'),
            {"tls_ca": Sealed(content)},
            30.0,
        )  # fmt: skip
        answer = member.request(call)
        assert isinstance(answer, Failure)
        assert not answer.gone
        started = member._started
        assert started is not None
        descriptor = started._files["plain", "tls_ca"]
        assert os.pread(descriptor, 100, 0) == content
        agent = started.agent
        assert Path(f"/proc/{agent.pid}/fd/{descriptor}").read_bytes() == content
    finally:
        member.end()
