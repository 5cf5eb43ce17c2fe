"""The predicted cost of TLS over a link, from round trips and bytes alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.estimate import link_model
from ciphercost.model.spec import CellSpec


@pytest.mark.parametrize(
    ("encryption", "asked", "resumed", "trips"),
    [
        ({"protocol": "TLSv1.3", "group": "X25519"}, "", 0, 1),
        ({"protocol": "TLSv1.3", "group": "X25519MLKEM768"}, "", 0, 1),
        ({"protocol": "TLSv1.3", "group": "P-256"}, "", 0, 2),  # the server asks for another key first
        ({"protocol": "TLSv1.3", "group": "P-256"}, "p256", 0, 1),
        ({"protocol": "TLSv1.2", "group": "P-256"}, "", 0, 2),
        ({"protocol": "TLSv1.2", "group": "P-256"}, "", 1, 1),
        ({"protocol": "TLSv1.2", "group": "P-256"}, "", 0.5, 1.5),
        ({"protocol": "TLSv1.3", "group": "X25519"}, "", 1, 1),
        ({}, "", 0, 0),
    ],
)
def test_a_handshake_takes_the_round_trips_of_its_protocol(
    encryption: dict[str, str], asked: str, resumed: float, trips: float
) -> None:
    assert link_model.round_trips(encryption, asked, 0, resumed) == trips
    assert link_model.round_trips(encryption, asked, 1, resumed) == (trips + 1 if encryption else 0)


def cell(**fields: object) -> CellSpec:
    return CellSpec(engine="postgresql", mechanism="tls", **fields)  # type: ignore[arg-type]


def arm(throughput: float, size: float, *, segments: float = 0.0, connects: int = 0) -> dict[str, Any]:
    return {
        "throughput": throughput,
        "seconds": 10.0,
        "operations": round(throughput * 10),
        "wire_bytes_per_op": size,
        "segments_per_op": segments,
        "connects": connects,
    }


def test_each_connection_costs_its_round_trips() -> None:
    arms = {"plain": arm(40, 1000, connects=400), "encrypted": arm(25, 1000, connects=249)}
    predicted = link_model.predict(cell(delay="10ms"), 2, 2, arms)
    assert predicted["round_trips"] == 2
    assert predicted["added_ms"] == pytest.approx(20)
    assert predicted["throughput"] == pytest.approx(50 / 70)  # 50 ms alone, 70 ms with it


def test_connections_that_stay_open_cost_no_round_trip() -> None:
    arms = {"plain": arm(100, 1000), "encrypted": arm(100, 1000)}
    assert link_model.predict(cell(delay="10ms"), 2, 2, arms) == {"round_trips": 0, "added_ms": 0, "throughput": 1}


def test_bytes_decide_if_the_link_is_full() -> None:
    arms = {"plain": arm(12, 1e6), "encrypted": arm(11.9, 1.01e6)}
    predicted = link_model.predict(cell(bandwidth="100mbit"), 2, 4, arms)
    assert predicted["throughput"] == pytest.approx(1 / 1.01, rel=0.01)
    assert predicted["added_ms"] == pytest.approx(0.01e6 * 8 / 1e8 * 1e3, rel=0.1)


def test_on_an_idle_link_more_bytes_only_take_their_own_time() -> None:
    arms = {"plain": arm(10, 1000), "encrypted": arm(10, 2000)}
    predicted = link_model.predict(cell(bandwidth="1mbit"), 0, 1, arms)
    assert predicted["added_ms"] == pytest.approx(8)
    assert predicted["throughput"] == pytest.approx(100 / 108)


def test_headers_count_on_the_link() -> None:
    assert link_model.bytes_on_link(arm(10, 1000, segments=2)) == 1000 + 2 * link_model.HEADERS


def test_an_open_loop_has_no_throughput_to_predict() -> None:
    arms = {"plain": arm(10, 1000), "encrypted": arm(10, 1000)}
    assert "throughput" not in link_model.predict(cell(delay="10ms", regime="latency"), 1, 1, arms)


def test_without_a_link_nothing_is_predicted() -> None:
    assert link_model.predict(cell(), 2, 2, {"plain": arm(10, 1), "encrypted": arm(10, 1)}) == {}
    assert link_model.predict(cell(delay="10ms"), 2, 2, {}) == {}


@given(st.floats(1, 1e5), st.floats(0.3, 1), st.floats(10, 1e6), st.floats(1, 3), st.integers(1, 64))
def test_more_bytes_never_predict_a_gain(
    throughput: float, slower: float, size: float, grows: float, clients: int
) -> None:
    arms = {"plain": arm(throughput, size), "encrypted": arm(max(1.0, throughput * slower), size * grows)}
    for figures in arms.values():
        figures["seconds"] = figures["operations"] / figures["throughput"]
    predicted = link_model.predict(cell(bandwidth="100mbit", delay="1ms"), 2, clients, arms)
    assert predicted["throughput"] <= 1 + 1e-9
    assert predicted["added_ms"] >= -1e-9
