"""supervisor: whatever a run started or made is gone when the run is, however it ended."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ciphercost.host import deadlines, run_ownership, supervisor
from ciphercost.host.journal import Entry
from ciphercost.host.supervisor import Supervisor
from ciphercost.host.supervisor_channel import Channel
from ciphercost.model import run_directory
from ciphercost.model.errors import RunError, UsageError
from conftest import Require
from enterable import enterable
from processes import PATIENCE, marked, wait_for

NOTHING = Entry("mount", "/nowhere")
"""What an undoing command of these tests undoes."""


def alive(pid: int) -> bool:
    return run_ownership.start_time(pid) != ""


@pytest.fixture
def run_supervisor() -> Iterator[Supervisor]:
    with Supervisor(run_directory.new_id()) as run_supervisor:
        yield run_supervisor
    assert run_supervisor.problems == []


# ── processes ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_program_that_servers_can_not_get_to_is_named_with_its_closed_directory(
    run_supervisor: Supervisor, tmp_path: Path, require: Require
) -> None:
    require(os.geteuid() == 0, "needs root: another user's servers run as that user")
    closed = enterable(tmp_path) / "closed"
    closed.mkdir(mode=0o700)
    shutil.copy("/bin/true", closed / "true")
    with pytest.raises(
        RunError, match=f"can't start {closed}/true: .*: {closed} is closed to others .`chmod o.x {closed}` opens it"
    ):
        run_supervisor.run([closed / "true"], user=run_ownership.server_user())
    assert run_supervisor.run([closed / "true"]) == ""  # as ourselves


def test_a_process_runs_with_its_own_user_cores_mark_and_empty_input(run_supervisor: Supervisor) -> None:
    script = "id -u; taskset -cp $$; echo $CIPHERCOST_RUN; cat"
    core = min(os.sched_getaffinity(0))
    process = run_supervisor.spawn(["sh", "-c", script], user=run_ownership.server_user(), cpus=[core])
    assert process.wait(PATIENCE) == 0
    uid, cores, mark = process.output().splitlines()
    assert int(uid) == (run_ownership.server_user() or (os.getuid(), 0))[0]
    assert cores.endswith(f": {core}")
    assert mark == run_supervisor.run_id


def test_a_process_sees_little_of_the_users_environment(
    run_supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "secret")
    assert "secret" not in run_supervisor.run(["env"], env={"PGDATA": "here"})
    assert "PGDATA=here" in run_supervisor.run(["env"], env={"PGDATA": "here"})


def test_a_failing_command_reports_its_output(run_supervisor: Supervisor) -> None:
    with pytest.raises(RunError, match=r"(?s)sh failed with status 3:.*no room"):
        run_supervisor.run(["sh", "-c", "echo no room >&2; exit 3"])


def test_a_missing_command_is_named(run_supervisor: Supervisor) -> None:
    with pytest.raises(RunError, match=r"can't start /nowhere/postgres: .*No such file"):
        run_supervisor.spawn(["/nowhere/postgres"])


def test_a_command_that_takes_too_long_is_stopped(run_supervisor: Supervisor) -> None:
    with pytest.raises(RunError, match="did not end within"):
        run_supervisor.run(["sleep", "1000"], timeout=0.1)


def test_the_log_file_gets_what_the_process_writes(run_supervisor: Supervisor, tmp_path: Path) -> None:
    process = run_supervisor.spawn(["echo", "hello"], log=tmp_path / "log")
    assert process.wait(PATIENCE) == 0
    assert (tmp_path / "log").read_text() == "hello\n"


def test_a_process_reads_the_file_it_is_given_and_nothing_without_one(
    run_supervisor: supervisor.Supervisor, tmp_path: Path
) -> None:
    (tmp_path / "words").write_text("read me")
    (tmp_path / "words").chmod(0o600)  # opened before the change of user
    assert run_supervisor.run(["cat"], stdin=tmp_path / "words", user=run_ownership.server_user()) == "read me"
    assert run_supervisor.run(["cat"]) == ""


def test_stop_ends_the_whole_subtree_even_what_left_the_group(run_supervisor: Supervisor, tmp_path: Path) -> None:
    inner = "setsid sh -c 'echo $$ > pid; exec sleep 1000' & wait"
    process = run_supervisor.spawn(["sh", "-c", inner], cwd=tmp_path)
    wait_for("the inner process", lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip() != "")
    grandchild = int((tmp_path / "pid").read_text())
    assert process.poll() is None
    assert process.stop() == -signal.SIGTERM
    wait_for("the grandchild to end", lambda: not alive(grandchild))


def test_a_stopped_process_still_shuts_down_cleanly(run_supervisor: Supervisor, tmp_path: Path) -> None:
    done = tmp_path / "done"
    script = f"trap 'echo in order > {done}; exit 0' TERM; echo ready > ready; sleep 100 & wait"
    process = run_supervisor.spawn(["sh", "-c", script], cwd=tmp_path)
    wait_for("the trap to be set", (tmp_path / "ready").exists)
    os.kill(process.pid, signal.SIGSTOP)
    process.stop(timeout=PATIENCE)
    assert done.read_text() == "in order\n"


def test_a_process_that_ignores_its_stop_signal_is_killed(run_supervisor: Supervisor, tmp_path: Path) -> None:
    script = "trap '' TERM QUIT; echo ready > ready; while :; do sleep 0.1; done"
    process = run_supervisor.spawn(["sh", "-c", script], cwd=tmp_path)
    wait_for("the traps to be set", (tmp_path / "ready").exists)
    assert process.stop(timeout=0.1) == -signal.SIGKILL


def test_answers_are_not_mixed_up_between_threads_or_after_an_interrupt(run_supervisor: Supervisor) -> None:
    seen: list[str] = []

    def ask(word: str) -> None:
        seen.extend(run_supervisor.run(["echo", word]).strip() for _ in range(5))

    threads = [threading.Thread(target=ask, args=(word,)) for word in ("a", "b", "c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == ["a"] * 5 + ["b"] * 5 + ["c"] * 5
    # As if Ctrl-C had come between a request and its answer.
    run_supervisor._channel._unsent += json.dumps({"do": "poll", "pid": 1, "number": 0}).encode() + b"\n"
    assert run_supervisor.run(["echo", "still right"]).strip() == "still right"


def use_one_that_stops() -> None:
    with Supervisor(run_directory.new_id()) as run_supervisor:
        run_supervisor.spawn(["sleep", "1000"])
        os.kill(run_supervisor.pid, signal.SIGSTOP)
        run_supervisor.run(["true"])


def test_a_stopped_supervisor_is_named_in_time_and_continued_to_clean_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(deadlines.VARIABLE, "0.5")
    with pytest.raises(RunError, match=r"supervisor process .*is stopped.*: kill -CONT \d+"):
        use_one_that_stops()
    assert "was stopped (SIGSTOP); the run continued it" in capsys.readouterr().err


def test_a_supervisor_that_stays_silent_is_killed_and_the_run_cleans_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(deadlines.VARIABLE, "0.5")
    monkeypatch.setattr(Channel, "continued", lambda _: False)  # as if it were stopped again at once
    run_supervisor = Supervisor(run_directory.new_id())
    scratch = supervisor.scratch(run_supervisor.run_id, run_supervisor)
    process = run_supervisor.spawn(["sleep", "1000"])
    os.kill(run_supervisor.pid, signal.SIGSTOP)
    run_supervisor.close()
    assert run_supervisor.lost
    assert run_supervisor.problems == []
    assert not scratch.exists()
    wait_for("the child to die with its supervisor", lambda: not alive(process.pid))


def test_an_answer_has_a_limit(tmp_path: Path) -> None:
    with Supervisor(run_directory.new_id()) as run_supervisor:
        process = run_supervisor.spawn(["sh", "-c", "trap '' TERM QUIT; echo ready > ready; sleep 1000"], cwd=tmp_path)
        wait_for("the traps to be set", (tmp_path / "ready").exists)
        with pytest.raises(RunError, match=r"supervisor process .*within 0\.2 s"):
            run_supervisor.ask("stop", 0.2, pid=process.pid, timeout=3.0)


def test_a_killed_supervisors_children_die_and_the_error_reports_it() -> None:
    run_supervisor = Supervisor(run_directory.new_id())
    process = run_supervisor.spawn(["sleep", "1000"])
    os.kill(run_supervisor.pid, signal.SIGKILL)
    wait_for("the child to die with its supervisor", lambda: not alive(process.pid))
    with pytest.raises(RunError, match="supervisor process is gone"):
        run_supervisor.run(["true"])
    run_supervisor.close()
    assert run_supervisor.lost
    assert run_supervisor.problems == []


@pytest.mark.usefixtures("alone")
def test_the_controller_removes_what_a_killed_supervisor_left_and_reports_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Supervisor(run_directory.new_id()) as run_supervisor:
        path = supervisor.scratch(run_supervisor.run_id, run_supervisor)
        (path / "key").write_text("secret")
        run_supervisor.remove(tmp_path / "elsewhere")
        (tmp_path / "elsewhere").mkdir()
        script = "trap '' INT; setsid sh -c 'echo $$ > pid; exec sleep 1000' & wait"
        groups = run_ownership.cgroup_for(run_supervisor.run_id, "server")
        run_supervisor.spawn(
            ["sh", "-c", script], cwd=path / "secrets", user=run_ownership.server_user(), cgroups=groups
        )
        pid = path / "secrets" / "pid"
        wait_for("the inner process", lambda: pid.exists() and pid.read_text().strip() != "")
        grandchild = int(pid.read_text())
        os.kill(run_supervisor.pid, signal.SIGKILL)
        wait_for("the supervisor to end", lambda: not alive(run_supervisor.pid))
    assert run_supervisor.lost
    assert run_supervisor.problems == []
    assert "this run's supervisor process was killed" in capsys.readouterr().err
    assert not path.exists()
    assert not (tmp_path / "elsewhere").exists()
    assert not alive(grandchild)
    assert not any(group.exists() for group in groups)


def test_the_controller_completes_the_undoing_of_a_killed_supervisor(capsys: pytest.CaptureFixture[str]) -> None:
    run_supervisor = Supervisor(run_directory.new_id())
    path = supervisor.scratch(run_supervisor.run_id, run_supervisor)
    marker = path / "undoing"
    run_supervisor.undo(["sh", "-c", f": > {marker}; exec sleep 1000"], NOTHING)
    closing = threading.Thread(target=run_supervisor.__exit__, args=(None, None, None))
    closing.start()
    wait_for("the supervisor to undo", marker.exists)
    os.kill(run_supervisor.pid, signal.SIGKILL)
    closing.join(PATIENCE)
    assert not closing.is_alive()
    assert not path.exists()
    assert not marked(run_supervisor.run_id)
    assert "this run's supervisor process was killed" in capsys.readouterr().err


def test_leftovers_of_a_killed_supervisor_are_an_error_that_says_what_to_run() -> None:
    run_supervisor = Supervisor(run_directory.new_id())
    path = supervisor.scratch(run_supervisor.run_id, run_supervisor)
    os.kill(run_supervisor.pid, signal.SIGKILL)
    wait_for("the supervisor to end", lambda: not alive(run_supervisor.pid))
    path.chmod(0o777)  # anybody could have written to it, so it is not removed
    try:
        with pytest.raises(RunError, match=rf"(?s)could not remove.*{run_supervisor.run_id}.*ciphercost clean"):
            run_supervisor.__exit__(None, None, None)
    finally:
        subprocess.run(["rm", "-r", path], check=True)


# ── undoing ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_leaving_undoes_everything_last_first(tmp_path: Path) -> None:
    run_id = run_directory.new_id()
    with Supervisor(run_id) as run_supervisor:
        path = supervisor.scratch(run_id, run_supervisor)
        run_supervisor.remove(tmp_path / "gone")
        (tmp_path / "gone").mkdir()
        run_supervisor.undo(["sh", "-c", f"echo outer >> {tmp_path}/order"], NOTHING)
        run_supervisor.undo(["sh", "-c", f"test -d {tmp_path}/gone && echo inner >> {tmp_path}/order"], NOTHING)
        taken_back = run_supervisor.undo(["false"], NOTHING)
        taken_back()
        process = run_supervisor.spawn(["sleep", "1000"])
    assert run_supervisor.problems == []
    assert not alive(process.pid)
    assert not path.exists()
    assert not (tmp_path / "gone").exists()
    assert (tmp_path / "order").read_text() == "inner\nouter\n"


def test_a_failure_to_undo_is_reported_and_the_rest_is_done(tmp_path: Path) -> None:
    run_supervisor = Supervisor(run_directory.new_id())
    run_supervisor.remove(tmp_path / "gone")
    (tmp_path / "gone").mkdir()
    run_supervisor.undo(["sh", "-c", "echo busy >&2; exit 1"], NOTHING)
    with pytest.raises(RunError, match=r"could not remove.*busy.*ciphercost clean"):
        run_supervisor.__exit__(None, None, None)
    assert len(run_supervisor.problems) == 1
    assert "busy" in run_supervisor.problems[0]
    assert not (tmp_path / "gone").exists()


def test_scratch_lets_servers_pass_and_shows_others_nothing() -> None:
    run_id = run_directory.new_id()
    with Supervisor(run_id) as run_supervisor:
        path = supervisor.scratch(run_id, run_supervisor)
        assert run_ownership.lives((path / run_ownership.OWNER_FILE).read_text())
        user = run_ownership.server_user()
        assert path.stat().st_mode & 0o777 == (0o700 if user is None else 0o711)
        assert (path / "secrets").stat().st_mode & 0o777 == 0o700
        run_supervisor.run(["touch", path / "secrets" / "key"], user=user)
        if user is not None:
            with pytest.raises(RunError, match="Permission denied"):
                run_supervisor.run(["ls", path], user=user)


def test_scratch_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.setenv("CIPHERCOST_SCRATCH", str(tmp_path / "link"))
    with pytest.raises(UsageError, match="symbolic link"):
        supervisor.scratch(run_directory.new_id())


def test_a_process_is_known_by_more_than_its_number() -> None:
    me = run_ownership.identity()
    assert run_ownership.lives(me)
    pid, start, boot, namespace = me.split(":")
    assert not run_ownership.lives(f"{pid}:{int(start) + 1}:{boot}:{namespace}")
    assert not run_ownership.lives(f"{pid}:{start}:another-boot:{namespace}")
    assert run_ownership.lives(f"{pid}:{int(start) + 1}:{boot}:another-namespace"), (
        "what we can't see must count as living"
    )
    assert not run_ownership.lives("")


def test_a_server_is_counted_in_a_control_group_of_its_own(run_supervisor: Supervisor) -> None:
    groups = run_ownership.cgroup_for(run_supervisor.run_id, "server")
    if not groups:
        assert not run_ownership.cgroup_parents()
        return
    process = run_supervisor.spawn(["sleep", "1000"], cgroups=groups, user=run_ownership.server_user())
    assert (groups[0] / "cgroup.procs").read_text().split() == [str(process.pid)]
    process.stop()
    assert not groups[0].exists()


# ── the controller is killed ──────────────────────────────────────────────────────────────────────────────────────────

CONTROLLER = """
import sys
from pathlib import Path
from ciphercost import engines
from ciphercost.host import supervisor
from ciphercost import mechanisms
run_id = sys.argv[1]
engine, mechanism = engines.get("postgresql"), mechanisms.get("tls")
with supervisor.Supervisor(run_id) as run_supervisor:
    print("supervisor", flush=True)
    scratch = supervisor.scratch(run_id, run_supervisor)
    print("scratch", flush=True)
    installation = next(iter(engine.available()))
    factors = mechanism.check({"certificate": "ecdsa-p256"})
    settings = mechanism.server_settings(engine, factors, scratch / "secrets")
    print("initialise", flush=True)
    engine.initialise(installation, scratch / "data", run_supervisor)
    while True:
        print("start", flush=True)
        server = engine.start(engines.StartRequest(installation, scratch / "data", run_supervisor, settings=settings))
        print("started", flush=True)
        server.stop()
"""


@pytest.mark.parametrize("delay_ms", [0, 3, 30])
@pytest.mark.parametrize("moment", ["supervisor", "scratch", "initialise", "start", "started"])
@pytest.mark.usefixtures("require_postgresql")
def test_a_controller_killed_at_any_moment_leaves_nothing(moment: str, delay_ms: int) -> None:
    run_id = run_directory.new_id()
    argv = [sys.executable, "-c", CONTROLLER, run_id]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as controller:
        assert controller.stdout is not None
        assert any(line.strip() == moment for line in controller.stdout)
        time.sleep(delay_ms / 1000)
        controller.send_signal(signal.SIGKILL)
    assert controller.returncode == -signal.SIGKILL
    wait_for("every process of the run to end", lambda: not marked(run_id))
    assert not (run_ownership.scratch_base() / run_id).exists()
    assert not [path for parent in run_ownership.cgroup_parents() for path in parent.glob(f"*{run_id}*")]
    assert not [path for path in Path("/proc").glob("[0-9]*/cwd") if run_id in _link(path)]


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""


def test_the_supervisor_does_not_need_the_pipe_to_see_its_controller_die() -> None:
    """A forked child may hold the pipe open."""
    script = (
        "import os, time; from ciphercost.host import supervisor; run_supervisor = supervisor.Supervisor('forked-' + str(os.getpid()));"
        "process = run_supervisor.spawn(['sleep', '1000']); child = os.fork();"
        "print(process.pid, child, flush=True) if child else None; time.sleep(1000)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as controller:
        assert controller.stdout is not None
        pid, child = map(int, controller.stdout.readline().split())
        assert alive(pid)
        controller.send_signal(signal.SIGKILL)
        controller.wait()
        try:
            wait_for("the process to end though the pipe is open", lambda: not alive(pid))
            assert alive(child)
        finally:
            os.kill(child, signal.SIGKILL)
