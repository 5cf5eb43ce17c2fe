"""Plots show what was measured: tests count marks and texts in the drawing."""

from __future__ import annotations

import os
import re
import resource
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import results
from ciphercost.estimate import notation, trace
from ciphercost.estimate.trace import Quantiles, Tick, Trace
from ciphercost.model.constrained_types import Verdict
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Cell, Curve, Part, Parts, Point, Result
from ciphercost.model.slices import AgentSlice, SliceRecord
from ciphercost.model.spec import ARMS, Arm
from ciphercost.plan import schedule
from ciphercost.report import comparison, comparison_formats, comparison_types, plots
from ciphercost.report.formats import html, terminal
from ciphercost.report.formats.html import _method
from ciphercost.report.plots import Plot, Subject, curve, forest, latency, slices, where
from ciphercost.report.words import figure_text, verdict_text
from simulate import records


def result_of(*cells: Cell, **more: Any) -> Result:
    known: dict[str, Any] = {"format": 1, "id": "x", "started": "", "tool": {}, "machine": {}, "seed": 1}
    return Result(**(known | more), cells=list(cells))


def priced(engine: str, ratio: float, half: float = 0.02, **more: Any) -> Cell:
    return results.cell(engine, overhead={"throughput": results.estimate(ratio, half)}, **more)


def rows(plot: Plot, name: str = "rows") -> list[dict[str, Any]]:
    return next(iter(plot.charts.values())).data[name]


def texts(drawn: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", drawn)


# ── forest


def test_the_cheapest_cell_is_first_and_cells_without_a_number_are_last() -> None:
    failed = results.cell("nginx", status="failed", reason="no", overhead={}, arms={})
    (plot,) = forest.plots(
        Subject(result_of(priced("mysql", 0.5), failed, priced("mariadb", 0.9), priced("firebird", 1.1)))
    )
    assert [row["name"].split()[0] for row in rows(plot)] == ["firebird", "mariadb", "mysql", "nginx"]
    assert [round(row["cost"]) for row in rows(plot)[:3]] == [-10, 10, 50]
    assert rows(plot)[3]["kind"] == "missing"
    drawn = plot.drawn()
    assert "no number: failed" in texts(drawn)
    assert plot.table.rows[-1][1] == "no number: failed"


def test_unresolved_points_are_hollow() -> None:
    (plot,) = forest.plots(
        Subject(result_of(priced("mysql", 0.5), priced("mariadb", 0.99, 0.05, verdict="unresolved")))
    )
    assert [row["kind"] for row in rows(plot)] == ["unresolved", "resolved"]
    assert "hollow" in plot.note


def test_an_interval_far_beyond_all_estimates_is_cut_off_with_a_note() -> None:
    (plot,) = forest.plots(Subject(result_of(priced("mysql", 0.9), priced("mariadb", 0.95, 0.9, verdict="unresolved"))))
    assert {row["side"] for row in rows(plot, "cut")} == {"left", "right"}
    assert "extends beyond the plot" in plot.note
    assert plot.table.rows[0][2] == figure_text.bounds("throughput", results.estimate(0.95, 0.9)), (
        "the table is complete"
    )
    (plain,) = forest.plots(Subject(result_of(priced("mysql", 0.9), priced("mariadb", 0.95))))
    assert rows(plain, "cut") == []


def test_the_budget_is_a_line_and_the_interval_decides() -> None:
    cells = (priced("mysql", 0.99, 0.001), priced("mariadb", 0.95, 0.02), priced("firebird", 0.8))
    (plot,) = forest.plots(Subject(result_of(*cells), budget=0.05))
    assert rows(plot, "budget") == [{"at": 5.0}]
    assert [row[-1] for row in plot.table.rows] == ["within", "not resolved", "over"]
    without = forest.plots(Subject(result_of(*cells)))
    assert plot.drawn().count("<line") == next(iter(without)).drawn().count("<line") + 1


def test_latency_only_cells_have_a_plot_of_their_own() -> None:
    slow = results.cell("mariadb", overhead={"latency_p50": results.estimate(8.0)})
    throughput, late = forest.plots(Subject(result_of(priced("mysql", 0.5), slow)))
    assert len(rows(throughput)) == 1
    assert rows(late)[0]["cost"] == pytest.approx(8.0)
    assert "latency p50, encrypted ÷ plain (logarithmic)" in texts(late.drawn())


def test_mixed_cells_have_a_described_plot_per_measure_and_a_failed_one_is_in_the_first() -> None:
    late = [
        results.cell("mariadb", workload=f"w{ratio}", overhead={"latency_p50": results.estimate(ratio)})
        for ratio in (1.3, 1.6)
    ]
    cells = [priced("mysql", 0.5), priced("mysql", 0.7, workload="w"), *late, results.failed(workload="lost")]
    result = result_of(*cells)
    first, second = forest.plots(Subject(result))
    assert [[row["kind"] for row in rows(plot)].count("missing") for plot in (first, second)] == [1, 0]
    assert "fewer operations" in first.finding
    assert "latency" not in first.finding
    assert "fewer operations" not in second.finding
    assert "higher latency p50" in second.finding
    assert "1 of 5 cells has no number" in first.finding
    assert "no number" not in second.finding
    answer = verdict_text.answer(result)
    assert all(
        figure_text.cost(figure_text.main_metric(cell), cell.overhead[figure_text.main_metric(cell)]) in answer
        for cell in cells[:4]
    )
    assert answer.count("no number") == 1
    control = results.cell("mariadb", layer="control", overhead={"latency_p50": results.estimate(1.3)})
    first, second = forest.plots(Subject(result_of(cells[0], control)))
    assert "higher latency p50" in second.finding
    assert "mariadb" not in verdict_text.answer(result_of(cells[0], control)), "a control is not a cost of encryption"


@pytest.mark.parametrize("verdicts", [("unresolved", "differs"), ("differs", "unresolved"), ("unresolved",) * 2])
def test_no_cell_of_either_metric_is_left_out_of_the_answer(verdicts: tuple[Verdict, Verdict]) -> None:
    measured = [priced("mysql", 0.5), results.cell("mariadb", overhead={"latency_p50": results.estimate(1.3)})]
    cells = [msgspec.structs.replace(cell, verdict=verdict) for cell, verdict in zip(measured, verdicts, strict=True)]
    answer = verdict_text.answer(result_of(*cells))
    assert all(notation.interval(cell.overhead[figure_text.main_metric(cell)]) in answer for cell in cells)


def test_a_cell_unresolved_only_by_the_correction_is_marked() -> None:
    weak = priced("mysql", 0.937, 0.05, verdict="unresolved", smallest_effect=0.058)
    vague = priced("mysql", 0.99, 0.05, verdict="unresolved", smallest_effect=0.058)
    for text in (verdict_text.verdict(weak), verdict_text.answer(result_of(weak))):
        assert verdict_text.BY_ITSELF in text
        assert "could have detected" not in text
    for text in (verdict_text.verdict(vague), verdict_text.answer(result_of(vague))):
        assert verdict_text.BY_ITSELF not in text
        assert f"{vague.smallest_effect:.1%}".rstrip("%") in text


def test_a_control_among_others_is_a_diamond() -> None:
    control = priced("nginx", 0.97, mechanism="no-sendfile", layer="control")
    (plot,) = forest.plots(Subject(result_of(priced("nginx", 0.5), control)))
    assert [row["control"] for row in rows(plot)] == [True, False]
    (alone,) = forest.plots(Subject(result_of(control)))
    assert [row["control"] for row in rows(alone)] == [False]


# ── where


def test_segments_add_up_to_all_cpu_of_an_operation() -> None:
    arm = {
        "server_cpu_us_per_op": 10.0,
        "server_user_us_per_op": 5.0,
        "server_system_us_per_op": 3.0,  # ticks: 8 of 10
        "client_cpu_us_per_op": 6.0,
        "client_user_us_per_op": 2.0,
        "client_system_us_per_op": 4.0,
        "machine_cpu_us_per_op": 17.0,
    }
    dearer = {name: 2 * value for name, value in arm.items()}
    at_rest = results.cell(mechanism="fscrypt", layer="rest", arms={"plain": arm, "encrypted": dearer})
    (plot,) = where.plots(Subject(result_of(at_rest)))
    ends = rows(plot, "ends")
    assert [end["to"] for end in ends] == pytest.approx([100, 200])
    assert plot.table.rows[0][-1] == "23 µs", "10 for the server, 6 for the client, 7 for the rest of the machine"
    in_transit = results.cell(arms={"plain": arm, "encrypted": dearer})
    (plot,) = where.plots(Subject(result_of(in_transit)))
    assert plot.table.rows[0][-1] == "16 µs", "the machine's other work is not a cost of the connection"
    assert "url(#hatch-server)" in plot.drawn()


def test_parts_are_shares_of_what_encryption_adds() -> None:
    arms = {"plain": {"connects": 10, "operations": 10, "wire_bytes_per_op": 2000.0}}
    part = {
        name: Part(value, value - 1, value + 1)
        for name, value in (("handshake_us", 300.0), ("request_us", 100.0), ("byte_ns", 50.0))
    }
    both = [Parts("nginx", "tls", end, **part, cells=[0], worst=1.0) for end in ("server", "client")]  # type: ignore[arg-type]
    plot = next(iter(where.plots(Subject(result_of(results.cell(arms=arms), parts=both)))))
    assert [row["to"] - row["from"] for row in rows(plot, "parts")][:3] == pytest.approx([60, 20, 20])
    assert plot.table.rows[0][2:] == ("300 µs (60 %)", "100 µs (20 %)", "100 µs (20 %)")


# ── latency and slices


def written(directory: Path, lines: list[SliceRecord], cells: int = 1) -> Path:
    facts = {
        "format": 1, "id": "x", "started": "", "tool": {}, "machine": {}, "seed": 1,
        "spec": {"cells": [{"engine": "null", "mechanism": "busy"}] * cells},
        "cells": [{"spec": {"engine": "null", "mechanism": "busy"}}] * cells,
    }  # fmt: skip
    (directory / "plan.json").write_bytes(msgspec.json.encode(facts))
    (directory / "slices.jsonl").write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    return directory


def simulated(blocks: int = 6) -> list[SliceRecord]:
    random = np.random.default_rng(1)
    return list(records(random.normal(0, 0.01, (blocks, 4)), np.ones(blocks)))


def test_a_trace_has_every_counted_slice_and_no_lead_in(tmp_path: Path) -> None:
    lines = simulated(6)
    marked = msgspec.structs.replace(lines[1], marks=["steal"])
    failed = msgspec.structs.replace(lines[2], agent=None, error="gone")
    pilot = msgspec.structs.replace(lines[3], phase="pilot")
    (cell_trace,) = trace.read(written(tmp_path, [lines[0], marked, failed, *lines[3:], pilot]))
    assert (cell_trace.counted, cell_trace.lead_ins, cell_trace.failed, cell_trace.marked) == (23, 6, 1, {"steal": 1})
    assert len(cell_trace.ticks) == 25
    assert cell_trace.ticks[0].marks == ("steal",)
    assert cell_trace.ticks[1] == Tick(0.0, 1, "capacity", cell_trace.ticks[1].arm, 0.0, ("failed",))
    assert cell_trace.latency == {}, "no histogram, no latencies"


def test_latencies_are_those_of_the_histograms_of_complete_blocks(tmp_path: Path) -> None:
    from hdrh.histogram import HdrHistogram

    lines = []
    for record in simulated(4):
        histogram = HdrHistogram(1, 3_600_000_000_000, 3)
        for value in range(1, 1001):
            histogram.record_value(value * (1000 if record.arm == "plain" else 3000))
        agent: AgentSlice | None = record.agent
        assert agent is not None
        timed = msgspec.structs.replace(agent, histogram=histogram.encode().decode())
        lines.append(msgspec.structs.replace(record, phase="latency", agent=timed))
    (cell_trace,) = trace.read(written(tmp_path, lines[:-1]))
    assert cell_trace.open_loop
    assert cell_trace.latency["plain"].requests == 3 * 2 * 1000, "the last block is incomplete"
    (plot,) = latency.plots(Subject(result_of(results.cell()), [cell_trace]))
    assert [row[0] for row in plot.table.rows] == ["50 %", "90 %", "99 %"]
    plain, encrypted = (float(text.split()[0]) for text in plot.table.rows[0][1:])
    assert [plain, encrypted] == pytest.approx([0.5, 1.5], rel=0.01)


def closed(blocks: int, requests: int = 100, without: Arm | None = None) -> list[SliceRecord]:
    """Slices of a closed loop with equal latencies; in arm `without`, every second slice has none."""
    from hdrh.histogram import HdrHistogram

    histogram = HdrHistogram(1, 3_600_000_000_000, 3)
    for value in range(1, requests + 1):
        histogram.record_value(value * 1000)
    text, lines = histogram.encode().decode(), []
    for number, record in enumerate(simulated(blocks)):
        assert record.agent is not None
        mine = "" if record.arm == without and number % 2 else text
        agent = msgspec.structs.replace(record.agent, histogram=mine, operations=requests)
        lines.append(msgspec.structs.replace(record, agent=agent))
    return lines


def test_a_damaged_histogram_of_a_closed_loop_is_reported_with_its_place(tmp_path: Path) -> None:
    lines = closed(3)
    agent = msgspec.structs.replace(lines[-1].agent, histogram="HISTF")  # type: ignore[type-var]
    written(tmp_path, [*lines[:-1], msgspec.structs.replace(lines[-1], agent=agent)])
    place = rf"slices\.jsonl, cell 0, session 1, block {lines[-1].block}: "
    with pytest.raises(UsageError, match=place):
        html.write(results.result(results.cell()), tmp_path, tmp_path / "page.html")
    assert not list(tmp_path.glob("*.html"))


@pytest.mark.parametrize("without", [None, "encrypted"])
def test_all_requests_are_counted_where_slices_are_thinned_and_both_arms_alike(
    without: Arm | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace, "MOST_HISTOGRAMS", 16)
    lines = closed(20, without=without)
    (cell_trace,) = trace.read(written(tmp_path, lines))
    for arm in ARMS:
        timed = [line for line in lines if line.arm == arm and line.position and line.agent and line.agent.histogram]
        assert cell_trace.latency[arm].requests == 100 * len(timed)
    assert cell_trace.stride == 4
    # 40 slices, of which ten are read, have a thousand requests: the last one drawn is the 99th of a hundred.
    assert cell_trace.latency["plain"].shares[-1] == pytest.approx(0.99)
    (plot,) = latency.plots(Subject(result_of(results.cell()), [cell_trace]))
    assert "4,000 plain" in plot.note
    assert "one slice in 4" in plot.note
    monkeypatch.undo()
    (whole,) = trace.read(tmp_path)
    assert whole.stride == 1
    assert [whole.latency[arm].requests for arm in ARMS] == [cell_trace.latency[arm].requests for arm in ARMS]


def test_a_quantile_is_drawn_only_with_enough_requests_beyond_it() -> None:
    shares = [0.0, 0.5, 0.9]
    arms: dict[Any, Quantiles] = {arm: Quantiles(shares, [1.0, 2.0, 3.0], 100) for arm in ("plain", "encrypted")}
    (plot,) = latency.plots(Subject(result_of(results.cell()), [Trace([], arms, False, 0, 0, 0, {}, 0)]))
    assert [row[0] for row in plot.table.rows] == ["50 %", "90 %"]
    assert "wait for each response" in plot.note


def ticks(count: int, session: int = 1, marks: tuple[str, ...] = ()) -> list[Tick]:
    arms: tuple[Arm, Arm] = ("plain", "encrypted")
    return [Tick(float(n), session, "capacity", arm, 100.0 + n, marks) for n in range(count) for arm in arms]


def test_slices_are_points_one_by_one_until_there_are_too_many() -> None:
    few = Trace(ticks(30), {}, False, 60, 0, 0, {}, 0)
    (plot,) = slices.plots(Subject(result_of(results.cell()), [few]))
    assert len(rows(plot, "points")) == 60
    assert plot.drawn(page=True).count("<path") == 60
    many = Trace([*ticks(900), *ticks(900, session=2)], {}, False, 3600, 0, 0, {}, 0)
    (plot,) = slices.plots(Subject(result_of(results.cell()), [many]))
    assert len(rows(plot, "points")) <= 2 * slices.MOST + 4
    assert "median of up to" in plot.note
    assert rows(plot, "sessions") == [{"at": 0.0}], "where the second begins"
    sixty = [Trace(ticks(200), {}, False, 400, 0, 0, {}, 0)] * 60
    drawn = slices.plots(Subject(result_of(*[results.cell()] * 60), sixty))
    assert len(rows(next(iter(drawn)), "points")) <= 2 * slices.LEAST + 4


def test_a_marked_slice_has_another_shape() -> None:
    cell_trace = Trace([*ticks(10), *ticks(3, marks=("steal",))], {}, False, 26, 0, 0, {"steal": 6}, 0)
    (plot,) = slices.plots(Subject(result_of(results.cell()), [cell_trace]))
    assert sum(row["marked"] for row in rows(plot, "points")) == 6
    crosses = [path for path in re.findall(r'<path[^>]* d="([^"]*)"', plot.drawn(page=True)) if path.count("M") == 2]
    assert len(crosses) == 6
    assert "6 of 26" in plot.note


# ── curve, and all of them


def test_a_curve_has_a_point_and_an_interval_for_each_cell() -> None:
    points = [
        Point(1e3, results.estimate(0.8), 5.0, 0),
        Point(1e5, results.estimate(0.6), None, 1),
        Point(1e6, results.estimate(0.5), None, 2),
    ]
    size_curve = Curve("nginx", "1.26", "tls", "file", "size", points)
    (plot,) = curve.plots(Subject(result_of(curves=[size_curve])))
    assert [(row["x"], round(row["cost"])) for row in rows(plot, "points")] == [(1e3, 20), (1e5, 40), (1e6, 50)]
    assert {"1KB", "1MB"} <= set(texts(plot.drawn()))
    assert plot.table.rows[0][3] == "+5 µs"


def test_no_letter_of_a_name_is_changed_in_a_plot() -> None:
    """Numbers and colours are changed in tags only, not in text."""
    odd = "1.22.13456 #0072b2 class=&quot;x&quot; <b>"
    (plot,) = forest.plots(Subject(result_of(priced("mysql", 0.5, variant=odd), priced("mysql", 0.6, variant="other"))))
    for page in (True, False):
        drawn = plot.drawn(page=page)
        assert any(text.startswith("1.22.13456 #0072b2 class=") for text in texts(drawn))
        assert "<b>" not in drawn


def test_a_file_is_self_contained_and_a_page_has_variables(tmp_path: Path) -> None:
    of = Subject(result_of(priced("mysql", 0.5)))
    (plot,) = forest.plots(of)
    assert "var(--" in plot.drawn(page=True)
    assert "var(--" not in plot.drawn()
    assert "<title>" in plot.drawn()
    (path,) = plots.write(of, tmp_path, "png")
    assert path.read_bytes().startswith(b"\x89PNG")
    assert verdict_text.answer(of.result) in plot.finding


ILL = "a\x00b\x01c\x1b[31md\x07e\u202ef\x85g\ufffeh\ud800i"
WELL = "a\ufffdb\ufffdc\ufffd[31md\ufffde\ufffdf\ufffdg\ufffdh\ufffdi"


def test_control_characters_are_shown_and_have_no_effect() -> None:
    assert figure_text.printable(ILL) == WELL
    assert figure_text.printable("two\nlines\tand ✓ 日本 é") == "two\nlines\tand ✓ 日本 é"


def test_no_letter_of_a_name_ends_the_process_that_draws_it() -> None:
    """vl-convert aborts on what XML forbids, which would end all other tests too."""
    cells = [priced("mysql", 0.5, variant=ILL), priced("mysql", 0.6, variant="other", reason=ILL)]
    run_result = result_of(
        *cells,
        curves=[
            Curve(ILL, ILL, "tls", ILL, "size", [Point(n * 1e3, results.estimate(0.8), 5.0, 0) for n in (1, 2, 3)])
        ],
    )
    shares = [0.0, 0.5, 0.9]
    arms: dict[Any, Quantiles] = {arm: Quantiles(shares, [1.0, 2.0, 3.0], 100) for arm in ("plain", "encrypted")}
    traces = [Trace(ticks(10, marks=(ILL,)), arms, False, 20, 0, 0, {ILL: 20}, 0)] * 2
    drawn = [plot.drawn(page=page) for plot in plots.every(Subject(run_result, traces, 0.1)) for page in (True, False)]
    assert any(WELL in text for text in drawn)
    assert not [text for text in drawn if figure_text.printable(text) != text]
    assert plots._draw.png(drawn[1]).startswith(b"\x89PNG")


def test_no_letter_of_a_name_reaches_a_terminal_or_a_page_raw() -> None:
    run_result = results.result(results.cell(variant=ILL, version=ILL), results.failed(ILL, workload=ILL))
    compared = comparison.compare(
        [comparison_types.Run(name, msgspec.structs.replace(run_result, id=name), [{}, {}]) for name in (ILL, "b")],
        limit=0.1,
    )
    for text in (html.render(run_result), terminal.render(run_result), comparison_formats.get("terminal")(compared)):
        assert "c\ufffd[31m" in text
        assert figure_text.printable(text) == text
    assert not set("\x1b\u202e") & set("".join(terminal.advice_line(f"  {ILL}")))


# ── where a page is written


def nothing_measured(directory: Path) -> Path:
    directory.mkdir()
    return written(directory, [])


@pytest.mark.parametrize("output", [".", "/", "", "there", "no/such/page.html", "plan/page.html"])
def test_a_page_that_can_not_be_written_is_an_error_and_leaves_nothing(
    output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = nothing_measured(tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    (tmp_path / "plan").write_text("a file")
    with pytest.raises(UsageError, match="can't write"):
        html.write(results.result(results.failed()), run, Path(output))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan", "run", "there"]


def test_an_error_leaves_no_half_of_a_page(tmp_path: Path) -> None:
    run, limits = nothing_measured(tmp_path / "run"), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(UsageError, match="File too large"):
            html.write(results.result(results.failed()), run, tmp_path / "page.html")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == [run]


def test_a_pipe_and_a_link_are_written_through_and_stay_what_they_are(tmp_path: Path) -> None:
    run = nothing_measured(tmp_path / "run")
    run_result = results.result(results.failed())
    html.write(run_result, run, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    (tmp_path / "own.html").write_text("old")
    for name, target in (("link", "own.html"), ("dangling", "new.html")):
        (tmp_path / name).symlink_to(target)
        html.write(run_result, run, tmp_path / name)
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / target).read_text() == page
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE) as reader:
        html.write(run_result, run, tmp_path / "pipe")
        assert reader.communicate(timeout=60)[0].decode() == page
    assert (tmp_path / "pipe").is_fifo()
    html.write(run_result, run, Path(os.devnull))
    assert Path(os.devnull).is_char_device()
    assert not list(tmp_path.glob(".*"))


def test_a_page_states_how_much_of_a_slice_is_not_counted() -> None:
    share = f"{schedule.DISCARD:.0%}".replace("%", " %")
    text = " ".join(_method.sentences(Subject(results.result(results.cell()))))
    assert f"the first {share} of each slice is not counted" in text


# ── files


def test_a_suffix_of_another_form_is_refused_and_so_is_a_run_without_a_number(tmp_path: Path) -> None:
    one = result_of(results.cell())
    for form, name in (("png", "plots.svg"), ("svg", "x.png")):
        with pytest.raises(UsageError, match=f"doesn't write .{name[-3:]}"):
            plots.write(Subject(one), tmp_path / name, form)
    with pytest.raises(UsageError, match=r"no plot .*: no cell"):
        plots.write(Subject(result_of(results.failed())), tmp_path / "none.svg", "svg")
    assert not list(tmp_path.iterdir())


def test_a_single_file_states_how_many_plots_it_leaves_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arm = {
        "client_user_us_per_op": 3.0,
        "server_user_us_per_op": 3.0,
        "server_cpu_us_per_op": 3.0,
        "client_cpu_us_per_op": 3.0,
    }
    dearer = {name: 2 * value for name, value in arm.items()}
    run_result = result_of(results.cell(arms={"plain": arm, "encrypted": dearer}))
    plots.report(Subject(run_result), tmp_path / "one.svg", "svg")
    assert "1 more was left out" in capsys.readouterr().err
