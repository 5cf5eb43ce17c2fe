"""Predictions for loads that were not measured hold what the parts would cost, and refuse what was not measured."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.estimate import parts, prediction
from ciphercost.model.errors import UsageError
from ciphercost.model.prediction import Load, Prediction
from ciphercost.model.result import Cell, Result
from ciphercost.report import prediction_text
from test_parts import cells

TRUTH = (900.0, 4.0, 0.4)
"""Handshake and request, µs; byte, ns."""
LOAD = Load(rate=2000.0, cpu_us=300.0, bytes_per_operation=4000.0, connections=10.0, cores=16.0)


def result(of: list[Cell], *, fitted: bool = True) -> Result:
    return Result(
        format=1, id="r", started="", tool={}, machine={"cpu": "a CPU"}, seed=1, cells=of, parts=parts.split(of) if fitted else []
    )  # fmt: skip


def exact() -> Result:
    return result(cells(*TRUTH, share=1e-9))


def one(of: Result, load: Load = LOAD) -> Prediction:
    (found,) = prediction.predict(of, load)
    return found


def added(load: Load) -> float:
    """What encryption really adds to an operation, µs."""
    handshake, request, byte = TRUTH
    return request + byte * (load.bytes_per_operation or 0.0) / 1e3 + handshake * load.connections / load.rate


@given(st.floats(1, 1e5), st.floats(1, 1e4), st.floats(0, 2e6), st.floats(0, 1e3))
def test_a_prediction_is_what_the_parts_add_whatever_an_operation_itself_costs(
    rate: float, cpu: float, sent: float, connections: float
) -> None:
    load = Load(rate, cpu, sent, connections)
    found = one(exact(), load)
    truth = added(load)
    assert found.added_us.value == pytest.approx(truth, rel=1e-3)
    assert found.request_us + found.bytes_us + found.connections_us == pytest.approx(found.added_us.value)
    assert found.ratio.value == pytest.approx(1 + truth / cpu, rel=1e-3)
    assert found.busy == pytest.approx(rate * cpu / 1e6)
    assert found.added_cores.value == pytest.approx(rate * truth / 1e6, rel=1e-3)


def test_utilisation_is_that_of_all_cores() -> None:
    found = one(exact())
    assert found.utilisation == pytest.approx(2000 * 300e-6 / 16)
    assert found.utilisation_encrypted is not None
    assert found.utilisation_encrypted.value == pytest.approx(2000 * (300 + added(LOAD)) / 1e6 / 16, rel=1e-3)


@pytest.mark.parametrize(
    "load",
    [
        Load(2000.0, 300.0, 4000.0, 10.0),
        Load(50.0, 9000.0, 2e5, 40.0),
        Load(9000.0, 20.0, 300.0, 0.0),
        Load(100.0, 1e4, 9e5, 0.0),
    ],
)
def test_intervals_of_held_out_loads_keep_their_coverage(load: Load) -> None:
    """None of these loads is one of the cells that the parts are fitted to."""
    runs = [one(result(cells(*TRUTH, share=0.02, seed=seed)), load).added_us for seed in range(200)]
    held = float(np.mean([each.low <= added(load) <= each.high for each in runs]))
    print(f"{load}: {held:.2f}, half-width {np.mean([each.high - each.low for each in runs]) / 2 / added(load):.1%}")
    assert held >= 0.93


@given(st.floats(0, 100), st.floats(0, 1e3))
def test_parts_without_their_common_error_give_no_narrower_interval(connections: float, kilobytes: float) -> None:
    (server, _) = parts.split(cells(*TRUTH, share=0.02))
    older = msgspec.structs.replace(server, error=None)
    new, old = (parts.together(each, connections, 1.0, kilobytes) for each in (server, older))
    assert old.value == pytest.approx(new.value)
    assert old.high - old.low >= (new.high - new.low) * (1 - 1e-9)


def test_what_was_left_out_is_said() -> None:
    found = one(exact(), Load(2000.0, 300.0))
    assert found.added_us.value == pytest.approx(4 + 0.4 * 0.2, rel=1e-2)
    text = " ".join(prediction_text.page([found]).split())
    assert "an operation is taken to have 200 bytes on the wire" in text
    assert "connections are taken to stay open" in text
    assert "--response" not in " ".join(one(exact()).notes)


def test_bytes_far_beyond_what_was_measured_are_a_guess() -> None:
    assert "is a guess" in " ".join(one(exact(), Load(10.0, 300.0, 5e6)).notes)
    assert "is a guess" not in " ".join(one(exact(), Load(10.0, 300.0, 1.5e6)).notes)


def test_a_server_that_would_be_saturated_is_said() -> None:
    found = one(exact(), Load(10_000.0, 199.0, 4000.0, 0.0, 2.0))
    assert found.utilisation_encrypted is not None
    assert found.utilisation_encrypted.value > 1
    assert "saturated" in " ".join(found.notes)


def test_a_load_that_the_cores_can_not_carry_is_refused() -> None:
    with pytest.raises(UsageError, match=r"--rate 10,000/s with --cpu 2,000us keeps 20 cores busy, and --cores is 2"):
        prediction.predict(exact(), Load(10_000.0, 2000.0, cores=2.0))


def test_one_workload_stands_for_operations_like_its_own() -> None:
    alone = result(cells(*TRUTH)[1:2], fitted=False)
    found = one(alone, Load(2000.0, 300.0))
    assert found.basis == "operation"
    assert found.added_us.value == alone.cells[0].added["server_cpu"].mean
    assert "as for operations like those of any" in found.notes[0]
    with pytest.raises(
        UsageError, match="--response and --connections: run r did not measure what a byte and a connection cost"
    ):
        prediction.predict(alone, LOAD)


def test_a_run_without_a_servers_cpu_time_is_refused() -> None:
    with pytest.raises(UsageError, match="run r has no CPU time that encryption adds at a server; measure the parts"):
        prediction.predict(result([]), LOAD)


def test_parts_that_explain_too_little_are_said() -> None:
    bent = cells(*TRUTH)
    bent[2] = cells(*TRUTH, seed=9)[2]
    bent[2] = msgspec.structs.replace(
        bent[2], added={**bent[2].added, "server_cpu": msgspec.structs.replace(bent[2].added["server_cpu"], mean=40.0)}
    )
    assert "standard errors off the fit" in " ".join(one(result(bent)).notes)


# ── words ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_first_line_is_the_answer() -> None:
    text = prediction_text.page([one(result(cells(*TRUTH)))])
    assert text.startswith("16 cores at 3.75")
    assert "% would be at 3.8" in text.splitlines()[0]
    without = prediction_text.page([one(result(cells(*TRUTH)), msgspec.structs.replace(LOAD, cores=None))])
    assert without.startswith("postgresql tls would take ")


@pytest.mark.parametrize(("cpu", "words"), [(300.0, "% more ("), (2.0, " times (")])
def test_a_ratio_has_one_form(cpu: float, words: str) -> None:
    text = prediction_text.headline(one(exact(), Load(2000.0, cpu)))
    assert words in text
    assert ("% more" in text) != (" times" in text)


def test_an_interval_that_holds_zero_is_said_first() -> None:
    unsure = cells(*TRUTH, share=3.0)
    lines = prediction_text.page([one(result(unsure), Load(2000.0, 300.0))]).splitlines()
    assert lines[1].startswith("! the interval holds 0")


def test_a_cell_without_parts_is_named_beside_those_with_parts() -> None:
    """As in `quick`: PostgreSQL has parts, and SQLite one workload."""
    made = exact()
    other = msgspec.structs.replace(made.cells[0], engine="sqlite", mechanism="sqlcipher")
    found = one(msgspec.structs.replace(made, cells=[*made.cells, other]))
    assert [note for note in found.notes if "sqlite sqlcipher" in note]
    assert not [note for note in one(made).notes if "not predicted" in note]
