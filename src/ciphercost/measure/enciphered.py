"""enciphered: what ciphers alone cost the agent here, and how many bytes an encrypted server decrypts and encrypts per operation.

The floors are measured once for each cell. The server's own counters are read before and after the slices that count, which costs no
load: the encrypted server works in these slices only, and stands still in those of the other arm. I/O, no statistics.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ciphercost.engines.capabilities.io_counters import CountsIo
from ciphercost.load.agent import Agent
from ciphercost.load.load_client import LoadClient
from ciphercost.measure.session import Session
from ciphercost.mechanisms._rest import AtRest
from ciphercost.model.cipher_work import Enciphered, Stream
from ciphercost.model.errors import AgentError
from ciphercost.model.facts import CellFacts
from ciphercost.provision.prepared_cell import PreparedCell

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


def counted(session: Session, bench: PreparedCell, agent: LoadClient, phase: Iterator[None]) -> Iterator[None]:
    """Run a phase of a session, and count what the encrypted server reads and writes in it, if the server counts that.

    A phase in which a slice failed is not counted: its operations are unknown, and new connections may have new counters.
    """
    if not _counts(session, bench):
        yield from phase
        return
    failed, began = session.failed, session.done["encrypted"]
    before = _counters(session, bench, agent)
    yield from phase
    operations = round(session.done["encrypted"] - began)
    if before is None or session.failed > failed or operations <= 0:
        return
    after = _counters(session, bench, agent)
    facts = session.facts
    if after is not None and facts.enciphered is not None:
        facts.enciphered = added(facts.enciphered, before, after, operations)


def _counts(session: Session, bench: PreparedCell) -> bool:
    engine, facts = bench.engine, session.facts
    if facts.enciphered is None or not isinstance(engine, CountsIo):
        return False
    per_request = facts.spec.per_request or bench.program.per_request
    return not (engine.counts_by_connection and per_request)


def _counters(session: Session, bench: PreparedCell, agent: LoadClient) -> Io | None:
    """What the encrypted server has counted so far. None: it did not say."""
    engine = CountsIo.of(bench.engine)
    session.alone("encrypted")
    try:
        return io_of(agent.query("encrypted", engine.io_counters, everywhere=engine.counts_by_connection))
    except AgentError as error:
        session.display.say(f"the bytes that the server encrypts were not counted: {error}")
        return None
    finally:
        session.pause()


def io_of(rows: Sequence[Sequence[str | None]]) -> Io:
    """Rows of `CountsIo.io_counters`, those of all connections added up. Pure."""
    totals: dict[str, tuple[int, int]] = {}
    for kind, read, written in rows:
        old = totals.get(str(kind), (0, 0))
        totals[str(kind)] = old[0] + int(float(read or 0)), old[1] + int(float(written or 0))
    return totals


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
