"""scheduling: a thread that is woken so many times got a CPU at least so often, and touched pages are faults."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ciphercost.host import scheduling
from ciphercost.host.scheduling import Scheduling
from processes import wait_for

ECHO = """
import mmap, sys, threading
kept = []
for line in sys.stdin:
    if line == "touch\\n":
        pages = mmap.mmap(-1, 400 * 4096)
        pages.madvise(mmap.MADV_NOHUGEPAGE)
        for at in range(0, len(pages), 4096): pages[at] = 1
        kept.append(pages)
    if line == "thread\\n":
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    print(line, end="", flush=True)
"""


@contextmanager
def echo() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", ECHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        say(process, "here")
        yield process
        assert process.stdin is not None
        process.stdin.close()


def wait_until_asleep(process: subprocess.Popen[str]) -> None:
    """A process that still runs finds its next line without having slept: then nobody has to wake it up."""
    stat = Path(f"/proc/{process.pid}/stat")
    wait_for("the process to sleep", lambda: stat.read_text().rpartition(") ")[2].startswith("S"))


def say(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{word}\n")
    process.stdin.flush()
    assert process.stdout.readline() == f"{word}\n"


def level(counters: Scheduling) -> tuple[int, int]:
    reading = counters.level()
    assert reading is not None
    return reading


def test_every_wake_up_is_counted() -> None:
    with echo() as process, closing(Scheduling()) as counters:
        counters.refresh([process.pid])
        before = level(counters)
        for _ in range(100):
            wait_until_asleep(process)
            say(process, "hello")
        woken = level(counters)[0] - before[0]
    assert woken >= 100


def test_touched_pages_are_faults() -> None:
    with echo() as process, closing(Scheduling()) as counters:
        counters.refresh([process.pid])
        before = level(counters)
        say(process, "touch")
        assert level(counters)[1] - before[1] >= 400


def test_a_thread_that_came_since_makes_the_counters_unknown_until_the_next_refresh() -> None:
    with echo() as process, closing(Scheduling()) as counters:
        counters.refresh([process.pid])
        level(counters)
        say(process, "thread")
        assert counters.level() is None
        counters.refresh([process.pid])
        level(counters)


def test_a_process_that_ended_and_too_many_threads_make_them_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(Scheduling()) as counters:
        assert counters.level() is None
        with echo() as process:
            counters.refresh([process.pid])
            level(counters)
        assert counters.level() is None
        with echo() as process:
            monkeypatch.setattr(scheduling, "MOST_THREADS", 0)
            counters.refresh([process.pid])
            assert counters.level() is None
