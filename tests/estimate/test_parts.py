"""The fit recovers handshake, request and byte from cells that were made of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ciphercost.estimate import parts
from ciphercost.model.result import Added, Cell, Estimate
from simulate import Random

SIZES = (0, 10_000, 100_000, 1_000_000)
"""Response sizes in bytes; the first both with and without a connection of its own."""


def cell(connects: float, wire: float, cpu: float, error: float, workload: str = "any") -> Cell:
    added = Added(cpu, cpu - 2 * error, cpu + 2 * error, error, 8)
    return Cell(
        engine="postgresql", version="17", layer="transit", mechanism="tls", workload=workload, clients=2, status="ok",
        mode="full", overhead={"wire_bytes_per_op": Estimate(1.02, 1.02, 1.02)}, added={"server_cpu": added, "client_cpu": added},
        arms={"plain": {"connects": connects * 1000, "operations": 1000, "wire_bytes_per_op": wire}},
    )  # fmt: skip


def cells(handshake: float, request: float, byte: float, share: float = 0.01, seed: int = 1) -> list[Cell]:
    random = np.random.default_rng(seed)
    cells_ = []
    for connects, wire in ((1.0, 1500.0), *((0.0, 200.0 + size) for size in SIZES)):
        truth = connects * handshake + request + byte * wire / 1e3
        error = share * truth
        cells_.append(cell(connects, wire, truth + random.normal(0, error), error))
    return cells_


@settings(deadline=None)
@given(st.floats(100, 5000), st.floats(0.5, 50), st.floats(0.05, 10), st.integers(0, 2**32 - 1))
def test_without_noise_the_fit_returns_the_true_parts(handshake: float, request: float, byte: float, seed: int) -> None:
    server, client = parts.split(cells(handshake, request, byte, share=1e-9, seed=seed))
    assert (server.end, client.end) == ("server", "client")
    assert server.handshake_us.value == pytest.approx(handshake, rel=1e-4)
    assert server.request_us.value == pytest.approx(request, rel=1e-2, abs=1e-3)
    assert server.byte_ns.value == pytest.approx(byte, rel=1e-3)
    assert server.worst < 1e-3


def test_the_intervals_keep_their_coverage() -> None:
    held = [
        part.low <= truth <= part.high
        for seed in range(300)
        for server in parts.split(cells(900, 4, 0.4, share=0.02, seed=seed))[:1]
        for part, truth in ((server.handshake_us, 900), (server.request_us, 4), (server.byte_ns, 0.4))
    ]
    assert np.mean(held) >= 0.93


def test_cells_that_do_not_determine_all_parts_give_none() -> None:
    everything = cells(900, 4, 0.4)
    assert parts.split(everything[1:]) == [], "no cell opens connections"
    assert parts.split(everything[:2]) == [], "two cells for three unknowns"
    assert parts.split([everything[0], everything[1], everything[1]]) == [], "no cell reads much"


def test_cells_of_another_mechanism_are_not_mixed_in() -> None:
    import msgspec

    strangers = [msgspec.structs.replace(cell, mechanism="wire-crypt") for cell in cells(5000, 50, 5)]
    mixed = parts.split([*cells(900, 4, 0.4, share=1e-9), *strangers])
    assert len(mixed) == 4
    assert mixed[0].handshake_us.value == pytest.approx(900, rel=1e-3)


def test_cells_under_other_conditions_are_not_mixed_in() -> None:
    import msgspec

    slow = [msgspec.structs.replace(cell, conditions={"cpu_crypto": "off"}) for cell in cells(900, 4, 4)]
    mixed = parts.split([*cells(900, 4, 0.4, share=1e-9), *slow])
    assert mixed[0].byte_ns.value == pytest.approx(0.4, rel=1e-3)


def test_a_cell_far_from_the_fit_widens_the_intervals_and_is_reported() -> None:
    straight = parts.split(cells(900, 4, 0.4))[0]
    bent = cells(900, 4, 0.4)
    bent[2] = cell(0.0, 10_200.0, 40.0, 0.1)
    fit = parts.split(bent)[0]
    assert fit.worst > 3
    assert fit.byte_ns.high - fit.byte_ns.low > 3 * (straight.byte_ns.high - straight.byte_ns.low)


# ── the scale of the errors ───────────────────────────────────────────────────────────────────────────────────────────

TRUTH = (900.0, 4.0, 0.4)
SESSIONS = 8


def shares_held(
    draw: Callable[[Random], tuple[list[Cell], list[parts.BySession]]], runs: int = 400
) -> tuple[list[float], float]:
    """Share of intervals that hold handshake, request and byte, and their mean half-width as a share of the part."""
    held, widths = [], []
    for seed in range(runs):
        drawn, sessions = draw(np.random.default_rng([5, seed]))
        (server,) = (end for end in parts.split(drawn, sessions) if end.end == "server")
        server_parts = (server.handshake_us, server.request_us, server.byte_ns)
        held.append([part.low <= truth <= part.high for part, truth in zip(server_parts, TRUTH, strict=True)])
        widths.append([(part.high - part.low) / 2 / truth for part, truth in zip(server_parts, TRUTH, strict=True)])
    covered = np.mean(held, axis=0).tolist()
    print(
        f"\n{', '.join(f'{share:.1%}' for share in covered)}; half-width {np.mean(np.median(widths, axis=0)):.1%}",
        end="",
    )
    return covered, float(np.mean(np.median(widths, axis=0)))


def in_sessions(
    random: Random, common: float, per_cell: float, off: float, count: int = 5
) -> tuple[list[Cell], list[parts.BySession]]:
    """Cells over 8 sessions. `common`: sd of a session's factor, the same in all its cells; `per_cell`: of each cell's; `off`: of the model's error."""
    factors = 1 + random.normal(0, common, SESSIONS)
    cells_: list[Cell] = []
    by_session: list[parts.BySession] = []
    for connects, wire in ((1.0, 1500.0), *((0.0, 200.0 + size) for size in SIZES))[:count]:
        truth = (connects * TRUTH[0] + TRUTH[1] + TRUTH[2] * wire / 1e3) * (1 + random.normal(0, off))
        values = truth * (factors + random.normal(0, per_cell, SESSIONS))
        cells_.append(cell(connects, wire, float(values.mean()), float(values.std(ddof=1) / np.sqrt(SESSIONS))))
        by_session.append({"server_cpu": dict(enumerate(values.tolist()))})
    return cells_, by_session


@pytest.mark.parametrize("count", [4, 5])
def test_a_factor_that_a_session_has_in_all_its_cells_is_covered(count: int) -> None:
    covered, _ = shares_held(lambda random: in_sessions(random, 0.15, 0.05, 0.0, count))
    assert min(covered) >= 0.92


@pytest.mark.parametrize("count", [4, 5])
def test_a_model_that_is_off_has_the_degrees_of_freedom_of_the_cells_that_show_it(count: int) -> None:
    covered, _ = shares_held(lambda random: in_sessions(random, 0.0, 0.05, 0.25, count))
    assert min(covered) >= 0.86, "with one or two cells to spare the model can look better than it is"


@pytest.mark.parametrize("count", [4, 5])
def test_cells_that_fit_keep_narrow_intervals(count: int) -> None:
    covered, width = shares_held(lambda random: in_sessions(random, 0.0, 0.05, 0.0, count))
    assert min(covered) >= 0.93
    assert width < 0.06
