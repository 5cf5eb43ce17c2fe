"""server_load: reads the counters of your own server twice, and what its processes did meanwhile if it runs on this machine.

It makes no load: one connection, two reads.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from statistics import fmean

import msgspec

from ciphercost.engines import Server
from ciphercost.engines.capabilities.load_counters import CounterReader, CountsLoad
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.host import supervisor
from ciphercost.host.ports import LOOPBACK, is_loopback, is_own, listener
from ciphercost.host.procfs import Sampler, tree
from ciphercost.load import passwords
from ciphercost.load.agent import Agent
from ciphercost.load.plaintext_guard import words
from ciphercost.model.connection import Connection
from ciphercost.model.errors import AgentError, UsageError
from ciphercost.model.own_tls import NONE, OwnTls
from ciphercost.model.run_directory import new_id
from ciphercost.model.server_counters import NO_CPU, Busy, Reading, Snapshot
from ciphercost.plan.targets import counting
from ciphercost.provision import counters_connection

ARM = "counters"
SAMPLES = 10
"""Of a counter that sessions report from time to time."""


def read(
    url: str,
    seconds: float,
    *,
    own_tls: OwnTls = NONE,
    needs_cpu: bool = True,
    begins: Callable[[str], None] = lambda _: None,
    wait: Callable[[float], object] = time.sleep,
) -> Reading:
    """Read a server's counters now and in `seconds`. `own_tls`: given beside the URL; `needs_cpu`: refuse a server whose CPU time can't be known;
    `begins`: told the server before the first read; `wait`: lets the seconds pass until the second one.

    Raises UsageError if the server can't be reached, does not count, or may not be read.
    """
    if len(url.split()) != 1:
        raise UsageError("--url: name one server by one URL")
    counts = counting(url)
    engine = TakesUrl.of(counts)
    engine.check_url(url)
    server = engine.running(url)
    with (
        supervisor.Supervisor(new_id()) as new_supervisor,
        supervisor.temporary(new_supervisor, "predict") as directory,
        Agent() as agent,
    ):
        title = f"{counts.called_when_read} at {_place(server, server.connection())}"
        try:
            connection = counters_connection.of(engine, url, server, own_tls, directory)
            if passwords.may_ask(connection) and passwords.ask_where_wanted(
                agent, connection, engine.refuses_anonymous
            ):
                connection = counters_connection.of(engine, url, server, own_tls, directory)
            title = f"{counts.called_when_read} at {_place(server, connection)}"
            agent.connect(ARM, connection)
        except AgentError as error:
            what = words(str(error), error.code) if error.code == "tls" else engine.hint(error.code, str(error))
            raise UsageError(f"--url: can't log in to {title}: {error.words.rstrip('.')}. {what}".rstrip()) from None
        except OSError as error:
            raise UsageError(f"--url: no answer from {title}: {error.strerror or error}") from None
        try:
            return _twice(
                counts, counts.counter_reader(agent, ARM, connection), title, seconds, needs_cpu, begins, wait
            )
        except AgentError as error:
            hint = engine.hint(error.code, str(error)) if error.code == "NOPERM" else ""
            raise UsageError(
                f"--url: can't read the counters of {title}: {error.words.rstrip('.')}. {hint}".rstrip()
            ) from None


def _place(server: Server, connection: Connection) -> str:
    """Host and port, as people write them."""
    if connection.authority:
        return connection.authority
    host = str(getattr(server, "host", "") or connection.host)
    return f"[{host}]:{connection.port}" if ":" in host else f"{host}:{connection.port}"


def _twice(
    engine: CountsLoad,
    reader: CounterReader,
    title: str,
    seconds: float,
    needs_cpu: bool,
    begins: Callable[[str], None],
    wait: Callable[[float], object],
) -> Reading:
    pid, unseen = _process(reader.connection, tuple(engine.counted_programs))
    by_processes = bool(pid) and not reader.knows_cpu
    no_cpu = "" if pid or reader.knows_cpu or reader.counts_cpu else unseen
    if no_cpu and needs_cpu:
        raise UsageError(NO_CPU.format(no_cpu))
    begins(title)
    sampler = Sampler(pid if by_processes else 0)
    try:
        before = _snapshot(reader)
        sampler.refresh()
        sampler.begin()
        # The CPU time is that of the wait. Where a snapshot is a mean over a while, the wait is at least as long.
        wait(max(reader.spread, before.at + seconds - reader.spread / 2 - time.monotonic()))
        sampler.refresh()
        sampler.stop()
        after = _snapshot(reader)
        counters = sampler.end()
    finally:
        sampler.close()
    busy = None
    if by_processes:
        if not tree(pid):
            raise UsageError(f"--url: the process of {title} ({pid}) ended between the two reads")
        busy = Busy(counters.server_cpu_ns / counters.window_ns, f"/proc: process {pid} and those that it started")
    return Reading(
        server=title,
        operation=reader.operation,
        before=before,
        after=after,
        busy=busy,
        no_cpu=no_cpu,
        cores=_cores(pid),
        notes=reader.notes,
    )


def _snapshot(reader: CounterReader) -> Snapshot:
    """The counters at this moment, or their mean over `reader.spread` seconds."""
    first = _one(reader)
    snapshots = [first]
    for number in range(1, SAMPLES if reader.spread else 1):
        time.sleep(max(0.0, first.at + reader.spread * number / SAMPLES - time.monotonic()))
        snapshots.append(_one(reader))
    last = snapshots[-1]
    counts = tuple(
        msgspec.structs.replace(series[-1], value=fmean(one.value for one in series))
        for series in zip(*(one.counts for one in snapshots), strict=True)
    )
    at, within = fmean(snapshot.at for snapshot in snapshots), max(snapshot.within for snapshot in snapshots)
    return msgspec.structs.replace(last, at=at, within=within, counts=counts)


def _one(reader: CounterReader) -> Snapshot:
    began = time.monotonic()
    counted = reader.read()
    within = (time.monotonic() - began) / 2
    return Snapshot(began + within, within, counted.marks, counted.counts, counted.lost, counted.notes)


def _process(connection: Connection, programs: tuple[str, ...]) -> tuple[int, str]:
    """(the server's first process, ""), or (0, why it is not seen)."""
    address = connection.host
    if not is_loopback(address):
        if ":" in address or not is_own(address):
            return 0, f"the server is on another machine ({address})"
        address = LOOPBACK
    if pid := listener(address, connection.port, programs):
        return pid, ""
    return 0, (
        f"no process called {' or '.join(programs)} that this user may look into listens on port {connection.port} here (run ciphercost as "
        "the server's user or as root, outside its container)"
    )


def _cores(pid: int) -> int | None:
    try:
        return len(os.sched_getaffinity(pid)) if pid else None
    except OSError:
        return None
