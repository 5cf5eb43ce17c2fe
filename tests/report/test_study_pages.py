"""Study pages: published costs drawn beside ours, and every published number names its table, in every format."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import browser
import results
from ciphercost import studies
from ciphercost.model.study import StudyFigure, StudyResult
from ciphercost.report import together
from ciphercost.report.formats import html, md, terminal
from ciphercost.report.plots import published
from ciphercost.report.together import Outcome
from ciphercost.studies import agreement, sheet
from ciphercost.studies.sheet import Cited, Sheet
from test_agreement import study_result as study_of

SMALLEST_TEXT = 11.95


@pytest.mark.parametrize("name", studies.names())
def test_every_published_number_names_a_table_that_the_study_lists(name: str) -> None:
    figures = [figure for figure in study_of(name).figures if figure.published is not None]
    assert figures
    known = studies.get(name).sources
    assert {figure.source for figure in figures} <= known.keys(), "every published figure has a source"
    assert all(known.values())


@pytest.mark.parametrize("name", studies.names())
def test_every_published_number_of_a_page_links_to_its_table(name: str) -> None:
    study = study_of(name)
    result = msgspec.structs.replace(results.result(results.cell()), study=study)
    page = html.render(result)
    links = set(re.findall(r'<td><a href="#(published-[^"]*)"', page))
    targets = re.findall(r'<div id="(published-[^"]*)"', page)
    assert links
    assert links <= set(targets)
    assert len(targets) == len(set(targets))
    report = studies.get(name).report(study)
    assert [anchor for anchor, _ in ((sheet.anchor(source), what) for source, what in report.sources)] == targets
    for render in (terminal.render, md.render):
        text = " ".join(render(result).split())
        for source, what in report.sources:
            assert f"{source}: {what}" in text
    cited = {cell.source for table in report.sheets for row in table.rows for cell in row if isinstance(cell, Cited)}
    assert cited == {source for source, _ in report.sources}, "a table is listed if one of its numbers is shown"


def test_a_cell_names_the_table_of_its_published_figure_only() -> None:
    printed = StudyFigure("insert", "time", "s", "plain", published=1.5, source="Table VI")
    assert sheet.cite("1.50", None, printed) == "1.50"
    assert getattr(sheet.cite("1.50", None, printed), "source", "") == "Table VI"
    assert getattr(sheet.cite("1.50", None, printed), "anchor", "") == "published-table-vi"
    unpublished = msgspec.structs.replace(printed, published=None)
    assert not isinstance(sheet.cite("-", unpublished), Cited)


def test_text_below_a_table_names_the_sources_of_its_rows() -> None:
    def cell(source: str) -> str:
        return sheet.cite("1", StudyFigure("x", "x", "", "plain", published=1.0, source=source))

    one = Sheet("", ("", "published"), [("a", cell("Table 1")), ("b", "-")])
    assert sheet.sources(one) == "As published: Table 1."
    rows = [
        ("insert",),
        ("time", cell("VI")),
        ("user", cell("II")),
        ("select",),
        ("time", cell("VI")),
        ("user", cell("III")),
    ]
    several = Sheet("", ("", "published"), rows)
    assert sheet.sources(several).endswith(": VI (time); II (insert: user); III (select: user).")
    assert sheet.sources(Sheet("", ("", "x"), [("a", "1")])) == ""


def test_rows_of_all_studies_name_their_tables() -> None:
    result = study_of("mysql-tls")
    assert {row.source for row in together.rows_of(result)} == {"Table VI"}
    assert "(published: Table VI)" in together.page([Outcome("mysql-tls", result)])


# ── the plot


def charted(*costs: StudyFigure, width: Any = "wide") -> dict[str, list[dict[str, Any]]]:
    """The drawing of mysql-tls with these costs."""
    result: StudyResult = msgspec.structs.replace(study_of("mysql-tls"), figures=list(costs))
    (plot,) = published.drawn(result)
    return plot.charts[width].data


def cost(
    name: str, printed: float | None, ours: float | None = None, low: float | None = None, high: float | None = None
) -> StudyFigure:
    return StudyFigure(name, "time", "ratio", "cost", published=printed, ours=ours, low=low, high=high)


def test_every_cost_has_its_published_value_and_our_interval_in_their_places() -> None:
    data = charted(cost("insert", 1.1, 1.05, 1.03, 1.07), cost("select", 0.8))
    first, second = data["rows"]
    assert [first[key] for key in ("published", "estimate", "low", "high")] == pytest.approx([10, 5, 3, 7])
    assert (first["has_ours"], second["has_ours"]) == (True, False)
    assert second["published"] == pytest.approx(-20)
    assert second["said"] == ["published: 20.0 % less", "our method: -"]
    assert data["none"] == [{"at": 0}]
    assert data["cut"] == []


def test_the_axis_has_factors_from_a_doubling_on() -> None:
    data = charted(cost("insert", 10.0, 1.0, 0.9, 1.1))
    (row,) = data["rows"]
    assert row["published"] == pytest.approx(1)
    assert row["kind"] == "unresolved"
    assert data["none"] == [{"at": 0}]


def test_a_meaningless_interval_does_not_stretch_the_axis() -> None:
    data = charted(cost("insert", 1.1, 1.05, 0.0, 5000.0), cost("select", 1.2, 1.2, 1.1, 1.3))
    assert {arrow["side"] for arrow in data["cut"]} == {"left", "right"}
    assert all(-20 < arrow["at"] < 40 for arrow in data["cut"])
    assert all(row["has_ours"] for row in data["rows"])


def test_without_a_published_cost_there_is_no_plot() -> None:
    result = msgspec.structs.replace(study_of("mysql-tls"), figures=[cost("insert", None, 1.0, 0.9, 1.1)])
    assert list(published.drawn(result)) == []


# ── in a browser


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the page of each study and of `all`."""
    place = tmp_path_factory.mktemp("pages")
    for name in studies.names():
        result = msgspec.structs.replace(results.result(results.cell()), study=study_of(name))
        (place / f"{name}.html").write_text(html.render(result))
    outcomes = [Outcome(name, study_of(name), "", f"runs/x-all/{name}") for name in studies.names()]
    outcomes[0] = Outcome(outcomes[0].study, None, "no server of this kind is anywhere")
    (place / "all.html").write_text(html.render_all(outcomes, "20260101", "ciphercost replicate all", "then"))
    return place


@pytest.fixture
def pages(chromium: Any, place: Path) -> Iterator[Any]:
    """Opens the page of a study, or of `all`."""
    with browser.Visits(chromium) as visits:

        def go(name: str, width: int, scheme: str = "light") -> browser.Visit:
            return visits.open((place / f"{name}.html").as_uri(), width, scheme)

        yield go


PLOTS = "[...document.querySelectorAll('svg[role=img]')].filter(s => s.checkVisibility()).map(s => s.getAttribute('aria-label'))"


@pytest.mark.parametrize("name", [*studies.names(), "all"])
@pytest.mark.parametrize(("width", "scheme"), [(375, "light"), (375, "dark"), (1440, "light"), (1440, "dark")])
def test_a_study_page_can_be_read_at_every_width(pages: Any, name: str, width: int, scheme: str) -> None:
    visit = pages(name, width, scheme)
    labels = visit.page.evaluate(PLOTS)
    drawn = [label for label in labels if "Published and measured here" in label]
    assert len(drawn) == (len(studies.names()) - 1 if name == "all" else 1)
    heads = [*agreement.HEADS.values(), *agreement.HEADS_OF_LIMITS.values()]
    assert all(any(head in label for head in heads) for label in drawn)
    visit.open_all()
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    assert [text for text in visit.page.evaluate(browser.TEXTS) if text[1] < SMALLEST_TEXT] == []
    assert visit.page.evaluate(browser.CUT) == []
    assert visit.asked == []
    assert visit.complaints == []
    assert visit.faults() == []
    assert visit.page.evaluate(
        "[...document.querySelectorAll('a[href^=\"#\"]')].every(a => document.getElementById(a.hash.slice(1)))"
    )
    ids = visit.page.evaluate("[...document.querySelectorAll('[id]')].map(element => element.id)")
    assert len(ids) == len(set(ids))


def test_the_page_of_all_begins_with_how_many_were_replicated(pages: Any, tmp_path: Path) -> None:
    headline = pages("all", 1440).page.inner_text("h1")
    assert headline.startswith(f"{len(studies.names())} published studies: ")
    assert "1 without a result" in headline
    counted = [int(number) for number in re.findall(r"(\d+) [a-z]", headline)][1:]
    assert sum(counted) == len(studies.names())
