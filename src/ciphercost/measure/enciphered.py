"""enciphered: what ciphers alone cost the agent here, and how many bytes an encrypted server decrypts and encrypts per operation.

The floors are measured once for each cell. The bytes are counted for a profile only: after the profiled slices the encrypted arm runs a
known number of operations, and the server's own counters are read before and after. I/O, no statistics.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ciphercost.engines.capabilities.io_counters import CountsIo
from ciphercost.host import perf
from ciphercost.load.agent import Agent
from ciphercost.load.load_client import LoadClient
from ciphercost.measure.session import Session
from ciphercost.mechanisms._rest import AtRest
from ciphercost.model.cipher_work import Enciphered, Stream
from ciphercost.model.errors import AgentError
from ciphercost.model.facts import CellFacts
from ciphercost.plan import schedule
from ciphercost.provision.prepared_cell import PreparedCell

SECONDS, TRIAL = 2.0, 0.25
"""Load while bytes are counted, and to learn how many operations that is, seconds."""
SEED_POSITION = 2000
"""Position of these operations among a session's slices, for their seed: no slice has it."""
Io = Mapping[str, tuple[int, int]]
"""Bytes read and written by kind of file."""


def floors(facts: CellFacts, bench: PreparedCell, agent: Agent) -> None:
    """Measure the floors of this cell's mechanism, unless they are known. Raises AgentError."""
    factors = bench.mechanism.check(bench.factors)
    if facts.floor or not (works := bench.mechanism.floors(factors)):
        return
    facts.floor = {
        work.key(way): cost
        for work in works
        for way, cost in agent.floor(work.cipher, mac=work.mac, unit=work.unit).items()
    }
    if isinstance(bench.mechanism, AtRest):
        facts.enciphered = Enciphered(dict(bench.mechanism.streams(factors)))


def phase(session: Session, bench: PreparedCell, agent: LoadClient) -> Iterator[None]:
    """Count a session's bytes, if the run has a profile to compare them with, and the server counts them."""
    facts, engine = session.facts, bench.engine
    if not session.budget.profile_s or facts.enciphered is None or perf.obstacle():
        return
    if not isinstance(engine, CountsIo) or (engine.counts_by_connection and facts.spec.per_request):
        return
    session.display.phase(session.measured.number, session.number, "counting bytes")
    session.alone("encrypted")
    seed = schedule.slice_seed(session.measured.seed, session.measured.number, session.number, 0, SEED_POSITION)
    try:
        trial = agent.slice("encrypted", TRIAL, discard=0.0, seed=seed)
        rate = trial.done / trial.seconds if trial.seconds else 0.0
        operations = max(facts.clients, math.ceil(rate * SECONDS))
        before = _io(engine, agent)
        answer = agent.slice("encrypted", schedule.LONGEST, discard=0.0, seed=seed + 1, operations=operations)
        after = _io(engine, agent)
    except AgentError as error:
        session.display.say(f"the bytes that the server encrypts were not counted: {error}")
        return
    finally:
        session.pause()
    facts.enciphered = added(facts.enciphered, before, after, answer.operations)
    yield


def _io(engine: CountsIo, agent: LoadClient) -> Io:
    return io_of(agent.query("encrypted", engine.io_counters, everywhere=engine.counts_by_connection))


def io_of(rows: Sequence[Sequence[str | None]]) -> Io:
    """Rows of `CountsIo.io_counters`, those of all connections added up. Pure."""
    found: dict[str, tuple[int, int]] = {}
    for kind, read, written in rows:
        old = found.get(str(kind), (0, 0))
        found[str(kind)] = old[0] + int(float(read or 0)), old[1] + int(float(written or 0))
    return found


def added(so_far: Enciphered, before: Io, after: Io, operations: int) -> Enciphered:
    """With what happened in further operations. Nothing is added if a counter fell or a kind is missing: the server started again,
    or has no such counter. Pure.
    """
    streams: dict[str, Stream] = {}
    for kind, stream in so_far.streams.items():
        if kind not in before or kind not in after:
            return so_far
        read, written = (late - early for early, late in zip(before[kind], after[kind], strict=True))
        if min(read, written) < 0:
            return so_far
        streams[kind] = msgspec.structs.replace(stream, read=stream.read + read, written=stream.written + written)
    return Enciphered(streams, so_far.operations + operations)
