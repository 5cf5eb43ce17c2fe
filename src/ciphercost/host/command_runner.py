# Importing pathlib would double the time that it takes to start.
# ruff: noqa: PTH123, PTH208
"""command_runner: runs commands, one at a time, and ends with each whatever it has started. Standard library only.

Started as `python -I -S command_runner.py`, in its own session. It reads one JSON object a line on standard input (`Request`) and answers
each with one line (`Ended`). When its input ends, it kills what still runs and ends too.

A command gets a session of its own, an empty standard input and no terminal. This process adopts what the command leaves behind
(PR_SET_CHILD_SUBREAPER), so it can wait for every process, count its CPU time and end it. If this process is killed, the kernel kills
the command (PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import time
from typing import NoReturn, NotRequired, TypedDict

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
PIECE = 1 << 16
LAST_WORDS = 8192
"""Bytes that are kept of standard error: its end."""
GRACE = 0.3
"""Seconds that processes of an ended command may take to end too."""
POLITE = 1.0
"""Seconds from SIGTERM to SIGKILL."""
PATIENCE = 5.0
"""Seconds after which a process that no signal ends is given up."""

_libc = ctypes.CDLL(None, use_errno=True)


class Request(TypedDict):
    """A command to run."""

    argv: list[str]
    timeout: float
    """Seconds after which it is killed."""
    most: int
    """Bytes that it may print on standard output; with one more it is killed."""
    cpus: list[int]
    """CPUs that it may use; empty: all."""
    user: NotRequired[list[int]]
    """User and group that it runs as. [default: ours]"""


class Ended(TypedDict):
    """How a command ended."""

    status: int
    """Exit status, negative for a signal."""
    seconds: float
    """From its start to the end of its first process."""
    user_ns: int
    """CPU time of all its processes in user mode, and in the kernel."""
    system_ns: int
    out: str
    err: str
    """The end of standard error."""
    late: bool
    """Whether it was killed because it ran too long."""
    too_much: bool
    """Whether it was killed because it printed too much."""
    left: list[str]
    """Names of processes that it left behind, and that were killed."""
    error: str
    """Why it could not be started; empty: it was."""


def prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def descendants(root: int) -> dict[int, str]:
    """Every living process below `root`, and its name."""
    parents: dict[int, tuple[int, str]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                head, _, tail = file.read().rpartition(")")
                fields = tail.split()
                if fields[0] not in "ZX":
                    parents[int(entry)] = int(fields[1]), head.partition("(")[2]
    found: dict[int, str] = {}
    members = {root}
    while more := {pid for pid, (parent, _) in parents.items() if parent in members} - members:
        members |= more
        found |= {pid: parents[pid][1] for pid in more}
    return found


def kill_all(number: int = signal.SIGKILL) -> None:
    for pid in descendants(os.getpid()):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


class Running:
    """One command that runs."""

    def __init__(self, request: Request) -> None:
        """Raises OSError if it can't be started."""
        self.request = request
        self.out, self.err = bytearray(), bytearray()
        self.printed = 0
        self.user_ns = self.system_ns = 0
        self.status: int | None = None
        self.ended = 0.0
        outs, errs, fails = os.pipe(), os.pipe(), os.pipe()
        self.began = time.monotonic()
        runner = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            become(request, runner, outs[1], errs[1], fails[1])
        for writing in (outs[1], errs[1], fails[1]):
            os.close(writing)
        self.out_fd, self.err_fd = outs[0], errs[0]
        os.set_blocking(self.out_fd, False)
        os.set_blocking(self.err_fd, False)
        with os.fdopen(fails[0], "rb") as file:
            reason = file.read()
        if reason:
            os.waitpid(self.pid, 0)
            self.close()
            raise OSError(reason.decode(errors="replace"))

    def close(self) -> None:
        os.close(self.out_fd)
        os.close(self.err_fd)

    def read(self, fd: int) -> bool:
        """Take what it has printed. False at the end of that output."""
        try:
            piece = os.read(fd, PIECE)
        except BlockingIOError:
            return True
        if fd == self.err_fd:
            self.err = (self.err + piece)[-LAST_WORDS:]
        else:
            self.printed += len(piece)
            if self.printed <= self.request["most"]:
                self.out += piece
        return bool(piece)

    def reap(self) -> bool:
        """Wait for every process that has ended, and add its CPU time. Returns whether the first one has ended."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return self.status is not None
            if not pid:
                return self.status is not None
            self.user_ns += int(usage.ru_utime * 1e9)
            self.system_ns += int(usage.ru_stime * 1e9)
            if pid == self.pid:
                self.status, self.ended = os.waitstatus_to_exitcode(status), time.monotonic()


def become(request: Request, runner: int, out: int, err: int, fail: int) -> NoReturn:
    """Turn this forked process into the command, unless the process `runner` that forked it has ended."""
    try:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != runner:
            os._exit(127)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (out, 1), (err, 2)):
            os.dup2(source, target)
        if request["cpus"]:
            os.sched_setaffinity(0, request["cpus"])
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if as_user := request.get("user"):
            user, group = as_user
            os.setgroups([])
            os.setresgid(group, group, group)
            os.setresuid(user, user, user)
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # a change of user takes it back
            if os.getppid() != runner:
                os._exit(127)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(request["argv"][0], request["argv"])  # noqa: S606 - the user's own command
    except OSError as error:
        os.write(fail, (error.strerror or str(error)).encode())
    except BaseException as error:
        os.write(fail, repr(error).encode())
    os._exit(127)


def run(request: Request, wakeup: int) -> Ended:
    """Run a command to its end. `wakeup`: becomes readable when a process ends."""
    try:
        running = Running(request)
    except OSError as error:
        return ended(None, error=str(error))
    poll = select.poll()
    for fd in (0, wakeup, running.out_fd, running.err_fd):
        poll.register(fd, select.POLLIN)
    until = running.began + request["timeout"]
    stopped = ""
    while True:
        for fd, _ in poll.poll(max(0.0, (until - time.monotonic()) * 1000) + 1):
            if fd == 0:
                end_with_all()  # whoever asked is gone
            elif fd == wakeup:
                drain(wakeup)
            elif not running.read(fd):
                poll.unregister(fd)
        if running.reap():
            break
        now = time.monotonic()
        if not stopped and (running.printed > request["most"] or now >= until):
            stopped = "too much" if running.printed > request["most"] else "late"
            kill_all(signal.SIGTERM)
            until = now + POLITE
        elif stopped and now >= until:
            kill_all()
            until = now + POLITE
    left = leave_nothing(running)
    for fd in (running.out_fd, running.err_fd):
        while running.read(fd) and readable(fd):
            pass
    running.close()
    return ended(running, late=stopped == "late", too_much=running.printed > request["most"], left=left)


def readable(fd: int) -> bool:
    return bool(select.select([fd], [], [], 0)[0])


def leave_nothing(running: Running) -> list[str]:
    """Wait a moment for what an ended command has left running, then kill it. Returns the names of those that were killed."""
    until = time.monotonic() + GRACE
    while (living := descendants(os.getpid())) and time.monotonic() < until:
        running.reap()
        for fd in (running.out_fd, running.err_fd):  # a full pipe would keep it from ending
            running.read(fd)
        time.sleep(0.005)
    names = sorted(set(living.values()))
    until = time.monotonic() + PATIENCE
    while descendants(os.getpid()) and time.monotonic() < until:
        kill_all()
        running.reap()
        time.sleep(0.001)
    running.reap()
    return names


def ended(
    running: Running | None,
    *,
    late: bool = False,
    too_much: bool = False,
    left: list[str] | None = None,
    error: str = "",
) -> Ended:
    return {
        "status": running.status or 0 if running else 127,
        "seconds": running.ended - running.began if running else 0.0,
        "user_ns": running.user_ns if running else 0,
        "system_ns": running.system_ns if running else 0,
        "out": running.out.decode(errors="replace") if running and not too_much else "",
        "err": running.err.decode(errors="replace") if running else "",
        "late": late,
        "too_much": too_much,
        "left": left or [],
        "error": error,
    }


def drain(fd: int) -> None:
    with contextlib.suppress(BlockingIOError):
        while os.read(fd, PIECE):
            pass


def end_with_all() -> NoReturn:
    until = time.monotonic() + PATIENCE
    while descendants(os.getpid()) and time.monotonic() < until:
        kill_all()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.001)
    os._exit(0)


def main() -> None:
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    reading, writing = os.pipe()
    for fd in (reading, writing):
        os.set_blocking(fd, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    with open(0, "rb", buffering=0, closefd=False) as asked:
        held = b""
        while True:
            while b"\n" not in held:
                piece = asked.read(PIECE)
                if not piece:
                    end_with_all()
                held += piece
            line, _, held = held.partition(b"\n")
            answer = json.dumps(run(json.loads(line), reading)).encode() + b"\n"
            left = memoryview(answer)
            while left:
                left = left[os.write(1, left) :]


if __name__ == "__main__":
    main()
