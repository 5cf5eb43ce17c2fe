"""perf: samples where processes spend their CPU time, with Linux perf and its software clock. I/O.

The software clock needs no counters of the CPU, so it works in virtual machines too. perf starts switched off; it is switched on
only around the counted parts of profiled slices. Call chains come from copies of the stack, unwound by the tables
that every build has for exceptions (.eh_frame): distributions compile without frame pointers.
"""

from __future__ import annotations

import os
import re
import select
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from ciphercost.host import perf_text
from ciphercost.host.programs import printed
from ciphercost.host.supervisor import Process, Supervisor
from ciphercost.host.tools import tool
from ciphercost.model.errors import MissingServer, RunError

MOST_HZ, LEAST_HZ, IN_ALL_HZ = 997, 97, 8000
"""Samples per second of CPU time: at most, at least, and at most of all CPUs together, since each sample takes 8 KB. Prime numbers: work
that repeats in whole milliseconds is not always hit at the same place."""
STACK_BYTES = 8192
"""Copy of the user's stack in each sample, which is unwound later."""
RING = "8M"
"""Buffer of each CPU for root. Other users get the kernel's default, since their locked memory is limited."""
START_SECONDS, ANSWER_SECONDS, STOP_SECONDS, READ_SECONDS, TRY_SECONDS = 20.0, 2.0, 20.0, 300.0, 20.0
CAPABLE = 1 << 21 | 1 << 38
"""CAP_SYS_ADMIN and CAP_PERFMON: either may profile everything."""
PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")


def hz(cpus: int) -> int:
    """Samples per second on a machine with so many CPUs. Pure."""
    return max(LEAST_HZ, min(MOST_HZ, IN_ALL_HZ // max(1, cpus)))


@cache
def find() -> Path:
    """perf, from PATH or the cache, else fetched. Raises MissingServer."""
    return tool("perf")


@cache
def sees_kernel() -> bool:
    """Whether this process may sample the kernel, by its rights and perf_event_paranoid. False if that is unknown."""
    try:
        return _capable() or int(PARANOID.read_text()) < 2
    except (OSError, ValueError):
        return False


@cache
def sees_everything() -> bool:
    """Whether this process may sample whole CPUs."""
    try:
        return sees_kernel() and (_capable() or int(PARANOID.read_text()) < 1)
    except (OSError, ValueError):
        return False


def _capable() -> bool:
    held = re.search(r"^CapEff:\s*([0-9a-f]+)", Path("/proc/self/status").read_text(), re.MULTILINE)
    return bool(held and int(held[1], 16) & CAPABLE)


def event() -> str:
    return "cpu-clock" if sees_kernel() else "cpu-clock:u"


@cache
def obstacle() -> str:
    """Why nothing can be sampled here, in one line; empty if it can. Fetches perf if necessary."""
    try:
        program = find()
    except MissingServer as error:
        return str(error)
    output = printed([program, "record", "-q", "-e", event(), "-o", "/dev/null", "--", "true"], TRY_SECONDS)
    return refusal(output, _paranoid())


def refusal(output: str, paranoid: str) -> str:
    """The reason in what `perf record` printed; empty if it printed none. Pure."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if not any(
        re.search(r"(?i)error|fail|not permitted|denied|no permission|not supported|not found", line) for line in lines
    ):
        return ""
    if re.search(r"(?i)permi|denied|paranoid", output):
        return (
            f"this process may not use perf (kernel.perf_event_paranoid is {paranoid or 'unknown'}, and a container may forbid it as well); "
            "run as root, set it to 1, or give the container CAP_PERFMON"
        )
    return f"perf can't sample here: {lines[0]}"


def _paranoid() -> str:
    try:
        return PARANOID.read_text().strip()
    except OSError:
        return ""


class Recording:
    """perf, switched off; it samples only between `on` and `off`.

    Where this process may, it samples the CPUs, and whoever reads the text picks the processes: attached to processes, perf would start
    and stop its clock at each change of context, which costs some workloads half as much CPU time again. Otherwise it is attached to
    the processes, and to all that they start.
    """

    def __init__(
        self, supervisor: Supervisor, place: Path, pids: Iterable[int], cpus: Iterable[int] | None = None
    ) -> None:
        """`place`: a new directory for its files; `cpus`: where perf itself runs. Raises RunError if it can't start."""
        self._supervisor = supervisor
        self._place = place
        self._everything = sees_everything()
        self.period_ns = 1e9 / hz(os.cpu_count() or 1)
        supervisor.remove(place)
        place.mkdir(mode=0o700)
        for name in ("control", "answer"):
            os.mkfifo(place / name, 0o600)
        # Opened for reading and writing, so that neither end waits for the other.
        self._control = os.open(place / "control", os.O_RDWR | os.O_CLOEXEC)
        self._answer = os.open(place / "answer", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        command: list[str | Path] = [
            find(), "record", "--quiet", "--event", event(), "--freq", str(hz(os.cpu_count() or 1)), "--call-graph", f"dwarf,{STACK_BYTES}",
            "--clockid", "CLOCK_MONOTONIC", "--no-buildid", "--no-buildid-cache", "--delay", "-1",
            *(("--mmap-pages", RING) if self._everything else ()),
            "--control", f"fifo:{place / 'control'},{place / 'answer'}",
            "--output", place / "data",
            *(("--all-cpus",) if self._everything else ("--pid", ",".join(map(str, pids)))),
        ]  # fmt: skip
        self._process: Process | None = supervisor.spawn(command, cpus=cpus, log=place / "messages")
        self._wait_until_ready()

    def on(self) -> None:
        self._say("enable")

    def off(self) -> None:
        self._say("disable")

    def text(self, pids: Iterable[int]) -> Path:
        """End the recording. Returns a file with what `perf script` prints of the samples of these processes, and of those that they
        started. Raises RunError.

        Naming the functions of all other processes would take minutes on a busy machine, so those that were started are found first.
        """
        self._end()
        only: tuple[str, ...] = ()
        if self._everything:
            started = self._script("forks", "--fields", "comm,pid,tid,time", "--show-task-events")
            with started.open(errors="replace") as lines:
                wanted = perf_text.with_descendants(pids, perf_text.read(lines))
            only = ("--pid", ",".join(map(str, sorted(wanted))))
        fields = "comm,pid,tid,time,ip,sym,dso"
        return self._script(
            "text", "--fields", fields, "--no-inline", "--show-lost-events", "--show-task-events", *only
        )

    def _script(self, name: str, *options: str) -> Path:
        """The output of `perf script`."""
        output = self._place / name
        command: list[str | Path] = [find(), "script", "--input", self._place / "data", "--ns", "--force", *options]
        process = self._supervisor.spawn(command, log=output)
        try:
            process.wait(READ_SECONDS)
        finally:
            process.stop(timeout=1.0)
        return output

    def close(self) -> None:
        """Stop perf, if it still runs, and remove its files."""
        self._end()
        for descriptor in (self._control, self._answer):
            os.close(descriptor)
        for path in self._place.iterdir():
            path.unlink()
        self._place.rmdir()

    def _wait_until_ready(self) -> None:
        """perf answers the first command once its events are open."""
        os.write(self._control, b"ping\n")
        due = time.monotonic() + START_SECONDS
        while not self._answered(0.05):
            assert self._process is not None
            if self._process.poll() is not None or time.monotonic() > due:
                output = (self._place / "messages").read_text(errors="replace")
                self._end()
                raise RunError(refusal(output, _paranoid()) or "perf did not start")

    def _say(self, command: str) -> None:
        while self._answered(0.0):
            pass  # an answer that came too late
        os.write(self._control, command.encode() + b"\n")
        self._answered(ANSWER_SECONDS)

    def _answered(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._answer], [], [], seconds)
        return bool(ready) and bool(os.read(self._answer, 4096))

    def _end(self) -> None:
        if self._process is not None:
            process, self._process = self._process, None
            process.stop(timeout=STOP_SECONDS)
