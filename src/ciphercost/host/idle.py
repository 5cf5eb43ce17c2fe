"""idle: whether cores without work poll or halt while load is made. I/O on the kernel's per-CPU power settings; put back on every exit.

On a virtual machine a halted core is woken by an interrupt that the hypervisor has to deliver, and the thread that sends it pays: the
server's, inside `send()`, for a client that halts between two answers. The kernel's per-CPU resume latency limit prevents that
(Documentation/ABI/testing/sysfs-devices-power, `pm_qos_resume_latency_us`): `n/a` accepts no latency at all, so that the idle task polls.
Polling is the idle task's time: no thread of the client or the server is charged for it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ciphercost.host import idle_setting
from ciphercost.host.idle_setting import JOURNAL, NEVER, Idle, _text, _write, physical, setting
from ciphercost.host.supervisor import Supervisor
from ciphercost.model import owned
from ciphercost.model.errors import RunError

HALTS_PER_SECOND = 100.0
"""A core that is kept from halting and halts more often than this was not kept."""


def obstacle(server: Iterable[int], client: Iterable[int]) -> str:
    """Why these CPUs can't be kept from halting, with what to do; empty where they can."""
    server, client = set(server), set(client)
    cores = physical(server | client)
    if {cores[cpu] for cpu in server} & {cores[cpu] for cpu in client} and server != client:
        return (
            "server and client share a physical core (SMT siblings), and a polling client would slow the server; "
            "give the run more cores"
        )
    for cpu in sorted(server | client):
        if not setting(cpu).exists() or _text(idle_setting.CPUS / f"cpu{cpu}/cpuidle/state0/name") != "POLL":
            return "this kernel offers no idle state that polls (a cpuidle driver is needed)"
        if not os.access(setting(cpu), os.W_OK) or os.statvfs(setting(cpu)).f_flag & os.ST_RDONLY:
            return f"only root may keep them awake, or a user who may write to {setting(cpu)}"
    return ""


def kept_by_others(cpus: Iterable[int]) -> bool:
    """Whether one of these CPUs polls already: another run is under way, or the machine's owner wants it so."""
    return any(_text(setting(cpu)) == NEVER for cpu in cpus)


def halts(cpus: Iterable[int]) -> int:
    """How often these CPUs have entered an idle state other than polling, since boot."""
    return sum(
        int(_text(state / "usage") or 0)
        for cpu in cpus
        for state in (idle_setting.CPUS / f"cpu{cpu}/cpuidle").glob("state*")
        if _text(state / "name") != "POLL"
    )


class Awake:
    """Keeps CPUs from halting. A context manager: leaving it puts every setting back.

    The supervisor puts them back where this process is killed; `ciphercost clean` does where both are.
    """

    def __init__(self, supervisor: Supervisor, scratch: Path) -> None:
        self._supervisor, self._journal = supervisor, scratch / JOURNAL
        self._before: dict[int, tuple[str, Callable[[], None]]] = {}
        self._kept: frozenset[int] = frozenset()
        self._since, self._halts_before = 0.0, 0
        self.seconds = 0.0
        """How long CPUs have been kept so far."""
        self.halts = 0
        """How often they halted all the same."""

    def __enter__(self) -> Awake:
        return self

    def __exit__(self, *_: object) -> None:
        self._account()
        for cpu in [*self._before]:
            with contextlib.suppress(RunError):  # the supervisor tries again at the run's end, and says so
                self._put_back(cpu)

    def keep(self, cpus: Iterable[int]) -> None:
        """Let these CPUs poll while they are idle, and all others do as before. Cheap where nothing changes. Raises RunError."""
        wanted = frozenset(cpus)
        if wanted != self._kept:
            self._account()
        for cpu in self._before.keys() - wanted:
            self._put_back(cpu)
        for cpu in sorted(wanted):
            # Another run may have put it back at its own end.
            if _text(setting(cpu)) != NEVER:
                self._change(cpu)
        if wanted != self._kept:
            self._kept, self._since, self._halts_before = wanted, time.monotonic(), halts(wanted)

    def failed(self) -> str:
        """What is wrong where the CPUs halted although they were kept; empty where all is well."""
        often = self.halts / self.seconds if self.seconds else 0.0
        if often <= HALTS_PER_SECOND:
            return ""
        return f"cores that were to be kept from halting halted {often:,.0f} times a second all the same"

    def _account(self) -> None:
        if self._kept:
            self.seconds += time.monotonic() - self._since
            self.halts += halts(self._kept) - self._halts_before

    def _change(self, cpu: int) -> None:
        path = setting(cpu)
        if cpu not in self._before:
            was = _text(path)
            owned.add_line(self._journal, f"{cpu} {was}")
            forget = self._supervisor.undo(["/bin/sh", "-c", 'printf %s "$1" >"$2"', "sh", was, path])
            self._before[cpu] = (was, forget)
        _write(path, NEVER)

    def _put_back(self, cpu: int) -> None:
        was, forget = self._before[cpu]
        _write(setting(cpu), was)
        del self._before[cpu]
        with contextlib.suppress(RunError):  # a supervisor that is gone has nothing left to undo
            forget()


@contextlib.contextmanager
def all_awake(supervisor: Supervisor, scratch: Path, wish: str = "") -> Iterator[Idle]:
    """Keep every CPU of this process awake, where that is possible and not unwished for. Yields what holds."""
    cpus = os.sched_getaffinity(0)
    shared = len(set(physical(cpus).values())) < len(cpus)
    with Awake(supervisor, scratch) as awake:
        if wish == "halt" or shared or obstacle(cpus, cpus):
            yield "halt"
        else:
            awake.keep(cpus)
            yield "poll"
