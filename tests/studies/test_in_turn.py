"""The procedure that several studies share: one arm under load, then the other; and how its record is read."""

from __future__ import annotations

import pytest

from ciphercost.load import workloads
from ciphercost.model.errors import UsageError
from ciphercost.model.study import StudyRecord, StudyRun
from ciphercost.studies import figures, in_turn


def record() -> StudyRecord:
    record = StudyRecord(1, "x", "x", "tls")
    record.runs = [
        StudyRun("get", "plain", 0.0, {}, {in_turn.RATE: [100.0, 120.0]}, server="a"),
        StudyRun("get", "encrypted", 0.0, {}, {in_turn.RATE: [50.0]}, server="a"),
        StudyRun("get", "plain", 0.0, {}, {in_turn.RATE: [10.0, 11.0]}, server="b"),
    ]
    return record


def test_a_rate_is_the_mean_of_its_runs_on_its_server() -> None:
    kept = record()
    assert in_turn.rates(kept, "get", "plain", "a") == [100.0, 120.0]
    assert in_turn.rate(kept, "get", "plain", "a") == 110.0
    assert in_turn.rate(kept, "get", "plain", "b") == 10.5
    assert in_turn.rate(kept, "get", "encrypted", "b") is None
    assert in_turn.rate(kept, "set", "plain", "a") is None


def test_the_widest_scatter_is_that_of_one_arm_with_several_runs() -> None:
    assert in_turn.widest(record()) == pytest.approx(1.2)
    assert in_turn.widest(record(), lambda run: run.server == "b") == pytest.approx(1.1)
    assert in_turn.widest(record(), lambda run: run.arm == "encrypted") is None


def test_a_quotient_needs_both_values() -> None:
    assert in_turn.ratio(1.0, 2.0) == 0.5
    assert in_turn.ratio(None, 2.0) is None
    assert in_turn.ratio(1.0, None) is None
    assert in_turn.ratio(1.0, 0.0) is None


def test_one_transaction_of_a_workload_is_left() -> None:
    whole = workloads.prepare(workloads.get("valkey-tls/commands"), "valkey", {}, 0)
    assert [name for name, _, _ in whole.transactions] == ["set-get", "set", "get"]
    assert [name for name, _, _ in in_turn.only(whole, "get").transactions] == ["get"]


@pytest.mark.parametrize("seconds", [0.1, 4000.0])
def test_a_run_has_a_length_in_reason(seconds: float) -> None:
    assert in_turn.duration_of({}, 8.0) == 8.0
    assert in_turn.duration_of({"duration": 2}, 8.0) == 2.0
    with pytest.raises(UsageError, match="--duration"):
        in_turn.duration_of({"duration": seconds}, 8.0)


def test_a_ratio_of_times_is_the_inverse_of_that_of_rates() -> None:
    from ciphercost.model.result import Estimate

    estimate = figures.inverse(Estimate(0.5, 0.4, 0.8, n=3))
    assert estimate is not None
    assert (estimate.ratio, estimate.low, estimate.high, estimate.n) == (2.0, 1.25, 2.5, 3)
    assert figures.inverse(None) is None
