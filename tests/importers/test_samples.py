"""`import`: the output of every tool in the folder `samples` (its README names tool and version), whole, cut, twice in a file, garbled,
full of errors, and at a set rate.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ciphercost.importers import formats, gather
from ciphercost.importers.choices import Choices
from ciphercost.importers.formats import Lines
from ciphercost.importers.formats._names import without_words
from ciphercost.importers.headings import heading
from ciphercost.model.errors import UsageError
from ciphercost.model.imported import Reading
from repetitions import examples
from test_gather import QUICK, anything

SAMPLES = Path(__file__).parent / "samples"
MEAN, P50, P99, RATE = "latency_mean", "latency_p50", "latency_p99", "throughput"


class Run(NamedTuple):
    """What a run of a sample must have: its workload, its number of operations, and all of its figures."""

    workload: str
    operations: int
    figures: dict[str, float]
    clients: int = 0


def times(
    mean: float | None = None, p50: float | None = None, p99: float | None = None, rate: float | None = None
) -> dict[str, float]:
    figures = {RATE: rate, MEAN: mean, P50: p50, P99: p99}
    return {name: value for name, value in figures.items() if value is not None}


NS = 1e-6
"""Nanoseconds in ms."""
GATLING = Run("requests", 200, times(21, 10, 379, 100))
EXPECTED: dict[str, list[Run]] = {
    "autocannon.json": [Run("GET /1KB", 1387, times(5.2, 3, 29, 693.5), 4)],
    "autocannon.txt": [Run("GET /1KB", 2000, times(6.53, 4, 41, 568.67), 4)],
    "benchbase.json": [Run("tpcc", 44_091, times(1.361, 1.203, 4.912, 731.2159512), 4)],
    "cassandra_stress.txt": [Run("write", 993_700, times(2.5, 1.9, 12, 19_874), 50)],
    "criterion.txt": [
        Run("echo", 0, times(92.754 * NS, rate=1e9 / 92.754)),
        Run("echo", 0, times(244.42 * NS, rate=1e9 / 244.42)),
        Run("a name so long that its time is on a line of its own", 0, times(6.4421e-3, rate=1e6 / 6.4421)),
    ],
    "fio.json": [
        Run("randread", 5458, times(180657.322646 * NS, 90624 * NS, 3981312 * NS, 5458 / 1.001), 1),
        Run("randread", 5726, times(172281.616137 * NS, 86528 * NS, 3981312 * NS, 5726 / 1.001), 1),
        Run("reads of randrw", 6314, times(255632.806779 * NS, 109056 * NS, 4685824 * NS, 6314 / 1.004), 2),
        Run("writes of randrw", 6429, times(6499.369575 * NS, 5600 * NS, 20096 * NS, 6429 / 1.004), 2),
    ],
    "fio.txt": [
        Run("randread", 5573, times(0.17548, 0.091, 3.523, 5573 / 1.001), 1),
        Run("randread", 5652, times(0.17383, 0.088, 3.490, 5652 / 1.001), 1),
        Run("reads of randrw", 5126, times(0.32444, 0.120, 5.014, 5126 / 1.002), 2),
        Run("writes of randrw", 5272, times(0.01083, 0.007, 0.029, 5272 / 1.002), 2),
    ],
    "fio_rate.txt": [Run("write", 100, times(0.0371567, 0.031616, 0.064768), 1)],
    "fortio.json": [Run("GET /1KB", 200, times(2.67776493, 1.8, 12.599254), 4)],
    "fortio.txt": [Run("GET /1KB", 6344, times(1.2580654, 0.669702, 10.4633, 3170.7), 4)],
    "fortio_rate.txt": [Run("GET /1KB", 200, times(2.6777649, 1.8, 12.5993), 4)],
    "gatling.txt": [Run("requests", 200, times(56, 27, 1074, 40))],
    "gatling_39.txt": [GATLING],
    "gatling_global_stats.json": [GATLING],
    "gatling_stats.json": [GATLING],
    "go_test.txt": [Run("Echo", 200, times(rate=1e9 / ns)) for ns in (219560, 193987, 159098, 245368, 194266, 190143)],
    "go_tpc.txt": [
        Run("tpcc", 614, times((941.2 + 5304.2 + 100.4 + 2979.9 + 191.4) / 614, rate=(360.2 + 3247.9 + 319.3 + 3351.9 + 271.9) / 60))
    ],
    "hammerdb.txt": [Run("new orders of TPROC-C", 35_576 * 2, times(1.652, 1.534, 3.122, 35_576 / 60), 2)],
    "hammerdb_tproch.txt": [Run("queries of TPROC-H", 22, times(48_000 / 22, rate=22 / 48))],
    "hey.txt": [Run("requests", 6576, times(1.2, 0.7, 6.9, 3286.5308))],
    "jmeter.txt": [Run("samples", 240, times(63, rate=33.7))],
    "jmeter_jtl.csv": [Run("samples", 240, times(15356 / 240, 49, 726, 240 / 4.592), 4)],
    "jmh.json": [
        Run("Crypt.send", 0, times(rate=6653691.375629607), 1),
        Run("Crypt.send", 0, times(rate=3999433.675990731), 1),
        Run("Crypt.send", 0, times(rate=578.7341163614161), 1),
        Run("Crypt.send", 0, times(rate=867.987794208566), 1),
        Run("Crypt.average", 0, times(509.245541802812 * NS, rate=2e9 / 509.245541802812), 2),
        Run("Crypt.average", 0, times(495.6148273562674 * NS, rate=2e9 / 495.6148273562674), 2),
        Run("Crypt.average", 0, times(2.9178513090686837, rate=2e3 / 2.9178513090686837), 2),
        Run("Crypt.average", 0, times(2.538299267018279, rate=2e3 / 2.538299267018279), 2),
        Run("Crypt.sampled", 0, times(0.002484965513736915, 0.00006, 0.00019, 402420.071615477), 1),
        Run("Crypt.sampled", 0, times(2.0491442063037253, 0.117696, 50.56036864, 488.008602286), 1),
    ],
    "jmh.txt": [
        Run("Crypt.send", 0, times(rate=5326562.526), 1),
        Run("Crypt.send", 0, times(rate=723.361), 1),
        Run("Crypt.average", 0, times(502.43 * NS, rate=2e9 / 502.43), 2),
        Run("Crypt.average", 0, times(2728075.288 * NS, rate=2e9 / 2728075.288), 2),
        Run("Crypt.sampled", 0, times(0.002485, 0.00006, 0.00019, 1e6 / 2.485), 1),
        Run("Crypt.sampled", 0, times(2.049144, 0.117696, 50.560369, 1e6 / 2049.144), 1),
    ],
    "k6.json": [Run("requests", 4727, times(2.340108469219378, 1.069466, rate=1570.4231410569387), 4)],
    "k6.txt": [Run("requests", 4727, times(2.34, 1.06, rate=1570.423141), 4)],
    "k6_handle.json": [Run("requests", 101, times(0.9504362376237627, 0.556428, 7.817979, 50.44113297840435))],
    "k6_legacy.txt": [Run("requests", 1825, times(2, 0.81526, rate=1819.261418), 4)],
    "k6_rate.txt": [Run("requests", 101, times(1.59, 0.54835, 34.6))],
    "locust.txt": [Run("requests", 352, times(10, 7, 170, 343))],
    "locust_stats.csv": [Run("requests", 352, times(10.272052559646351, 7, 170, 343.00036846411797))],
    "oha.json": [Run("requests", 3000, times(0.9645020523, 0.527884, 6.101493, 3964.422595037345))],
    "oha.txt": [Run("requests", 3000, times(1.2911, 0.7258, 6.2481, 3012.3901))],
    # Its rate counts 11 requests that it aborted at the end.
    "oha_deadline.json": [Run("requests", 300, times(0.722885906667, 0.474695, 5.605085, 300 / 1.008508726))],
    "siege.json": [Run("requests", 1245, times(10, rate=638.46))],
    "siege.txt": [Run("requests", 6434, times(rate=3459.14))],
    "vegeta.json": [Run("requests", 400, times(0.958719, 0.562496, 8.325801))],
    "vegeta.txt": [Run("requests", 400, times(0.958719, 0.562496, 8.326))],
    "ycsb.txt": [Run("read, update", 3000, times((29.998651382333108 * 1483 + 18.02043506921556 * 1517) / 3e6, rate=9584.664536741215), 4)],
}  # fmt: skip
FORMATS = sorted(formats.names(), key=len, reverse=True)


def format_of(name: str) -> str:
    """The reader that a sample's name begins with."""
    return next(known for known in FORMATS if name.startswith(known))


def content(name: str) -> str:
    return (SAMPLES / name).read_text()


def read(text: str, directory: Path, name: str = "plain.txt") -> list[Reading]:
    path = directory / name
    path.unlink(missing_ok=True)  # a file that is written over goes to the disk at once
    path.write_text(text)
    return gather.gather([path], Choices(only="plain"))[0].readings


def note(readings: list[Reading], code: str) -> str:
    return next(note.text for reading in readings for note in reading.notes if note.code == code)


def codes(readings: list[Reading]) -> set[str]:
    return {note.code for reading in readings for note in reading.notes}


def test_every_sample_has_its_figures_listed() -> None:
    assert {path.name for path in SAMPLES.iterdir()} == {*EXPECTED, "README.md"}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_sample_is_recognised_by_its_own_reader_alone(name: str) -> None:
    assert list(formats.recognised(content(name))) == [format_of(name)]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_mark_is_on_its_own_line_below_blank_ones(name: str) -> None:
    """A mark that also matches the blank lines above it takes minutes for a text of many."""
    recognise = formats.get(format_of(name)).recognise
    assert recognise("\n" * 50_000 + content(name)) == 50_000 + recognise(content(name))


def test_blank_lines_have_no_mark() -> None:
    assert not formats.recognised("\n" * 50_000)


def test_json_of_another_tool_is_searched_once() -> None:
    assert not formats.recognised('{"a": {"b": 1}, "throughput": {}}\n' * 8000)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_sample_is_read_as_it_was_printed(name: str, tmp_path: Path) -> None:
    readings = read(content(name), tmp_path)
    assert [(run.workload, run.operations, run.clients) for run in readings] == [
        (run.workload, run.operations, run.clients) for run in EXPECTED[name]
    ]
    for reading, expected in zip(readings, EXPECTED[name], strict=True):
        assert reading.figures == pytest.approx(expected.figures, rel=1e-6)
        assert ("rate-limited" in codes([reading])) == (RATE not in expected.figures)
        if (
            reading.seconds
            and reading.operations
            and RATE in reading.figures
            and format_of(name) not in ("go_tpc", "fio")
        ):
            assert reading.operations / reading.seconds == pytest.approx(reading.figures[RATE], rel=0.15)
    # A command's output comes to the reader without what `import` takes off.
    (own, raw) = (formats.get(format_of(name)).read(Lines(content(name).splitlines(keepends=True))) for _ in range(2))
    assert (
        [reading.figures for reading in own]
        == [reading.figures for reading in raw]
        == [reading.figures for reading in readings]
    )


@pytest.mark.parametrize("name", EXPECTED)
def test_a_sample_cut_anywhere_is_refused_or_has_no_other_figures(name: str, tmp_path: Path) -> None:
    text = content(name)
    whole = [reading.figures for reading in read(text, tmp_path)]
    every = len(whole) > 1
    ends = {end for line in re.finditer("\n", text) for end in (line.start(), line.end())} | set(
        range(0, len(text), 97)
    )
    chosen = sorted(ends)
    for end in chosen[:: max(1, len(chosen) // 120)]:
        try:
            readings = read(text[:end], tmp_path)
        except UsageError:
            continue
        assert len(readings) == len(whole) or (every and len(readings) < len(whole)), text[:end]
        for reading, all_of_it in zip(readings, whole, strict=False):
            same = reading.figures == pytest.approx(all_of_it)
            assert same or reading.figures.items() <= all_of_it.items() or format_of(name) == "jmeter", text[:end]


ONE_RUN = ("jmeter_jtl.csv", "locust_stats.csv")
"""Tables, of which a file has one."""


@pytest.mark.parametrize("name", sorted(set(EXPECTED) - set(ONE_RUN)))
def test_a_sample_twice_in_a_file_is_twice_its_runs_and_states_no_arm(name: str, tmp_path: Path) -> None:
    text = content(name)
    readings = read(f"{text}\n{text}", tmp_path)
    expected = EXPECTED[name] * 2
    assert [reading.figures for reading in readings] == [pytest.approx(run.figures, rel=1e-6) for run in expected]
    assert "warm-up" not in codes(readings)
    assert len({reading.line for reading in readings}) > 1


TEXTS = sorted(
    name
    for name in EXPECTED
    if name.endswith(".txt") and name not in ("go_test.txt", "jmh.txt", "fio.txt", "criterion.txt")
)


@pytest.mark.parametrize("name", TEXTS)
def test_runs_of_both_arms_in_a_file_have_the_arm_of_the_line_above_them(name: str, tmp_path: Path) -> None:
    text = content(name)
    (tmp_path / "all.txt").write_text(f"== sslmode=disable ==\n{text}\n== sslmode=require ==\n{text}")
    record, _ = gather.gather([tmp_path / "all.txt"], Choices())
    half = len(record.readings) // 2
    assert [reading.arm for reading in record.readings] == ["plain"] * half + ["encrypted"] * half


@pytest.mark.parametrize("name", EXPECTED)
@hypothesis_settings(QUICK, max_examples=examples(40))
@given(data=st.data())
def test_a_garbled_sample_is_read_or_refused(name: str, data: st.DataObject, tmp_path: Path) -> None:
    text = bytearray(content(name).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 6))] = data.draw(
            st.sampled_from(
                [
                    b"",
                    b"0",
                    b"nan",
                    b"inf",
                    b"-1",
                    b",",
                    b"{",
                    b'"',
                    b"[",
                    b"]",
                    b"\n",
                    b"\xff",
                    b"e999",
                    b"9" * 400,
                    b"null",
                ]
            )
        )
    anything(bytes(text), tmp_path)


# ── errors that a tool counts as operations ───────────────────────────────────────────────────────────────────────────

ERRORS = {
    "hey.txt": ("[200]\t6576", "[503]\t6576"),
    "vegeta.txt": ("200:400", "0:300  200:100"),
    "vegeta.json": ('{"200":400}', '{"0":300,"200":100}'),
    "fortio.txt": ("Code 200 : 6344", "Code -1 : 6344"),
    "fortio.json": ('"200": 200', '"503": 200'),
    "k6.txt": ("0.00%  0 out of", "99.00%  4700 out of"),
    "k6.json": ('"passes": 0,\n            "fails": 4727', '"passes": 4700,\n            "fails": 27'),
    "oha.txt": ("[200] 3000", "[503] 3000"),
    "oha.json": ('"200": 3000', '"503": 3000'),
    "siege.txt": ("Successful transactions:        6434", "Successful transactions:        10"),
    "siege.json": ('"successful_transactions":	        1245', '"successful_transactions":	        0'),
    "autocannon.txt": ("2k requests in", "10 2xx responses, 1900 non 2xx responses\n2k requests in"),
    "autocannon.json": ('"non2xx":0', '"non2xx":1387'),
    "jmeter.txt": ("Err:     0 (0.00%)", "Err:   200 (83.33%)"),
    "jmeter_jtl.csv": (",true,", ",false,"),
    "locust.txt": ("352     0(0.00%)", "352   350(99.43%)"),
    "locust_stats.csv": (",Aggregated,352,0,", ",Aggregated,352,350,"),
    "gatling.txt": ("request count                                                                      |       200 |       200 |         0",
                    "request count                                                                      |       200 |         1 |       199"),
    "gatling_39.txt": ("200 (OK=200    KO=0     )", "200 (OK=1      KO=199   )"),
    "gatling_global_stats.json": ('"ok": 200,\n        "ko": 0', '"ok": 1,\n        "ko": 199'),
    "go_tpc.txt": ("NEW_ORDER_ERR - Takes(s): 4.9, Count: 1,", "NEW_ORDER_ERR - Takes(s): 4.9, Count: 1000,"),
    "ycsb.txt": ("[READ], Return=OK, 1483\n", "[READ], Return=ERROR, 2900\n"),
    "cassandra_stress.txt": ("Total errors              :          0", "Total errors              :    900,000"),
    "benchbase.json": ("731.2159512", "31.2159512"),
    "fio.txt": ("err= 0", "err= 5"),
    "fio.json": ('"error" : 0', '"error" : 5'),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_a_run_mostly_of_errors_is_refused(name: str, tmp_path: Path) -> None:
    before, after = ERRORS[name]
    assert before in content(name)
    with pytest.raises(UsageError, match=r"failed|error|usable") as refused:
        read(content(name).replace(before, after), tmp_path)
    assert re.search(r"plain\.txt, line \d+: ", str(refused.value))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "before", "after", "errors"),
    [
        ("hey.txt", "  [200]\t6576 responses", "  [200]\t6500 responses\n  [500]\t70 responses\n\nError distribution:\n  [6]\tdial tcp: refused", 76),
        ("vegeta.txt", "200:400", "0:3  200:390  502:7", 10),
        ("fortio.txt", "Code 200 : 6344 (100.0 %)", "Code  -1 : 4 (0.1 %)\nCode 200 : 6340 (99.9 %)", 4),
        ("k6.txt", "0 out of 4727", "12 out of 4727", 12),
        ("jmeter.txt", "Err:     0 (0.00%)", "Err:    10 (4.17%)", 10),
        ("locust.txt", "352     0(0.00%)", "352     3(0.85%)", 3),
        ("ycsb.txt", "[READ], Return=OK, 1483", "[READ], Return=OK, 1480\n[READ], Return=ERROR, 3", 3),
    ],
)  # fmt: skip
def test_a_few_errors_are_counted_and_noted(name: str, before: str, after: str, errors: int, tmp_path: Path) -> None:
    readings = read(content(name).replace(before, after), tmp_path)
    assert [reading.errors for reading in readings] == [errors]
    assert note(readings, "errors").startswith(str(errors))


def test_what_nobody_answered_is_refused_with_the_reason_and_without_the_address(tmp_path: Path) -> None:
    text = (
        re.sub(r"  \[200\].*\n", "", content("hey.txt"))
        + 'Error distribution:\n  [20]\tGet "http://h/?token=hunter2": dial tcp: refused\n'
    )
    with pytest.raises(UsageError, match=r"no request was answered.*dial tcp: refused") as refused:
        read(text, tmp_path)
    assert "hunter2" not in str(refused.value)


# ── set rates ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_vegetas_rate_was_set_unless_its_command_says_otherwise(tmp_path: Path) -> None:
    for name in ("vegeta.txt", "vegeta.json"):
        unlimited = f"$ echo GET http://h/ | vegeta attack -rate=0 -max-workers=4 | vegeta report\n{content(name)}"
        (reading,) = read(unlimited, tmp_path)
        assert reading.figures[RATE] == pytest.approx(200.5, rel=1e-3)
        (limited,) = read(unlimited.replace("-rate=0", "-rate=200"), tmp_path)
        assert RATE not in limited.figures


def test_a_summary_of_k6_without_its_executors_leaves_open_whether_a_rate_was_set(tmp_path: Path) -> None:
    text = content("k6_rate.txt")
    assert "rate was set to 50.00" in note(read(text, tmp_path), "rate-limited")
    readings = read(text[text.index("TOTAL RESULTS") :], tmp_path)
    assert "only latency counts" in note(readings, "rate-hidden")
    assert "rate-hidden" not in codes(read(content("k6.txt"), tmp_path))


def test_a_script_of_k6_that_waits_is_noted(tmp_path: Path) -> None:
    slow = content("k6.txt").replace(
        "iteration_duration.............: avg=2.5ms", "iteration_duration.............: avg=1.2s "
    )
    assert "sleeps" in note(read(slow, tmp_path), "script-waits")
    assert "script-waits" not in codes(read(content("k6.txt"), tmp_path))


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("ycsb.txt", "-threads 4", "-threads 4 -target 500"),
        ("cassandra_stress.txt", "OpsPer Sec: 0", "OpsPer Sec: 500"),
        ("fortio.txt", "Starting at max qps", "Starting at 500 qps"),
        ("fio.json", '"rw" : "randread"', '"rw" : "randread", "rate_iops" : "500"'),
    ],
)
def test_a_rate_that_the_output_states_is_no_throughput(name: str, before: str, after: str, tmp_path: Path) -> None:
    readings = read(content(name).replace(before, after), tmp_path)
    assert RATE not in readings[0].figures
    assert "rate was set to 500 per second" in note(readings, "rate-limited")


@pytest.mark.parametrize(
    ("name", "command", "rate"),
    [
        ("hey.txt", "$ hey -z 10s -q 100 https://h/", "100"),
        ("hey.txt", "$ ./hey -z 10s -c 50 https://h/", ""),
        ("autocannon.txt", "npx autocannon -c 4 -R 200 http://h/", "200"),
        ("siege.txt", "$ siege -q -b http://h/", ""),
    ],
)
def test_a_rate_on_the_command_line_is_a_set_rate(name: str, command: str, rate: str, tmp_path: Path) -> None:
    text = content(name)
    if name == "siege.txt":
        text = text.replace("Response time:		        0.00", "Response time:		        0.02")
    (reading,) = read(f"{command}\n{text}", tmp_path)
    assert (RATE in reading.figures) == (not rate)


# ── arms ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["go_test.txt", "jmh.txt", "jmh.json", "criterion.txt"])
def test_names_of_benchmarks_state_the_arm_and_leave_one_workload(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content(name).partition("Benchmarking a name")[0])
    record, _ = gather.gather([tmp_path / name], Choices())
    runs: dict[tuple[str, str], list[str]] = {}
    for reading in record.readings:
        runs.setdefault((reading.workload, reading.factors.get("mode", "")), []).append(str(reading.arm))
    assert all(len(arms) == 2 * arms.count("plain") for arms in runs.values())


def test_jobs_of_fio_state_the_arm_by_their_names(tmp_path: Path) -> None:
    text = content("fio.txt")
    text = text[: text.index("mixed: (groupid=2")] + "\nRun status group 0 (all jobs):\n"
    (tmp_path / "disk.txt").write_text(text)
    record, _ = gather.gather([tmp_path / "disk.txt"], Choices())
    assert [reading.arm for reading in record.readings] == ["plain", "encrypted"]


@pytest.mark.parametrize(
    ("name", "words", "rest"),
    [
        ("Echo/plain", "plain", "Echo"), ("Echo/tls-64KB", "tls", "Echo/64KB"), ("TLSEcho", "tls", "Echo"), ("EchoTLS13", "tls", "Echo"),
        ("plain_echo", "plain", "echo"), ("echo_tls_off_big", "tls off", "echo_big"), ("Crypt.send mode=plain", "plain", "Crypt.send"),
        ("Crypt.send mode=plain size=10", "plain", "Crypt.send size=10"), ("Echo tls=0", "tls off", "Echo"), ("LatencyEnc", "enc", "Latency"),
        ("tls", "tls", "benchmark"), ("a 64 B/plain", "plain", "a 64 B"),
    ],
)  # fmt: skip
def test_a_name_loses_the_words_of_its_arm(name: str, words: str, rest: str) -> None:
    assert without_words(name, words) == rest


def test_names_of_one_arm_only_are_no_arms(tmp_path: Path) -> None:
    """`HTTPGet` has a word for the plain arm, in files of both."""
    text = content("go_test.txt").replace("Echo/plain", "HTTPGet").replace("Echo/tls", "HTTPPut")
    for name, words in (("plain.txt", ""), ("tls.txt", "\n")):
        (tmp_path / name).write_text(text + words)
    record, _ = gather.gather([tmp_path], Choices())
    assert {(reading.arm, reading.workload) for reading in record.readings} == {
        (arm, workload) for arm in ("plain", "encrypted") for workload in ("HTTPGet", "HTTPPut")
    }
    both = content("go_test.txt").replace("Echo/", "HTTP/")
    (tmp_path / "bench.txt").write_text(both)
    record, _ = gather.gather([tmp_path / "bench.txt"], Choices())
    assert [reading.arm for reading in record.readings] == ["plain"] * 3 + ["encrypted"] * 3


def test_https_and_http_in_fortios_addresses_are_the_arms(tmp_path: Path) -> None:
    text = content("fortio.txt")
    for name, scheme in (("run1.txt", "http:"), ("run2.txt", "https:")):
        (tmp_path / name).write_text(text.replace("http:", scheme))
    record, _ = gather.gather([tmp_path], Choices())
    assert [reading.arm for reading in record.readings] == ["plain", "encrypted"]


def test_lines_of_json_are_no_headings(tmp_path: Path) -> None:
    assert heading('  "URL": "https://127.0.0.1:48357/1KB",', 1) is not None
    for name in ("k6.json", "fortio.json"):
        assert read(content(name), tmp_path)[0].names == []


# ── one tool's forms ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_jmh_without_its_log_has_one_threads_rate(tmp_path: Path) -> None:
    text = content("jmh.txt")
    readings = read(text[text.index("Benchmark              (mode)") :], tmp_path)
    assert readings[2].clients == 0
    assert readings[2].figures[RATE] == pytest.approx(1e9 / 502.43)
    with pytest.raises(UsageError, match="smaller unit"):
        read(text.replace("723.361 ±     908.236 ", "≈ 10⁻³              "), tmp_path)


def test_kinds_of_go_tpc_of_a_newer_version_have_a_total(tmp_path: Path) -> None:
    text = content("go_tpc.txt").replace("tpmC: 3247.8, eff", "tpmC: 3247.8, tpmTotal: 7551.2, eff")
    assert read(text, tmp_path)[0].figures == pytest.approx(EXPECTED["go_tpc.txt"][0].figures)
    assert "contradiction" in codes(read(text.replace("tpmC: 3247.8", "tpmC: 1247.8"), tmp_path))


def test_a_jtl_with_other_times_or_columns_is_refused_with_the_setting(tmp_path: Path) -> None:
    text = content("jmeter_jtl.csv")
    with pytest.raises(UsageError, match=r"line 2: .*timestamp_format=ms"):
        read(re.sub(r"(?m)^\d{13},", "2026/11/29 08:07:14,", text), tmp_path)
    with pytest.raises(UsageError, match=r"line 1: .*lacks the column success"):
        read(text.replace(",success,", ",ok,"), tmp_path)
    semicolons = "\n".join(line.replace(",", ";") for line in text.splitlines()) + "\n"
    assert read(semicolons, tmp_path)[0].figures == pytest.approx(EXPECTED["jmeter_jtl.csv"][0].figures, rel=1e-6)


def test_what_is_no_result_of_a_tool_is_left_out_with_what_to_import(tmp_path: Path) -> None:
    (tmp_path / "locust_stats.csv").write_text(content("locust_stats.csv"))
    (tmp_path / "locust_stats_history.csv").write_text("Timestamp,User Count,Type,Name,Requests/s\n1,4,,Aggregated,0\n")
    (tmp_path / "k6-stream.json").write_text('{"type":"Metric","data":{"name":"http_reqs"},"metric":"http_reqs"}\n')
    record, lines = gather.gather([tmp_path], Choices(only="plain"))
    assert len(record.readings) == 1
    assert any("import *_stats.csv" in line for line in lines)
    assert any("--summary-export" in line for line in lines)


def test_cut_json_is_refused_with_what_to_run_again(tmp_path: Path) -> None:
    for name in ("fio.json", "k6.json", "jmh.json", "vegeta.json", "fortio.json", "benchbase.json"):
        with pytest.raises(UsageError, match=r"again|whole") as refused:
            read(content(name)[:-20], tmp_path)
        assert "plain.txt" in str(refused.value)


def test_hammerdb_names_the_server_and_failed_users(tmp_path: Path) -> None:
    (reading,) = read(content("hammerdb.txt").replace("Vuser 3:FINISHED SUCCESS", "Vuser 3:FINISHED FAILED"), tmp_path)
    assert (reading.server, reading.version, reading.seconds) == ("postgresql", "4.10", 120)
    assert note([reading], "errors").startswith("1 virtual user ")
    with pytest.raises(UsageError, match="timed driver script"):
        read(content("hammerdb.txt").replace("TEST RESULT", "TEST"), tmp_path)
