"""people: made-up records are plausible, and the same for a seed in every version."""

from __future__ import annotations

import hashlib
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from ciphercost.load.tables import people

SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS)
@settings(derandomize=True, max_examples=50)
def test_every_record_is_plausible_and_nobody_is_meant(seed: int) -> None:
    records = list(people.people(60, seed))
    assert [record.id for record in records] == list(range(1, 61))
    for record in records:
        assert record.first_name in people.FIRST[record.gender]
        assert record.last_name in people.LAST
        assert record.city in people.CITIES
        assert record.email == f"{record.first_name}.{record.last_name}{record.id}@example.org".lower()
        assert re.fullmatch(r"\+1 [2-9]\d\d 555 01\d\d", record.phone), "a number kept for fiction"
        network, _, host = record.ip_address.rpartition(".")
        assert network in people.NETWORKS
        assert 1 <= int(host) <= 254


@given(SEEDS, st.integers(0, 80), st.integers(0, 80))
@settings(derandomize=True, max_examples=50)
def test_a_longer_list_begins_with_the_shorter_one(seed: int, short: int, more: int) -> None:
    assert list(people.people(short + more, seed))[:short] == list(people.people(short, seed))


@given(SEEDS, st.integers(1, 300), st.integers(1, 100))
@settings(derandomize=True, max_examples=50)
def test_inserts_hold_every_person_once_in_batches(seed: int, count: int, batch: int) -> None:
    statements = list(people.inserts("t", count, seed, batch))
    held = [len(re.findall(r"\(\d+, '", statement)) for statement in statements]
    assert sum(held) == count
    assert all(size == batch for size in held[:-1])
    assert 1 <= held[-1] <= batch
    assert all(statement.startswith("INSERT INTO t (id, first_name, last_name, email, ") for statement in statements)


def test_another_seed_is_other_people() -> None:
    assert list(people.people(100, 1)) != list(people.people(100, 2))


def test_the_ten_thousand_of_seed_1_never_change() -> None:
    lines = "\n".join(people.values(record) for record in people.people(10_000, 1))
    assert hashlib.sha256(lines.encode()).hexdigest()[:16] == "e25d37442053ad50"
    assert 0.48 < lines.count("'Female'") / 10_000 < 0.52


def test_a_quote_in_a_name_stays_in_its_literal() -> None:
    assert people.literal("O'Hara") == "'O''Hara'"
    assert people.literal(7) == "7"
