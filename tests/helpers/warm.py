"""The `ciphercost` command in a process of its own, forked from one that has imported everything already.

Starting Python and importing what a command needs takes longer than most refusals. What runs is `ciphercost.commands.main`, with its own
arguments, environment, directory, output and exit status, exactly as the console script calls it.

`python warm.py FD` is the process that forks. It has one thread, so a fork of it is safe; the tests' own process has many.
"""

from __future__ import annotations

import array
import atexit
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import forked
import initialised
import kept_primes
import quick_java
import steady
import warm_wheel

BINARY = Path(sys.executable).parent / "ciphercost"
READ_AT_START = ("PYTHON", "LANG", "LC_", "LD_", "OPENBLAS", "OMP_")
"""Prefixes of variables that an interpreter reads at its start. A command with other values for them gets a new interpreter; one without
them runs in a fork, since none of them changes what a command does.
"""

SHORT = ".short.toml"
"""The spec of a run of `short.run`."""
WARM_UP_SLICE, BLOCKS = 0.004, 3
"""Seconds of a slice of its warm-up, and how many blocks it has at least."""


class Warm:
    """The process that forks; one for each test process."""

    def __init__(self) -> None:
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            self.process = subprocess.Popen(
                [sys.executable, __file__, str(its.fileno())], pass_fds=[its.fileno()], stdin=subprocess.DEVNULL
            )
        self.socket = ours
        self.lock = threading.Lock()
        self.at_start = dict(os.environ)
        atexit.register(self.close)

    def could_be(self, environment: Mapping[str, str]) -> bool:
        """Whether a fork is what a new interpreter with this environment would be."""
        read = {name for name in environment if name.startswith(READ_AT_START)}
        return all(self.at_start.get(name) == environment[name] for name in read)

    def close(self) -> None:
        """Close its socket, which ends it."""
        self.socket.close()
        self.process.wait()

    def run(
        self, argv: Sequence[str], cwd: Path, environment: Mapping[str, str], timeout: float
    ) -> tuple[int, str, str]:
        """Exit status (negative: a signal), stdout, stderr. Raises subprocess.TimeoutExpired."""
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        said: dict[int, bytes] = {}

        def read(end: int) -> None:
            with os.fdopen(end, "rb") as file:
                said[end] = file.read()

        readers = [threading.Thread(target=read, args=(each,)) for each in (out, err)]
        with self.lock:
            with Path(os.devnull).open() as nothing:
                asked = {"argv": list(argv), "cwd": str(cwd), "environment": dict(environment)}
                ends = array.array("i", [nothing.fileno(), out_end, err_end])
                text = json.dumps(asked).encode()
                self.socket.sendmsg([len(text).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, ends)])
                for start in range(0, len(text), 60_000):
                    self.socket.send(text[start : start + 60_000])
            os.close(out_end)
            os.close(err_end)
            for each in readers:
                each.start()
            pid = int(self.socket.recv(100))
            self.socket.settimeout(timeout)
            late = False
            try:
                status = int(self.socket.recv(100))
            except TimeoutError:
                late = True
                os.kill(pid, signal.SIGKILL)
                self.socket.settimeout(None)
                status = int(self.socket.recv(100))
            finally:
                self.socket.settimeout(None)
        for each in readers:
            each.join(timeout)
        texts = [said.get(each, b"").decode() for each in (out, err)]
        if late:
            raise subprocess.TimeoutExpired([str(BINARY), *argv], timeout, *texts)
        return status, texts[0], texts[1]


_warm: list[Warm] = []


def run(
    argv: Sequence[str | Path],
    *,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 600,
) -> subprocess.CompletedProcess[str]:
    """Run `ciphercost ARGV…` and capture its output, like `subprocess.run`. stdin is empty.

    A run that finds no steady state is tried again.
    """
    words, environment = [str(each) for each in argv], dict(os.environ if env is None else env)
    directory = Path(cwd or Path.cwd())
    output = directory / words[words.index("-o") + 1] if "-o" in words else None
    return steady.command(partial(_once, words, directory, environment, timeout), directory, output)


def _once(
    words: list[str], directory: Path, environment: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    if not _warm:
        _warm.append(Warm())
    if not _warm[0].could_be(environment):
        return subprocess.run(
            [BINARY, *words], cwd=directory, capture_output=True, text=True, check=False, env=environment, timeout=timeout,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    status, out, err = _warm[0].run(words, directory, environment, timeout)
    return subprocess.CompletedProcess([str(BINARY), *words], status, out, err)


def cpu_seconds() -> float:
    """Seconds of CPU of the processes that fork and of the commands that they waited for; 0 if there is none. Nobody waits for them until
    all tests end.
    """
    return sum(map(_cpu_of, [*(each.process for each in _warm), *warm_wheel.processes]))


def _cpu_of(process: subprocess.Popen[bytes]) -> float:
    if process.poll() is not None:
        return 0.0
    numbers = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, numbers[11:15])) / os.sysconf("SC_CLK_TCK")


def _serve(number: int) -> None:
    """Fork for each request. Returns only in the child, which then runs the command."""
    asking = socket.socket(fileno=number)
    while True:
        size, ancillary, _, _ = asking.recvmsg(4, socket.CMSG_LEN(3 * array.array("i").itemsize))
        if not size:
            os._exit(0)
        ends = array.array("i")
        ends.frombytes(ancillary[0][2])
        text = b""
        while len(text) < int.from_bytes(size, "big"):
            text += asking.recv(60_000)
        pid = os.fork()
        if pid == 0:
            asking.close()
            for place, end in enumerate(ends):
                os.dup2(end, place)
                os.close(end)
            asked = json.loads(text)
            os.chdir(asked["cwd"])
            os.environ.clear()
            os.environ.update(asked["environment"])
            sys.argv = [str(BINARY), *asked["argv"]]
            return
        for end in ends:
            os.close(end)
        asking.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        asking.send(str(os.waitstatus_to_exitcode(status)).encode())


def _be_short() -> None:
    """Half of a short run would be its warm-up, whose 80 slices last 10 ms each at least. A level that is not steady still makes it longer.
    Three blocks are the fewest from which an interval follows.
    """
    from ciphercost.measure import session
    from ciphercost.plan import schedule

    session.LEAST_WARM_UP = WARM_UP_SLICE
    schedule.LEAST_BLOCKS_QUICK = BLOCKS


if __name__ == "__main__":
    forked.import_everything()
    initialised.use()
    kept_primes.use()
    gc.freeze()
    _serve(int(sys.argv[1]))
    if sys.argv[1:2] == ["prove"]:
        quick_java.use()
    if SHORT in sys.argv:
        _be_short()
    from ciphercost.commands import main

    forked.leave(main)
