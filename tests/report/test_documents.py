"""Documents of several runs and machines: they lead with what encryption adds, and no format drops what they say."""

from __future__ import annotations

import csv
import html as entities
import io
import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import browser
from ciphercost.estimate import added_together, machines, student_t
from ciphercost.estimate.machines import OnMachine
from ciphercost.estimate.statistics import Error, Interval
from ciphercost.model.machines import CellOverMachines, Machine, MachinesRun
from ciphercost.model.result import Added, Cell, Part, Parts
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.report import (
    blocks,
    comparison,
    comparison_document,
    comparison_formats,
    machines_added,
    machines_document,
    machines_formats,
    trend_document,
    trend_formats,
)
from ciphercost.report.comparison_types import Comparison, Run
from ciphercost.report.layout import WIDTH
from ciphercost.report.machines_types import Concluded
from ciphercost.report.trend_analysis import trend
from ciphercost.report.trend_types import Trend
from ciphercost.report.words import added_text, comparison_text, machines_text, trend_text
from results import cell, estimate, result

PLAIN = 12.75
"""µs of server CPU per operation without encryption, as in `results.cell`."""


def adding(us: float, half: float = 0.3, **more: Any) -> Cell:
    """A cell to whose operations encryption adds so much server CPU."""
    arms = {arm: dict(levels) for arm, levels in cell().arms.items()}
    arms["encrypted"]["server_cpu_us_per_op"] = PLAIN + us
    overhead = {"throughput": estimate(1 / (1 + us / PLAIN), 0.01), "server_cpu_per_op": estimate(1 + us / PLAIN)}
    added = {"server_cpu": Added(us, us - half, us + half, half / 2, 8)}
    known: dict[str, Any] = {"overhead": overhead, "arms": arms, "added": added}
    return cell(**known | more)


def run(number: int, *cells: Cell, parts: Sequence[Parts] = ()) -> Run:
    run_result = result(*cells, id=f"run-{number:02d}", started=f"2026-10-{number:02d}T03:00:00Z", parts=list(parts))
    error = Error(0.01 / student_t.quantile(0.975, 7), 7, "t over 8 sessions")
    known = [
        {name: Interval(math.log(one.ratio), (error,), 8) for name, one in cell.overhead.items()} for cell in cells
    ]
    return Run(f"runs/{number:02d}", run_result, known)


def fitted(request: float, byte: float, handshake: float) -> Parts:
    """What a run adds to an operation, µs, to a byte, ns, and to a connection, µs."""
    of_connection, of_operation, of_byte = (
        Part(value, value * 0.9, value * 1.1) for value in (handshake, request, byte)
    )
    return Parts("postgresql", "tls", "server", of_connection, of_operation, of_byte, cells=[0], worst=1.0)


def compared() -> Comparison:
    """Two runs of a cell that got dearer by 2 µs, which both tell their parts."""
    return comparison.compare(
        [run(1, adding(4.0), parts=[fitted(4.0, 0.6, 1700)]), run(2, adding(6.0), parts=[fitted(6.0, 0.6, 900)])],
        limit=0.5,
    )


def rising() -> Trend:
    """Twenty runs of a cell that got dearer by 2 µs, which shows in its ratio too."""
    return trend([run(day, adding((4.0 if day < 13 else 6.0) + 0.1 * (day % 3))) for day in range(1, 21)])


def over_machines() -> Concluded:
    """Three machines with two CPU models, on which encryption adds 4, 5 and 6 µs."""
    names, models = [f"node-{number}" for number in (1, 2, 3)], ("One CPU", "One CPU", "Other CPU")
    cells = {name: adding(4.0 + place) for place, name in enumerate(names)}
    error = Error(0.01, 7, "t over 8 sessions")
    measured = [
        OnMachine(name, name, cpu, {key: Interval(math.log(one.ratio), (error,), 8) for key, one in cells[name].overhead.items()}, cells[name].overhead)
        for name, cpu in zip(names, models, strict=True)
    ]  # fmt: skip
    overhead = machines.over_machines(measured, "full")
    first = cells[names[0]]
    over = CellOverMachines(
        0, first.engine, [first.version], first.mechanism, first.workload, "postgresql · tls", "throughput", 3, 3, overhead,
        "differs", added=machines_added.over(cells, measured),
    )  # fmt: skip
    spec = Spec([CellSpec("postgresql", "tls")], cluster="auto", spread=True)
    placed = [
        Machine(name, name, name, [0], cpu=cpu, state="measured") for name, cpu in zip(names, models, strict=True)
    ]
    whole = MachinesRun(1, "20261128-100000-abcdef", "2026-11-28T10:00:00Z", {}, 7, spec, placed, [over], ended="now")
    bare = msgspec.structs.replace(first, overhead={name: cost.overall for name, cost in overhead.items()})
    return Concluded("runs/fleet", whole, [machines_added.shown(bare, over.added)], [cells], [measured])


DOCUMENTS: dict[str, Callable[[], blocks.Document]] = {
    "comparison": lambda: comparison_document.of(compared()),
    "trend": lambda: trend_document.of(rising()),
    "machines": lambda: machines_document.of(over_machines()),
}


def rendered(kind: str, name: str) -> str:
    if kind == "comparison":
        return comparison_formats.get(name)(compared())
    return trend_formats.get(name)(rising()) if kind == "trend" else machines_formats.get(name)(over_machines())


FORMATS = [
    (kind, name) for kind in DOCUMENTS for name in ("terminal", "md", "html") if (kind, name) != ("comparison", "html")
]


def texts(of: Sequence[blocks.Block], name: str) -> Iterator[str]:
    """What blocks say, without what this format has elsewhere."""
    for block in of:
        match block:
            case blocks.Text():
                yield block.text
            case blocks.Note():
                yield block.text[1:]
            case blocks.Alarm():
                yield from (block.title, *block.lines)
            case blocks.Figures():
                yield from (text for row in block.rows for text in row)
            case blocks.Warnings():
                yield from block.texts
            case blocks.Items() if not block.summary or name == "md":
                yield from (item.text for item in block.items)
            case blocks.Table() if name != "terminal" or block.kind == "figures":
                yield from (
                    text for row in block.rows for text in (row[: block.narrow or None] if name == "terminal" else row)
                )
            case blocks.Plotted() if name != "html":
                yield from texts([block.table], name)
            case blocks.Section() if name != "terminal" or not block.background:
                yield from (block.title, block.differs, *texts(block.blocks, name))


def squeezed(text: str) -> str:
    """Without spaces, because a line may end anywhere, and without marks of a further line of a row."""
    return "".join(text.replace("↑", "").split())


@pytest.mark.parametrize(("kind", "name"), FORMATS)
def test_no_format_drops_what_a_document_says(kind: str, name: str) -> None:
    document, text = DOCUMENTS[kind](), rendered(kind, name)
    if name != "terminal":
        text = entities.unescape(re.sub(r"<[^>]*>", " ", text)).replace("\u200b", "")
    wanted = [document.answer, *texts(document.blocks, name)]
    assert len(wanted) > 10
    assert [sentence for sentence in wanted if squeezed(sentence) not in squeezed(text)] == []


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_the_terminal_fits_80_columns(kind: str) -> None:
    assert max(map(len, rendered(kind, "terminal").splitlines())) <= WIDTH


# ── comparison ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_pair_tells_what_is_added_in_both_runs_and_how_that_differs() -> None:
    (pair,) = compared().pairs
    assert pair.added is not None
    assert (pair.added.reference.added.mean, pair.added.other.added.mean) == (4.0, 6.0)
    assert pair.added.difference.value == pytest.approx(2.0)
    assert pair.added.difference.low == pytest.approx(2.0 - math.hypot(0.3, 0.3))
    assert msgspec.json.decode(comparison_formats.get("json")(compared()), type=Comparison).pairs[0].added == pair.added


def test_a_comparison_leads_with_what_is_added_and_its_base() -> None:
    compared_runs = compared()
    (pair,) = compared_runs.pairs
    assert pair.added is not None
    (sentence,) = comparison_text.added(compared_runs)
    for side in (pair.added.reference, pair.added.other):
        assert added_text.adds(side) in sentence
        assert added_text.base(side) in sentence
    assert added_text.difference(pair.added.difference) in sentence
    document = comparison_document.of(compared_runs)
    assert blocks.Text(sentence) in document.blocks[:2]
    sections = {section.title: section for section in blocks.only(blocks.Section, document.blocks)}
    (figures,) = blocks.only(blocks.Figures, sections[pair.title].blocks)
    assert figures.rows[0] == comparison_text.added_row(pair)


def test_csv_has_what_is_added_beside_the_ratio_of_the_same_metric() -> None:
    (pair,) = compared().pairs
    assert pair.added is not None
    rows = list(csv.DictReader(io.StringIO(comparison_formats.get("csv")(compared()))))
    (row,) = (row for row in rows if row["added_us"])
    assert row["metric"] == pair.added.other.key
    assert float(row["added_us"]) == pair.added.other.added.mean
    assert float(row["reference_added_low_us"]) == pair.added.reference.added.low
    assert float(row["added_change_high_us"]) == pair.added.difference.high
    of_trend = list(csv.DictReader(io.StringIO(trend_formats.get("csv")(rising()))))
    points = [point.added for point in rising().series[0].points]
    assert [float(row["added_us"]) for row in of_trend] == [cost.added.mean for cost in points if cost is not None]


def test_units_that_both_runs_tell_are_compared() -> None:
    units = {unit.unit: unit for unit in compared().units}
    assert set(units) == {"operation", "byte", "new connection"}
    assert (units["new connection"].reference.value, units["new connection"].other.value) == (1700, 900)
    assert units["new connection"].difference.high < 0
    assert units["byte"].reference.value == pytest.approx(0.6e-3), "all in µs"
    assert units["byte"].difference.low < 0 < units["byte"].difference.high


def test_cells_that_do_not_tell_what_is_added_are_compared_by_ratios_alone() -> None:
    bare = [run(day, adding(ratio, added={})) for day, ratio in ((1, 4.0), (2, 6.0))]
    compared_runs = comparison.compare(bare)
    assert compared_runs.pairs[0].added is None
    assert list(comparison_text.added(compared_runs)) == []
    (table,) = blocks.only(blocks.Table, comparison_document.of(compared_runs).blocks)
    assert table.head == comparison_document.SUMMARY


PARTS = st.tuples(st.floats(-10, 10), st.floats(0, 5), st.floats(0, 5)).map(
    lambda drawn: Part(drawn[0], drawn[0] - drawn[1], drawn[0] + drawn[2])
)


@given(PARTS, PARTS)
def test_the_interval_of_a_difference_is_at_least_as_wide_as_each_of_both(a: Part, b: Part) -> None:
    difference = added_together.difference(a, b)
    back = added_together.difference(b, a)
    assert difference.value == b.value - a.value
    assert difference.high - difference.low >= max(part.high - part.low for part in (a, b)) / math.sqrt(2) - 1e-9
    assert (back.low, back.high) == pytest.approx((-difference.high, -difference.low))


# ── trend ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_each_level_of_a_trend_tells_what_its_runs_add() -> None:
    (series,) = rising().series
    before, after = (level.added for level in series.levels)
    assert before is not None
    assert after is not None
    assert before.added.low < 4.1 < before.added.high
    assert after.added.low < 6.1 < after.added.high
    assert (before.added.n, after.added.n) == (12, 8)
    assert after.encrypted - after.plain == pytest.approx(after.added.mean)
    assert msgspec.json.decode(trend_formats.get("json")(rising()), type=Trend).series == rising().series


def test_a_trend_leads_with_what_the_newest_runs_add() -> None:
    rise = rising()
    (series,) = rise.series
    newest = series.levels[-1]
    assert newest.added is not None
    (sentence,) = trend_text.added(rise)
    assert added_text.adds(newest.added) in sentence
    assert added_text.base(newest.added) in sentence
    assert trend_document.of(rise).blocks[0] == blocks.Text(sentence)
    (shift,) = series.shifts
    levels = [added_text.part(level.added.added) for level in series.levels if level.added is not None]
    assert added_text.from_to(levels[0], levels[1]) in trend_text.shift_text(rise, series, shift)


def test_a_level_with_a_run_that_does_not_tell_it_has_no_figure() -> None:
    runs = [run(day, adding(4.0 + 0.1 * (day % 3))) for day in range(1, 10)]
    runs[2] = run(3, adding(4.0, added={}))
    (series,) = trend(runs).series
    assert [level.added for level in series.levels] == [None]
    assert series.points[0].added is not None
    assert series.points[2].added is None


# ── machines ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_machines_lead_with_the_mean_of_what_each_adds() -> None:
    fleet = over_machines()
    added = fleet.run.cells[0].added
    assert added is not None
    assert [machine.added.mean for machine in added.machines] == [4.0, 5.0, 6.0]
    assert added.overall.added.mean == pytest.approx(5.0)
    half = student_t.quantile(0.975, 2) / math.sqrt(3)
    assert (added.overall.added.low, added.overall.added.high) == pytest.approx((5.0 - half, 5.0 + half))
    assert [(model.cpu, model.machines) for model in added.types] == [
        ("One CPU", ["node-1", "node-2"]),
        ("Other CPU", ["node-3"]),
    ]
    whole = added_text.of(fleet.cells[0])
    assert whole is not None
    assert added_text.adds(whole) in machines_text.sentences(fleet)[0]


def test_one_machine_has_its_own_interval() -> None:
    one = adding(4.0)
    on = OnMachine("node-1", "", "One CPU", {}, one.overhead)
    added = machines_added.over({"node-1": one}, [on])
    assert added is not None
    assert added.overall.added == one.added["server_cpu"]
    assert machines_added.over({"node-1": adding(4.0, added={})}, [on]) is None


# ── pages ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["trend", "machines"])
def test_a_page_with_what_is_added_fits_a_phone(kind: str, chromium: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(rendered(kind, "html"))
    with browser.Visits(chromium) as visits:
        visit = visits.open(page.as_uri(), 390, "dark")
        visit.open_all()
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= 390
        assert visit.page.evaluate(browser.CUT) == []
        assert visit.faults() == []
        assert (visit.asked, visit.complaints) == ([], [])
