"""Readers for the benchmarks of Kafka, RabbitMQ, NATS and etcd, on what these printed here (`brokers/`), whole, cut, twice and garbled.

kafka-tools 4.1.1, PerfTest 2.22.1, natscli 0.3.0, etcd's benchmark 3.6.7.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.importers import formats, gather
from ciphercost.importers.choices import Choices
from ciphercost.importers.formats import Bad, Lines
from ciphercost.model.errors import UsageError
from ciphercost.model.imported import Reading

OUTPUTS = {path.stem: path.read_text() for path in sorted((Path(__file__).parent / "brokers").glob("*.txt"))}
READERS = {name: next(each for each in formats.names() if name.startswith(each)) for name in OUTPUTS}


def read(name: str, text: str) -> list[Reading]:
    return formats.get(name).read(Lines(text.splitlines(keepends=True)))


def only(name: str, text: str | None = None) -> Reading:
    (reading,) = read(READERS[name], OUTPUTS[name] if text is None else text)
    return reading


@pytest.mark.parametrize("name", OUTPUTS)
def test_an_output_is_recognised_by_its_own_reader_alone(name: str, tmp_path: Path) -> None:
    assert list(formats.recognised(OUTPUTS[name])) == [READERS[name]]
    (tmp_path / "plain.txt").write_text(OUTPUTS[name])
    (reading,) = gather.gather([tmp_path / "plain.txt"], Choices(only="plain"))[0].readings
    assert reading.figures == only(name).figures


def test_kafkas_producer() -> None:
    reading = only("kafka_producer_perf_test")
    assert (reading.operations, reading.workload, reading.digits) == (300_000, "produce", 5)
    assert reading.seconds == pytest.approx(64.69, abs=0.01)
    assert reading.figures == {
        "throughput": 4637.3,
        "latency_mean": 5582.3,
        "latency_p50": 5130.0,
        "latency_p99": 11125.0,
    }


SUMMARY = "{n} records sent, 5000.0 records/sec (4.77 MB/sec), 1.50 ms avg latency, 90.00 ms max latency, 0 ms 50th, 3 ms 95th, 7 ms 99th, 8 ms 99.9th.\n"


def test_kafkas_steady_state_counts_and_its_warm_up_does_not() -> None:
    (reading,) = read("kafka_producer_perf_test", SUMMARY.format(n=90000) + SUMMARY.format(n="40000 steady state"))
    assert (reading.operations, reading.seconds) == (40000, 8.0)
    assert reading.figures == {"throughput": 5000.0, "latency_mean": 1.5, "latency_p99": 7.0}  # 0 ms is no time
    assert len(read("kafka_producer_perf_test", 2 * SUMMARY.format(n=90000))) == 2


def test_kafkas_decimal_comma_is_read() -> None:
    text = SUMMARY.format(n=90000).replace("5000.0", "5000,5").replace("4.77", "4,77").replace("1.50", "1,50")
    (reading,) = read("kafka_producer_perf_test", text.replace("90.00", "90,00"))
    assert (reading.figures["throughput"], reading.figures["latency_mean"]) == (5000.5, 1.5)


def test_records_that_kafka_refused_are_errors_and_most_of_them_are_no_result() -> None:
    error = "org.apache.kafka.common.errors.TimeoutException: Expiring 16 record(s) for load-0:120006 ms has passed\n"
    (reading,) = read("kafka_producer_perf_test", 3 * error + SUMMARY.format(n=90000))
    assert reading.errors == 3
    assert "errors" in {note.code for note in reading.notes}
    with pytest.raises(Bad, match="4 records failed and 3 were sent"):
        read("kafka_producer_perf_test", 4 * error + SUMMARY.format(n=3))
    with pytest.raises(Bad, match="has no summary"):
        read("kafka_producer_perf_test", OUTPUTS["kafka_producer_perf_test"].partition("300000")[0])


def test_a_rate_that_kafkas_producer_was_given_leaves_latency_only(tmp_path: Path) -> None:
    path = tmp_path / "plain.txt"
    command = "$ kafka-producer-perf-test.sh --topic load --num-records 90000 --record-size 100 --throughput {}\n"
    path.write_text(command.format(5000) + SUMMARY.format(n=90000))
    (reading,) = gather.gather([path], Choices(only="plain"))[0].readings
    assert set(reading.figures) == {"latency_mean", "latency_p99"}
    path.write_text(command.format(-1) + SUMMARY.format(n=90000))
    (reading,) = gather.gather([path], Choices(only="plain"))[0].readings
    assert reading.figures["throughput"] == 5000.0


def test_kafkas_consumer_counts_without_joining_its_group() -> None:
    reading = only("kafka_consumer_perf_test")
    assert (reading.operations, reading.seconds) == (300_008, 20.025)
    assert reading.figures == {"throughput": 14981.6729}
    assert reading.ended is not None
    assert reading.started is not None
    assert reading.ended - reading.started == pytest.approx(26.412)
    assert reading.clock == "local"


def test_kafkas_consumer_before_1_1_and_without_header() -> None:
    row = OUTPUTS["kafka_consumer_perf_test"].splitlines()[1]
    (reading,) = read("kafka_consumer_perf_test", ", ".join(row.split(", ")[:6]) + "\n")
    assert reading.figures == {"throughput": 11358.7763}
    assert [note.code for note in reading.notes] == ["join-included"]
    (bare,) = read("kafka_consumer_perf_test", row + "\n")
    assert bare.figures == only("kafka_consumer_perf_test").figures
    (comma,) = read("kafka_consumer_perf_test", row.replace(".", ",") + "\n")
    assert comma.figures == bare.figures


def test_kafkas_consumer_that_waited_for_more_is_refused() -> None:
    waited = "WARNING: Exiting before consuming the expected number of messages: timeout (10000 ms) exceeded. You can use the --timeout option\n"
    header, row = OUTPUTS["kafka_consumer_perf_test"].splitlines(keepends=True)
    for told in (waited, waited.replace("messages", "records")):  # other names in other versions
        with pytest.raises(Bad, match="the tool waited 10,000 ms for more messages than the 300,008 that it got"):
            read("kafka_consumer_perf_test", header + told + row)
    with pytest.raises(Bad, match="than there were"):
        read("kafka_consumer_perf_test", header + waited)
    with pytest.raises(Bad, match="has no line of figures"):
        read("kafka_consumer_perf_test", header)
    detail = "2026-11-29 07:58:06:281, 0, 3.9072, 7.7199, 4097, 8094.8617, 0, 506, 7.7199, 8094.8617\n"
    with pytest.raises(Bad, match="show-detailed-stats"):
        read("kafka_consumer_perf_test", header + detail)
    with pytest.raises(Bad, match="8 figures"):
        read("kafka_consumer_perf_test", header + ", ".join(row.strip().split(", ")[:8]) + "\n")


def test_rabbitmqs_messages_count_when_they_are_received() -> None:
    reading = only("rabbitmq_perf_test")
    assert (reading.workload, reading.seconds) == ("publish and consume", 3.004)
    assert reading.figures == pytest.approx(
        {"throughput": 747.0, "latency_p50": 568.891, "latency_p99": 1019.784}
    )  # µs in the output
    assert [note.code for note in reading.notes] == ["queue-changed"]
    confirmed = only("rabbitmq_perf_test_confirms")
    assert (confirmed.figures["throughput"], confirmed.notes) == (236.0, [])
    assert confirmed.figures["latency_p99"] == pytest.approx(178.698)  # the consumer's, not that of confirms


def test_rabbitmqs_compact_output_without_consumers() -> None:
    reading = only("rabbitmq_perf_test_compact")
    assert (reading.workload, reading.seconds) == ("publish", 3.001)
    assert reading.figures == pytest.approx({"throughput": 3799.0, "latency_p50": 6.641, "latency_p99": 47.581})


def test_messages_that_rabbitmq_did_not_take_are_told() -> None:
    text = OUTPUTS["rabbitmq_perf_test_confirms"].replace("nacked: 0 msg/s", "nacked: 12 msg/s", 1)
    assert [note.code for note in only("rabbitmq_perf_test_confirms", text).notes] == ["errors"]
    silent = OUTPUTS["rabbitmq_perf_test_confirms"].replace("avg: 237", "avg: 0").replace("avg: 236", "avg: 0")
    with pytest.raises(Bad, match="no message was sent or received"):
        only("rabbitmq_perf_test_confirms", silent)


def test_nats_synchronous_publisher_has_a_latency_and_others_have_none() -> None:
    reading = only("nats_bench")
    assert (reading.operations, reading.clients, reading.workload) == (3000, 1, "JetStream synchronous publisher")
    assert reading.figures == {"throughput": 3199.0, "latency_mean": pytest.approx(0.31258)}
    several = only("nats_bench_clients")
    assert (several.operations, several.clients) == (20_000, 3)
    assert several.figures == {"throughput": 34213.0}
    assert several.factors == {"message size": "256 B"}


def test_a_subscriber_of_nats_gets_every_message() -> None:
    text = (
        "08:00:04 Starting Core NATS subscriber benchmark [clients=2, msg-size=128 B, msgs=5,000, multi-subject=false, subject=a]\n"
        "NATS Core NATS subscriber aggregated stats: 80,000 msgs/sec ~ 11 MiB/sec\n"
    )
    (reading,) = read("nats_bench", text)
    assert (reading.operations, reading.seconds) == (10_000, 0.125)
    with pytest.raises(Bad, match="has no line 'stats"):
        read("nats_bench", text.splitlines(keepends=True)[0])


def test_nats_from_0_4_on_prints_quantiles_and_a_core_publisher_waits_for_nothing() -> None:
    line = (
        "NATS {} stats: 3,224 msgs/sec ~ 394 KiB/sec ~ min: 100us ~ avg: 310.21us ~ max: 1,205.08us ~ P50: 300.08us ~ P90: 350us"
        " ~ P99: 1,000.5us ~ P99.9: 1,121.41us\n"
    )
    (reading,) = read("nats_bench", line.format("Core NATS service requester"))
    assert reading.figures == pytest.approx(
        {"throughput": 3224.0, "latency_mean": 0.31021, "latency_p50": 0.30008, "latency_p99": 1.0005}
    )
    (core,) = read("nats_bench", line.format("Core NATS publisher"))
    assert (core.figures, [note.code for note in core.notes]) == ({"throughput": 3224.0}, ["not-confirmed"])


def test_a_pause_of_nats_is_a_rate() -> None:
    text = OUTPUTS["nats_bench"].replace("sleep=0s", "sleep=1ms")
    reading = only("nats_bench", text)
    assert set(reading.figures) == {"latency_mean"}
    assert "rate-limited" in {note.code for note in reading.notes}


def test_nats_before_0_2_prints_the_sum_first() -> None:
    text = (
        "07:00:00 Starting Core NATS pub/sub benchmark [subject=a, msgs=1,000, msgsize=16 B, pubs=1, subs=1]\n\n"
        "Pub/Sub stats: 2,000 msgs/sec ~ 31.25 KB/sec\n"
        " Pub stats: 1,000 msgs/sec ~ 15.63 KB/sec\n"
        " Sub stats: 1,000 msgs/sec ~ 15.63 KB/sec\n"
    )
    (reading,) = read("nats_bench", text)
    assert (reading.figures, reading.clients) == ({"throughput": 2000.0}, 2)


def test_etcds_summary() -> None:
    reading = only("etcd_benchmark")
    assert (reading.operations, reading.workload, reading.seconds) == (5000, "linearizable range", 5.8249)
    assert reading.figures == pytest.approx(
        {"throughput": 858.3853, "latency_mean": 18.6, "latency_p50": 13.7, "latency_p99": 80.5}
    )


def test_etcds_errors_are_read_and_most_of_them_are_no_result() -> None:
    errors = "\nError distribution:\n  [{}]\trpc error: code = Unavailable\n"
    reading = only("etcd_benchmark", OUTPUTS["etcd_benchmark"] + errors.format(7))
    assert (reading.errors, [note.code for note in reading.notes]) == (7, ["errors"])
    with pytest.raises(Bad, match="5,001 requests failed and 5,000 succeeded"):
        only("etcd_benchmark", OUTPUTS["etcd_benchmark"] + errors.format(5001))
    later = OUTPUTS["etcd_benchmark"].replace("0.0137 secs.\n  75%", "13.700 ms.\n  75%")
    assert only("etcd_benchmark", later).figures == pytest.approx(only("etcd_benchmark").figures)


def test_several_summaries_of_etcd_are_several_runs() -> None:
    text = OUTPUTS["etcd_benchmark"]
    both = "Watch creation summary:\n" + text + "Watch events received summary:\n" + text
    readings = read("etcd_benchmark", both.replace("bench with linearizable range\n", ""))
    assert [reading.workload for reading in readings] == ["watch creation", "watch events received"]


@pytest.mark.parametrize("name", OUTPUTS)
def test_cut_anywhere_it_is_refused_or_has_the_same_figures(name: str) -> None:
    text = OUTPUTS[name]
    whole = only(name).figures
    for end in range(len(text)):
        try:
            readings = read(READERS[name], text[:end])
        except Bad:
            continue
        for reading in readings:
            noted = {note.code for note in reading.notes}
            same = reading.figures == whole
            assert same or (noted & {"cut-off", "no-latency"} and reading.figures.items() <= whole.items()), text[:end]


@pytest.mark.parametrize("name", OUTPUTS)
def test_twice_in_a_file_are_two_runs(name: str) -> None:
    readings = read(READERS[name], 2 * OUTPUTS[name])
    assert [reading.figures for reading in readings] == 2 * [only(name).figures]


@pytest.mark.parametrize("name", OUTPUTS)
@given(data=st.data())
def test_garbled_it_is_read_or_refused(name: str, data: st.DataObject) -> None:
    text = OUTPUTS[name]
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        piece = data.draw(st.sampled_from(["", "0", "9", "nan", "inf", "-", ",", ".", "\n", "e999", "9" * 400, " "]))
        text = text[:at] + piece + text[at + data.draw(st.integers(0, 4)) :]
    with contextlib.suppress(Bad, ValueError, ArithmeticError):  # read_file makes one line of each
        read(READERS[name], text)


def test_two_of_these_in_one_file_are_told(tmp_path: Path) -> None:
    path = tmp_path / "plain.txt"
    path.write_text(OUTPUTS["etcd_benchmark"] + OUTPUTS["nats_bench"])
    with pytest.raises(UsageError, match=r"etcd_benchmark \(line \d+\) and nats_bench \(line \d+\)"):
        gather.gather([path], Choices(only="plain"))
