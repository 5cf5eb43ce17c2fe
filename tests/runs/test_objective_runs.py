"""Capacity at an objective through the whole pipeline: against queueing theory in virtual time, resumed, estimated again, reported."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest

import fake as fake_agent
import steady
from ciphercost.estimate import objective_capacity, trace
from ciphercost.model import run_directory
from ciphercost.model.result import Cell, Result
from ciphercost.model.spec import ARMS, OPEN_LOOP, SEARCHING, CellSpec, Spec
from ciphercost.report import formats, objective_text, plots
from ciphercost.report.formats import html, md, terminal
from ciphercost.report.words import figure_text
from ciphercost.runs import anonymize, conclude, pipeline, resume
from conftest import RequireServer
from fake import Fake

SERVICE = 2000.0
"""Operations per second of the fake server without a queue in the plain arm; the encrypted arm does a tenth less."""
EFFECT = 0.1
METRIC = objective_capacity.METRIC
TIME = 720.0
"""Seconds of the run that many tests read, in virtual time: with fewer, chance moves a capacity by 1 %."""
Slow = Callable[[float, float, float], float]


def mm1(capacity: float, rate: float, seconds: float) -> float:
    """Share of requests that spend more than that many seconds in M/M/1: exp(−(μ − λ)t)."""
    return math.exp(-(capacity - rate) * seconds) if rate < capacity else 1.0


def md1(capacity: float, rate: float, seconds: float) -> float:
    """The same in M/D/1, after Erlang (1909): P(wait ≤ x) = (1 − ρ) Σₖ (−λ(x − k))ᵏ / k! · exp(λ(x − k)), in units of the service time.

    The sum alternates, so it is computed in fractions and the exponentials in many digits.
    """
    if rate >= capacity:
        return 1.0
    load, x = Fraction(rate / capacity), Fraction(seconds * capacity) - 1
    if x < 0:
        return 1.0

    def exponential(of: Fraction) -> Fraction:
        term, total, n = Fraction(1), Fraction(1), 0
        while abs(term) > Fraction(1, 10**40):
            n += 1
            term = (term * of / n).limit_denominator(10**60)
            total += term
        return total

    waits = sum(
        (-load * (x - k)) ** k / math.factorial(k) * exponential(load * (x - k)) for k in range(math.floor(x) + 1)
    )
    return float(1 - (1 - load) * waits)


def truth(slow: Slow, capacity: float, share: float, seconds: float) -> float:
    """The rate at which exactly as many requests are slow as the objective allows."""
    low, high = 0.0, capacity
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if slow(capacity, middle, seconds) > 1 - share else (middle, high)
    return low


def measured(
    directory: Path, objective: str = "p90=5ms", *, mode: str = "full", sessions: int = 8, time: float = 240.0
) -> Result:
    cells = [CellSpec("null", "busy", regime="one-core", objective=objective)]
    spec = Spec(cells=cells, seed=7, mode=mode, sessions=sessions if mode == "full" else 1, time=time)  # type: ignore[arg-type]
    return pipeline.run(spec, directory)


def check_against(theory: Slow, cell: Cell, share: float, seconds: float) -> None:
    assert cell.objective is not None
    known = {
        "plain": truth(theory, SERVICE, share, seconds),
        "encrypted": truth(theory, SERVICE / (1 + EFFECT), share, seconds),
    }
    for arm in ARMS:
        capacity = cell.objective.arms[arm]
        assert capacity.rate == pytest.approx(known[arm], rel=0.02), arm
    ratio = cell.overhead[METRIC]
    assert ratio.low < known["encrypted"] / known["plain"] < ratio.high
    assert ratio.ratio == pytest.approx(known["encrypted"] / known["plain"], rel=0.02)
    assert ratio.n == 8
    assert ratio.method == "t over 8 sessions"


# ── against theory ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_theory_is_right() -> None:
    """M/D/1: without a queue nobody waits; in heavy traffic waiting times are half those of M/M/1."""
    assert md1(1000.0, 1e-9, 0.0015) == pytest.approx(0.0, abs=1e-9)
    assert md1(1000.0, 500.0, 0.001) == pytest.approx(0.5), "with probability ρ a request waits"
    heavy = [math.log(slow(1000.0, 950.0, 0.02) / slow(1000.0, 950.0, 0.03)) for slow in (mm1, md1)]
    assert heavy[1] / heavy[0] == pytest.approx(2.0, rel=0.05)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on M/M/1 that many tests read."""
    directory = tmp_path_factory.mktemp("objective")
    with fake_agent.in_place(directory, f"--queue mm1 --effect {EFFECT} --rate {SERVICE}"):
        measured(directory / "run", time=TIME)
    return directory / "run"


def test_on_m_m_1_both_capacities_are_those_of_theory(run: Path) -> None:
    check_against(mm1, conclude.result_of(run).cells[0], 0.9, 0.005)


@pytest.mark.parametrize(
    ("queue", "objective"), [("md1", "p90=5ms"), ("mm1", "p99=10ms"), ("md1", "p99=10ms"), ("mm1", "p50=3ms")]
)
def test_on_other_queues_both_capacities_are_those_of_theory(
    tmp_path: Path, fake: Fake, queue: str, objective: str
) -> None:
    fake(f"--queue {queue} --effect {EFFECT} --rate {SERVICE}")
    share, seconds = {"p90=5ms": (0.9, 0.005), "p99=10ms": (0.99, 0.01), "p50=3ms": (0.5, 0.003)}[objective]
    check_against(
        {"mm1": mm1, "md1": md1}[queue],
        measured(tmp_path / "run", objective, time=4800.0 if share == 0.99 else 960.0).cells[0],
        share,
        seconds,
    )


# ── the record ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_search_takes_its_time_and_no_more(run: Path) -> None:
    slices = list(run_directory.read_slices(run))
    by_phase = {phase: sum(record.length for record in slices if record.phase == phase) for phase in OPEN_LOOP}
    assert by_phase["latency"] == 0
    assert by_phase["curve"] + by_phase["objective"] == pytest.approx(0.6 * TIME, rel=0.15)
    assert {record.session for record in slices if record.phase == "objective"} == set(range(1, 9))
    assert all(record.rate > 0 for record in slices if record.phase in SEARCHING)


def test_it_is_estimated_again_from_its_record_and_from_what_is_published_of_it(run: Path, tmp_path: Path) -> None:
    before = (run / "result.json").read_bytes()
    assert run_directory.encode(conclude.result_of(run)) == before
    for name, content in anonymize.shareable(run, condense=True).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    again = conclude.result_of(tmp_path).cells[0]
    assert again.objective == conclude.result_of(run).cells[0].objective


def test_a_run_that_was_cut_off_in_its_search_resumes_to_the_same_result(run: Path, tmp_path: Path, fake: Fake) -> None:
    fake(f"--queue mm1 --effect {EFFECT} --rate {SERVICE}")
    cut = shutil.copytree(run, tmp_path / "cut")
    for name in ("plan.json", "checkpoint.json"):
        plan = json.loads((cut / name).read_text())
        plan.pop("ended", None)
        plan.pop("hashes", None)
        plan["cells"][0].pop("status", None)
        plan["cells"][0]["whole_sessions"] = [1, 2, 3, 4, 5, 6, 7]
        (cut / name).write_text(json.dumps(plan))
    lines = (cut / "slices.jsonl").read_text().splitlines(keepends=True)
    last = [number for number, line in enumerate(lines) if json.loads(line)["session"] == 8]
    (cut / "slices.jsonl").write_text("".join(lines[: last[-5]]))
    kept = [line for line in lines if json.loads(line)["session"] < 8]
    result, _ = resume.run_in(cut)
    assert (cut / "slices.jsonl").read_text().startswith("".join(kept))
    check_against(mm1, result.cells[0], 0.9, 0.005)
    curves = [conclude.result_of(directory).cells[0].objective for directory in (run, cut)]
    assert all(curve is not None and len(curve.curve) >= 6 for curve in curves)


# ── reports ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_terminal_has_the_cost_in_rate_and_both_curves(run: Path) -> None:
    result = conclude.result_of(run)
    text = terminal.render(result)
    cell = result.cells[0]
    assert cell.objective is not None
    assert objective_text.line(cell) in " ".join(text.split())
    assert figure_text.label(cell, METRIC) in text
    lines = [line for line in text.splitlines() if line.rstrip().endswith(" ms") and line.count(" ms") == 2]
    assert len(lines) >= len(cell.objective.curve) - 2
    assert max(map(len, text.splitlines())) <= 80
    rates = [point.rate for point in cell.objective.curve]
    assert rates == sorted(rates)
    assert rates[0] < 0.3 * SERVICE < 0.8 * SERVICE < rates[-1]
    assert objective_text.line(cell) in md.render(result)


def test_the_page_has_the_curves_as_a_plot_with_a_table(run: Path) -> None:
    result, traces = conclude.result_of(run), trace.read(run)
    (drawn,) = [plot for plot in plots.every(plots.Subject(result, traces)) if plot.name == "objective-cell-1"]
    assert drawn.drawn().startswith("<svg")
    assert drawn.finding.startswith("capacity at p90=5ms: plain")
    assert drawn.table.head == ("operations/s", "plain p90", "encrypted p90")
    page = html.render(result, traces)
    assert drawn.caption.startswith("p90 ")
    assert drawn.caption in page


def test_figures_of_all_formats_have_the_cost_in_rate(run: Path) -> None:
    result = conclude.result_of(run)
    for name in ("csv", "json", "openmetrics", "github-action-benchmark", "bencher"):
        rendered = formats.get(name)(result)
        assert METRIC in rendered.replace("-", "_") or "operations/s at p90=5ms" in rendered, name


# ── what can't be measured ────────────────────────────────────────────────────────────────────────────────────────────


def test_where_no_rate_keeps_it_the_cell_says_so_and_keeps_its_other_figures(tmp_path: Path, fake: Fake) -> None:
    fake(f"--queue md1 --effect {EFFECT} --rate {SERVICE}")
    result = measured(tmp_path / "run", "p90=400us", mode="quick", time=60.0)
    cell = result.cells[0]
    assert cell.status == "ok"
    assert "throughput" in cell.overhead
    assert METRIC not in cell.overhead
    assert cell.objective is not None
    assert cell.objective.reason.startswith("no rate keeps it: at ")
    assert "p90 is 0.5" in cell.objective.reason
    assert cell.objective.reason in " ".join(terminal.render(result).split())


def test_where_only_the_plain_arm_can_keep_it_there_is_a_bound(tmp_path: Path, fake: Fake) -> None:
    # A plain operation takes 0.5 ms, an encrypted one 1 ms.
    fake(f"--queue md1 --effect 1.0 --rate {SERVICE}")
    result = measured(tmp_path / "run", "p90=800us", mode="quick", time=60.0)
    cell = result.cells[0]
    assert cell.objective is not None
    assert {arm: capacity.kind for arm, capacity in cell.objective.arms.items()} == {
        "plain": "within",
        "encrypted": "below",
    }
    assert METRIC not in cell.overhead
    assert cell.objective.at_most is not None
    assert 0 < cell.objective.at_most < 1
    assert objective_text.line(cell) in " ".join(terminal.render(result).split())


def test_operations_that_are_too_few_for_the_quantile_are_named(tmp_path: Path, fake: Fake) -> None:
    fake("--queue md1 --rate 200")
    cell = measured(tmp_path / "run", "p99.9=20ms", mode="quick", time=60.0).cells[0]
    assert cell.objective is not None
    assert cell.objective.reason.startswith("p99.9 needs at least ")
    assert not cell.objective.curve


def test_stalls_of_the_encrypted_arm_alone_leave_no_cost_in_rate(tmp_path: Path, fake: Fake) -> None:
    """Half a stall a second, of 30 ms: most blocks have none, and of all requests the encrypted arm loses more than 1 %."""
    fake("--queue mm1 --rate 4000 --stall-encrypted 0.5 --stall-ms 30")
    result = measured(tmp_path / "run", "p99=5ms", mode="quick", time=240.0)
    cell = result.cells[0]
    assert METRIC not in cell.overhead
    assert cell.objective is not None
    assert cell.objective.ratio is None
    assert {capacity.rate for capacity in cell.objective.arms.values()} == {None}, "two rates would be a cost"
    assert cell.objective.all_requests is not None
    assert cell.objective.all_requests.encrypted > 2 * cell.objective.all_requests.plain
    assert not cell.objective.all_requests.agree
    assert cell.objective.reason in " ".join(terminal.render(result).split())
    assert conclude.result_of(tmp_path / "run").cells[0].objective == cell.objective


# ── real servers ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("engine", "workload"), [("postgresql", "point-select"), ("nginx", "file")])
def test_a_real_server_gets_a_capacity_or_a_reason(
    tmp_path: Path, require_server: RequireServer, engine: str, workload: str
) -> None:
    require_server(engine)
    cells = [CellSpec(engine, "tls", workload=workload, objective="p50=10ms")]
    spec = Spec(cells=cells, seed=7, mode="quick", sessions=1, time=4.0)
    result, directory = steady.measured(partial(pipeline.run, spec), tmp_path)
    cell = result.cells[0]
    assert cell.status == "ok", cell.reason
    assert cell.objective is not None
    assert cell.objective.curve
    # How much a busy machine can do is open, but never both a number and a reason.
    assert (METRIC in cell.overhead) is not bool(cell.objective.reason)
    assert conclude.result_of(directory).cells[0].objective == cell.objective
