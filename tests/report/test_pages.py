"""Pages at every width: nothing is cut, links work, charts stay in their frames, and each colour has one meaning."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import browser
import results
from ciphercost.estimate import curves
from ciphercost.model.result import Cell, Curve, Part, Parts, Point, Result
from ciphercost.report import plots
from ciphercost.report.formats import html, md, terminal
from ciphercost.report.plots import Subject, _draw, curve, forest, where
from ciphercost.report.words import cell_text
from test_agreement import study_result as study_of

WIDTHS = (390, 1024, 1280, 1300, 1440)
WIDE = 1280
OUTSIDE = """
() => [...document.querySelectorAll('main figure svg[role=img]')].filter(s => s.checkVisibility()).flatMap(svg => {
  const frame = svg.viewBox.baseVal;
  return [...svg.querySelectorAll('text, path, line, rect')].map(mark => {
    const box = mark.getBBox(), to = svg.getScreenCTM().inverse().multiply(mark.getScreenCTM());
    const left = box.x * to.a + box.y * to.c + to.e, top = box.x * to.b + box.y * to.d + to.f;
    const slack = mark.tagName === 'text' ? 6 : 1;
    const out = left < frame.x - slack || top < frame.y - slack || left + box.width > frame.x + frame.width + slack
      || top + box.height > frame.y + frame.height + slack;
    return out ? [mark.tagName, mark.textContent, left, left + box.width, frame.width] : null;
  }).filter(Boolean);
})
"""
"""Marks and texts outside their chart. Texts may exceed it by a few pixels in another font."""


def many() -> Result:
    """Cells of every kind: a very wide interval, a curve of three points, parts, a study, all disturbed."""
    arm = {
        "operations": 10,
        "connects": 10,
        "server_cpu_us_per_op": 12.0,
        "server_user_us_per_op": 7.0,
        "server_system_us_per_op": 5.0,
        "client_cpu_us_per_op": 6.0,
        "client_user_us_per_op": 2.0,
        "client_system_us_per_op": 4.0,
        "machine_cpu_us_per_op": 20.0,
        "wire_bytes_per_op": 2000.0,
    }
    dearer = {name: 1.4 * value for name, value in arm.items()}
    common: dict[str, Any] = {"arms": {"plain": arm, "encrypted": dearer}, "disturbed": True}
    cells = [results.cell(clients=count, workload="point-select", **common) for count in (1, 8, 32)]
    wide = msgspec.structs.replace(results.estimate(0.9), low=0.001, high=30.0)
    cells.append(results.cell("mariadb", "innodb-tde", layer="rest", overhead={"throughput": wide}, **common))
    cells.append(results.failed(workload="a workload with a name that is longer than what usually has room in a chart"))
    points = [
        Point(float(n), estimate, 5.0, 0)
        for n, estimate in ((1, wide), (8, results.estimate(0.7)), (32, results.estimate(0.6)))
    ]
    line = Curve("postgresql", "18.4", "tls", "point-select", "clients", points)
    part = {
        name: Part(value, value - 1, value + 1)
        for name, value in (("handshake_us", 30.0), ("request_us", 20.0), ("byte_ns", 9.0))
    }
    both = [Parts("postgresql", "tls", end, **part, cells=[0], worst=1.0) for end in ("server", "client")]  # type: ignore[arg-type]
    return results.result(
        *cells,
        curves=[line],
        parts=both,
        study=study_of("web-tls"),
        command="ciphercost run " + "postgresql:tls " * 30,
    )


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(html.render(many(), budget=0.05))
    return path


@pytest.fixture
def opened(chromium: Any, page: Path) -> Iterator[Any]:
    with browser.Visits(chromium) as visits:

        def go(width: int, scheme: str = "light") -> browser.Visit:
            return visits.open(page.as_uri(), width, scheme)

        yield go


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_clipped_and_all_marks_are_inside_their_charts(opened: Any, width: int) -> None:
    visit = opened(width)
    assert visit.page.evaluate(browser.CLIPPED) == [], "before anything is unfolded"
    visit.open_all()
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    assert visit.page.evaluate(OUTSIDE) == []
    assert visit.page.evaluate(browser.CUT) == []
    if width >= WIDE:
        assert visit.page.evaluate(browser.CLIPPED) == [], "only a phone may need to scroll a study's widest tables"


def test_marks_outside_their_chart_are_detected(opened: Any) -> None:
    visit = opened(1300)
    visit.page.evaluate("document.querySelector('main .wide svg text').setAttribute('transform', 'translate(-900,0)')")
    assert len(visit.page.evaluate(OUTSIDE)) == 1
    visit.page.evaluate("document.querySelector('h1').style = 'overflow:hidden;white-space:nowrap;width:50px'")
    assert visit.page.evaluate(browser.CLIPPED)


@pytest.mark.parametrize(("width", "shown"), [(390, "details.contents"), (1300, "nav.side"), (1440, "nav.side")])
def test_the_table_of_contents_leads_to_every_section_and_cell(opened: Any, width: int, shown: str) -> None:
    visit = opened(width)
    visit.open_all()
    seen = visit.page.evaluate(
        """() => ['details.contents', 'nav.side'].filter(selector => document.querySelector(selector).checkVisibility())"""
    )
    assert seen == [shown]
    links = visit.page.evaluate(
        f"[...document.querySelectorAll('{shown} a')].map(a => a.getAttribute('href').slice(1))"
    )
    sections = visit.page.evaluate("[...document.querySelectorAll('main h2')].map(h => h.id)")
    cells = visit.page.evaluate("[...document.querySelectorAll('details.cell .body')].map(b => b.id)")
    assert [link for link in links if link.startswith("h-")] == sections
    assert [link for link in links if link.startswith("cell-")] == cells
    assert visit.page.evaluate(
        "[...document.querySelectorAll('a[href^=\"#\"]')].every(a => document.getElementById(a.hash.slice(1)))"
    )


def test_print_has_the_contents_once(opened: Any) -> None:
    visit = opened(1300)
    visit.page.emulate_media(media="print")
    assert visit.page.evaluate("document.querySelector('nav.side').checkVisibility()") is False
    assert visit.page.evaluate("document.querySelector('details.contents li').getBoundingClientRect().height") > 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1300])
def test_axe_finds_no_serious_violation(opened: Any, width: int, scheme: str) -> None:
    visit = opened(width, scheme)
    visit.open_all()
    assert visit.faults() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_colour_of_a_chart_contrasts_with_the_page(opened: Any, scheme: str) -> None:
    names = ("--plain", "--encrypted", "--server", "--client", "--strong", "--weak", "--ink", "--bad")
    visit = opened(1300, scheme)
    read = "names => names.map(n => getComputedStyle(document.documentElement).getPropertyValue(n).trim())"
    ground, *shown = visit.page.evaluate(read, ["--page", *names])
    assert len(set(shown)) == len(names), "one meaning per colour"
    assert [(name, colour) for name, colour in zip(names, shown, strict=True) if contrast(colour, ground) < 3] == []


def contrast(one: str, other: str) -> float:
    """WCAG's ratio of two colours."""
    light, dark = sorted((luminance(colour) for colour in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


# ── charts


def test_arms_ends_and_parts_have_colours_of_their_own() -> None:
    arms = {_draw.PLAIN, _draw.ENCRYPTED}
    ends = {colour for *_, colour in where.ENDS}
    parts = {colour for *_, colour in where.PARTS}
    assert not arms & ends
    assert not arms & parts
    assert not ends & parts
    drawn = "".join(plot.drawn() for plot in plots.every(Subject(many(), budget=0.05)) if plot.charts)
    assert not any(colour in drawn for colour in arms), "no chart of the whole run shows a single arm"


def test_a_single_dominant_part_is_a_note_instead_of_a_chart() -> None:
    arms = {"plain": {"connects": 10, "operations": 10, "wire_bytes_per_op": 1.0}}
    part = {
        name: Part(value, value, value)
        for name, value in (("handshake_us", 300.0), ("request_us", 1.0), ("byte_ns", 0.1))
    }
    alone = [Parts("nginx", "tls", "server", **part, cells=[0], worst=1.0)]  # type: ignore[arg-type]
    result = results.result(results.cell(arms=arms), parts=alone)
    plot = next(iter(where.plots(Subject(result))))
    assert plot.charts == {}
    assert "handshakes 99 %" in plot.note
    assert plot.table.rows
    page = html.render(result)
    assert "handshakes 99 %" in page


def test_unchanged_cpu_is_a_note_instead_of_a_chart() -> None:
    arm = {f"{end}_{mode}_us_per_op": 5.0 for end in ("server", "client") for mode in ("user", "system")}
    arm |= {"server_cpu_us_per_op": 10.0, "client_cpu_us_per_op": 10.0}
    same = results.cell(arms={"plain": arm, "encrypted": {name: value * 0.995 for name, value in arm.items()}})
    (plot,) = where.plots(Subject(results.result(same)))
    assert plot.charts == {}
    assert "1 %" in plot.note
    dearer = results.cell(arms={"plain": arm, "encrypted": {name: value * 1.1 for name, value in arm.items()}})
    (plot,) = where.plots(Subject(results.result(dearer)))
    assert plot.charts


def test_a_plot_file_has_its_title_and_its_cell(tmp_path: Path) -> None:
    result = many()
    written = plots.write(Subject(result), tmp_path / "svg", "svg")
    assert [path.stem for path in written] == [
        "published",
        "forest",
        "elsewhere",
        "where-parts",
        "where-cpu",
        "curve-clients-1",
    ]
    for path in written:
        texts = re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text())
        assert f"ciphercost run {result.id}" in texts, "no likely font is wider"
    one = results.result(results.cell(variant="size=1MB"))
    (path,) = plots.write(Subject(one), tmp_path / "one", "svg")
    printed = " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text()))
    for words in (forest.TITLES["throughput"], "postgresql 18.4 · tls · point-select"):
        assert words in printed
    (path,) = plots.write(Subject(one), tmp_path / "png", "png")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_the_plot_file_of_a_cell_names_the_cell() -> None:
    run_result = results.result(results.cell(variant="size=1MB"), results.cell("mariadb"))
    shape = next(plots.every(Subject(run_result)))
    title, cell, run = plots.heading(run_result, shape._replace(cell=0, caption="Latency, ms"))
    assert (title, run) == ("Latency, ms", f"ciphercost run {run_result.id}")
    assert cell == f"{cell_text.heading(run_result.cells[0])} · size=1MB"


def cells_of(*clients: int) -> list[Cell]:
    return [results.cell(clients=count) for count in clients]


def test_the_result_keeps_a_curve_of_two_values_and_reports_show_those_of_three() -> None:
    (two,) = curves.curves(cells_of(1, 8))
    assert [point.x for point in two.points] == [1, 8]
    (three,) = curves.curves(cells_of(1, 8, 32))
    assert [point.x for point in three.points] == [1, 8, 32]
    assert curves.curves(cells_of(8)) == []
    for line, shown in ((two, False), (three, True)):
        result = results.result(*cells_of(1, 8, 32), curves=[line])
        assert bool(list(curve.plots(Subject(result)))) is shown
        for render in (terminal.render, md.render):
            assert ("cost against clients" in render(result)) is shown


def test_a_curves_interval_beyond_the_plot_ends_in_an_arrow() -> None:
    (plot,) = curve.plots(Subject(many()))
    chart = plot.charts["wide"]
    assert [(row["x"], row["side"]) for row in chart.data["cut"]] == [(1, "down")], "99.9 % is near the estimates"
    low, high = (end(row[key] for row in chart.data["points"]) for end, key in ((min, "low"), (max, "high")))
    assert low > -200, "the axis follows the estimates"
    assert high <= 200
    assert "extends beyond the plot" in plot.note


def test_the_ends_of_an_interval_are_visible_beside_its_point() -> None:
    radius = (forest.POINT / 3.1416) ** 0.5
    assert radius < _draw.CAP
    narrow = results.result(results.cell(overhead={"throughput": results.estimate(0.8, 0.0001)}))
    (plot,) = forest.plots(Subject(narrow))
    assert plot.drawn().count("<line") >= 3, "the interval and both of its ends"
