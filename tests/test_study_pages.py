"""Study pages: every published number names its table in the publication, in every format."""

from __future__ import annotations

import re

import msgspec
import pytest

import results
from ciphercost import studies
from ciphercost.model import StudyFigure
from ciphercost.reports import html, md, terminal
from ciphercost.studies import sheet, together
from ciphercost.studies.sheet import Cited, Sheet
from test_agreement import made


@pytest.mark.parametrize("name", studies.names())
def test_every_published_number_names_a_table_that_the_study_lists(name: str) -> None:
    figures = [each for each in made(name).figures if each.published is not None]
    assert figures
    known = studies.get(name).sources
    assert {each.source for each in figures} <= known.keys(), "every published figure has a source"
    assert all(known.values())


@pytest.mark.parametrize("name", studies.names())
def test_every_published_number_of_a_page_links_to_its_table(name: str) -> None:
    study = made(name)
    result = msgspec.structs.replace(results.result(results.cell()), study=study)
    page = html.render(result)
    links = set(re.findall(r'<td><a href="#(published-[^"]*)"', page))
    targets = re.findall(r'<div id="(published-[^"]*)"', page)
    assert links
    assert links <= set(targets)
    assert len(targets) == len(set(targets))
    report = studies.get(name).report(study)
    assert [anchor for anchor, _ in ((sheet.anchor(each), what) for each, what in report.sources)] == targets
    for render in (terminal.render, md.render):
        text = " ".join(render(result).split())
        for source, what in report.sources:
            assert f"{source}: {what}" in text
    cited = {cell.source for each in report.sheets for row in each.rows for cell in row if isinstance(cell, Cited)}
    assert cited == {source for source, _ in report.sources}, "a table is listed where a number of it is shown"


def test_a_cell_names_the_table_of_its_published_figure_only() -> None:
    printed = StudyFigure("insert", "time", "s", "plain", published=1.5, source="Table VI")
    assert sheet.cite("1.50", None, printed) == "1.50"
    assert getattr(sheet.cite("1.50", None, printed), "source", "") == "Table VI"
    assert getattr(sheet.cite("1.50", None, printed), "anchor", "") == "published-table-vi"
    unpublished = msgspec.structs.replace(printed, published=None)
    assert not isinstance(sheet.cite("-", unpublished), Cited)


def test_text_says_below_a_table_which_rows_come_from_where() -> None:
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
    assert sheet.sources(several) == "As published: VI (time); II (insert: user); III (select: user)."
    assert sheet.sources(Sheet("", ("", "x"), [("a", "1")])) == ""


def test_rows_of_all_studies_name_their_tables() -> None:
    result = made("mysql-tls")
    assert {row.source for row in together.rows_of(result)} == {"Table VI"}
    assert "time, encrypted against plain (published: Table VI)" in together.page(
        [together.Outcome("mysql-tls", result)]
    )
