"""A load derived from two snapshots of a server's counters is what happened between them, or is refused."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ciphercost.estimate.server_load import FEW, derive
from ciphercost.model.errors import UsageError
from ciphercost.model.server_counters import (
    FORGOT,
    NO_CPU,
    OPTIONS,
    TRANSACTIONS,
    Busy,
    Count,
    Figure,
    GivenLoad,
    Reading,
    Snapshot,
)

START: dict[Figure, float] = {"operations": 1e9, "connections": 5e5, "bytes": 7e12, "cpu_seconds": 12345.0}
"""Counters of a server that has run for long."""


def snapshot(
    at: float, more: dict[Figure, float], *, within: float = 1e-3, marks: tuple[str, ...] = ("up",)
) -> Snapshot:
    counts = tuple(Count(figure, START[figure] + value, f"{figure} in STATUS") for figure, value in more.items())
    return Snapshot(at, within, marks, counts)


def reading(
    operations: float = 20_000,
    seconds: float = 10.0,
    *,
    connections: float = 100,
    sent: float = 8e7,
    cpu: float = 6.0,
    busy: float | None = None,
    cores: int | None = 4,
) -> Reading:
    done: dict[Figure, float] = {
        "operations": operations, "connections": connections, "bytes": sent, "cpu_seconds": cpu
    }  # fmt: skip
    return Reading(
        "Some DB at db:1",
        "statement",
        snapshot(50.0, dict.fromkeys(done, 0.0)),
        snapshot(50.0 + seconds, done),
        busy=None if busy is None else Busy(busy, "/proc: process 7"),
        cores=cores,
    )


@given(
    st.integers(1, 10**8),
    st.floats(1, 3600),
    st.integers(0, 10**6),
    st.floats(0, 1e12),
    st.floats(1e-6, 1e5),
    st.booleans(),
)
def test_the_load_is_what_happened_between_the_reads(
    operations: int, seconds: float, connections: int, sent: float, cpu: float, by_processes: bool
) -> None:
    derived = derive(
        reading(
            operations,
            seconds,
            connections=connections,
            sent=sent,
            cpu=cpu,
            busy=cpu / seconds if by_processes else None,
            cores=None,
        ),
        GivenLoad(),
    )
    load = derived.load
    # What a counter of that size can hold.
    assert load.rate * seconds == pytest.approx(operations, rel=1e-6)
    assert load.connections * seconds == pytest.approx(connections, rel=1e-6, abs=1e-6)
    assert (load.bytes_per_operation or 0.0) * operations == pytest.approx(sent, rel=1e-6, abs=0.01)
    assert load.cpu_us * operations / 1e6 == pytest.approx(cpu, rel=1e-6, abs=1e-9)
    assert {source.figure: source.value for source in derived.sources if source.figure != "seconds"} == {
        name: getattr(load, name) for name in OPTIONS if name not in ("cores", "round_trips")
    }
    assert any("rough" in note for note in derived.notes) == (operations < FEW)
    cpu_source = next(source.source for source in derived.sources if source.figure == "cpu_us")
    assert cpu_source.startswith("/proc" if by_processes else "cpu_seconds in STATUS")


@given(st.sets(st.sampled_from(sorted(OPTIONS))), st.floats(0.1, 1e5))
def test_what_is_given_overrides_what_was_read_and_the_sources_say_so(names: set[str], value: float) -> None:
    given_load = msgspec.structs.replace(GivenLoad(), **dict.fromkeys(names, value))
    derived = derive(reading(), given_load)
    without = derive(reading(), GivenLoad())
    for source in derived.sources:
        if source.figure in names:
            assert (source.value, source.source) == (value, OPTIONS[source.figure])
        else:
            assert source in without.sources
    assert derived.read == OPTIONS.keys() - names - {"round_trips"}, "no counter tells round trips"
    assert all(getattr(derived.load, name) == value for name in names)


@given(st.sampled_from(sorted(START)), st.floats(1, 1e6))
def test_a_counter_that_fell_was_reset(figure: Figure, fall: float) -> None:
    two_reads = reading()
    counts = tuple(
        msgspec.structs.replace(count, value=START[figure] - fall) if count.figure == figure else count
        for count in two_reads.after.counts
    )
    two_reads = msgspec.structs.replace(two_reads, after=msgspec.structs.replace(two_reads.after, counts=counts))
    with pytest.raises(UsageError, match=rf"Some DB at db:1 were reset .*\({figure} in STATUS fell\)"):
        derive(two_reads, GivenLoad())


def test_a_server_that_was_started_again_is_refused_even_if_its_counters_have_grown() -> None:
    two_reads = reading()
    two_reads = msgspec.structs.replace(two_reads, after=msgspec.structs.replace(two_reads.after, marks=("up again",)))
    with pytest.raises(UsageError, match=r"db:1 were reset .*started again;"):
        derive(two_reads, GivenLoad())


@given(st.floats(0, 0.5))
def test_no_operation_is_no_load(rounded: float) -> None:
    with pytest.raises(UsageError, match=r"did no statement.* 10\.0 s \(rate 0/s\)"):
        derive(reading(-rounded), GivenLoad(cpu_us=3.0))
    both = derive(reading(0.0), GivenLoad(rate=5.0, cpu_us=3.0))
    assert (both.load.rate, both.load.cpu_us, both.load.bytes_per_operation) == (5.0, 3.0, None)


def test_without_cpu_time_it_is_asked_for() -> None:
    two_reads = reading()
    counts = tuple(count for count in two_reads.after.counts if count.figure != "cpu_seconds")
    elsewhere = "the server is on another machine (10.0.0.1)"
    two_reads = msgspec.structs.replace(
        two_reads,
        after=msgspec.structs.replace(two_reads.after, counts=counts),
        no_cpu=elsewhere,
    )
    with pytest.raises(UsageError, match=re.escape(NO_CPU.format(elsewhere))):
        derive(two_reads, GivenLoad())
    assert derive(two_reads, GivenLoad(cpu_us=8.0)).load.cpu_us == 8.0
    with pytest.raises(UsageError, match="took no CPU time"):
        derive(reading(busy=0.0), GivenLoad())


@given(st.floats(0.0, 0.1))
def test_ticks_that_exceed_the_cores_by_a_little_are_rounded(excess: float) -> None:
    load = derive(reading(busy=4 * (1 + excess)), GivenLoad()).load
    assume(abs(excess - 0.02) > 1e-6)
    busy = load.rate * load.cpu_us / 1e6
    assert busy == pytest.approx(4.0 if excess < 0.02 else 4 * (1 + excess))


def test_a_slow_answer_and_connections_that_are_encrypted_already_are_said() -> None:
    two_reads = reading()
    two_reads = msgspec.structs.replace(
        two_reads,
        before=msgspec.structs.replace(
            two_reads.before, within=0.4, counts=(*two_reads.before.counts, Count("encrypted_connections", 3, "Ssl"))
        ),
        after=msgspec.structs.replace(
            two_reads.after,
            counts=(*two_reads.after.counts, Count("encrypted_connections", 43, "Ssl")),
            notes=("one more",),
        ),
    )
    notes = derive(two_reads, GivenLoad()).notes
    assert "one more" in notes
    assert any(re.search("slowly.* rate .* 4 % off", note) for note in notes)
    assert any(note.startswith("40 of 100 new connections were encrypted") for note in notes)


def test_operations_that_the_server_forgot_are_replaced_by_transactions() -> None:
    two_reads = reading(-3_000.0)
    before = (*two_reads.before.counts, Count("transactions", 500.0, "transactions in STATUS"))
    after = (*two_reads.after.counts, Count("transactions", 8_500.0, "transactions in STATUS"))
    two_reads = msgspec.structs.replace(
        two_reads,
        before=msgspec.structs.replace(two_reads.before, counts=before, lost="4"),
        after=msgspec.structs.replace(two_reads.after, counts=after, lost="9"),
    )
    derived = derive(two_reads, GivenLoad())
    assert (derived.load.rate, derived.operation) == (800.0, "transaction")
    assert derived.load.cpu_us == pytest.approx(6.0 / 8_000 * 1e6)
    assert TRANSACTIONS.format(FORGOT) in derived.notes
    alone = msgspec.structs.replace(two_reads, after=msgspec.structs.replace(two_reads.after, counts=after[:-1]))
    with pytest.raises(UsageError, match=rf"{re.escape(FORGOT)}.*transactions are not counted"):
        derive(alone, GivenLoad())


def test_pages_and_log_are_read_where_the_server_counts_them_and_overridden_by_what_is_given() -> None:
    two_reads = reading(seconds=10.0)
    further: dict[Figure, float] = {"pages_read": 500.0, "pages_written": 0.0, "log_bytes": 2e6}

    def more(of: Snapshot, grown: float) -> Snapshot:
        counts = (Count(name, grown * value, f"{name} in STATUS") for name, value in further.items())
        return msgspec.structs.replace(of, counts=(*of.counts, *counts))

    two_reads = msgspec.structs.replace(two_reads, before=more(two_reads.before, 0.0), after=more(two_reads.after, 1.0))
    derived = derive(two_reads, GivenLoad())
    assert derived.load.units == {"page read": 50.0, "page written": 0.0, "kilobyte of log": 200.0}
    assert derived.load.units.keys() <= derived.read
    assert {"page read", "page written", "kilobyte of log"} <= {source.figure for source in derived.sources}
    given_some = derive(two_reads, GivenLoad(units={"page read": 7.0}))
    assert given_some.load.units["page read"] == 7.0
    assert "page read" not in given_some.read
    assert [source.source for source in given_some.sources if source.figure == "page read"] == ["--pages-read"]
