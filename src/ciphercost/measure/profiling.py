"""profiling: samples both arms' processes in slices of its own, after those that count. I/O, no statistics.

A profiled slice is like any other, but perf is on in its counted part. The slices are of phase `profile`, so no
estimate of the cost reads them. If perf can't be used, the cell says so and is otherwise measured as without it.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from pathlib import Path

from ciphercost.host import perf, perf_text
from ciphercost.host.control_groups import members
from ciphercost.host.procfs import tree
from ciphercost.host.supervisor import Supervisor
from ciphercost.load.jdbc import java
from ciphercost.load.load_client import SliceClient, SliceSampler
from ciphercost.measure.recorded_facts import warn
from ciphercost.measure.session import Session
from ciphercost.model.errors import RunError
from ciphercost.model.profile import End, ProfileSlice, Stack
from ciphercost.model.result import Warning_
from ciphercost.model.slices import Block, Counters, SliceRecord
from ciphercost.plan import schedule
from ciphercost.provision.server_pair import ServerPair

CODE = "no-profile"
LOST = "the CPU time was not profiled: "


def phase(
    session: Session,
    blocks: Iterator[Block],
    pair: ServerPair,
    agent: SliceClient,
    supervisor: Supervisor,
    scratch: Path,
    *,
    by_java: bool = False,
) -> Generator[None]:
    """The profiled blocks of a session; nothing unless the run has `profile`. Pauses after every block.

    `by_java`: the agent runs in Java, whose functions have names in a file of its own.
    """
    if not session.budget.profile_s:
        return
    facts = session.facts
    if reason := perf.obstacle():
        _warn(session, reason)
        return
    ends = processes(pair, agent)
    place = scratch / f"profile-{session.measured.number}-{session.number}"
    try:
        recording = perf.Recording(supervisor, place, ends)
    except (RunError, OSError) as error:
        _warn(session, str(error))
        return
    with contextlib.closing(recording):
        windows: list[Window] = []

        def find_new_processes() -> None:
            ends.update(processes(pair, agent))

        wrapped: dict[int, SliceSampler] = {}

        def profiled(sampler: SliceSampler) -> SliceSampler:
            return wrapped.setdefault(id(sampler), Profiled(sampler, recording, session, windows, find_new_processes))

        with sampled_by(session, profiled):
            length = max(schedule.PROFILE_SLICE, facts.slice_seconds)
            rate = facts.rate if session.cell.regime == "latency" else 0.0
            yield from session.run_blocks("profile", blocks, session.budget.profile_s, length, rate=rate)
        session.display.phase(session.measured.number, session.number, "reading the profile")
        session.rest()
        compiled = java.perf_map(agent.pid) if by_java else None
        try:
            with recording.text(ends).open(errors="replace") as text:
                slices = list(
                    by_slice(perf_text.read(text), windows, ends, recording.period_ns, kernel=perf.sees_kernel())
                )
        except (RunError, OSError) as error:
            _warn(session, str(error))
            return
        finally:
            if compiled is not None:
                compiled.unlink(missing_ok=True)
        for profile_slice in slices:
            session.measured.record.append_beside(profile_slice)


@contextlib.contextmanager
def sampled_by(session: Session, wrap: Callable[[SliceSampler], SliceSampler]) -> Iterator[None]:
    """Replace both arms' samplers by what `wrap` makes of them."""
    usual = session.samplers
    session.samplers = {arm: wrap(sampler) for arm, sampler in usual.items()}
    try:
        yield
    finally:
        session.samplers = usual


def _warn(session: Session, reason: str) -> None:
    if all(warning.code != CODE for warning in session.facts.warnings):
        session.display.say(f"{LOST}{reason}")
    warn(session.facts, CODE, [Warning_(CODE, f"{LOST}{reason}")])


def processes(pair: ServerPair, agent: SliceClient) -> dict[int, End]:
    """The end to which each process belongs that works for the cell now. The server's come last: it starts further ones."""
    ends: dict[int, End] = dict.fromkeys(tree(agent.pid), "client")
    for arm in pair.by_arm:
        ends |= dict.fromkeys(pair.hop_pids(arm), "hop")
    for server in pair.by_arm.values():
        roots = (0 if pair.embedded else server.pid, *(server.volume.pids if server.volume else ()))
        ends |= {pid: "server" for root in roots for pid in tree(root)}
        if not pair.embedded:
            ends |= {pid: "server" for group in server.cgroups for pid in members(group) if pid}
    return ends


class Window:
    """The time in which a slice was sampled, on CLOCK_MONOTONIC."""

    def __init__(self, record: SliceRecord, began_ns: int) -> None:
        self.record = record
        self.began_ns = began_ns
        self.ended_ns = 0
        """0: its slice failed."""


class Profiled:
    """A sampler that also switches perf on in the counted part of each slice."""

    def __init__(
        self,
        sampler: SliceSampler,
        recording: perf.Recording,
        session: Session,
        windows: list[Window],
        find_processes: Callable[[], None],
    ) -> None:
        """`find_processes`: called before each slice, to find processes that were started since the last."""
        self._sampler = sampler
        self._recording = recording
        self._session = session
        self._windows = windows
        self._find_processes = find_processes

    def refresh(self, every: float = 0.0) -> None:
        self._sampler.refresh(every)
        self._find_processes()

    def begin(self) -> None:
        self._sampler.begin()
        draft = self._session.draft
        if draft is not None and draft.position:
            self._windows.append(Window(draft, time.monotonic_ns()))
            self._recording.on()

    def stop(self) -> None:
        if self._session.draft is not None and self._session.draft.position:
            self._recording.off()
            self._windows[-1].ended_ns = time.monotonic_ns()
        self._sampler.stop()

    def end(self, agent_cpu_ns: int = 0, agent_user_ns: int = 0) -> Counters:
        return self._sampler.end(agent_cpu_ns, agent_user_ns)


def by_slice(
    samples: Iterable[perf_text.Sample | perf_text.Lost | perf_text.Forked],
    windows: Iterable[Window],
    ends: Mapping[int, End],
    period_ns: float,
    *,
    kernel: bool,
) -> Iterator[ProfileSlice]:
    """The samples of each slice as folded stacks. Pure.

    `ends`: by process id, to which come the processes that these start; others are not ours, and their samples are dropped. So are
    samples outside of all windows. Lost ones are spread over the slices. `period_ns`: CPU time that a sample stands for.
    """
    known = dict(ends)
    open_ = sorted((window for window in windows if window.ended_ns), key=lambda window: window.began_ns)
    stacks: list[Counter[tuple[End, str, tuple[str, ...]]]] = [Counter() for _ in open_]
    whole: list[Counter[End]] = [Counter() for _ in open_]
    lost = 0
    for sample in samples:
        if isinstance(sample, perf_text.Lost):
            lost += sample.samples
            continue
        if isinstance(sample, perf_text.Forked):
            if sample.parent in known:
                known[sample.child] = known[sample.parent]
            continue
        if (end := known.get(sample.pid)) is None:
            continue
        for number, window in enumerate(open_):
            if window.began_ns <= sample.at_ns <= window.ended_ns:
                stacks[number][end, sample.process, sample.frames[::-1]] += 1
                whole[number][end] += sample.whole
                break
    for number, (window, counts) in enumerate(zip(open_, stacks, strict=True)):
        texts = {
            text: place for place, text in enumerate(dict.fromkeys(text for *_, frames in counts for text in frames))
        }
        yield ProfileSlice(
            cell=window.record.cell,
            session=window.record.session,
            block=window.record.block,
            order=window.record.order,
            position=window.record.position,
            arm=window.record.arm,
            period_ns=period_ns,
            frames=list(texts),
            stacks=[
                Stack(count, end, process, [texts[text] for text in frames])
                for (end, process, frames), count in sorted(counts.items())
            ],
            kernel=kernel,
            whole=dict(whole[number]),
            lost=lost // len(open_) + (number < lost % len(open_)),
        )
