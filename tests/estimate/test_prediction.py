"""Predictions for loads that were not measured hold what the parts would cost, and refuse what was not measured."""

from __future__ import annotations

import math
import re

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.estimate import model_error, parts, prediction, unit_costs
from ciphercost.model.constrained_types import BY_SOCKET
from ciphercost.model.errors import UsageError
from ciphercost.model.prediction import Load, Prediction, Source
from ciphercost.model.result import Cell, Part, Result, Warning_
from ciphercost.report import prediction_text
from test_parts import cell, cells
from test_unit_costs import cell as unit_cell
from test_unit_costs import column

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
    (predicted,) = prediction.predict(of, load)
    return predicted


def added(load: Load) -> float:
    """What encryption really adds to an operation, µs."""
    handshake, request, byte = TRUTH
    return request + byte * (load.bytes_per_operation or 0.0) / 1e3 + handshake * load.connections / load.rate


@given(st.floats(1, 1e5), st.floats(1, 1e4), st.floats(0, 2e6), st.floats(0, 1e3))
def test_a_prediction_is_what_the_parts_add_whatever_an_operation_itself_costs(
    rate: float, cpu: float, sent: float, connections: float
) -> None:
    load = Load(rate, cpu, sent, connections)
    predicted = one(exact(), load)
    truth = added(load)
    assert predicted.added_us.value == pytest.approx(truth, rel=1e-3)
    assert predicted.request_us + predicted.bytes_us + predicted.connections_us == pytest.approx(
        predicted.added_us.value
    )
    assert predicted.ratio.value == pytest.approx(1 + truth / cpu, rel=1e-3)
    assert predicted.busy == pytest.approx(rate * cpu / 1e6)
    assert predicted.added_cores.value == pytest.approx(rate * truth / 1e6, rel=1e-3)


def test_a_run_from_a_unix_socket_to_tls_says_that_it_holds_the_cost_of_tcp_too() -> None:
    warned = [msgspec.structs.replace(cell, warnings=[Warning_(BY_SOCKET, "…")]) for cell in exact().cells]
    assert prediction.FROM_SOCKET.format("r") in one(result(warned)).notes
    assert "TCP" not in " ".join(one(exact()).notes)


def test_utilisation_is_that_of_all_cores() -> None:
    predicted = one(exact())
    assert predicted.utilisation == pytest.approx(2000 * 300e-6 / 16)
    assert predicted.utilisation_encrypted is not None
    assert predicted.utilisation_encrypted.value == pytest.approx(2000 * (300 + added(LOAD)) / 1e6 / 16, rel=1e-3)


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
    held = float(np.mean([added_us.low <= added(load) <= added_us.high for added_us in runs]))
    print(
        f"{load}: {held:.2f}, half-width {np.mean([added_us.high - added_us.low for added_us in runs]) / 2 / added(load):.1%}"
    )
    assert held >= 0.93


@given(st.floats(0, 100), st.floats(0, 1e3))
def test_parts_without_their_common_error_give_no_narrower_interval(connections: float, kilobytes: float) -> None:
    (server, _) = parts.split(cells(*TRUTH, share=0.02))
    older = msgspec.structs.replace(server, error=None)
    new, old = (parts.together(fit, connections, 1.0, kilobytes) for fit in (server, older))
    assert old.value == pytest.approx(new.value)
    assert old.high - old.low >= (new.high - new.low) * (1 - 1e-9)


def test_what_was_left_out_is_said() -> None:
    predicted = one(exact(), Load(2000.0, 300.0))
    assert predicted.added_us.value == pytest.approx(4 + 0.4 * 0.2, rel=1e-2)
    text = " ".join(prediction_text.page([predicted]).split())
    assert " 200 bytes on the wire" in text
    assert "connections are taken to stay open" in text
    assert "--response" not in " ".join(one(exact()).notes)
    several = " ".join(one(exact(), Load(2000.0, 300.0, round_trips=7.0)).notes)
    assert re.search(r"\b1,400 bytes .* each round trip", several)


def test_bytes_far_beyond_what_was_measured_are_a_guess() -> None:
    assert "is a guess" in " ".join(one(exact(), Load(10.0, 300.0, 5e6)).notes)
    assert "is a guess" not in " ".join(one(exact(), Load(10.0, 300.0, 1.5e6)).notes)


def test_a_server_that_would_be_saturated_is_said() -> None:
    predicted = one(exact(), Load(10_000.0, 199.0, 4000.0, 0.0, 2.0))
    assert predicted.utilisation_encrypted is not None
    assert predicted.utilisation_encrypted.value > 1
    assert "saturated" in " ".join(predicted.notes)


def test_a_load_that_the_cores_can_not_carry_is_refused() -> None:
    with pytest.raises(UsageError, match=r"--rate 10,000/s.*--cpu 2,000us.*\b20 cores.*--cores is 2\b"):
        prediction.predict(exact(), Load(10_000.0, 2000.0, cores=2.0))


def test_one_workload_stands_for_operations_like_its_own() -> None:
    alone = result(cells(*TRUTH)[1:2], fitted=False)
    predicted = one(alone, Load(2000.0, 300.0))
    assert predicted.basis == "operation"
    assert predicted.added_us.value == alone.cells[0].added["server_cpu"].mean
    assert "as for operations like those of any" in predicted.notes[0]
    with pytest.raises(UsageError, match=r"^--response and --connections: run r did not"):
        prediction.predict(alone, LOAD)


def test_a_run_without_a_servers_cpu_time_is_refused() -> None:
    with pytest.raises(UsageError, match=rf"run r has no CPU time.*{re.escape(prediction.HOW)}"):
        prediction.predict(result([]), LOAD)


def test_parts_that_explain_too_little_are_said() -> None:
    bent = cells(*TRUTH)
    bent[2] = cells(*TRUTH, seed=9)[2]
    bent[2] = msgspec.structs.replace(
        bent[2], added={**bent[2].added, "server_cpu": msgspec.structs.replace(bent[2].added["server_cpu"], mean=40.0)}
    )
    assert "standard errors off the fit" in " ".join(one(result(bent)).notes)


# ── the model's error ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("count", [3, 4, 5])
@pytest.mark.parametrize("off", [0.0, 0.1, 0.2])
def test_operations_that_lie_off_the_sum_of_their_causes_are_covered(count: int, off: float) -> None:
    """Fitted and predicted operations alike, up to the usual error; with 3 cells nothing in the run shows it."""
    load, held, widths = Load(9000.0, 20.0, 5000.0, 0.0), [], []
    for seed in range(150):
        random = np.random.default_rng([7, seed])
        drawn = cells(*TRUTH, share=0.02, seed=seed)
        drawn = [drawn[0], drawn[1], drawn[-1], *drawn[2:-1]][:count]
        bent = [
            msgspec.structs.replace(
                cell,
                added={
                    key: msgspec.structs.replace(one, mean=one.mean * (1 + random.normal(0, off)))
                    for key, one in cell.added.items()
                },
            )
            for cell in drawn
        ]
        added_us = one(result(bent), load).added_us
        truth = added(load) * (1 + random.normal(0, off))
        held.append(added_us.low <= truth <= added_us.high)
        widths.append((added_us.high - added_us.low) / 2 / added_us.value)
    print(f"\n{count} cells, off {off:.0%}: {np.mean(held):.1%}, half-width {np.median(widths):.0%}", end="")
    assert np.mean(held) >= 0.9
    assert np.median(widths) < (0.55 if off < 0.2 else 0.7), "or it would answer nothing"


def test_the_interval_says_what_makes_it_wide() -> None:
    predicted = one(exact())
    assert predicted.model_error == pytest.approx(model_error.USUAL * math.sqrt(5 / 7), rel=1e-3), (
        "two cells to spare show none"
    )
    assert f"by {100 * predicted.model_error:.0f} % (standard deviation)" in " ".join(
        prediction_text.page([predicted]).split()
    )


# ── round trips ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_each_statement_of_a_transaction_pays_for_its_own_round_trip() -> None:
    single, seven = (one(exact(), msgspec.structs.replace(LOAD, round_trips=trips)) for trips in (1.0, 7.0))
    assert seven.added_us.value - single.added_us.value == pytest.approx(6 * TRUTH[1], rel=1e-3)
    assert "for its 7 round trips" in " ".join(prediction_text.page([seven]).split())


@pytest.mark.parametrize(
    ("figure", "value", "words"),
    [
        ("round_trips", 1.0, "- 1 round trip per operation:"),
        ("round_trips", 1.5, "- 1.5 round trips per operation:"),
        ("value searched", 1.0, "- 1 search/s:"),
        ("page read", 1.0, "- 1 page read/s:"),
        ("rate", 1.0, "- 1 operation/s:"),
        ("cores", 10.0, "- 10 cores:"),
    ],
)
def test_one_of_something_is_not_several(figure: str, value: float, words: str) -> None:
    predicted = msgspec.structs.replace(one(exact()), sources=[Source(figure, value, "a log")])
    assert words in prediction_text.page([predicted])


def test_a_fitted_cell_counts_its_own_statements() -> None:
    """Else a transaction among the cells would make a request as dear as the transaction."""
    base_cells = cells(*TRUTH, share=1e-9)
    extra = cell(0.0, 500.0, 7 * TRUTH[1] + TRUTH[2] * 0.5, 1e-6)
    sent = [
        msgspec.structs.replace(extra, statements=7.0),
        msgspec.structs.replace(extra, traffic={"plain": {"round_trips": 7.0}}),
    ]
    for transaction in sent:
        (server, _) = parts.split([*base_cells, transaction])
        assert server.request_us.value == pytest.approx(TRUTH[1], rel=1e-2)
        assert server.worst < 1


# ── pages and values ──────────────────────────────────────────────────────────────────────────────────────────────────

READ, WRITTEN, OF_LOG = 10.0, 20.0, 0.5
"""µs for a page read, a page written and a kilobyte of log."""


def at_rest(*, log: bool = True) -> Result:
    mixes = [(1.0, 0.0, 0.0), (0.1, 1.0, 3.0), (2.0, 1.0, 8.0), (0.5, 0.1, 0.2)]
    of = [unit_cell(r * READ + w * WRITTEN + k * OF_LOG * log, 1e-6, r, w, k if log else None) for r, w, k in mixes]
    return Result(format=1, id="r", started="", tool={}, machine={}, seed=1, cells=of, costs=unit_costs.split(of))


@given(st.floats(0, 2000), st.floats(0, 2000), st.floats(0, 5000))
def test_at_rest_a_prediction_is_what_pages_and_log_add(read: float, written: float, log: float) -> None:
    load = Load(1000.0, 300.0, units={"page read": read, "page written": written, "kilobyte of log": log})
    predicted = one(at_rest(), load)
    truth = (read * READ + written * WRITTEN + log * OF_LOG) / 1000.0
    assert predicted.basis == "units"
    assert predicted.added_us.value == pytest.approx(truth, rel=0.02, abs=1e-6)
    assert sum(predicted.units_us.values()) == pytest.approx(predicted.added_us.value, abs=1e-9)
    assert predicted.added_us.low <= predicted.added_us.value <= predicted.added_us.high
    assert predicted.added_us.high - predicted.added_us.low <= 2 * predicted.added_us.value + 1e-6


def test_at_rest_log_that_was_not_given_is_taken_as_measured_and_said() -> None:
    predicted = one(at_rest(), Load(1000.0, 300.0, units={"page written": 100.0}))
    kilobytes = 100.0 * (3.0 + 8.0 + 0.2) / 2.1
    assert predicted.added_us.value == pytest.approx((100 * WRITTEN + kilobytes * OF_LOG) / 1000, rel=0.02)
    text = " ".join(prediction_text.page([predicted]).split())
    assert re.search("KB of log .* is taken.*--log", text)
    assert "for pages written" in text


def test_pages_and_log_that_were_fitted_together_are_predicted_together() -> None:
    of = at_rest(log=False)
    whole = unit_costs.split(of.cells[1:2])
    assert [cost.unit for cost in whole] == ["page"]
    predicted = one(
        msgspec.structs.replace(of, costs=whole), Load(1000.0, 300.0, units={"page read": 50.0, "page written": 60.0})
    )
    assert predicted.added_us.value == pytest.approx(110 * whole[0].us.value / 1000)


@pytest.mark.parametrize(
    ("us", "words"), [(-3.0, "costs less than nothing"), (900.0, "times what its cipher alone does")]
)
def test_a_cost_that_can_not_be_believed_is_said(us: float, words: str) -> None:
    of = at_rest()
    doubted = [msgspec.structs.replace(cost, us=Part(us, us - 1, us + 1), floor_us=6.0) for cost in of.costs[:1]]
    load = Load(1000.0, 300.0, units={"page read": 10.0})
    predicted = one(msgspec.structs.replace(of, costs=[*doubted, *of.costs[1:]]), load)
    assert words in " ".join(predicted.notes)
    assert "by the fit" not in " ".join(one(of, load).notes)


def test_a_unit_that_the_cells_do_not_tell_is_refused_if_given_and_named_if_read() -> None:
    reads = [cell for cell in at_rest(log=False).cells if cell.enciphered is not None][:1]
    of = Result(format=1, id="r", started="", tool={}, machine={}, seed=1, cells=reads, costs=unit_costs.split(reads))
    load = Load(1000.0, 300.0, units={"page read": 10.0, "page written": 10.0})
    with pytest.raises(UsageError, match=r"mariadb-tde.*run r .*what a page written costs.*--pages-written"):
        prediction.predict(of, load)
    (predicted,) = prediction.predict(of, load, read={"page read", "page written"})
    (left_out,) = (note for note in predicted.notes if note.startswith("left out"))
    assert left_out.endswith(": 10 a second of: page written")


def test_in_columns_a_prediction_is_what_values_add() -> None:
    mixes = [(1.0, 0.0, 0.0), (0.0, 4.0, 0.0), (0.0, 0.0, 1.0)]
    of = [column(s * 3 + o * 2 + q * 900, 1e-6, sealed=s, opened=o, searched=q) for s, o, q in mixes]
    of = [msgspec.structs.replace(cell, rows=2000) for cell in of]
    measured = Result(format=1, id="r", started="", tool={}, machine={}, seed=1, cells=of, costs=unit_costs.split(of))
    predicted = one(measured, Load(1000.0, 300.0, units={"value opened": 5000.0, "value searched": 10.0}))
    assert predicted.added_us.value == pytest.approx((5000 * 2 + 10 * 900) / 1000, rel=1e-2)
    text = " ".join(prediction_text.page([predicted]).split())
    assert "for searches" in text
    assert "a table of 2,000 rows" in text


def test_a_run_of_both_layers_predicts_what_was_asked() -> None:
    """As `quick`: PostgreSQL in transit, SQLite at rest."""
    wire, rest = exact(), at_rest()
    both = msgspec.structs.replace(
        wire, cells=[*wire.cells, *rest.cells],
        costs=[msgspec.structs.replace(cost, cells=[number + len(wire.cells) for number in cost.cells]) for cost in rest.costs],
    )  # fmt: skip
    in_transit = prediction.predict(both, Load(1000.0, 300.0))
    assert [answer.basis for answer in in_transit] == ["parts"]
    (not_predicted,) = (note for note in in_transit[0].notes if note.startswith("not predicted"))
    assert re.search("mariadb mariadb-tde; .*--pages-read .*--pages-written .*--log$", not_predicted)
    pages = Load(1000.0, 300.0, units={"page read": 1.0})
    assert [answer.basis for answer in prediction.predict(both, pages)] == ["units"]
    assert [answer.basis for answer in prediction.predict(both, msgspec.structs.replace(pages, connections=1.0))] == [
        "parts",
        "units",
    ]


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
    measured = exact()
    other = msgspec.structs.replace(measured.cells[0], engine="sqlite", mechanism="sqlcipher")
    predicted = one(msgspec.structs.replace(measured, cells=[*measured.cells, other]))
    assert [note for note in predicted.notes if "sqlite sqlcipher" in note]
    assert not [note for note in one(measured).notes if "not predicted" in note]
