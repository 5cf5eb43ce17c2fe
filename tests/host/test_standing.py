"""A process that a measurement needs: that it died is noticed and named, whichever of its processes it was, and that it is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ciphercost.host.process_state import died_of, is_stopped
from ciphercost.host.procfs import tree
from ciphercost.host.standing import Standing
from ciphercost.model.errors import RunError
from processes import wait_for

WORKER = "worker process 7 exited on signal 9"


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[bytes]]:
    """A process with a child."""
    with subprocess.Popen(["sh", "-c", "sleep 100 & wait; exit 3"], start_new_session=True) as process:
        wait_for("its child", lambda: len(tree(process.pid)) == 2)
        yield process
        os.killpg(process.pid, signal.SIGKILL)


def test_a_process_that_died_is_named_with_what_ended_it(parent: subprocess.Popen[bytes]) -> None:
    standing = Standing("the server x", parent.pid, status=parent.poll)
    assert standing.died() == ""
    os.kill(parent.pid, signal.SIGKILL)
    wait_for("its end", lambda: bool(standing.died()))  # also as a zombie, whose parent has not asked for its status
    parent.wait()
    assert standing.died().startswith(f"the server x (process {parent.pid}) died")
    assert standing.died().endswith(", killed by SIGKILL")


def test_a_lost_child_counts_where_children_last_as_long_as_their_parent(parent: subprocess.Popen[bytes]) -> None:
    passing, lasting = Standing("a", parent.pid), Standing("the server x", parent.pid, lasting=True)
    assert lasting.died() == ""
    child = tree(parent.pid)[1]
    os.kill(parent.pid, signal.SIGSTOP)  # so that it does not end with its child
    os.kill(child, signal.SIGKILL)
    wait_for("the child's end", lambda: bool(lasting.died()))
    assert f"a process of the server x (process {parent.pid}) died" in lasting.died()
    assert f"process {child}" in lasting.died()
    assert passing.died() == ""


@pytest.mark.parametrize(
    "line",
    [
        f"2026/11/27 18:46:17 [alert] 5#5: {WORKER}",
        "2026-11-27 18:47:21.340 UTC [5] LOG:  server process (PID 7) was terminated by signal 9: Killed",
        "2026-11-27 18:47:21.340 UTC [5] LOG:  checkpointer process (PID 7) was terminated by signal 11: Segmentation fault",
    ],
)
def test_the_death_of_a_process_is_read_from_the_servers_log(tmp_path: Path, line: str) -> None:
    log = tmp_path / "server.log"
    log.write_text(f"{line}\n")  # of an earlier start
    standing = Standing("the server x", os.getpid(), [log, tmp_path / "missing.log"])
    assert standing.died() == ""
    with log.open("a") as file:
        file.write("something else\n" + line[:40])
        file.flush()
        assert standing.died() == ""
        file.write(line[40:] + "\nmore\n")
    assert " ".join(line.split()) in standing.died()
    assert standing.died() == ""


def test_words_of_a_user_in_a_log_are_no_death(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("")
    standing = Standing("the server x", os.getpid(), [log])
    log.write_text(f'2026/11/27 [error] 5#5: *1 open() failed, request: "GET /?{WORKER} HTTP/1.1"\n')
    assert standing.died() == ""


def test_a_stopped_process_is_an_error_once_it_takes_too_long(
    parent: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    standing = Standing("the server x", parent.pid)
    assert standing.stopped() == ""
    child = tree(parent.pid)[1]
    os.kill(child, signal.SIGSTOP)
    wait_for("the child to be stopped", lambda: f"kill -CONT {child}" in standing.stopped())
    os.kill(child, signal.SIGCONT)
    os.kill(parent.pid, signal.SIGSTOP)
    wait_for("it to be stopped", lambda: is_stopped(parent.pid))
    with monkeypatch.context() as clock:
        now = 1000.0
        clock.setattr("ciphercost.host.process_state.time.monotonic", lambda: now)
        for _ in range(8):
            standing.check_answers()
            now += 4.0
        with pytest.raises(
            RunError, match=rf"the server x \(process {parent.pid}\) is stopped, .*: kill -CONT {parent.pid}"
        ):
            standing.check_answers()
    os.kill(parent.pid, signal.SIGCONT)
    wait_for("it to go on", lambda: not standing.stopped())
    standing.check_answers()


def test_a_process_that_is_stopped_again_and_again_is_not_one_that_does_not_answer(
    parent: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    standing, now = Standing("the server x", parent.pid), 1000.0
    os.kill(parent.pid, signal.SIGSTOP)
    wait_for("it to be stopped", lambda: is_stopped(parent.pid))
    monkeypatch.setattr("ciphercost.host.process_state.time.monotonic", lambda: now)
    for _ in range(4):  # no check while it goes on and is stopped again
        now += 40.0
        standing.check_answers()
    for _ in range(30):
        now += 1.0
        standing.check_answers()
    now += 1.0
    with pytest.raises(RunError, match="is stopped, so it does not answer"):
        standing.check_answers()


@pytest.mark.parametrize(
    ("status", "words"), [(0, "exit status 0"), (-9, "killed by SIGKILL"), (-99, "killed by signal 99")]
)
def test_how_a_process_ended_in_words(status: int, words: str) -> None:
    assert died_of(status) == words
