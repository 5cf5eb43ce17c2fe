"""Known costs of pages, openings and values are found again; cells that don't tell them apart give them together, or none."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ciphercost.estimate import unit_costs
from ciphercost.model.cipher_work import CipherWork, Enciphered, Stream
from ciphercost.model.result import Added, Cell, UnitCost

PAGES = Stream(CipherWork("aes256-cbc", "hmac-sha512", 4016), 4096)
LOG = Stream(CipherWork("aes256-ctr"), 16384)
OPERATIONS = 1000
FLOOR = {"aes256-cbc+hmac-sha512/4016_open": 1.5, "aes256-cbc+hmac-sha512/4016_seal": 2.0}


def cell(cpu: float, error: float, read: float = 0.0, written: float = 0.0, log: float | None = None) -> Cell:
    """A cell whose operations read and write so many pages, and so many kilobytes of log (None: the server has no log)."""
    page = OPERATIONS * PAGES.page
    streams = {"pages": msgspec.structs.replace(PAGES, read=round(read * page), written=round(written * page))}
    if log is not None:
        streams["redo log"] = msgspec.structs.replace(LOG, written=round(log * 1e3 * OPERATIONS))
    added = Added(cpu, cpu - 2 * error, cpu + 2 * error, error, 8)
    return Cell(
        engine="mariadb", version="11", layer="rest", mechanism="mariadb-tde", workload="any", clients=2, status="ok", mode="full",
        added={"server_cpu": added, "machine_cpu": added}, enciphered=Enciphered(streams, OPERATIONS), floor=FLOOR,
        arms={"plain": {"connects": 0, "operations": 1000}},
    )  # fmt: skip


def embedded(cpu: float, error: float, connects: float = 0.0) -> Cell:
    """A cell of a database inside the application, each of whose operations opens it so many times."""
    added = Added(cpu, cpu - 2 * error, cpu + 2 * error, error, 8)
    return msgspec.structs.replace(
        cell(cpu, error), added={"client_cpu": added}, embedded=True, enciphered=None,
        arms={"plain": {"connects": 1000 * connects, "operations": 1000}},
    )  # fmt: skip


def column(cpu: float, error: float, **values: float) -> Cell:
    added, none = Added(cpu, cpu - 2 * error, cpu + 2 * error, error, 8), Added(0.0, -0.1, 0.1, 0.05, 8)
    return Cell(
        engine="mariadb", version="11", layer="column", mechanism="aes-cbc-256", workload="any", clients=2, status="ok", mode="full",
        added={"server_cpu": added, "client_cpu": none}, values=values,
    )  # fmt: skip


def noisy(truths: Sequence[float], share: float, seed: int) -> list[tuple[float, float]]:
    random = np.random.default_rng(seed)
    return [(truth + random.normal(0, share * truth), share * truth) for truth in truths]


def by_unit(costs: Sequence[UnitCost]) -> dict[str, UnitCost]:
    return {cost.unit: cost for cost in costs}


@settings(deadline=None)
@given(st.floats(0.5, 50), st.floats(0.5, 50), st.floats(0.1, 20))
def test_without_noise_the_costs_of_pages_and_log_are_found_again(read: float, written: float, log: float) -> None:
    mixes = [(1.0, 0.0, 0.0), (0.1, 1.0, 1.0), (2.0, 1.0, 8.0), (0.5, 0.1, 0.2)]
    costs = by_unit(unit_costs.split([cell(r * read + w * written + k * log, 1e-9, r, w, k) for r, w, k in mixes]))
    assert costs["page read"].us.value == pytest.approx(read, rel=1e-2)
    assert costs["page written"].us.value == pytest.approx(written, rel=1e-2)
    assert costs["kilobyte of log"].us.value == pytest.approx(log, rel=5e-2)
    assert costs["page read"].units == pytest.approx([r for r, *_ in mixes], abs=1e-3)
    assert costs["page read"].bytes == 4096
    assert costs["page read"].floor_us == pytest.approx(1.5 * 4.016)
    assert costs["page written"].floor_us == pytest.approx(2.0 * 4.016)


def test_one_cell_tells_the_cost_of_the_one_thing_that_it_does() -> None:
    (cost,) = unit_costs.split([cell(10.0, 0.5, read=2.0)])
    assert (cost.unit, cost.end, cost.cells) == ("page read", "server", [0])
    assert cost.us.value == pytest.approx(5.0)
    assert 0.25 * 2 < cost.us.high - cost.us.value < 0.75, "t of 7 degrees of freedom times 0.25"


def test_one_cell_that_reads_and_writes_tells_what_they_cost_together() -> None:
    (cost,) = unit_costs.split([cell(12.0, 0.1, read=1.0, written=2.0)])
    assert cost.unit == "page"
    assert cost.us.value == pytest.approx(4.0)
    assert cost.floor_us is None
    (cost,) = unit_costs.split([cell(12.0, 0.1, read=1.0, written=1.0, log=4.096)])
    assert cost.unit == "kilobyte"
    assert cost.us.value == pytest.approx(12 / (3 * 4.096))


def test_cells_with_the_same_mix_do_not_tell_its_causes_apart() -> None:
    same = [cell(10.0 * scale, 0.1, scale, scale) for scale in (1.0, 2.0, 3.0)]
    assert list(by_unit(unit_costs.split(same))) == ["page"]
    assert list(by_unit(unit_costs.split([*same, cell(5.0, 0.1, 1.0)]))) == ["page read", "page written"]


def test_what_is_next_to_nothing_of_the_work_is_no_cause() -> None:
    assert list(by_unit(unit_costs.split([cell(10.0, 0.5, read=2.0, written=0.001)]))) == ["page read"]


def test_without_counts_or_work_there_is_no_cost() -> None:
    assert unit_costs.split([cell(10.0, 0.5)]) == []
    uncounted = msgspec.structs.replace(cell(10.0, 0.5, 1.0), enciphered=Enciphered({"pages": PAGES}))
    assert unit_costs.split([uncounted]) == []
    assert unit_costs.split([msgspec.structs.replace(cell(10.0, 0.5, 1.0), enciphered=None)]) == []


def test_cells_of_other_mechanisms_or_factors_are_not_mixed_in() -> None:
    other = msgspec.structs.replace(cell(90.0, 0.5, 1.0), mechanism_factors=["logs"], factors={"logs": "off"})
    costs = unit_costs.split([cell(10.0, 0.5, 1.0), other])
    assert [cost.cells for cost in costs] == [[0], [1]]
    assert [cost.us.value for cost in costs] == pytest.approx([10.0, 90.0])


def test_cells_with_caches_of_several_sizes_belong_together() -> None:
    small = msgspec.structs.replace(cell(10.0, 0.1, 1.0), conditions={"cache": "small"})
    assert list(by_unit(unit_costs.split([small, cell(20.0, 0.1, 0.0, 1.0)]))) == ["page read", "page written"]


def test_the_intervals_keep_their_coverage() -> None:
    held = []
    for seed in range(300):
        mixes = [(1.0, 0.0), (0.0, 1.0), (1.0, 0.5), (3.0, 2.0)]
        figures = noisy([r * 9 + w * 20 for r, w in mixes], 0.04, seed)
        costs = by_unit(
            unit_costs.split([cell(cpu, error, r, w) for (cpu, error), (r, w) in zip(figures, mixes, strict=True)])
        )
        held += [
            costs[unit].us.low <= true <= costs[unit].us.high for unit, true in (("page read", 9), ("page written", 20))
        ]
    assert np.mean(held) >= 0.93


def test_a_cell_off_the_model_widens_the_intervals_and_is_reported() -> None:
    straight = [cell(10.0 * r + 20.0 * w, 0.1, r, w) for r, w in ((1.0, 0.0), (0.0, 1.0), (2.0, 1.0))]
    bent = [*straight[:2], cell(80.0, 0.1, 2.0, 1.0)]
    before, after = (by_unit(unit_costs.split(cells))["page read"] for cells in (straight, bent))
    assert before.worst < 1e-3 < 3 < after.worst
    assert after.us.high - after.us.low > 3 * (before.us.high - before.us.low)


# ── openings ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_operations_that_open_the_database_tell_the_cpu_time_of_an_opening() -> None:
    (cost,) = unit_costs.split([embedded(300.0, 3.0, connects=1.0), embedded(5.0, 0.1)])
    assert (cost.unit, cost.measure, cost.end, cost.cells) == ("opening", "cpu", "process", [0])
    assert cost.us.value == pytest.approx(300.0)


def test_starts_of_sessions_tell_how_much_longer_one_takes() -> None:
    starts = [{1: (0.5, 0.61), 2: (0.6, 0.72), 3: (0.5, 0.63)}]
    opening = by_unit(unit_costs.split([cell(10.0, 0.5, 1.0)], starts=starts))["opening"]
    assert opening.measure == "time"
    assert opening.us.value == pytest.approx(120_000)
    assert 0 < opening.us.low < 110_000
    assert "opening" not in by_unit(unit_costs.split([cell(10.0, 0.5, 1.0)], starts=[{1: (0.5, 0.6)}]))


# ── values ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@settings(deadline=None)
@given(st.floats(0.2, 50), st.floats(0.2, 50), st.floats(1, 5000))
def test_without_noise_the_costs_of_values_are_found_again(sealed: float, opened: float, searched: float) -> None:
    mixes = [{"sealed": 1.0}, {"opened": 1.0}, {"searched": 1.0}, {"sealed": 4.0, "opened": 12.0}]
    prices = {"sealed": sealed, "opened": opened, "searched": searched}
    costs = by_unit(
        unit_costs.split([column(sum(prices[name] * n for name, n in mix.items()), 1e-9, **mix) for mix in mixes])
    )
    assert {unit: cost.us.value for unit, cost in costs.items()} == pytest.approx(
        {"value sealed": sealed, "value opened": opened, "value searched": searched}, rel=1e-3
    )
    assert {cost.end for cost in costs.values()} == {"server"}, "the client does not encrypt"


def test_one_cell_of_many_values_tells_what_they_cost_together() -> None:
    (cost,) = unit_costs.split([column(30.0, 0.5, sealed=4.0, opened=6.0)])
    assert (cost.unit, cost.units) == ("value", [10.0])
    assert cost.us.value == pytest.approx(3.0)


def test_a_workload_that_does_not_tell_its_values_has_no_costs() -> None:
    assert unit_costs.split([column(30.0, 0.5)]) == []
