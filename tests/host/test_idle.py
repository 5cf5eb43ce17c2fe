"""idle: cores are kept from halting during load, and every setting is restored, whichever process is killed."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.estimate import results
from ciphercost.host import idle, idle_setting, leftovers, run_ownership, supervisor
from ciphercost.measure.recorded_facts import describe_idle
from ciphercost.model import run_directory
from ciphercost.model.errors import RunError, UsageError
from ciphercost.model.facts import CellFacts
from ciphercost.model.spec import CellSpec, Regime, Spec
from ciphercost.plan import conditions, matrix, schedule, specs
from ciphercost.report import comparison, comparison_types
from ciphercost.runs import pipeline
from fake import Fake
from processes import wait_for


class ServerPair(msgspec.Struct):
    """The part of a session's server pair that decides the idle mode."""

    server_cpus: set[int]
    agent_cpus: set[int]


def machine(place: Path, cpus: int, *, threads: int = 1, state: str = "POLL") -> Path:
    """What the kernel would show for this many CPUs, `threads` to a physical core."""
    for cpu in range(cpus):
        core = cpu // threads * threads
        files = {
            "power/pm_qos_resume_latency_us": "0",
            "topology/thread_siblings_list": "-".join(str(sibling) for sibling in sorted({core, core + threads - 1})),
            "cpuidle/state0/name": state,
            "cpuidle/state0/usage": "7",
            "cpuidle/state1/name": "haltpoll idle",
            "cpuidle/state1/usage": "100",
        }
        for name, text in files.items():
            path = place / f"cpu{cpu}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")
    return place


@pytest.fixture
def cpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four CPUs in files: other processes use the machine's own."""
    monkeypatch.setattr(idle_setting, "CPUS", machine(tmp_path / "cpus", 4))
    return tmp_path / "cpus"


@pytest.fixture
def awake(cpus: Path) -> Iterator[idle.CpuIdlePolling]:
    with (
        supervisor.Supervisor(run_directory.new_id()) as run_supervisor,
        idle.CpuIdlePolling(run_supervisor) as polling,
    ):
        yield polling


def values(count: int = 4) -> list[str]:
    return [idle_setting.setting(cpu).read_text().strip() for cpu in range(count)]


def test_kept_cores_poll_and_released_cores_are_restored(awake: idle.CpuIdlePolling) -> None:
    idle_setting.setting(2).write_text("15")
    awake.keep({1, 2})
    assert values() == ["0", "n/a", "n/a", "0"]
    awake.keep({0, 1})
    assert values() == ["n/a", "n/a", "15", "0"]
    awake.keep(())
    assert values() == ["0", "0", "15", "0"]


def test_a_core_that_another_run_keeps_awake_is_left_alone_until_released(awake: idle.CpuIdlePolling) -> None:
    idle_setting.setting(1).write_text("n/a")
    awake.keep({1})
    awake.keep(())
    assert values()[1] == "n/a"
    awake.keep({1})
    idle_setting.setting(1).write_text("0")  # the other run has ended
    awake.keep({1})
    assert values()[1] == "n/a"
    awake.keep(())
    assert values()[1] == "0"


def test_detects_halts_of_kept_cores(awake: idle.CpuIdlePolling, cpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = itertools.count(0.0, 2.0)
    monkeypatch.setattr(idle, "time", SimpleNamespace(monotonic=lambda: next(now)))
    awake.keep({0})
    (cpus / "cpu0/cpuidle/state0/usage").write_text("1000000")  # polls are no halts
    (cpus / "cpu1/cpuidle/state1/usage").write_text("1000000")  # nobody kept this one
    awake.keep(())
    assert awake.failed() == ""
    awake.keep({0})
    (cpus / "cpu0/cpuidle/state1/usage").write_text("80100")
    awake.keep(())
    assert "20,000 times per second" in awake.failed()


def test_obstacles_are_named(cpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert idle.obstacle({0, 1}, {2, 3}) == ""
    (cpus / "cpu3/cpuidle/state0/name").write_text("C1")
    assert "polls" in idle.obstacle({0, 1}, {2, 3})
    monkeypatch.setattr(idle_setting, "CPUS", machine(tmp_path / "smt", 4, threads=2))
    assert "SMT" in idle.obstacle({0}, {1})
    assert idle.obstacle({0, 1}, {2, 3}) == ""
    assert idle.obstacle({0}, {0}) == "", "on one core nobody waits for another"
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert "root" in idle.obstacle({0, 1}, {2, 3})


@given(st.integers(2, 32), st.integers(1, 4), st.integers(0, 3), st.sampled_from(["capacity", "latency"]))
def test_client_and_server_never_share_a_physical_core(cores: int, threads: int, session: int, regime: Regime) -> None:
    # Numbered as on most machines: first one thread of every core, then the second of each.
    physical = {thread * cores + core: f"core {core}" for thread in range(threads) for core in range(cores)}
    server, agent = schedule.cores(7, session, sorted(physical), regime, physical)
    assert server
    assert len(server) == len(agent)
    assert not {physical[cpu] for cpu in server} & {physical[cpu] for cpu in agent}


def test_halves_are_equal_if_not_all_threads_of_a_core_are_available() -> None:
    for session in (1, 2):
        server, agent = schedule.cores(7, session, [0, 1, 2], "capacity", {0: "0-1", 1: "0-1", 2: "2"})
        assert len(server) == len(agent) == 1
        assert 2 in {*server, *agent}


HOLDER = """
import sys
from pathlib import Path
from ciphercost.host import supervisor
from ciphercost.host import idle, idle_setting
idle_setting.CPUS = Path(sys.argv[2])
run_supervisor = supervisor.Supervisor(sys.argv[1])
idle.CpuIdlePolling(run_supervisor).keep({0, 3})
print(run_supervisor.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.usefixtures("alone")
def test_settings_are_restored_after_sigkill(cpus: Path, both: bool) -> None:
    run_id = run_directory.new_id()
    argv = [sys.executable, "-c", HOLDER, run_id, str(cpus)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as controller:
        assert controller.stdout is not None
        supervisor_pid = int(controller.stdout.readline())
        assert values() == ["n/a", "0", "0", "n/a"]
        if both:
            os.kill(supervisor_pid, signal.SIGSTOP)
        controller.send_signal(signal.SIGKILL)
        controller.wait()
        if both:
            os.kill(supervisor_pid, signal.SIGKILL)
    if both:
        wait_for("the supervisor to end", lambda: run_ownership.start_time(supervisor_pid) == "")
        left = [leftover for leftover in leftovers.leftovers() if leftover.run == run_id]
        assert {leftover.what for leftover in left if leftover.kind == "idle setting"} == {"cpu0=0", "cpu3=0"}
        assert leftovers.remove(left) == []
    wait_for("the settings to be put back", lambda: values() == ["0", "0", "0", "0"])


def test_a_journal_that_was_tampered_with_writes_nothing_else(cpus: Path) -> None:
    idle_setting.setting(1).write_text("n/a")
    journal = ["cpu1=0", "cpu../../1=0", "cpu2=$(reboot)", "cpu9=0", "cpu1=33"]
    assert list(idle_setting.left_behind(journal)) == [(1, "0")]
    assert cpus.exists()


def test_a_setting_that_cannot_be_written_is_a_clear_error(
    awake: idle.CpuIdlePolling, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "write_text", refuse)
    with pytest.raises(RunError, match="--idle halt"):
        awake.keep({0})


def test_this_kernel_keeps_a_core_from_halting() -> None:
    cpu = min(os.sched_getaffinity(0))
    reason = idle.obstacle({cpu}, {cpu})
    if reason:
        pytest.skip(reason)  # CIPHERCOST_REQUIRE is for what can be fetched; a kernel can't be
    with supervisor.Supervisor(run_directory.new_id()) as run_supervisor, idle.CpuIdlePolling(run_supervisor) as awake:
        # A run beside this test may restore the setting between the two lines, but not every time.
        for _ in range(50):
            awake.keep({cpu})
            if idle_setting.setting(cpu).read_text().strip() == idle_setting.NEVER:
                return
    pytest.fail("the kernel does not keep the setting")


# ── in a run ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def spied(monkeypatch: pytest.MonkeyPatch) -> list[set[int]]:
    """The CPUs that a run keeps awake, call by call."""
    calls: list[set[int]] = []
    keep = idle.CpuIdlePolling.keep

    def spy(self: idle.CpuIdlePolling, wanted: set[int]) -> None:
        calls.append(set(wanted))
        keep(self, wanted)

    monkeypatch.setattr(idle.CpuIdlePolling, "keep", spy)
    return calls


def measured(tmp_path: Path, regime: Regime, wish: str = "", latency: bool = True) -> CellFacts:
    cell = CellSpec("null", "busy", regime=regime, idle=wish)  # type: ignore[arg-type]
    pipeline.run(Spec(cells=[cell], seed=7, mode="quick", sessions=1, time=20.0, latency=latency), tmp_path / "run")
    return run_directory.read_facts(tmp_path / "run").cells[0]


def on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str = "POLL") -> None:
    """This machine's own CPUs, in files."""
    place = machine(tmp_path / "cpus", max(os.sched_getaffinity(0)) + 1, state=state)
    monkeypatch.setattr(idle_setting, "CPUS", place)


def test_a_closed_loop_keeps_both_sides_awake_and_an_open_one_the_client(
    tmp_path: Path, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake("--sd 0.005")
    on_this_machine(tmp_path, monkeypatch)
    calls = spied(monkeypatch)
    facts = measured(tmp_path, "capacity")
    server, client = schedule.cores(7, 1, sorted(os.sched_getaffinity(0)), "capacity")
    assert facts.idle == "poll"
    assert {frozenset(call) for call in calls} == {
        frozenset(),
        frozenset({*server, *client}),
        frozenset(client),
    }
    assert all(idle_setting.setting(cpu).read_text().strip() == "0" for cpu in (*server, *client))


def test_the_mode_is_a_condition_and_comparing_different_modes_is_reported(
    tmp_path: Path, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake("--sd 0.005")
    on_this_machine(tmp_path, monkeypatch)
    runs = []
    for wish in ("poll", "halt"):
        assert measured(tmp_path / wish, "capacity", wish, latency=False).idle == wish
        result, intervals = results.with_intervals(tmp_path / wish / "run")
        assert result.cells[0].conditions["idle"] == wish
        runs.append(comparison_types.Run(wish, result, intervals))
    assert conditions.worded(runs[0].result.cells[0].conditions) == ""
    assert conditions.worded(runs[1].result.cells[0].conditions) == "idle cores halt"
    compared = comparison.compare(runs)
    assert [factor.name for factor in compared.pairs[0].factors] == ["idle"]


def test_if_cores_cannot_be_kept_awake_the_cell_warns_and_idle_poll_is_refused(
    tmp_path: Path, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake("--sd 0.005")
    on_this_machine(tmp_path, monkeypatch, state="C1")
    facts = measured(tmp_path, "capacity", latency=False)
    assert facts.idle == "halt"
    expected = len(os.sched_getaffinity(0)) > 1
    assert any(warning.code == "cores-halt" and "polls" in warning.text for warning in facts.warnings) == expected
    with pytest.raises(UsageError, match="--idle poll"):
        measured(tmp_path / "second", "capacity", "poll")


def test_a_cell_is_never_resumed_in_the_other_mode(cpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = ServerPair({0}, {1})
    begun = CellFacts(CellSpec("null", "busy"), idle="halt", whole_sessions=[1])
    describe_idle(begun, pair)  # type: ignore[arg-type]
    assert begun.idle == "halt", "what its sessions had stays"
    older = CellFacts(CellSpec("null", "busy"), whole_sessions=[1])
    describe_idle(older, pair)  # type: ignore[arg-type]
    assert older.idle == "halt", "before this was recorded, cores halted"
    monkeypatch.setattr(idle_setting, "CPUS", machine(cpus.parent / "other", 4, state="C1"))
    polled = CellFacts(CellSpec("null", "busy"), idle="poll", whole_sessions=[1])
    with pytest.raises(UsageError, match="1 recorded sessions"):
        describe_idle(polled, pair)  # type: ignore[arg-type]


def test_warns_if_somebody_else_prevents_halting(cpus: Path) -> None:
    facts = CellFacts(CellSpec("null", "busy", idle="halt"))
    describe_idle(facts, ServerPair({0}, {1}))  # type: ignore[arg-type]
    assert not facts.warnings
    idle_setting.setting(1).write_text("n/a")
    facts.idle = ""
    describe_idle(facts, ServerPair({0}, {1}))  # type: ignore[arg-type]
    assert [warning.code for warning in facts.warnings] == ["cores-kept"]
    assert cpus.exists()


def test_a_matrix_compares_both_modes_in_one_experiment() -> None:
    cells = matrix.matrix(CellSpec("null", "busy"), ["idle=poll,halt"])
    assert [cell.idle for cell in cells] == ["poll", "halt"]
    with pytest.raises(UsageError, match="poll or halt"):
        specs.check(Spec(cells=matrix.matrix(CellSpec("null", "busy"), ["idle=poll,spin"])))
