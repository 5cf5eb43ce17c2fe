"""procfs: samples what the server's processes and the host did in the counted part of a slice. Reads /proc and control
groups, no statistics.

The server's CPU time comes from its control group if there is one (cpuacct.usage or cpu.stat: nanoseconds or
microseconds, including processes that came and went). Otherwise it comes from the CPU clock of each process of the tree
(nanoseconds, all its threads) plus the ended children in /proc/PID/stat (clock ticks).

The kernel counts user mode and kernel mode separately only in clock ticks of 10 ms, which says little about windows
below a second.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from ciphercost.host import proc_file, run_ownership
from ciphercost.host.cpu_quota import Throttling
from ciphercost.host.proc_file import ProcFile
from ciphercost.host.scheduling import Scheduling
from ciphercost.host.volumes import disk
from ciphercost.model.slices import Counters

_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_SCHED_CLOCK = 2
"""CPUCLOCK_SCHED: of a process's three clocks, the one that counts the scheduler's time."""
READ_BYTES, WRITTEN_BYTES = 9, 11
"""Positions of two numbers among the words of /proc/PID/io (proc_pid_io(5))."""


class Level(msgspec.Struct, frozen=True):
    """All counters at one moment; the difference of two is a `Counters`."""

    at_ns: int
    server_cpu_ns: int
    server_user_ns: int
    server_system_ns: int
    read_bytes: int
    write_bytes: int
    host: tuple[int, ...]
    all_cpu_ns: int
    """CPU of every process of the machine, or -1 if no control group shows it."""
    own_cpu_ns: int
    """CPU of this process, the controller, and of the relay if there is one."""
    own_user_ns: int
    """Its part in user mode."""
    hop_cpu_ns: int
    """CPU of the processes between client and server."""
    hop_user_ns: int
    network_bytes: int
    scheduling: tuple[int, int] | None
    """How often the server's threads got a CPU, and their page faults; None if unknown."""
    disk_weighted_ms: int
    disk_busy_ms: tuple[int, ...]
    """For each whole disk: how long it has had a request in flight; empty if unknown."""
    memory_available: int
    throttled_ns: int
    """How long quotas held back the groups of server, agent and controller; -1: there is none."""


def tree(root: int) -> list[int]:
    """Process ids of `root` and everything below it, from /proc/*/stat. Empty if root is gone or 0."""
    if not root:
        return []
    if Path(f"/proc/{root}/task/{root}/children").exists():
        pids = [root]
        for pid in pids:
            pids += _children(pid)
        return pids
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 - names are all that is wanted, and this is a hot place
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:  # noqa: PTH123
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry))
    if not Path(f"/proc/{root}").exists():
        return []
    pids = [root]
    for pid in pids:
        pids += children.get(pid, [])
    return pids


def _children(pid: int) -> list[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
    except OSError:
        return []
    children: list[int] = []
    for thread in threads:
        try:
            children += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_bytes().split())
        except OSError:
            continue
    return children


def cpu_clock_ns(pid: int) -> int:
    """CPU time of a process, of all its current and former threads: its POSIX CPU clock, which anybody may read. Raises
    OSError if it is gone.
    """
    return time.clock_gettime_ns(~pid << 3 | _SCHED_CLOCK)


def _ticks(pid: int) -> tuple[int, int, int, int]:
    """utime, stime, cutime and cstime of a process. Raises OSError if it is gone."""
    user, system, ended_user, ended_system = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[11:15]
    return int(user), int(system), int(ended_user), int(ended_system)


def memory_pss(pids: Iterable[int]) -> int:
    """Proportional set size of these processes together, in bytes; processes that are gone or not ours count nothing."""
    total = 0
    for pid in pids:
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_bytes()
        except OSError:
            continue
        at = text.find(b"\nPss:")
        if at >= 0:
            total += int(text[at + 5 :].split(None, 1)[0]) * 1024
    return total


class Sampler:
    """Counters at slice edges. `server`: root of the server's process tree (0: none).

    `relay`: ciphercost's single-threaded relay process, whose CPU is neither the server's nor foreign (0: none).
    `embedded`: the database lives in the agent's process together with the load, so the agent reports its CPU.
    `helpers`: processes that work for the server (FUSE daemons), with their children: their CPU, bytes and memory count
    as the server's. They are in none of its control groups. `hops`: single processes between client and server. `client`: the
    agent, whose CPU quota counts too.
    """

    def __init__(
        self,
        server: int = 0,
        cgroups: Iterable[Path] = (),
        *,
        embedded: bool = False,
        relay: int = 0,
        helpers: Iterable[int] = (),
        hops: Iterable[int] = (),
        client: int = 0,
    ) -> None:
        self._server = server
        self._embedded = embedded
        self._helpers = tuple(helpers)
        self._groups = proc_file.cpu_files(cgroups)
        self._stat = ProcFile("/proc/stat")
        self._meminfo = ProcFile("/proc/meminfo")
        self._network = proc_file.opened("/proc/self/net/dev")
        self._disks = proc_file.opened("/proc/diskstats")
        self._whole_disks = whole_disks()
        self._relays = (relay,) if relay else ()
        self._hops = tuple(hops)
        self._all = proc_file.opened("/sys/fs/cgroup/cpuacct/cpuacct.usage")
        self._all_v2 = None if self._all else proc_file.opened("/sys/fs/cgroup/cpu.stat")
        self._io: dict[int, ProcFile] = {}
        self._scheduling = Scheduling()
        self._throttling = Throttling((os.getpid(), server, client, *self._helpers, *self._hops))
        self._counted: set[int] = set()
        """Processes whose own CPU clocks are summed: the helpers, and the server if no control group holds it."""
        self._started = self._level()
        self._stopped: Level | None = None
        self.memory = 0
        self._refreshed = 0.0
        self.refresh()

    def follow(self, server: int, cgroups: Iterable[Path]) -> None:
        """Sample another server from here on: one that was started after the last one had ended. 0: there is none yet.

        Between `begin` without a server and `stop` with a new one, all that the new one has done counts.
        """
        for file in self._groups.values():
            file.close()
        self._groups = proc_file.cpu_files(cgroups)
        self._server = server
        self.refresh()

    def close(self) -> None:
        """Close every file that was kept open."""
        single = (self._stat, self._meminfo, self._network, self._disks, self._all, self._all_v2)
        for file in (*self._groups.values(), *self._io.values(), *single):
            if file is not None:
                file.close()
        self._scheduling.close()
        self._throttling.close()

    def refresh(self, every: float = 0.0) -> None:
        """Update the list of the server's processes and their memory, unless that was less than `every` seconds ago.

        Takes milliseconds: call it outside counted parts.
        """
        if self._refreshed and time.monotonic() - self._refreshed < every:
            return
        self._refreshed = time.monotonic()
        helping = {pid for helper in self._helpers for pid in tree(helper)}
        pids = helping.union(tree(self._server))
        self._counted = helping if self._embedded or self._groups else pids
        for pid in self._io.keys() - pids:
            self._io.pop(pid).close()
        for pid in pids - self._io.keys():
            if file := proc_file.opened(f"/proc/{pid}/io"):
                self._io[pid] = file
        self.memory = memory_pss(pids)
        self._scheduling.refresh(pids)

    def level(self) -> Level:
        """All counters at this moment."""
        return self._level()

    def begin(self) -> None:
        self._started = self._level()

    def stop(self) -> None:
        """End the counted part: what follows until `end` is not counted."""
        self._stopped = self._level()

    def end(self, agent_cpu_ns: int = 0, agent_user_ns: int = 0) -> Counters:
        """What happened from `begin` to `stop` (or to now).

        `agent_cpu_ns`: CPU that the agent reports it used, so that it doesn't count as foreign; `agent_user_ns`: the
        part in user mode.
        """
        a, b = self._started, self._stopped or self._level()
        self._stopped = None
        window = max(1, b.at_ns - a.at_ns)
        host = [max(0, after - before) for before, after in zip(a.host, b.host, strict=True)]  # iowait may fall
        total = max(1, sum(host))
        user, nice, system, idle, iowait, irq, softirq, steal = host[:8]
        server = max(0, b.server_cpu_ns - a.server_cpu_ns)
        hop = max(0, b.hop_cpu_ns - a.hop_cpu_ns)
        known = server + hop + agent_cpu_ns + b.own_cpu_ns - a.own_cpu_ns
        everything = b.all_cpu_ns - a.all_cpu_ns if b.all_cpu_ns >= 0 else (total - idle - iowait - steal) * _TICK_NS
        foreign = max(0, everything - known)
        server_user = b.server_user_ns - a.server_user_ns
        known_user = server_user + agent_user_ns + b.own_user_ns - a.own_user_ns + b.hop_user_ns - a.hop_user_ns
        # Counted in ticks, so it may exceed the total, which is known more precisely.
        foreign_user = min(foreign, max(0, (user + nice) * _TICK_NS - known_user))
        return Counters(
            window_ns=window,
            server_cpu_ns=server,
            server_user_ns=max(0, server_user),
            server_system_ns=max(0, b.server_system_ns - a.server_system_ns),
            server_read_bytes=max(0, b.read_bytes - a.read_bytes),
            server_write_bytes=max(0, b.write_bytes - a.write_bytes),
            server_memory_bytes=self.memory,
            **_scheduled(a, b),
            hop_cpu_ns=hop,
            host_user=user / total,
            host_nice=nice / total,
            host_system=(system + irq + softirq) / total,
            host_iowait=iowait / total,
            host_steal=steal / total,
            host_idle=idle / total,
            foreign_cpu=foreign / window,
            foreign_user_cpu=foreign_user / window,
            memory_available_bytes=b.memory_available,
            network_bytes=max(0, b.network_bytes - a.network_bytes),
            disk_queue=max(0.0, (b.disk_weighted_ms - a.disk_weighted_ms) * 1e6 / window),
            disk_busy=busiest(a.disk_busy_ms, b.disk_busy_ms, window),
            throttled_ns=None if b.throttled_ns < 0 else max(0, b.throttled_ns - a.throttled_ns),
        )

    # ── one moment ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _level(self) -> Level:
        cpu, user, system = (sum(pair) for pair in zip(self._grouped_cpu(), self._counted_cpu(), strict=True))
        relay, relay_user = _cpu_of(self._relays)
        hop, hop_user = _cpu_of(self._hops)
        read = write = 0
        for pid, file in list(self._io.items()):
            try:
                fields = file.read().split()
            except OSError:
                self._io.pop(pid).close()
                continue
            read += int(fields[READ_BYTES])
            write += int(fields[WRITTEN_BYTES])
        first = self._stat.read().split(b"\n", 1)[0].split()[1:9]
        meminfo = self._meminfo.read()
        disk_weighted, disk_busy = self._disk_times()
        at = meminfo.find(b"MemAvailable:")
        return Level(
            at_ns=time.monotonic_ns(),
            server_cpu_ns=cpu,
            server_user_ns=user,
            server_system_ns=system,
            read_bytes=read,
            write_bytes=write,
            host=tuple(int(value) for value in first),
            all_cpu_ns=self._machine_cpu(),
            own_cpu_ns=time.process_time_ns() + relay,
            own_user_ns=int(resource.getrusage(resource.RUSAGE_SELF).ru_utime * 1e9) + relay_user,
            hop_cpu_ns=hop,
            hop_user_ns=hop_user,
            network_bytes=self._network_bytes(),
            scheduling=self._scheduling.level(),
            disk_weighted_ms=disk_weighted,
            disk_busy_ms=disk_busy,
            memory_available=int(meminfo[at + 13 :].split(None, 1)[0]) * 1024 if at >= 0 else 0,
            throttled_ns=self._throttling.level_ns(),
        )

    def _machine_cpu(self) -> int:
        if self._all:
            return int(self._all.read())
        if self._all_v2:
            fields = dict(line.split() for line in self._all_v2.read().splitlines())
            return int(fields[b"usage_usec"]) * 1000
        return -1

    def _grouped_cpu(self) -> tuple[int, int, int]:
        """The server's control group: total, user mode, kernel mode."""
        if self._embedded:
            return 0, 0, 0
        if file := self._groups.get("cpuacct.usage"):
            user, system = self._groups.get("cpuacct.usage_user"), self._groups.get("cpuacct.usage_sys")
            return int(file.read()), int(user.read()) if user else 0, int(system.read()) if system else 0
        if file := self._groups.get("cpu.stat"):
            fields = dict(line.split() for line in file.read().splitlines())
            return tuple(int(fields[name]) * 1000 for name in (b"usage_usec", b"user_usec", b"system_usec"))  # type: ignore[return-value]
        return 0, 0, 0

    def _counted_cpu(self) -> tuple[int, int, int]:
        """Processes outside any control group, including their ended children: total, user mode, kernel mode."""
        total = user = system = 0
        for pid in list(self._counted):
            try:
                clock_ns, ticks = cpu_clock_ns(pid), _ticks(pid)
            except OSError:
                self._counted.discard(pid)
                continue
            total += clock_ns + (ticks[2] + ticks[3]) * _TICK_NS
            user += (ticks[0] + ticks[2]) * _TICK_NS
            system += (ticks[1] + ticks[3]) * _TICK_NS
        return total, user, system

    def _network_bytes(self) -> int:
        if self._network is None:
            return 0
        total = 0
        for line in self._network.read().splitlines()[2:]:
            total += int(line.partition(b":")[2].split()[8])  # transmitted bytes: each loopback byte counted once
        return total

    def _disk_times(self) -> tuple[int, tuple[int, ...]]:
        """Milliseconds: weighted by requests in flight, for all disks; and with any request in flight, for each."""
        if self._disks is None:
            return 0, ()
        fields = [line.split() for line in self._disks.read().splitlines()]
        disks = [row for row in fields if row[2] in self._whole_disks]
        return sum(int(row[13]) for row in disks), tuple(int(row[12]) for row in disks)


def _scheduled(before: Level, after: Level) -> dict[str, int]:
    """The counters of `Scheduling` between two moments; none if unknown."""
    if before.scheduling is None or after.scheduling is None:
        return {}
    switches, faults = (late - early for early, late in zip(before.scheduling, after.scheduling, strict=True))
    return {"server_switches": switches, "server_faults": faults} if min(switches, faults) >= 0 else {}


def _cpu_of(pids: Iterable[int]) -> tuple[int, int]:
    """CPU of single processes, without their children, and its part in user mode; what is gone counts nothing."""
    total = user = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            clock_ns, ticks = cpu_clock_ns(pid), _ticks(pid)[0] * _TICK_NS
            total, user = total + clock_ns, user + ticks
    return total, user


def busiest(before: Sequence[int], after: Sequence[int], window_ns: int) -> float | None:
    """Share of a window in which the busiest disk was busy; None if unknown. Pure."""
    if not before or len(before) != len(after):
        return None
    most = max(late - early for early, late in zip(before, after, strict=True))
    return min(1.0, max(0.0, most * 1e6 / window_ns))


def whole_disks() -> frozenset[bytes]:
    """Names of the disks that are not part of another: no partition, loop device or mapping, whose requests would count
    twice.
    """
    return frozenset(os.fsencode(path.parent.name) for path in Path("/sys/block").glob("*/device"))


MEMORY = 0.01
"""Share by which the memory that a kernel leaves free may differ between two boots of the same machine."""


def alike(name: str, was: object, now: object) -> bool:
    """Whether a property of the machine is unchanged. Pure."""
    if name == "disk" or (name.startswith("disk_") and None in (was, now)):
        # The kernel may rename it at each boot; its model and transport are compared instead, if both records have
        # them.
        return True
    if name == "memory" and isinstance(was, int) and isinstance(now, int):
        return abs(was - now) <= MEMORY * was
    return was == now


def machine() -> dict[str, object]:
    """The machine as the result prints it: cpu, cores, aes, kernel, governor, memory, clock source, virtualisation,
    TCP congestion control, disk under the scratch directory.
    """
    cpuinfo = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    names = {line.partition(":")[2].strip() for line in cpuinfo.splitlines() if line.startswith("model name")}
    flags = next(
        (line.partition(":")[2].split() for line in cpuinfo.splitlines() if line.startswith(("flags", "Features"))), []
    )
    return {
        "cpu": ", ".join(sorted(names)) or os.uname().machine,
        "cores": len(os.sched_getaffinity(0)),
        "aes": "aes" in flags,
        "vaes": "vaes" in flags,
        "virtual": "hypervisor" in flags,
        "kernel": os.uname().release,
        "governor": _text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "clocksource": _text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "congestion_control": _text("/proc/sys/net/ipv4/tcp_congestion_control"),
        **disk.record(run_ownership.scratch_base()),
    }


def _text(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return "not known"
