"""idle: controls whether cores without work poll or halt during load. I/O on the kernel's per-CPU power settings,
restored on every exit.

On a virtual machine an interrupt from the hypervisor wakes a halted core, and the thread that sends the interrupt pays
for it: the server's, inside `send()`, for a client that halts between two answers. The kernel's per-CPU resume latency
limit prevents that (Documentation/ABI/testing/sysfs-devices-power, `pm_qos_resume_latency_us`): `n/a` accepts no
latency at all, so the idle task polls. Polling counts as idle time: no thread of the client or the server is charged
for it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator

from ciphercost.host import idle_setting
from ciphercost.host.idle_setting import NEVER, Idle, _text, _write, physical, setting
from ciphercost.host.journal import Entry
from ciphercost.host.proc_file import ProcFile
from ciphercost.host.supervisor import Supervisor
from ciphercost.model.errors import RunError

HALTS_PER_SECOND = 100.0
"""A core that should poll but halts more often than this did not stay awake."""


def obstacle(server: Iterable[int], client: Iterable[int]) -> str:
    """Why these CPUs can't be kept from halting, and what to do; empty if they can."""
    server, client = set(server), set(client)
    cores = physical(server | client)
    if {cores[cpu] for cpu in server} & {cores[cpu] for cpu in client} and server != client:
        return (
            "server and client share a physical core (SMT siblings), and a polling client would slow the server; use "
            "more cores for the run"
        )
    for cpu in sorted(server | client):
        if not setting(cpu).exists() or _text(idle_setting.CPUS / f"cpu{cpu}/cpuidle/state0/name") != "POLL":
            return "this kernel has no idle state that polls (a cpuidle driver is needed)"
        if not os.access(setting(cpu), os.W_OK) or os.statvfs(setting(cpu)).f_flag & os.ST_RDONLY:
            return f"only root can keep them awake, or a user who may write to {setting(cpu)}"
    return ""


def kept_by_others(cpus: Iterable[int]) -> bool:
    """Whether one of these CPUs polls already: because of another run, or by choice of the machine's owner."""
    return any(_text(setting(cpu)) == NEVER for cpu in cpus)


def halts(cpus: Iterable[int]) -> int:
    """How often these CPUs have entered an idle state other than polling, since boot."""
    return sum(
        int(_text(state / "usage") or 0)
        for cpu in cpus
        for state in (idle_setting.CPUS / f"cpu{cpu}/cpuidle").glob("state*")
        if _text(state / "name") != "POLL"
    )


class CpuIdlePolling:
    """Keeps CPUs from halting. A context manager that restores every setting at the end.

    If this process is killed, the supervisor restores them; if both are killed, `ciphercost clean` does.
    """

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._before: dict[int, tuple[str, Callable[[], None]]] = {}
        self._open: dict[int, ProcFile] = {}
        """The settings of the CPUs kept awake so far: opening a file takes longer than all else between two slices."""
        self._kept: frozenset[int] = frozenset()
        self._since, self._halts_before = 0.0, 0
        self.seconds = 0.0
        """Seconds for which CPUs have been kept awake so far."""
        self.halts = 0
        """How often they halted nevertheless."""

    def __enter__(self) -> CpuIdlePolling:
        return self

    def __exit__(self, *_: object) -> None:
        self._account()
        for cpu in [*self._before]:
            with contextlib.suppress(RunError):  # the supervisor tries again at the run's end, and reports a failure
                self._put_back(cpu)
        for file in self._open.values():
            file.close()

    def keep(self, cpus: Iterable[int]) -> None:
        """Let these CPUs poll while idle, and restore all others. Cheap if nothing changes. Raises RunError."""
        wanted = frozenset(cpus)
        if wanted != self._kept:
            self._account()
        for cpu in self._before.keys() - wanted:
            self._put_back(cpu)
        for cpu in sorted(wanted):
            # Another run may have restored the setting at its own end.
            if self._setting_of(cpu) != NEVER:
                self._change(cpu)
        if wanted != self._kept:
            self._kept, self._since, self._halts_before = wanted, time.monotonic(), halts(wanted)

    def failed(self) -> str:
        """The problem, if CPUs halted although they should not; otherwise empty."""
        often = self.halts / self.seconds if self.seconds else 0.0
        if often <= HALTS_PER_SECOND:
            return ""
        return f"cores that should not halt halted {often:,.0f} times per second nevertheless"

    def _setting_of(self, cpu: int) -> str:
        try:
            if cpu not in self._open:
                self._open[cpu] = ProcFile(setting(cpu))
            return self._open[cpu].read().decode().strip()
        except OSError:
            return ""

    def _account(self) -> None:
        if self._kept:
            self.seconds += time.monotonic() - self._since
            self.halts += halts(self._kept) - self._halts_before

    def _change(self, cpu: int) -> None:
        path = setting(cpu)
        if cpu not in self._before:
            was = _text(path)
            entry = Entry("idle setting", idle_setting.changed(cpu, was))
            forget = self._supervisor.undo(["/bin/sh", "-c", 'printf %s "$1" >"$2"', "sh", was, path], entry)
            self._before[cpu] = (was, forget)
        _write(path, NEVER)

    def _put_back(self, cpu: int) -> None:
        was, forget = self._before[cpu]
        _write(setting(cpu), was)
        del self._before[cpu]
        with contextlib.suppress(RunError):  # a supervisor that is gone has nothing left to undo
            forget()


@contextlib.contextmanager
def all_awake(supervisor: Supervisor, wish: str = "") -> Iterator[Idle]:
    """Keep every CPU of this process awake, if that is possible and wanted. Yields the resulting state."""
    cpus = os.sched_getaffinity(0)
    shared = len(set(physical(cpus).values())) < len(cpus)
    with CpuIdlePolling(supervisor) as awake:
        if wish == "halt" or shared or obstacle(cpus, cpus):
            yield "halt"
        else:
            awake.keep(cpus)
            yield "poll"
