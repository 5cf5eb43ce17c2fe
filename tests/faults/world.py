"""world: one trial's surroundings, and the processes of its run."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from ciphercost.host.procfs import tree
from ciphercost.model import run_directory
from faults.proxy import Proxy
from userservers import UserServer

CLI = Path(sys.executable).parent / "ciphercost"
TIME = "4s"
"""Load of a trial's run: long enough for an interval, short enough for hundreds of trials."""
ONE_CELL = {"nginx": ("--workload", "small-api")}
"""Options of engines whose default workload brings a second cell."""
SERVERS = ("postgres", "mysqld", "mariadbd", "firebird", "nginx", "valkey-server", "memcached", "gocryptfs")
"""Names of server programs, as /proc/PID/comm shows them."""


class World:
    """Where a run happens. `stack` undoes what a fault prepares."""

    def __init__(self, target: str, directory: Path, rng: random.Random, stack: ExitStack) -> None:
        self.target = target
        self.directory = directory
        self.rng = rng
        self.stack = stack
        self.run = directory / "run"
        self.environment = {**os.environ, "CIPHERCOST_PAGE": "off"}
        self.load = TIME
        """Load time of the run."""
        self.before: list[str] = []
        """Command in front of ciphercost, e.g. one that enters a control group."""
        self.more: list[str] = []
        """More arguments of `ciphercost run`."""
        self.cleaning: list[list[str]] = []
        """Arguments of further calls of `ciphercost clean`."""
        self.also_left: list[Callable[[], list[str]]] = []
        """What else may be left, as functions that look."""
        self.server: UserServer
        """The user's server, and the proxy in front of it, of faults that prepare one."""
        self.proxy: Proxy
        self.group: Path
        """The run's control group, of faults that prepare one."""

    @property
    def engine(self) -> str:
        return self.target.partition(":")[0]

    def scratch_in(self, place: Path) -> None:
        """Keep all data of the run's servers there."""
        place.mkdir(mode=0o711, exist_ok=True)
        place.chmod(0o711)
        self.environment["CIPHERCOST_SCRATCH"] = str(place)

    def argv(self) -> list[str]:
        options = ["run", self.target, "--quick", "--time", self.load, "--no-latency", "--no-progress", "--seed", "7"]
        return [*self.before, str(CLI), *options, *ONE_CELL.get(self.engine, ()), "-o", str(self.run), *self.more]

    def ciphercost(self, *argv: str, timeout: float = 120.0) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(CLI), *argv], env=self.environment, cwd=self.directory, capture_output=True, text=True, timeout=timeout
        )


class Going:
    """A run that is going on in a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.output = (world.directory / "said").open("w+")
        world.stack.callback(self.output.close)
        self.process = subprocess.Popen(
            world.argv(),
            env=world.environment,
            cwd=world.directory,
            stdout=self.output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # A background job of a shell ignores SIGINT and SIGHUP, and its children would inherit that.
            preexec_fn=_default_signals,
        )
        world.stack.callback(self.end)

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def text(self) -> str:
        self.output.flush()
        return (self.world.directory / "said").read_text(errors="replace")

    def run_id(self) -> str:
        """Empty before there is a plan."""
        with contextlib.suppress(Exception):
            return run_directory.read_facts(self.world.run).id
        return ""

    def stage(self) -> str:
        """How far the run is, by its record."""
        run = self.world.run
        if (run / "result.json").exists():
            return "ended"
        phase = "before the load"
        with contextlib.suppress(Exception):
            for slice_ in run_directory.read_slices(run):
                phase = slice_.phase
        return phase

    # ── processes ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def controllers(self) -> list[int]:
        """The command itself."""
        return [pid for pid in tree(self.process.pid) if b"ciphercost\0run\0" in _command(pid)]

    def agents(self) -> list[int]:
        return self._below(lambda pid: b"ciphercost-agent" in _command(pid).partition(b"\0")[0])

    def supervisors(self) -> list[int]:
        return self._below(lambda pid: b"supervisor_process.py" in _command(pid))

    def servers(self) -> list[int]:
        """Servers, each with its children."""
        return self._below(lambda pid: _name(pid) in SERVERS)

    def _below(self, wanted: Callable[[int], bool]) -> list[int]:
        return [pid for pid in tree(self.process.pid)[1:] if wanted(pid)]


def nothing(_: World) -> None:
    """Prepare or mend nothing."""


WHILE = 2.0
"""Seconds that a fault lasts which ends by itself, as their names say: nothing is waited for."""


class Fault(NamedTuple):
    """Something that breaks."""

    name: str
    strike: Callable[[Going], bool]
    """Break it. False if there was nothing to break at this moment."""
    prepare: Callable[[World], None] = nothing
    """What must exist before the run starts."""
    mend: Callable[[World], None] = nothing
    """What a user would repair before `resume`."""
    suits: Callable[[str], bool] = lambda _: True
    """Whether the fault can happen to this target."""
    times: int = 1
    """Strikes, a second apart."""
    alone: bool = False
    """Whether it strikes other runs of this machine too, so that no other trial may go on."""
    changes_figures: bool = False
    """Whether what it prepares changes the figures."""

    @property
    def compared_with(self) -> Callable[[World], None]:
        """What an undisturbed run prepares, to be compared with."""
        return self.prepare if self.changes_figures else nothing


def send(pids: list[int], number: signal.Signals) -> bool:
    """Whether any of them was there."""
    hit = False
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            hit = True
    return hit


def _default_signals() -> None:
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def _command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def _name(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def has_server(target: str) -> bool:
    """Whether the target's database runs in a process of its own."""
    return not target.startswith(("sqlite", "null"))


def each_kind(package: str) -> Iterator[Fault]:
    """The faults of every file of `kinds`."""
    import importlib
    import pkgutil

    for module in sorted(pkgutil.iter_modules([str(Path(__file__).parent / "kinds")]), key=lambda entry: entry.name):
        yield from importlib.import_module(f"{package}.kinds.{module.name}").FAULTS
