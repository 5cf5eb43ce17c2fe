# Importing pathlib would double the time that it takes to start.
# ruff: noqa: PTH100, PTH102, PTH106, PTH108, PTH112, PTH114, PTH118, PTH120, PTH123, PTH208
"""supervisor_process: the process that owns whatever a run starts or makes outside its own process, and undoes it.
Standard library only.

Started by `supervisor.Supervisor` as `python -I -S supervisor_process.py RUN CONTROLLER`, in its own session. It reads
one JSON object per line on standard input and answers each with one line. When its input ends or its controller dies,
for whatever reason, it undoes its list, last entry first, and ends. It is small because it must start fast and because
nothing watches the supervisor itself: if it is killed, the kernel kills its children (PR_SET_PDEATHSIG) and `ciphercost
clean` removes the rest.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

PR_SET_CHILD_SUBREAPER = 36
ORDERLY_SECONDS = 5.0
"""Seconds that a process may take to shut down cleanly when the controller is gone."""
QUIT_SECONDS = 2.0
OUTPUT_BYTES = 256 * 1024
"""Bytes of a command's output that are kept if it has no log file: its end."""

Request = dict[str, Any]
Answer = dict[str, Any]

if TYPE_CHECKING:
    from ciphercost.host import confinement
else:  # a file beside this one: `python -I` does not look for it, and the package would take long to import
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import confinement

    sys.path.pop()

_libc = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def processes() -> dict[int, tuple[int, str]]:
    """pid -> (parent's pid, start time) of every process that isn't a zombie."""
    living = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()  # a command's name may contain spaces and parentheses
                if fields[0] not in "ZX":
                    living[int(entry)] = (int(fields[1]), fields[19])
    return living


def subtree(root: int, table: dict[int, tuple[int, str]]) -> set[int]:
    """Every descendant of `root`, without `root` itself."""
    members = {root}
    grown = True
    while grown:
        more = {pid for pid, (parent, _) in table.items() if parent in members} - members
        members |= more
        grown = bool(more)
    return members - {root}


def kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


class UndoList:
    """The list of things to undo, and the commands that extend or shorten it."""

    def __init__(self, controller: int) -> None:
        self.undo_list: list[tuple[str, Any]] = []
        self.stop_signals: dict[int, int] = {}
        self.outputs: dict[int, int] = {}
        self.cgroups: dict[int, list[str]] = {}
        self.kept: set[str] = set()
        self.ended: dict[int, int] = {}
        self.problems: list[str] = []
        self.controller = select.poll()
        # The pipe alone isn't enough: a forked child of the controller may hold its other end open.
        self.controller_fd = os.pidfd_open(controller)
        self.controller.register(self.controller_fd, select.POLLIN)

    # ── commands ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def answer(self, request: Request) -> Answer:
        command = getattr(self, "do_" + str(request.get("do")), None)
        if command is None:
            return {"error": f"unknown command '{request.get('do')}'"}
        try:
            result: Answer = command(request)
        except OSError as error:
            name = f": {error.filename}" if error.filename else ""
            return {"error": f"{error.strerror or error}{name}"}
        return result

    def do_spawn(self, request: Request) -> Answer:
        for group in request["cgroups"]:
            self.make_cgroup(group)
        if request["log"]:
            log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        else:
            log = os.memfd_create("output")
        reader, writer = os.pipe()
        supervisor = os.getpid()
        pid = os.fork()
        if pid == 0:
            self.become(request, supervisor, log, writer)
        self.ended.pop(pid, None)  # an earlier process with this number
        self.stop_signals[pid] = request["stop_signal"]
        self.cgroups[pid] = request["cgroups"]
        self.undo_list.append(("process", pid))
        os.close(writer)
        with open(reader, encoding="utf-8", errors="replace") as file:
            failure = file.read()  # ends when the child has replaced itself: the other end is close-on-exec
        if request["log"]:
            os.close(log)
        else:
            self.outputs[pid] = log
        if failure:
            self.wait(pid, QUIT_SECONDS)
            self.forget(pid)
            return {"error": failure}
        return {"pid": pid}

    def become(self, request: Request, supervisor: int, log: int, writer: int) -> None:
        """In the child: enter control groups, drop rights, and become the command. Never returns."""
        try:
            os.setpgid(0, 0)
            os.dup2(os.open(request["stdin"] or "/dev/null", os.O_RDONLY), 0)
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.umask(request["umask"])
            for group in request["cgroups"]:
                with open(os.path.join(group, "cgroup.procs"), "w", encoding="ascii") as file:
                    file.write(str(os.getpid()))
            if request["cpus"]:
                os.sched_setaffinity(0, request["cpus"])
            confined = request["writable"] is not None
            rules = confinement.rules(request["writable"], connects=request["connects"]) if confined else None
            if request["user"]:
                uid, gid = request["user"]
                os.setgroups([])
                os.setresgid(gid, gid, gid)
                os.setresuid(uid, uid, uid)
            confinement.end_with(supervisor)  # after the change of user
            os.chdir(request["cwd"] or "/")
            if rules is not None:
                confinement.enforce(rules)
            for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            os.execvpe(request["argv"][0], request["argv"], request["env"])  # noqa: S606
        except BaseException as error:
            os.write(writer, str(error).encode())
        os._exit(127)

    def do_poll(self, request: Request) -> Answer:
        self.reap()
        status = self.ended.get(request["pid"])
        return {"status": status}

    def do_output(self, request: Request) -> Answer:
        log = self.outputs.get(request["pid"])
        if log is None:
            return {"text": ""}
        size = os.fstat(log).st_size
        data = os.pread(log, OUTPUT_BYTES, max(0, size - OUTPUT_BYTES))
        return {"text": data.decode("utf-8", "replace")}

    def do_stop(self, request: Request) -> Answer:
        pid = request["pid"]
        if pid not in self.stop_signals:
            return {"status": self.ended.get(pid)}
        status = self.end(pid, request["timeout"])
        groups = self.cgroups[pid]
        self.forget(pid)
        for group in groups:
            if group not in self.kept and not any(group in others for others in self.cgroups.values()):
                self.undo_list.remove(("cgroup", group))
                self.undo_cgroup(group)
        return {"status": status}

    def do_group(self, request: Request) -> Answer:
        """Make a control group, with its limits, that outlives the processes in it."""
        path = request["path"]
        self.make_cgroup(path)
        self.kept.add(path)
        for name, value in request["limits"].items():
            with open(os.path.join(path, name), "w", encoding="ascii") as file:
                file.write(value)
        return {}

    def do_ungroup(self, request: Request) -> Answer:
        """Remove the group, or let it end with the last process in it."""
        path = request["path"]
        self.kept.discard(path)
        used = any(path in groups for groups in self.cgroups.values())
        if not used and ("cgroup", path) in self.undo_list:
            self.undo_list.remove(("cgroup", path))
            self.undo_cgroup(path)
        return {}

    def do_remove(self, request: Request) -> Answer:
        self.undo_list.append(("remove", request["path"]))
        return {}

    def do_undo(self, request: Request) -> Answer:
        self.undo_list.append(("undo", request["argv"]))
        return {}

    def do_forget(self, request: Request) -> Answer:
        """Remove the newest matching entry from the list: its maker has undone it already."""
        for index in reversed(range(len(self.undo_list))):
            if self.undo_list[index] == (request["kind"], request["what"]):
                del self.undo_list[index]
                break
        return {}

    def do_close(self, request: Request) -> Answer:  # noqa: ARG002 - every command takes its request
        self.undo_all()
        return {"problems": self.problems}

    # ── processes ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid in self.stop_signals:  # others are orphans that came to us as subreaper
                    self.ended[pid] = os.waitstatus_to_exitcode(status)

    def controller_is_gone(self) -> bool:
        return bool(self.controller.poll(0))

    def wait(self, pid: int, seconds: float) -> bool:
        """Wait at most `seconds`, or until the controller is gone. True when the process has ended."""
        self.reap()
        if pid in self.ended:
            return True
        deadline = time.monotonic() + seconds
        changes = select.poll()
        changes.register(self.controller_fd, select.POLLIN)
        descriptor = os.pidfd_open(pid)
        try:
            changes.register(descriptor, select.POLLIN)
            while (left := deadline - time.monotonic()) > 0:
                changed = {number for number, _ in changes.poll(1000 * left + 1)}
                self.reap()
                if pid in self.ended:
                    return True
                if self.controller_fd in changed:
                    changes.unregister(self.controller_fd)
                    deadline = min(deadline, time.monotonic() + ORDERLY_SECONDS)
                if descriptor in changed:  # it has ended, and a debugger still holds it
                    time.sleep(0.005)
            return False
        finally:
            os.close(descriptor)

    def end(self, pid: int, seconds: float) -> int | None:
        """Stop a process in three steps: ask, insist, kill; then kill whatever is left of its subtree."""
        before = processes()
        family = {member: before[member][1] for member in subtree(pid, before)}
        if pid not in self.ended:
            for member in (pid, *family):
                kill(member, signal.SIGCONT)  # the server of the waiting arm may be stopped
            kill(pid, self.stop_signals[pid])
            if not self.wait(pid, seconds):
                kill(pid, signal.SIGQUIT)
                if not self.wait(pid, QUIT_SECONDS):
                    for member in subtree(pid, processes()):
                        kill(member, signal.SIGKILL)
                    kill(pid, signal.SIGKILL)
                    self.wait(pid, ORDERLY_SECONDS)
        after = processes()
        for member, start in family.items():
            if after.get(member, (0, ""))[1] == start:  # the same process, not a new one with that number
                kill(member, signal.SIGKILL)
        self.reap()
        return self.ended.get(pid)

    def forget(self, pid: int) -> None:
        self.stop_signals.pop(pid, None)
        self.cgroups.pop(pid, None)
        log = self.outputs.pop(pid, None)
        if log is not None:
            os.close(log)
        if ("process", pid) in self.undo_list:
            self.undo_list.remove(("process", pid))

    # ── undoing ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def make_cgroup(self, path: str) -> None:
        if ("cgroup", path) not in self.undo_list:
            self.undo_list.append(("cgroup", path))
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o755)

    def undo_all(self) -> None:
        while self.undo_list:
            kind, what = self.undo_list.pop()
            try:
                getattr(self, "undo_" + kind)(what)
            except Exception as error:  # one failure must not prevent the rest from being undone
                self.problems.append(f"{kind} {what}: {error}")
        self.undo_orphans()

    def undo_process(self, pid: int) -> None:
        self.end(pid, ORDERLY_SECONDS)
        self.forget(pid)
        if not self.stop_signals:
            self.undo_orphans()  # now, or they would write into what is removed next

    def undo_orphans(self) -> None:
        """Kill all orphans: processes that lost their parent became our children."""
        deadline = time.monotonic() + ORDERLY_SECONDS
        while (left := subtree(os.getpid(), processes())) and time.monotonic() < deadline:
            for pid in left:
                kill(pid, signal.SIGKILL)
            self.reap()
            time.sleep(0.005)
        self.reap()

    def undo_cgroup(self, path: str) -> None:
        deadline = time.monotonic() + ORDERLY_SECONDS
        while os.path.isdir(path):
            with open(os.path.join(path, "cgroup.procs"), encoding="ascii") as file:
                for pid in file.read().split():
                    kill(int(pid), signal.SIGKILL)
            self.reap()
            try:
                os.rmdir(path)
            except OSError:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(0.005)

    def undo_remove(self, path: str) -> None:
        import shutil  # late: it would double the supervisor's start time

        if os.path.islink(path) or not os.path.isdir(path):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        else:
            deadline = time.monotonic() + ORDERLY_SECONDS
            while os.path.isdir(path):
                # A process killed just now may still finish a write.
                shutil.rmtree(path, ignore_errors=time.monotonic() < deadline)

    def undo_undo(self, argv: list[str]) -> None:
        import subprocess

        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
        if done.returncode != 0:
            raise OSError(f"status {done.returncode}: {done.stderr.decode(errors='replace').strip()}")


def main() -> None:
    controller = int(sys.argv[2])
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # it ends only through its input
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a server's core dump would hold keys and passwords
    if os.getppid() != controller:
        return
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        supervisor = UndoList(controller)
    except ProcessLookupError:
        return
    waiting = select.poll()
    waiting.register(0, select.POLLIN)
    waiting.register(supervisor.controller_fd, select.POLLIN)
    pending = b""
    with contextlib.suppress(BrokenPipeError):
        while not supervisor.controller_is_gone():
            waiting.poll()
            if supervisor.controller_is_gone():
                break
            data = os.read(0, 65536)
            if not data:
                break
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                request = json.loads(line)
                answer = supervisor.answer(request)
                os.write(1, json.dumps({**answer, "number": request["number"]}).encode() + b"\n")
    supervisor.undo_all()


if __name__ == "__main__":
    main()
