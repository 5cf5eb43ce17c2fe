"""Run the study as published: one client, each file once over HTTP, then each once over HTTPS, with four counters. I/O.

Around each fetch the counters are sampled for a window of fixed length, however long the fetch takes. The study's link had 100 Mb/s;
its window of about 94 s is not printed but follows from its bytes a second. Here link, window and samples are all `speed_up` times as
fast.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ciphercost.host import procfs, threads
from ciphercost.model.errors import AgentError, RunError, Unproven
from ciphercost.model.study import StudyRun
from ciphercost.prove.client_witness import describe
from ciphercost.studies import Stage
from ciphercost.studies.web_tls import counters

MOST_SECONDS = 600.0
"""Timeout of one fetch."""
THREAD = "thread "
"""Prefixes of the series with a thread's seconds: total, in user mode, in kernel mode."""
BUSY = "busy "
"""Prefix of the series with a counter's value between a request's first byte and its answer's last."""
DISK_BUSY = "disk_busy_share"
"""Share of a fetch in which the busiest disk had a request in flight; absent if unknown."""


def name_of(size: int) -> str:
    """Name of a file's transaction, document and operation."""
    return f"{size}MB"


def run(stage: Stage, sizes: Sequence[int]) -> None:
    """Fetch every file over HTTP, then every file over HTTPS. Raises RunError, Unproven."""
    server = stage.pair.by_arm["plain"]
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        sampler = stack.enter_context(contextlib.closing(procfs.Sampler(server.pid, server.cgroups)))
        machine_counters = counters.Counters(
            sampler, stage.agent.pid, stage.pair.link.device if stage.pair.link else ""
        )
        stack.enter_context(contextlib.closing(machine_counters))
        for arm in stage.record.arms:
            for size in sizes:
                window = stage.record.settings["window_s"]
                stage.say(f"as published: {size} MB, {arm}: one fetch in a window of {window:.3g} s")
                sampler.refresh()
                stage.keep(fetch(stage, machine_counters, arm, size, time.monotonic() - began))


def fetch(stage: Stage, machine_counters: counters.Counters, arm: str, size: int, started: float) -> StudyRun:
    """Fetch one file once while sampling the counters. Raises AgentError, RunError, Unproven."""
    settings, name = stage.record.settings, name_of(size)
    window, interval = settings["window_s"], settings["interval_s"]
    bytes_ = stage.bench.program.documents[f"/{name}"]
    connect(stage, arm, name)
    server = stage.pair.by_arm["plain"]
    server.handshakes()  # discard earlier ones
    forget(stage.bench.directory / f"documents-{stage.bench.dataset.places[0]}" / name)
    edges: list[counters.Level] = []
    pids = procfs.tree(server.pid)
    with counters.Watch(machine_counters, interval) as watch:
        before = threads.read(pids)
        # Where the study's fetch lay in its window is unknown. Here not at its very edge, so that the sample it begins in is whole.
        time.sleep(min(interval, window / 4))
        edges.append(machine_counters.read())
        answer = stage.agent.slice(arm, MOST_SECONDS, discard=0.0, operations=1)
        edges.append(machine_counters.read())
        watch.until(window)
        after = threads.read(pids)
    stage.agent.disconnect(arm)
    if answer.errors or not answer.operations:
        raise AgentError(f"{name}, {arm} arm: {answer.first_error or 'no response'}", "statement")
    if answer.bytes_received < bytes_:
        raise RunError(f"{name}, {arm} arm: received {answer.bytes_received:,} of the file's {bytes_:,} bytes")
    heard(stage, arm, name)
    levels = watch.levels
    series = counters.series(levels)
    series |= {f"{BUSY}{key}": [value] for key, value in counters.between(*edges).items()}
    series["busy_s"] = [(edge.at_ns - levels[0].at_ns) / 1e9 for edge in edges]
    series["server_cpu_s"] = [(edges[1].server_ns - edges[0].server_ns) / 1e9]
    first, last = edges
    share = procfs.busiest(first.disk_busy_ms, last.disk_busy_ms, last.at_ns - first.at_ns)
    if share is not None:
        series[DISK_BUSY] = [share]
    series["client_cpu_s"] = [(answer.cpu_user_ns + answer.cpu_system_ns) / 1e9]
    for thread_time in threads.between(before, after):
        series[f"{THREAD}{thread_time.name} {thread_time.thread}"] = [
            thread_time.seconds,
            thread_time.user,
            thread_time.system,
        ]
    return StudyRun(name, arm, round(started, 3), {"bytes": float(bytes_)}, series)


def connect(stage: Stage, arm: str, name: str) -> None:
    """An arm whose one connection is opened for the fetch and closed after it. Raises Unproven."""
    program = stage.bench.program
    one = tuple(transaction for transaction in program.transactions if transaction[0] == name)
    stage.agent.program(msgspec.structs.replace(program, transactions=one))
    answer = stage.agent.connect(arm, stage.pair.connect[arm].single | {"per_request": True})  # type: ignore[index]
    if answer.encrypted != (arm == "encrypted"):
        raise Unproven(
            f"client witness, {arm} arm: the fetch's connection is not encrypted as it was when it was proven"
        )
    proven: Mapping[str, str] = stage.record.encryption
    if answer.encrypted and (answer.protocol, answer.cipher) != (proven.get("protocol"), proven.get("cipher")):
        raise Unproven(f"client witness, encrypted arm: the fetch negotiated {describe(answer)}")


def heard(stage: Stage, arm: str, name: str) -> None:
    """Raises Unproven unless the server's own log has this fetch as the arm's name says."""
    full, resumed = stage.pair.by_arm["encrypted"].handshakes()
    wanted = arm == "encrypted"
    if (full > 0) != wanted or resumed:
        raise Unproven(
            f"server witness, {arm} arm, {name}: by the server's log there were {full} full and {resumed} resumed handshakes"
        )


def forget(path: Path) -> None:
    """Drop a file from the page cache, so that the disk counter has something to count in both arms."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
