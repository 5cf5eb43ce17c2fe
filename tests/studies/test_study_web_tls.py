"""web-tls: published tables, figures computed from them, the counters against numpy, and a small replication on a real server."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import result_schema
import warm
from ciphercost import studies
from ciphercost.host import procfs, threads
from ciphercost.load import workloads
from ciphercost.load.agent import Agent
from ciphercost.model import run_directory
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Cell, Estimate
from ciphercost.model.slices import Proof
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyRecord, StudyResult, StudyRun
from ciphercost.report.formats import _study, terminal
from ciphercost.runs import conclude, replicate
from ciphercost.studies.web_tls import WebTls, changes, compare, counters, measured, procedure, published, report
from ciphercost.studies.web_tls.published import CV, DISK, MEAN, MEMORY, NETWORK, PROCESSOR, VARIANCE
from conftest import Require, RequireServer

CLI = Path(sys.executable).parent / "ciphercost"
STUDY = studies.get("web-tls")
PRINTED = published.tables(STUDY)
WITNESSES = ("client", "server", "wire")
WINDOW, INTERVAL = 10.0, 0.5


def levels(busy: float, speed: float, cpu: float) -> list[counters.Level]:
    """A window of 10 s, read every 0.5 s: from 0.5 s on `busy` seconds at `speed` bytes a second and `cpu` of one CPU."""
    readings = []
    for number in range(round(WINDOW / INTERVAL) + 1):
        at = number * INTERVAL
        done = min(max(0.0, at - INTERVAL), busy)
        server = round(done * cpu * 1e9)
        readings.append(counters.Level(round(at * 1e9), server, server, 10**9 - number, round(done * speed), number))
    return readings


def run(size: int, arm: str, busy: float, cpu: float) -> StudyRun:
    readings = levels(busy, size * 1e6 / busy, cpu)
    series = counters.series(readings)
    edges = (readings[1], readings[1 + round(busy / INTERVAL)])
    series |= {f"{procedure.BUSY}{key}": [value] for key, value in counters.between(*edges).items()}
    series["busy_s"] = [edge.at_ns / 1e9 for edge in edges]
    series["server_cpu_s"] = [(edges[1].server_ns - edges[0].server_ns) / 1e9]
    series["client_cpu_s"] = [busy * 0.3]
    series[procedure.DISK_BUSY] = [0.9 if arm == "encrypted" else 0.1]
    series[f"{procedure.THREAD}nginx 77"] = [busy * cpu, 0.02, 0.01]
    return StudyRun(procedure.name_of(size), arm, 0.0, {"bytes": size * 1e6}, series)


def kept(**changes: object) -> StudyRecord:
    """The procedure here: 3 MB in 0.5 s of 10, 250 MB in 2 s; TLS takes twice the CPU and the same time."""
    record = STUDY.begin("nginx")
    record.version, record.complete, record.encryption = (
        "1.26",
        True,
        {"protocol": "TLSv1.3", "cipher": "TLS_AES_256_GCM_SHA384"},
    )
    record.proofs = [Proof(arm, witness, True, "", 1) for arm in ARMS for witness in WITNESSES]  # type: ignore[arg-type]
    record.settings |= {"window_s": WINDOW, "interval_s": INTERVAL, "speed_up": 9.4, "link_bits": 940e6, "cpus": 2}
    for arm, cpu in (("plain", 0.1), ("encrypted", 0.2)):
        record.runs += [run(3, arm, 0.5, cpu), run(250, arm, 2.0, cpu)]
    for name, value in changes.items():
        setattr(record, name, value)
    return record


HOST = {
    "idle": {"mean": 10.0, "variance": 4.0, "cv": 0.2},
    "memory_available_bytes": {"mean": 9e9, "variance": 1e12, "cv": 1e-4},
    "network_bytes_per_s": {"mean": 1e9, "variance": 1e14, "cv": 0.01},
    "disk_queue": {"mean": 0.0, "variance": 0.0, "cv": 0.0},
}


CONTROLS = {size * 10**6: len(published.SIZES) + number for number, size in enumerate((3, 30, 250))}
"""Index of each size's control in CELLS."""


def cell(mechanism: str, size: int, clients: int, group: str, ratio: float) -> Cell:
    arms = {
        "plain": {"throughput": 100.0, "server_cpu_us_per_op": 1000.0, "host": HOST},
        "encrypted": {"throughput": 100.0 * ratio, "server_cpu_us_per_op": 3000.0, "host": HOST},
    }
    rate, cpu = Estimate(ratio, ratio - 0.02, ratio + 0.02, n=5), Estimate(3.0, 2.9, 3.1, n=5)
    return Cell(
        "nginx", "1.26", "transit", mechanism, "file", clients, "ok", "full", factors={"size": str(size)}, group=group,
        overhead={"throughput": rate, "server_cpu_per_op": cpu}, arms=arms,
        beside={"no-sendfile": Estimate(0.5, 0.48, 0.52)} if mechanism == "tls" and clients == 1 else {},
        control=CONTROLS.get(size) if mechanism == "tls" and group == measured.ONE_CLIENT else None,
    )  # fmt: skip


CELLS = [
    *(cell("tls", size * 10**6, 1, measured.ONE_CLIENT, 0.4) for size in published.SIZES),
    *(cell("no-sendfile", size * 10**6, 1, measured.ONE_CLIENT, 0.8) for size in (3, 30, 250)),
    *(cell("tls", size, clients, measured.MANY, 0.9) for size in (100_000, 3_000_000) for clients in (1, 16, 64)),
]


def compared(**changes: object) -> StudyResult:
    return STUDY.compare(kept(**changes), CELLS)


def figure(result: StudyResult, operation: str, name: str, arm: str) -> Any:
    return next(
        figure for figure in result.figures if (figure.operation, figure.figure, figure.arm) == (operation, name, arm)
    )


# ── published ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_published_tables_are_complete() -> None:
    assert len(list(STUDY.rows("counters.csv"))) == 96
    assert set(PRINTED) == {
        (counter, statistic) for counter in published.COUNTERS for statistic in ("mean", "variance", "cv")
    }
    assert [table.number for table in PRINTED.values()] == [
        "I",
        "II",
        "III",
        "IV",
        "V",
        "VI",
        "VII",
        "VIII",
        "IX",
        "X",
        "XI",
        "XII",
    ]
    assert all(
        tuple(table.rows) == published.SIZES and all(set(row) == set(ARMS) for row in table.rows.values())
        for table in PRINTED.values()
    )
    assert PRINTED[PROCESSOR, MEAN].rows[73] == {"plain": 0.418, "encrypted": 1.047}
    assert PRINTED[DISK, CV].rows[250] == {"plain": 2.93, "encrypted": 2.89}
    assert PRINTED[MEMORY, VARIANCE].rows[250]["plain"] == 5.09e9


def test_published_coefficients_of_variation_are_those_of_the_published_variances() -> None:
    """Would show a mistyped row."""
    off = {
        (counter, size, arm)
        for counter in (PROCESSOR, MEMORY, NETWORK)
        for size in published.SIZES
        for arm in ARMS
        if abs(
            math.sqrt(PRINTED[counter, VARIANCE].rows[size][arm]) / PRINTED[counter, MEAN].rows[size][arm]
            / PRINTED[counter, CV].rows[size][arm] - 1
        ) > 0.02
    }  # fmt: skip
    assert not off


def test_the_32_printed_changes_stand_beside_what_the_means_give() -> None:
    printed = changes.read(STUDY)
    assert Counter(change.table for change in printed) == dict.fromkeys(("I", "IV", "VII", "X"), 8)
    assert all(
        {change.size for change in printed if change.table == table} == set(published.SIZES) for table in ("I", "X")
    )
    text = STUDY.finding("changes")
    for words in (
        "30 MB is printed as 10.86, a decrease",
        "0.004 → 0.005 is 25.0 % more",
        "167 MB is printed as -13.06, an increase",
        "0.028 → 0.024 is 14.3 % less",
        "73 MB, printed as -28.03, is an increase",
        "(27.3 % more)",
        'Table IV ("% decreases"): in all 8 rows',
        "73 MB: 150 printed, 150.48 from 0.418 → 1.047",
    ):
        assert words in text, words
    assert "Table VII" not in text
    table = _study.render(compared())
    lines = [" ".join(line.split()) for line in table.splitlines()]
    assert "30MB +45.54 / +45.66 -0.092 / +0.093 -0.306 / -0.306 -10.86 / +25.00" in lines


def test_what_is_inferred_of_the_published_procedure_is_called_inferred() -> None:
    """Neither the window nor the sampling interval was published."""
    result = compared()
    # Window and interval.
    assert [float(seconds) for seconds in re.findall(r"\(([\d.]+) s, which is inferred", result.procedure)] == [94, 1]
    with pytest.raises(UsageError, match=r"--duration 0\.1s: .*94 s, as inferred"):
        STUDY.configured({"duration": 0.1})
    for name in ("docs/studies.md", "METHODOLOGY.md"):
        assert "inferred" in (Path(__file__).parents[2] / name).read_text()


def test_the_busy_share_is_that_of_a_window_made_up() -> None:
    window = np.zeros(1000)
    window[300:340] = 7.5
    assert published.share_of(float(window.std() / window.mean())) == pytest.approx(0.04)


# ── counting ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_statistics_are_numpys() -> None:
    values = np.random.default_rng(3).gamma(2.0, 5.0, 94)
    statistics = measured.figures(values.tolist())
    assert statistics[MEAN] == pytest.approx(values.mean())
    assert statistics[VARIANCE] == pytest.approx(values.var(ddof=1))
    assert statistics[CV] == pytest.approx(values.std(ddof=1) / values.mean())
    assert measured.figures([]) == {}
    assert measured.figures([2.0]) == {MEAN: 2.0}
    assert measured.figures([0.0, 0.0]) == {MEAN: 0.0, VARIANCE: 0.0}


def test_over_the_window_bytes_a_second_are_the_file_and_while_busy_its_speed() -> None:
    fetch = run(250, "plain", 2.0, 0.1)
    assert measured.window(fetch) == pytest.approx(WINDOW)
    assert measured.whole(fetch, NETWORK)[MEAN] * WINDOW == pytest.approx(250e6)
    assert measured.busy(fetch, NETWORK) == pytest.approx({MEAN: 125e6, VARIANCE: 0.0, CV: 0.0})
    assert measured.busy_share(fetch) == pytest.approx(0.2)
    assert measured.server_seconds(fetch) == pytest.approx(0.2)
    assert measured.whole(fetch, PROCESSOR)[MEAN] * 5 == pytest.approx(measured.busy(fetch, PROCESSOR)[MEAN])
    # Over the window only the scatter shows the share.
    values = fetch.series[NETWORK]
    assert published.share_of(float(np.std(values) / np.mean(values))) == pytest.approx(0.2)


def test_bytes_over_the_window_are_the_file_however_long_the_samples_are() -> None:
    """An equal weight for a sample of a tenth of the length would count its bytes ten times."""
    fetch = run(250, "plain", 2.0, 0.1)
    fetch.series["seconds"][1] /= 10
    fetch.series[NETWORK][1] *= 10
    assert measured.carried(fetch, NETWORK) == pytest.approx(250e6)
    assert measured.whole(fetch, NETWORK)[MEAN] * measured.window(fetch) > 1.5 * 250e6
    record = kept()
    for one in record.runs:
        one.series["seconds"][1] /= 10
        one.series[NETWORK][1] *= 10
    assert "window ÷ file is 1.000 to 1.000" in " ".join(STUDY.compare(record, []).findings)


def test_of_a_fetch_shorter_than_two_samples_there_is_a_mean_and_no_scatter() -> None:
    assert set(measured.busy(run(3, "plain", 0.5, 0.1), NETWORK)) == {MEAN}


def test_a_counter_that_went_backwards_is_none() -> None:
    first, second = counters.Level(0, 50, 0, 7, 0, 5), counters.Level(10**9, 0, 0, 8, 9, 4)
    values = counters.between(first, second)
    assert (values[PROCESSOR], values[DISK], values[MEMORY], values[NETWORK]) == (0, 0, 7.5, 9)


def test_a_whole_disk_is_no_partition_and_no_loop_device() -> None:
    for name in procfs.whole_disks():
        assert not (Path("/sys/class/block") / name.decode() / "partition").exists()
        assert not name.startswith(b"loop")


def test_a_threads_own_times_and_odd_names_are_parsed() -> None:
    stat = b"77 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 250 150 0 0 20 0 1 0 5"
    assert threads.parse(stat, b"5000000000 1 2") == ("a (b) c", 5.0, 2.5, 1.5)
    assert threads.parse(stat) == ("a (b) c", 4.0, 2.5, 1.5)
    over, ready = threading.Event(), threading.Event()

    def spin() -> None:
        ready.set()
        while not over.is_set():
            sum(range(1000))

    worker = threading.Thread(target=spin)
    worker.start()
    ready.wait()
    before = threads.read([os.getpid(), 2**22 + 1])
    until = time.thread_time() + 0.02
    while (
        time.thread_time() < until
        or threads.read([os.getpid()])[worker.native_id or 0].seconds < before[worker.native_id or 0].seconds + 0.02
    ):
        pass
    by_thread = {thread.thread: thread for thread in threads.between(before, threads.read([os.getpid()]))}
    over.set()
    worker.join()
    assert by_thread[worker.native_id or 0].seconds >= 0.02
    assert all(thread.pid == os.getpid() for thread in by_thread.values())


# ── compared ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_published_figure_has_its_repetition_beside_it() -> None:
    result = compared()
    levels_ = [figure for figure in result.figures if figure.arm != "cost" and figure.published is not None]
    assert len(levels_) == 96 * 2
    cost = figure(result, "250MB", "processor time, mean", "cost")
    assert cost.published == pytest.approx(2.81 / 1.328)
    assert cost.here == pytest.approx(2.0)
    assert figure(result, "250MB", "processor time, mean, busy time", "plain").here == pytest.approx(
        5 * figure(result, "250MB", "processor time, mean", "plain").here
    )
    server = figure(result, "250MB", measured.SERVER_CPU, "cost")
    assert (server.here, server.ours, server.low, server.high, server.n) == (pytest.approx(2.0), 3.0, 2.9, 3.1, 5)
    assert figure(result, "3MB", "server's processor time, mean", "plain").ours == pytest.approx(100 * 1e-3 / 2 * 100)
    assert figure(result, "30MB", measured.WITHOUT_SENDFILE, "cost").ours == 0.8
    many = [figure for figure in result.figures if figure.workload == measured.MANY and figure.arm == "cost"]
    assert len(many) == 2 * 2 * 3
    assert all(figure.low and figure.high for figure in many)


def test_the_tables_are_eighty_wide_and_twelve() -> None:
    text = _study.render(compared())
    assert [line for line in text.splitlines() if len(line) > 80] == []
    numbers = re.findall(r"^([IVX]+)\. ", text, re.MULTILINE)
    assert numbers == ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"]
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "250MB 1.328 → 2.81 1 → 2 5 → 10 90 → 90" in lines
    assert "3MB 0.0388 → 0.0387 0.3 → 0.3 6 → 6 1,000 → 1,000" in lines
    assert "100KB 64 100 → 90 10.0 % fewer (8.0–12.0 %) 3.00 times (2.90–3.10)" in lines


def test_what_limited_each_cell_is_named() -> None:
    busy = {"regime": "capacity", "cores": {"server": "0", "agent": "1"}}
    cells = [
        msgspec.structs.replace(
            cell,
            arms={
                name: arm | {"client_cpu_us_per_op": 9500.0 if cell.clients > 1 else 4000.0}
                for name, arm in cell.arms.items()
            },
            **busy,
        )
        for cell in CELLS
    ]
    text = _study.render(compared(), cells)
    assert [line for line in text.splitlines() if len(line) > 80] == []
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "250MB 1 -: server 10, client 40 -: server 12, client 16" in lines
    assert "100KB 64 client 95 client 86" in lines
    assert "What limited" not in _study.render(compared())


def test_figures_of_any_size_fit_their_columns() -> None:
    for value in (0.0, 1e-9, 4.2e-5, 0.001, 0.12345, 9.9999, 99999.0, 123456.7, 2.5e7, 9.9e12):
        assert len(report.pair([value, value])) <= report.MOST_PAIR
    assert report.pair([None, None]) == "-"
    assert report.pair([0.161, None]) == "0.161 → -"


def test_findings_are_counted_from_both() -> None:
    text = " ".join(compared().findings)
    for words in (
        "are the file's size ÷ 94.1 s",
        "window ÷ file is 1.000 to 1.000 in the 4",
        "250 MB 31 % (29 s)",
        "8.56 → 9.28 MB/s, 8.4 % more",
        "the table says 0.2 % less",
        "Here 250 MB take 20 → 20 %",
        "bytes/s: no change over the window, no change",
        "1.33 → 2.81 % are 4.28 → 9.82 %",
        "250 MB over HTTP: limited by the link",
        "940 Mb/s (100 % used)",
        "3 MB over HTTP: no resource",
        "server's core 10 % busy",
        "client's core 30 % busy",
        "940 Mb/s 5 % used, the disk 10 % busy",
        "3 MB over HTTPS: limited by the disk (90 % busy)",
        "250 MB 1 → 2 % over the window, 5 → 10 %",
        "7 of the 8 differences would be less",
        "higher with TLS in 8 of 8 rows",
        "at 14 % less to 27 % more",
        "nginx 77 0.200 s (user 0.02, kernel 0.01)",
        "30MB 60.0 % fewer (58.0–62.0 %), of it 20.0 % fewer (18.0–22.0 %) and 50.0 % fewer (48.0–52.0 %)",
        "100KB to 16 10.0 % fewer (8.0–12.0 %)",
    ):
        assert words in text, words


def test_no_finding_of_what_was_not_run() -> None:
    text = " ".join(STUDY.compare(STUDY.begin("nginx"), []).findings)
    assert "94.1 s" in text
    assert "Here" not in text
    assert "By our method" not in text
    assert "sendfile" not in text


def test_without_proof_nothing_of_the_procedure_is_printed() -> None:
    result = compared(proofs=[Proof(arm, "client", arm == "plain", "in clear", 1) for arm in ARMS])
    assert not result.complete
    assert "not proven" in result.procedure
    assert all(figure.here is None for figure in result.figures)


def test_a_run_that_was_cut_off_shows_what_it_has() -> None:
    result = compared(runs=kept().runs[:2], complete=False)
    assert "it was cut off" in result.procedure
    assert _study.render(result)
    assert _study.render(STUDY.compare(STUDY.begin("apache"), []))


def test_without_a_link_it_runs_on_loopback_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ciphercost.studies.web_tls.can_shape", lambda: False)
    (cell,) = STUDY.procedure_cells("nginx")
    assert not cell.bandwidth
    begun = STUDY.begin("nginx")
    assert begun.settings["link_bits"] == 0
    assert "over loopback" in compare.as_run(begun)


# ── what is run ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_time_is_scaled_whole() -> None:
    for duration, speed_up in ((94.0, 1.0), (18.8, 5.0)):
        study = STUDY.configured({"duration": duration})
        settings = study.begin("nginx").settings
        assert settings["window_s"] * settings["speed_up"] == pytest.approx(published.WINDOW)
        assert settings["interval_s"] * speed_up == pytest.approx(published.INTERVAL)
        assert study.procedure_seconds(1.0) >= 16 * duration
    (cell,) = STUDY.configured({"duration": 18.8}).procedure_cells("nginx")
    assert cell.bandwidth in ("500000kbit", "")
    for bad in (0.1, 1e6):
        with pytest.raises(UsageError, match="--duration"):
            STUDY.configured({"duration": bad})
    with pytest.raises(UsageError, match="--loads"):
        STUDY.configured({"loads": "10"})


@pytest.mark.parametrize("engine", ["nginx", "apache"])
def test_our_cells_are_every_file_some_controls_and_many_clients(engine: str) -> None:
    cells = STUDY.spec(engine, 10.0, 1).cells
    assert {cell.engine for cell in cells} == {engine}
    one = [cell for cell in cells if cell.group == measured.ONE_CLIENT]
    assert [int(cell.factors["size"]) for cell in one if cell.mechanism == "tls"] == [
        n * 10**6 for n in published.SIZES
    ]
    assert sorted(int(cell.factors["size"]) for cell in one if cell.mechanism == "no-sendfile") == [3e6, 30e6, 250e6]
    many = [(cell.factors["size"], cell.clients) for cell in cells if cell.group == measured.MANY]
    assert many == [(size, clients) for size in ("100000", "3000000") for clients in (1, 16, 64)]
    with pytest.raises(UsageError, match="does not run on"):
        STUDY.spec("postgresql", 10.0, 1)


def test_each_file_is_a_workload_and_all_are_one() -> None:
    for name in STUDY.operations:
        program = workloads.prepare(workloads.get(f"web-tls/{name}"), "http", {})
        assert [transaction for transaction, _, _ in program.transactions] == [name]
        assert program.read_only
    program = workloads.prepare(workloads.get("web-tls/files"), "http", {"megabyte": "1000"})
    assert program.documents == {f"/{size}MB": size * 1000 for size in published.SIZES}
    assert len(program.transactions) == len(published.SIZES)


def test_it_is_listed_and_refuses_what_does_not_fit() -> None:
    listed = warm.run(["list", "studies"], timeout=300)
    assert "web-tls" in listed.stdout
    done = warm.run(["replicate", "web-tls", "--engine", "mysql"], timeout=300)
    assert done.returncode == 2
    assert "'mysql'" in done.stderr


# ── on a real server ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_small_replication_is_proven_run_recorded_and_reported_again(
    tmp_path: Path, require: Require, require_server: RequireServer
) -> None:
    require_server("nginx")
    with Agent() as agent:
        require("http" in str(agent.hello.drivers).split(), "the agent has no driver for http")
    small = WebTls(2.0, megabyte=40_000, sizes=(3, 250), clients=(2,))
    spec = msgspec.structs.replace(small.spec("nginx", 1.5, 5), mode="quick", sessions=1, slice_seconds=0.05)
    result, directory = replicate.run_in(small, spec, tmp_path / "run")
    record = run_directory.read_study(directory)
    assert record is not None
    assert not record.reason
    assert record.complete
    # One whole arm before the other, each file once.
    assert [(run.arm, run.operation) for run in record.runs] == [
        (arm, name) for arm in ARMS for name in ("3MB", "250MB")
    ]
    assert {(proof.arm, proof.witness) for proof in record.proofs if proof.passed} == {
        (arm, witness) for arm in ARMS for witness in WITNESSES
    }
    for run in record.runs:
        assert set(counters.READ) <= set(run.series)
        assert len(run.series["at_s"]) >= 10
        assert all(value >= 0 for name in counters.READ for value in run.series[name])
        crossed = sum(value * s for value, s in zip(run.series[NETWORK], run.series["seconds"], strict=True))
        assert crossed >= run.load["bytes"], "the file arrived within the window"
        assert measured.busy_seconds(run) > 0
        assert measured.threads(run), "at least one server thread was active"
    if record.settings["link_bits"]:
        # Only this test uses the link: nothing but the file, its headers and its acknowledgements.
        largest = next(run for run in record.runs if run.operation == "250MB")
        crossed = sum(value * s for value, s in zip(largest.series[NETWORK], largest.series["seconds"], strict=True))
        assert crossed < 1.3 * largest.load["bytes"]
    ended = [cell for cell in result.cells if cell.status != "no-steady-state"]  # possible on a disturbed machine
    assert ended
    assert all(cell.status == "ok" for cell in ended), [cell.reason for cell in ended]
    assert {cell.mechanism for cell in result.cells} == {"tls", "no-sendfile"}
    assert result.study is not None
    assert result.study.complete
    assert figure(result.study, "250MB", "network bytes, mean", "encrypted").here

    # Reports read only the record.
    encoded = (directory / "result.json").read_bytes()
    assert run_directory.encode(conclude.result_of(directory)) == encoded
    result_schema.validate(json.loads(encoded))
    text = terminal.render(result)
    assert [line for line in text.splitlines() if len(line) > 80] == []
    assert "VIII. network bytes a second: variance" in text
    assert "Many clients" in text


def test_the_heads_of_neighbouring_columns_do_not_run_together() -> None:
    """In a line of a head at least two spaces part two columns, or they read as one."""
    twelve = [sheet for sheet in STUDY.report(STUDY.compare(kept(), [])).sheets if re.match(r"[IVX]+\. ", sheet.title)]
    assert len(twelve) == 12
    for sheet in twelve:
        heads = [head.split("\n") for head in sheet.head]
        deep = max(map(len, heads))
        padded = [[""] * (deep - len(head)) + head for head in heads]
        text = [re.split(r"\s{2,}", line.strip()) for line in _study.lines(sheet)]
        for number in range(deep):
            assert [head[number] for head in padded if head[number]] in text
