"""A fake agent with a known effect runs through the whole pipeline, which must measure that effect."""

from __future__ import annotations

import json
import shlex
import signal
from pathlib import Path

import jsonschema
import msgspec
import pytest

import fake as fake_agent
from ciphercost.load import workloads
from ciphercost.model import run_directory, schema
from ciphercost.model.errors import MissingServer
from ciphercost.model.result import Cell, Result
from ciphercost.model.run_directory import Record
from ciphercost.model.spec import ARMS, CellSpec, Spec
from ciphercost.model.study import StudyRecord
from ciphercost.plan import schedule, settled, specs
from ciphercost.runs import conclude, html_page, pipeline
from fake import Fake

DOCS = Path(__file__).parents[2] / "docs"
TWO_PERCENT = "--effect 0.02 --sd 0.01"


def measure(tmp_path: Path, mode: str = "full", time: float = 120.0, **fields: object) -> Result:
    cells = [CellSpec("null", "busy", regime="one-core")]
    spec = Spec(cells=cells, seed=7, mode=mode, sessions=8 if mode == "full" else 1, time=time, **fields)  # type: ignore[arg-type]
    return pipeline.run(spec, tmp_path / "run")


@pytest.fixture(scope="module")
def two_percent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a full run with an effect of 2 %."""
    place = tmp_path_factory.mktemp("full")
    with fake_agent.in_place(place, TWO_PERCENT):
        measure(place)
    return place / "run"


def check_two_percent(cell: Cell) -> None:
    throughput = cell.overhead["throughput"]
    assert cell.status == "ok"
    assert cell.verdict == "differs"
    assert throughput.low < 1 / 1.02 < throughput.high
    assert abs(throughput.ratio - 1 / 1.02) < 0.005
    assert abs(cell.overhead["client_cpu_per_op"].ratio - 1.02) < 0.005


def test_an_effect_of_two_percent_comes_out_as_two_percent(two_percent: Path) -> None:
    check_two_percent(msgspec.json.decode((two_percent / "result.json").read_bytes(), type=Result).cells[0])


def test_so_it_does_in_a_quick_run(tmp_path: Path, fake: Fake) -> None:
    fake(TWO_PERCENT)
    check_two_percent(measure(tmp_path, "quick").cells[0])


def test_drift_does_not_become_an_effect(tmp_path: Path, fake: Fake) -> None:
    fake("--effect 0 --sd 0.002 --drift 0.001")
    cell = measure(tmp_path).cells[0]
    assert cell.overhead["throughput"].low < 1 < cell.overhead["throughput"].high
    assert cell.verdict == "equivalent"


def test_latency_is_measured_in_an_open_loop_at_a_share_of_the_plain_capacity(tmp_path: Path, fake: Fake) -> None:
    fake("--effect 0.1 --sd 0.005")
    result = measure(tmp_path)
    facts = run_directory.read_facts(tmp_path / "run")
    assert facts.cells[0].rate == pytest.approx(0.6 * 20_000, rel=0.02)
    rates = {record.rate for record in run_directory.read_slices(tmp_path / "run") if record.phase == "latency"}
    assert rates == {facts.cells[0].rate}
    assert abs(result.cells[0].overhead["latency_p50"].ratio - 1.1) < 0.01


def test_the_open_loop_comes_as_the_workload_says_and_leaves_thinkers_their_connections(
    tmp_path: Path, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Everything that the controller sends to the agent goes through a file.
    sent, wrapper = tmp_path / "sent", tmp_path / "fake-agent"
    fake("--sd 0.005")
    wrapper.write_text(wrapper.read_text().replace("exec ", f"tee -a {shlex.quote(str(sent))} | exec ", 1))
    workload = workloads.read(
        "title='t'\nmeasures='m'\narrivals='random'\n[[transaction]]\nname='t'\nscript='THINK 2000000'", "thoughtful"
    )
    monkeypatch.setattr(workloads, "get", lambda _: workload)
    cells = [CellSpec("null", "busy", workload="thoughtful", clients=5)]
    pipeline.run(Spec(cells=cells, seed=7, mode="quick", sessions=1, time=10.0), tmp_path / "run")
    facts = run_directory.read_facts(tmp_path / "run").cells[0]
    assert (facts.arrivals, facts.think_s, facts.rate) == ("random", 2.0, 0.8 * 5 / 2)
    slices = [request for line in sent.read_text().splitlines() if (request := json.loads(line))["type"] == "slice"]
    assert {request["rate"] for request in slices if request.get("arrivals") == "random"} == {2.0}
    assert all("rate" in request for request in slices if "arrivals" in request), "only an open loop has arrivals"
    assert any("rate" not in request for request in slices)


def test_the_result_passes_its_published_schema(two_percent: Path) -> None:
    published = json.loads((DOCS / "result.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(published)
    jsonschema.validate(json.loads((two_percent / "result.json").read_text()), published)


def test_the_published_schema_is_up_to_date() -> None:
    assert json.loads((DOCS / "result.schema.json").read_text()) == schema.result_schema(), "run `make schema`"


def test_a_run_estimated_again_from_its_record_gives_the_same_result(two_percent: Path) -> None:
    assert run_directory.encode(conclude.result_of(two_percent)) == (two_percent / "result.json").read_bytes()


def test_the_same_seed_gives_the_same_order_and_another_seed_another(tmp_path: Path, fake: Fake) -> None:
    fake("--sd 0.01")
    orders = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        spec = Spec(
            cells=[CellSpec("null", "none", regime="one-core")],
            seed=seed,
            mode="quick",
            sessions=1,
            time=20.0,
            latency=False,
        )
        pipeline.run(spec, tmp_path / name)
        records = run_directory.read_slices(tmp_path / name)
        orders.append([record.order for record in records if record.phase == "capacity"][: 5 * 20])
    assert len(orders[0]) == 5 * 20
    assert orders[0] == orders[1] != orders[2]


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_all_that_is_done_to_both_arms_is_done_first_to_the_one_that_the_seed_says(
    tmp_path: Path, fake: Fake, seed: int
) -> None:
    sent, wrapper = tmp_path / "sent", tmp_path / "fake-agent"
    fake("--sd 0.005")
    wrapper.write_text(wrapper.read_text().replace("exec ", f"tee -a {shlex.quote(str(sent))} | exec ", 1))
    cells = [CellSpec("null", "busy", regime="one-core")]
    pipeline.run(Spec(cells=cells, seed=seed, mode="quick", sessions=1, time=4.0, latency=False), tmp_path / "run")
    first, second = schedule.arms(seed, 0, 1)
    lines = [json.loads(line) for line in sent.read_text().splitlines()]
    assert [request["arm"] for request in lines if request["type"] == "connect" and request["arm"] in ARMS] == [
        first,
        second,
    ]
    slices = list(run_directory.read_slices(tmp_path / "run"))
    for phase in ("pilot", "warmup"):
        assert [record.arm for record in slices if record.phase == phase][:2] == [first, second]


def test_different_seeds_start_with_either_arm() -> None:
    """As in the test above."""
    assert {schedule.arms(seed, 0, 1) for seed in (1, 2, 3, 4)} == {ARMS, ARMS[::-1]}


def test_rows_that_differ_give_no_number(tmp_path: Path, fake: Fake) -> None:
    fake("--differ")
    cell = measure(tmp_path).cells[0]
    assert cell.status == "failed"
    assert "do not return the same rows" in cell.reason
    assert not cell.overhead


def test_an_agent_that_dies_is_a_failed_cell_with_its_slices_kept(tmp_path: Path, fake: Fake) -> None:
    fake("--die-after 40")
    cell = measure(tmp_path).cells[0]
    assert cell.status == "failed"
    assert "the agent ended" in cell.reason
    assert "(status 3)" in cell.reason
    assert len(list(run_directory.read_slices(tmp_path / "run"))) == 36, "40 slices less the four that compare rows"


def test_every_slice_is_in_the_record_in_mirrored_order_behind_a_lead_in(two_percent: Path) -> None:
    blocks: dict[tuple[int, str, int], list[tuple[int, str, str]]] = {}
    for record in run_directory.read_slices(two_percent):
        if record.phase in ("capacity", "latency"):
            blocks.setdefault((record.session, record.phase, record.block), []).append(
                (record.position, record.order, record.arm)
            )
    for slices in blocks.values():
        order = slices[0][1]
        letters = "".join("A" if arm == "plain" else "B" for _, _, arm in slices)
        assert letters == order[0] + order
        assert [position for position, _, _ in slices] == [0, 1, 2, 3, 4]


def test_precision_stops_a_run_before_its_time(tmp_path: Path, fake: Fake) -> None:
    fake("--sd 0.002")
    cell = measure(tmp_path, "quick", time=600.0, precision=0.005, latency=False).cells[0]
    assert 20 <= cell.blocks < 100
    half = (cell.overhead["throughput"].high - cell.overhead["throughput"].low) / 2
    assert half <= 0.0051


def test_a_throughput_that_is_never_steady_gives_no_number(tmp_path: Path, fake: Fake) -> None:
    fake("--drift 0.2 --sd 0.001")
    cell = measure(tmp_path, time=60.0).cells[0]
    assert cell.status == "no-steady-state"
    assert not cell.overhead


def test_operations_longer_than_a_slice_are_a_failed_cell_that_says_so(tmp_path: Path, fake: Fake) -> None:
    fake("--rate 0.01")
    cell = measure(tmp_path, time=60.0).cells[0]
    assert cell.status in ("failed", "no-steady-state")
    assert "--time" in cell.reason


@pytest.mark.parametrize("measured", [False, True])
def test_a_missing_server_leaves_no_directory_in_the_way_of_the_next_try(
    measured: bool, tmp_path: Path, fake: Fake
) -> None:
    fake("--sd 0.01")

    def search(record: Record, *_: object) -> None:
        if measured:
            record.save_study(StudyRecord(1, "a", "null", "busy"))
        raise MissingServer("no such server was found")

    plan = specs.plan(Spec(cells=[CellSpec("null", "busy", regime="one-core")], mode="quick", sessions=1, time=10.0))
    with pytest.raises(MissingServer, match="no such server was found"):
        pipeline.run_in(plan, tmp_path / "run", before=search)
    assert (tmp_path / "run").exists() is measured
    if not measured:
        assert pipeline.run_in(plan, tmp_path / "run")[0].cells[0].status == "ok"


def test_a_record_without_its_proofs_gives_no_number(tmp_path: Path, fake: Fake) -> None:
    fake("--sd 0.01")
    measure(tmp_path, "quick", time=30.0)
    directory = tmp_path / "run"
    # The same slices under a mechanism that needs witnesses, without any proof.
    path = directory / "plan.json"
    plan = json.loads(path.read_text())
    plan["cells"][0]["registered"]["witnesses"] = ["server", "wire"]
    path.write_text(json.dumps(plan))
    cell = conclude.result_of(directory).cells[0]
    assert cell.status == "unproven"
    assert "session 1: no report from: " in cell.reason
    assert not cell.overhead


def test_the_warm_up_of_a_short_run_is_no_more_than_half_of_its_load(tmp_path: Path, fake: Fake) -> None:
    fake("--sd 0.01")
    measure(tmp_path, "quick", 1.0, slice_seconds=0.05)
    slices = list(run_directory.read_slices(tmp_path / "run"))
    warm_up = [record.length for record in slices if record.phase == "warmup"]
    assert len(warm_up) >= 2 * settled.WARMUP_POINTS
    assert sum(warm_up) <= sum(record.length for record in slices) / 2


def test_sigterm_after_the_measurement_ends_the_page_and_not_the_result(
    tmp_path: Path, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(TWO_PERCENT)
    started = []

    def drawing(*_: object) -> None:
        started.append(True)
        signal.raise_signal(signal.SIGTERM)
        pytest.fail("the page was drawn on")

    monkeypatch.setattr(html_page, "page", drawing)
    before = signal.getsignal(signal.SIGTERM)
    check_two_percent(measure(tmp_path, "quick").cells[0])
    assert started
    assert signal.getsignal(signal.SIGTERM) == before
    concluded = conclude.result_of

    def asked_to_end(directory: Path) -> Result:
        signal.raise_signal(signal.SIGTERM)
        return concluded(directory)

    monkeypatch.setattr(conclude, "result_of", asked_to_end)
    started.clear()
    (tmp_path / "again").mkdir()
    check_two_percent(measure(tmp_path / "again", "quick").cells[0])
    assert not started
