"""Predictions for logs hold what their counts would cost, whatever the hours; their intervals are those of `prediction`."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.estimate import log_counts, log_prediction, parts, prediction
from ciphercost.estimate.log_prediction import Known
from ciphercost.model.errors import UsageError
from ciphercost.model.log_prediction import LogCounts, LogPrediction
from ciphercost.model.prediction import Load
from ciphercost.model.result import Added, Part, Price, Result
from ciphercost.model.traffic import Bin, Connections, Hour, LeftOut, Traffic
from ciphercost.report import log_prediction_document
from ciphercost.report.renderers import md, terminal
from ciphercost.report.words import log_text
from test_parts import cell, cells

TRUTH = (900.0, 4.0, 0.4)
"""Handshake and request, µs; byte, ns."""
PLAIN = (150.0, 20.0, 0.3)
"""The same without encryption; of the byte, µs per thousand."""
START = 804_556_800
"""1995-07-01 00:00 UTC."""


def run(share: float = 1e-9, seed: int = 1) -> Result:
    of = cells(*TRUTH, share=share, seed=seed)
    for each in of:
        arm = each.arms["plain"]
        connects = arm["connects"] / arm["operations"]
        arm["server_cpu_us_per_op"] = PLAIN[0] * connects + PLAIN[1] + PLAIN[2] * arm["wire_bytes_per_op"] / 1e3
    return Result(
        format=1, id="r", started="", tool={}, machine={"cpu": "a CPU"}, seed=1, cells=of, parts=parts.split(of)
    )


def traffic(hours: list[Hour], begin: float = START, end: float | None = None) -> Traffic:
    last = hours[-1].start + 3599.0 if end is None else end
    return Traffic(
        kind="web",
        formats=["combined"],
        lines=sum(hour.operations for hour in hours),
        begin=begin,
        end=last,
        hours=hours,
        connections=Connections("logged", "$connection"),
    )


def one(of: Traffic, known: Known = log_prediction.NOTHING, result: Result | None = None) -> LogPrediction:
    (predicted,) = log_prediction.predict(result or run(), *log_counts.of(of), known)
    return predicted


def added(hour: Hour) -> float:
    """Seconds of CPU that encryption really adds to an hour, without headers: the cells' answers have no size of their own."""
    handshake, request, byte = TRUTH
    return (hour.connections * handshake + hour.operations * request + hour.bytes_out * byte / 1e3) / 1e6


HOURS = st.lists(st.tuples(st.integers(1, 10**7), st.integers(1, 10**12), st.floats(0, 1)), min_size=1, max_size=6).map(
    lambda drawn: [
        Hour(START + 3600 * place, operations, sent, share * operations)
        for place, (operations, sent, share) in enumerate(drawn)
    ]
)


@given(HOURS)
def test_each_hour_and_the_whole_log_hold_what_their_counts_add(hours: list[Hour]) -> None:
    predicted = one(traffic(hours))
    for hour, stretch in zip(hours, predicted.hours, strict=True):
        assert stretch.cpu_seconds.value == pytest.approx(added(hour), rel=1e-3)
        assert stretch.cores.value == pytest.approx(added(hour) / 3600, rel=1e-3)
        assert stretch.handshakes_s + stretch.requests_s + stretch.bytes_s == pytest.approx(stretch.cpu_seconds.value)
        assert stretch.cpu_seconds.low < stretch.cpu_seconds.value < stretch.cpu_seconds.high
    assert predicted.whole.cpu_seconds.value == pytest.approx(
        sum(stretch.cpu_seconds.value for stretch in predicted.hours)
    )
    assert predicted.whole.cores.value == pytest.approx(
        predicted.whole.cpu_seconds.value / (3600 * len(hours)), rel=1e-3
    )
    assert predicted.hours[predicted.busiest].cores.value == max(stretch.cores.value for stretch in predicted.hours)


@given(HOURS)
def test_an_hour_has_the_interval_that_predict_gives_the_same_load(hours: list[Hour]) -> None:
    result = run(share=0.03)
    hour = one(traffic(hours), result=result).hours[0]
    counts = hour.counts
    load = Load(
        counts.operations / 3600,
        100.0,
        (counts.bytes or 0.0) / counts.operations,
        counts.connections / 3600,
    )
    (same,) = prediction.predict(result, load)
    assert hour.cores.value == pytest.approx(same.added_cores.value)
    assert hour.cores.low == pytest.approx(same.added_cores.low)
    assert hour.cores.high == pytest.approx(same.added_cores.high)


def test_the_intervals_keep_their_coverage() -> None:
    hour = Hour(START, 10_000, 10**8, 2000.0)
    held = [
        stretch.low <= added(hour) <= stretch.high
        for seed in range(200)
        for stretch in [one(traffic([hour]), result=run(0.02, seed)).whole.cpu_seconds]
    ]
    assert np.mean(held) >= 0.93


# ── hours ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_minute_at_the_end_is_not_the_busiest_hour() -> None:
    hours = [Hour(START, 36_000, 10**6, 0.0), Hour(START + 3600, 1800, 10**5, 0.0)]
    predicted = one(traffic(hours, end=START + 3600 + 59.0))
    assert predicted.hours[1].counts.seconds == pytest.approx(60.0)
    assert predicted.hours[1].cores.value > predicted.hours[0].cores.value
    assert predicted.busiest == 0
    assert "(1 min)" in terminal.text(log_prediction_document.of(predicted))


def test_a_log_of_one_minute_has_a_busiest_hour_all_the_same() -> None:
    predicted = one(traffic([Hour(START, 600, 10**5, 0.0)], begin=START + 60.0, end=START + 119.0))
    assert predicted.busiest == 0
    assert predicted.whole.counts.seconds == pytest.approx(60.0)
    assert predicted.whole.cores.value == pytest.approx(predicted.hours[0].cores.value)


@given(st.floats(0, 3599), st.floats(0, 3599))
def test_seconds_of_hours_sum_up_to_those_of_a_log_without_gaps(first: float, last: float) -> None:
    hours = [Hour(START + 3600 * place, 10, 10, 0.0) for place in range(3)]
    whole, each = log_counts.of(traffic(hours, START + first, START + 7200 + last))
    assert sum(hour.seconds for hour in each) == pytest.approx(whole.seconds, abs=2.0)
    assert all(1.0 <= hour.seconds <= 3600.0 for hour in each)


def test_a_log_without_operations_is_refused() -> None:
    with pytest.raises(UsageError, match="no operations, so there is nothing"):
        log_counts.of(Traffic(kind="web", formats=[]))
    with pytest.raises(UsageError, match=r"7 operations without times.*--rate"):
        log_counts.of(Traffic(kind="sql", formats=[], operations=7))


# ── what is assumed ───────────────────────────────────────────────────────────────────────────────────────────────────

DAY = [Hour(START + 3600 * hour, 3600 * (1 + hour % 7), 10**7, 360.0) for hour in range(24)]


def test_the_cpu_time_of_an_operation_gives_shares_and_cores() -> None:
    predicted = one(traffic(DAY), Known(cpu_us=300.0, cores=2.0))
    busiest = predicted.hours[predicted.busiest]
    assert predicted.busiest == 6
    assert predicted.plain_from == "--cpu"
    assert busiest.utilisation == pytest.approx(7 * 300e-6 / 2)
    assert busiest.utilisation_encrypted is not None
    assert busiest.utilisation_encrypted.value == pytest.approx((7 * 300e-6 + busiest.cores.value) / 2)
    assert busiest.ratio is not None
    assert busiest.ratio.value == pytest.approx(1 + busiest.cores.value / (7 * 300e-6))
    assert terminal.text(log_prediction_document.of(predicted)).startswith("2 cores at 0.1")


def test_without_it_the_runs_own_server_is_the_base() -> None:
    predicted = one(traffic(DAY))
    hour = DAY[0]
    plain = (hour.connections * PLAIN[0] + hour.operations * PLAIN[1] + hour.bytes_out / 1e3 * PLAIN[2]) / 1e6
    assert predicted.plain_from == "run"
    assert predicted.hours[0].plain_cpu_seconds == pytest.approx(plain, rel=1e-6)
    text = " ".join(terminal.text(log_prediction_document.of(predicted)).split())
    assert "as the run's own server takes" in text


def test_cells_without_a_servers_cpu_time_give_no_base() -> None:
    bare = cells(*TRUTH)
    assert parts.plain_costs(bare) is None
    assert parts.plain_costs(run().cells[1:]) is None, "no cell opens connections"


def test_a_log_without_sizes_takes_the_smallest_answer_and_says_so() -> None:
    bare = [msgspec.structs.replace(hour, bytes_out=0) for hour in DAY]
    predicted = one(traffic(bare))
    operations = sum(hour.operations for hour in bare)
    assert predicted.whole.counts.bytes is None
    assert predicted.whole.bytes_s == pytest.approx(operations * 200 * TRUTH[2] / 1e9, rel=1e-3)
    assert any("no sizes of answers" in note and "--response" in note for note in predicted.notes)
    given_ = one(traffic(bare), Known(bytes_per_operation=1000.0))
    assert given_.whole.bytes_s == pytest.approx(5 * predicted.whole.bytes_s)
    assert not any("no sizes" in note for note in given_.notes)


def test_headers_count_as_they_were_measured() -> None:
    result = run()
    sized = [
        msgspec.structs.replace(each, factors={"size": str(size)})
        for each, size in zip(result.cells[1:], (0, 10_000, 100_000, 1_000_000), strict=True)
    ]
    predicted = one(traffic(DAY), result=msgspec.structs.replace(result, cells=[result.cells[0], *sized]))
    operations, sent = sum(hour.operations for hour in DAY), sum(hour.bytes_out for hour in DAY)
    assert predicted.whole.bytes_s == pytest.approx((200 * operations + sent) * TRUTH[2] / 1e9, rel=1e-3)
    assert any("200 bytes of headers" in note for note in predicted.notes)


@given(st.floats(1, 1000))
def test_requests_per_connection_replace_what_was_found(per: float) -> None:
    whole, hours = log_counts.of(traffic(DAY), per)
    assert whole.connections == pytest.approx(whole.operations / per)
    assert all(hour.connections == pytest.approx(hour.operations / per) for hour in hours)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Connections(), "does not tell how many connections"),
        (Connections("estimate", "client and gap", [Bin(4.0, 5)]), "are an estimate (client and gap): 37.5 requests for each"),
        (Connections("logged", "", [], resumed=0.4), "40 % of the connections resumed"),
        (Connections("logged", "", [], encrypted=0.9), "90 % of the requests were encrypted already"),
    ],
)  # fmt: skip
def test_what_the_log_leaves_open_is_said(found: Connections, words: str) -> None:
    of = msgspec.structs.replace(traffic(DAY), connections=found)
    assert any(words in note for note in log_counts.notes(of, log_counts.of(of)[0], "request"))


def test_lines_that_count_for_nothing_are_said() -> None:
    of = msgspec.structs.replace(traffic(DAY), lines=2000, left_out=[LeftOut("no time", 12, "a.log", 3)])
    assert any(note.startswith("12 of 2,000 lines") for note in log_counts.notes(of, log_counts.of(of)[0], "request"))
    assert log_counts.notes(traffic(DAY), log_counts.of(traffic(DAY))[0], "request") == []


def test_connections_whose_beginning_is_unknown_are_spread_over_the_hours() -> None:
    bare = [msgspec.structs.replace(hour, connections=0.0) for hour in DAY]
    found = Connections("estimate", "one for each process", [Bin(50.0, 9)])
    whole, hours = log_counts.of(msgspec.structs.replace(traffic(bare), connections=found))
    assert whole.connections == pytest.approx(9)
    assert sum(hour.connections for hour in hours) == pytest.approx(9)
    assert hours[6].connections == pytest.approx(7 * hours[0].connections)


def test_every_statement_of_a_database_counts_also_within_transactions() -> None:
    hours = [Hour(START, 100, 0, 5.0, statements=700), Hour(START + 3600, 0, 0, 1.0, statements=3)]
    whole, each = log_counts.of(traffic(hours))
    assert [hour.operations for hour in each] == [700, 3]
    assert whole.operations == 703
    assert whole.connections == 6


@pytest.mark.parametrize(("operation", "said"), [("statement", True), ("request", False)])
def test_only_of_statements_it_says_that_those_sent_as_text_may_cost_more(operation: str, said: bool) -> None:
    whole, hours = log_counts.of(traffic(DAY))
    (found,) = log_prediction.predict(run(), whole, hours, operation=operation)
    assert (log_prediction.PARSED in found.notes) is said


def test_a_transaction_of_a_replay_counts_as_its_statements() -> None:
    truth = 0.1 * TRUTH[0] + TRUTH[1] + TRUTH[2]
    other = replay(7 * truth, 1.0, 0.7, 7000.0)
    other.cells[0] = msgspec.structs.replace(other.cells[0], statements=7.0)
    hours = [Hour(START, 10_000, 10**7, 1000.0)]
    (replayed,) = log_prediction.beside(one(traffic(hours)), SPLIT, other, run()).replays
    assert replayed.measured_us.value == pytest.approx(truth)
    assert replayed.agree
    assert not log_text.differs(replayed)


def test_answers_far_larger_than_measured_are_a_guess() -> None:
    huge = [Hour(START, 10, 10**9, 1.0)]
    assert any("is a guess" in note for note in one(traffic(huge)).notes)


def test_a_busiest_hour_that_saturates_the_cores_is_said() -> None:
    heavy = [Hour(START, 36_000_000, 10**9, 3_600_000.0)]
    predicted = one(traffic(heavy), Known(cpu_us=90.0, cores=1.0))
    assert any("saturated" in note for note in predicted.notes)


def test_a_run_without_parts_is_refused() -> None:
    bare = msgspec.structs.replace(run(), parts=[])
    with pytest.raises(UsageError, match=r"did not measure what a handshake, a request and a byte cost.*--split"):
        log_prediction.predict(bare, *log_counts.of(traffic(DAY)))


def test_money_is_that_of_the_added_cores() -> None:
    priced = log_prediction_document.at_price(one(traffic(DAY)), Price(0.04, "hour", "$"))
    hour = priced.hours[priced.busiest]
    assert hour.per_month is not None
    assert hour.per_month.value == pytest.approx(hour.cores.value * 0.04 * 730)
    text = " ".join(terminal.text(log_prediction_document.of(priced)).split())
    assert "money at $0.04 per vCPU-hour" in text


# ── beside a replay ───────────────────────────────────────────────────────────────────────────────────────────────────


def replay(us: float, half: float, connects: float, wire: float) -> Result:
    replayed = cell(connects, wire, us, half / 2, "mine")
    replayed.arms["plain"]["server_cpu_us_per_op"] = 50.0
    replayed.added["server_cpu"] = Added(us, us - half, us + half, half / 2, 8)
    return Result(format=1, id="s", started="", tool={}, machine={"cpu": "a CPU"}, seed=1, cells=[replayed])


(SPLIT,) = log_prediction.measured(run())


def beside(us: float, half: float = 1.0, connects: float = 0.1, wire: float = 1000.0) -> LogPrediction:
    hours = [Hour(START, 10_000, 10**7, 1000.0)]
    return log_prediction.beside(one(traffic(hours)), SPLIT, replay(us, half, connects, wire), run())


def test_a_replay_that_measured_the_same_agrees() -> None:
    truth = 0.1 * TRUTH[0] + TRUTH[1] + TRUTH[2]
    (replayed,) = beside(truth).replays
    assert replayed.off == pytest.approx(0.0, abs=1e-3)
    assert replayed.agree
    assert not log_text.differs(replayed)
    text = " ".join(terminal.text(log_prediction_document.of(beside(truth))).split())
    assert "they agree" in text


@pytest.mark.parametrize(("us", "agree"), [(130.0, True), (300.0, False), (20.0, False)])
def test_whether_they_agree_is_decided_by_both_intervals(us: float, agree: bool) -> None:
    (replayed,) = beside(us).replays
    half = (replayed.predicted_us.high - replayed.predicted_us.low) / 2
    assert replayed.agree == (abs(us - replayed.predicted_us.value) <= np.hypot(half, 1.0)) == agree


def test_a_replay_with_other_connections_is_predicted_for_these_too() -> None:
    (replayed,) = beside(50.0, connects=0.02).replays
    assert replayed.replayed_us.value == pytest.approx(0.02 * TRUTH[0] + TRUTH[1] + TRUTH[2], rel=1e-3)
    text = " ".join(terminal.text(log_prediction_document.of(beside(50.0, connects=0.02))).split())
    assert "predicted for the replay" in text


def test_a_run_of_another_server_is_refused_as_replay() -> None:
    other = replay(9.0, 1.0, 0.1, 1000.0)
    other.cells[0] = msgspec.structs.replace(other.cells[0], engine="nginx")
    with pytest.raises(UsageError, match="--against s: it has no cell of postgresql with tls"):
        log_prediction.beside(one(traffic(DAY)), SPLIT, other, run())


def test_another_cpu_is_said() -> None:
    other = msgspec.structs.replace(replay(9.0, 1.0, 0.1, 1000.0), machine={"cpu": "another CPU"})
    (replayed,) = log_prediction.beside(one(traffic(DAY)), SPLIT, other, run()).replays
    assert any(note.startswith("CPU differs") for note in replayed.notes)


# ── forms ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_terminal_has_the_hours_that_cost_most_and_markdown_all() -> None:
    document = log_prediction_document.of(one(traffic(DAY)))
    text, markdown = terminal.text(document), md.text(document)
    assert text.count("1995-07-01") == 2 + log_prediction_document.SHOWN
    assert markdown.count("1995-07-01") == 2 + log_prediction_document.SHOWN + 24
    assert max(map(len, text.splitlines())) <= 80
    assert "<details>" in markdown


def test_an_interval_that_holds_zero_is_said() -> None:
    unsure = run(share=3.0)
    text = terminal.text(log_prediction_document.of(one(traffic(DAY), result=unsure)))
    assert "! the interval holds 0" in text


def test_counts_are_data() -> None:
    predicted = one(traffic(DAY))
    data = msgspec.json.decode(msgspec.json.encode(predicted), type=LogPrediction)
    assert data == predicted
    assert isinstance(data.whole.counts, LogCounts)
    assert isinstance(data.whole.cores, Part)
